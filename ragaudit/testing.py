"""The pytest plugin: a test suite replays its judge calls from cassettes, without a key, and fails on a miss.

Loaded by pytest in every session of an environment that has ragaudit, so this module imports nothing but pytest; the
judge is loaded by the first test that asks for it, and a model provider only when something is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ragaudit.config import JudgeSettings
    from ragaudit.judge.tape import Tape
    from ragaudit.model.judgement import Judgement, JudgeSample

MODES = ("none", "once", "new", "all")
MARKER = "judge_cassette(name): replay from <judge_cassettes>/<name>.jsonl instead of the module's own cassette."

_OPEN: pytest.StashKey[dict[Path, Tape]] = pytest.StashKey()
"""The tapes of the session by path: in `once` and `all`, a module's tests must share what was recorded just now."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--judge-record` and the two ini values."""
    parser.getgroup("ragaudit").addoption(
        "--judge-record",
        choices=MODES,
        default="none",
        help="none: replay only, fail on a miss (default); once: record cassettes that do not exist yet; "
        "new: record what is missing; all: ask the model again for everything.",
    )
    parser.addini("judge_cassettes", "Folder of the judge cassettes, relative to the root.", default="cassettes")
    parser.addini("judge_config", "The ragaudit.toml whose [judge] table applies.", default="ragaudit.toml")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known, for suites that run with --strict-markers."""
    config.addinivalue_line("markers", MARKER)
    config.stash[_OPEN] = {}


def pytest_unconfigure(config: pytest.Config) -> None:
    """Put what was recorded in its place."""
    tapes = config.stash.get(_OPEN, {})
    while tapes:
        tapes.popitem()[1].close()


@pytest.fixture
def judge_cassette(request: pytest.FixtureRequest) -> JudgeCassette:
    """The judge, bound to `cassettes/<test module>.jsonl`, or to the cassette that the marker of this name gives."""
    config = request.config
    marker = request.node.get_closest_marker("judge_cassette")
    name = str(marker.args[0]) if marker is not None and marker.args else request.path.stem
    settings = config.rootpath / config.getini("judge_config")
    return JudgeCassette(
        config.rootpath / config.getini("judge_cassettes") / f"{name}.jsonl",
        mode=config.getoption("--judge-record"),
        config=settings if settings.is_file() else None,
        tapes=config.stash[_OPEN],
    )


class JudgeCassette:
    """The judge of one test: hand it samples, get judgements, from `path` or, when recording, from the model."""

    def __init__(self, path: Path, *, mode: str, config: Path | None, tapes: dict[Path, Tape]) -> None:
        """Nothing is opened or loaded before the first use.

        Args:
            path: The cassette.
            mode: none, once, new or all.
            config: A ragaudit.toml whose [judge] table says model, endpoint and parameters; None = there is none.
            tapes: Where the open tapes of the session are kept.
        """
        self.path = path
        self.mode = mode
        self._config = config
        self._tapes = tapes

    @property
    def tape(self) -> Tape:
        """The open tape, for a suite that drives the judge itself."""
        if self.path not in self._tapes:
            from ragaudit.judge.tape import Tape, TapeMode

            self._tapes[self.path] = Tape.open(TapeMode(self.mode), cassette=self.path, cache=None)
        return self._tapes[self.path]

    def judge(self, samples: Iterable[JudgeSample | Mapping[str, Any]], **settings: Any) -> list[Judgement]:
        """Judge samples, in order. A reply that is not on the cassette fails the test and says what to do.

        Args:
            samples: Records, or mappings of the same fields: query_id, query, answer, reference,
                chunks = [{"id": ..., "text": ...}].
            settings: Keys of the [judge] table that win over the file: model, api_base, mode, parameters, ...
        """
        from ragaudit.errors import TapeMissError
        from ragaudit.judge.runner import run
        from ragaudit.judge.settings import how_to_judge, limits, litellm_client, prompts_of
        from ragaudit.model.judgement import JudgeSample

        configured = self._settings(settings)
        judged = run(
            [each if isinstance(each, JudgeSample) else JudgeSample.model_validate(each) for each in samples],
            prompts=prompts_of(configured, (self._config or self.path).parent),
            how=how_to_judge(configured),
            tape=self.tape,
            client=litellm_client(configured) if self.tape.records else None,
            limits=limits(configured),
        )
        try:
            return list(judged)
        except TapeMissError as error:
            missing = str(error).partition(" Record it: ")[0]
        pytest.fail(f"{missing} Record it: run pytest with --judge-record=new, where the model can be reached.", False)

    def _settings(self, settings: Mapping[str, Any]) -> JudgeSettings:
        from ragaudit.config import JudgeSettings, load_settings

        said = load_settings(self._config, env=os.environ, flags={}).judge or JudgeSettings()
        return JudgeSettings.model_validate({**said.model_dump(), **settings})
