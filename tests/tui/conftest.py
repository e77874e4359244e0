"""Audits for the app's tests, and a way to drive the app: `drive(audit, size, steps)` runs steps against the screen."""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from textual.pilot import Pilot

from ragaudit.audit.run import audit
from ragaudit.config import load_settings
from ragaudit.readers.bundle import locate, open_bundle
from ragaudit.tui.app import ReviewApp
from ragaudit.tui.panes import Pane
from ragaudit.tui.session import Session
from tests.conftest import ROOT

NARROW, WIDE = (80, 24), (120, 36)
PATIENCE = 30.0
"""Seconds."""
NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)

Steps = Callable[[ReviewApp, Pilot], Awaitable[None]]


@pytest.fixture(scope="session")
def demo_made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example, audited once."""
    paths = locate(ROOT / "examples" / "demo")
    out = tmp_path_factory.mktemp("tui") / "demo.audit"
    audit(open_bundle(paths, load_settings(paths.config, env={}, flags={})), out)
    return out


@pytest.fixture
def demo(demo_made: Path, tmp_path: Path) -> Path:
    """The example's audit, for one test to write reviews into."""
    return Path(shutil.copy(demo_made, tmp_path / "demo.audit"))


def drive(path: Path, size: tuple[int, int], steps: Steps, **options: str | None) -> None:
    """Open the app without a terminal and run the steps."""

    async def body() -> None:
        with Session.open(path, **options) as session:
            app = ReviewApp(session)
            async with app.run_test(size=size) as pilot:
                await pilot.pause()
                await steps(app, pilot)

    asyncio.run(body())


async def until(pilot: Pilot, holds: Callable[[], object]) -> None:
    """Let the app go on until something holds: what a busy machine does late is waited for."""
    for _ in range(int(PATIENCE / 0.02)):
        if holds():
            return
        await pilot.pause(0.02)
    raise AssertionError(f"did not come: {screen_text(pilot.app)}")


def pane(app: ReviewApp, name: str) -> Pane:
    """A pane of the screen that is shown."""
    return app.screen.query_one(f"#{name}", Pane)


def status(app: ReviewApp) -> str:
    """What the status line says."""
    screen = app.main_screen
    assert screen is not None
    return screen.query_one("#status", Pane).text()


def screen_text(app: ReviewApp) -> str:
    """All cells of the screen as text."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())
