"""How far the person agrees with the diagnoses, on the overview."""

import pytest

from tests.tui.builders import lost_at_pack, write
from tests.tui.conftest import NARROW, WIDE, drive, pane


@pytest.mark.parametrize("size", [NARROW, WIDE], ids=["80x24", "120x36"])
def test_the_overview_says_how_far_you_agree_once_there_is_a_verdict(tmp_path, size):
    audit = write(tmp_path / "run.audit", [lost_at_pack("q1"), lost_at_pack("q2"), lost_at_pack("q3")])

    async def steps(app, pilot):
        await pilot.press("o")
        await pilot.pause()
        assert "you agree" not in pane(app, "scores").text()
        await pilot.press("r", "1", "2", "o")
        await pilot.pause()
        said = " ".join(pane(app, "scores").text().split())
        assert "you agree with 1 of 2 (0.50 [0.09, 0.91]), kappa of the stage undefined: small sample" in said

    drive(audit, size, steps)
