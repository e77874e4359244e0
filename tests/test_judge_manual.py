"""docs/judge.md against the program: its worked example comes out, its tables are whole."""

import re

import pytest

from ragaudit.judge.score import METRICS, score
from ragaudit.judge.tape import TapeMode
from ragaudit.model.judgement import Cell, Claim, JudgeSample, JudgeState, SampleChunk, Side, Verdict


@pytest.fixture
def manual(repository):
    return (repository / "docs" / "judge.md").read_text()


def test_the_worked_example_comes_out(manual):
    rows = re.findall(r"^\| ([ra]\d) \| (\w+) \| (\w+) \| (\w+) \| (\w*) ?\| (\w*) ?\|$", manual, re.MULTILINE)
    assert [row[0] for row in rows] == ["r1", "r2", "a1", "a2", "a3"]
    columns = ("c1", "c2", "c3", "@answer", "@reference")
    cells = [
        Cell(claim_id=row[0], chunk_id=column, verdict=Verdict(word))
        for row in rows
        for column, word in zip(columns, row[1:], strict=True)
        if word
    ]
    claims = [
        Claim(id=row[0], side=Side.REFERENCE if row[0].startswith("r") else Side.ANSWER, text=row[0]) for row in rows
    ]
    chunks = tuple(SampleChunk(id=name, text=name) for name in columns[:3])
    sample = JudgeSample(query_id="q", query="?", answer="a", reference="r", chunks=chunks)
    found = score(sample, claims, cells, abstained=False).metrics
    shown = dict(re.findall(r"^\| `(\w+)` \| .* \| ([\d/() +]+) \|$", manual, re.MULTILINE))
    assert set(shown) == set(METRICS)
    for name, formula in shown.items():
        assert found[name] == pytest.approx(_value(formula)), name


def _value(formula):
    """`2/3`, or `(1/1 + 2/3) / 2`."""
    total, _, by = formula.partition(") / ")
    shares = [part.split("/") for part in total.strip("(").split(" + ")]
    return sum(int(a) / int(b) for a, b in shares) / int(by or 1)


def test_every_state_and_tape_mode_is_explained(manual):
    for word in (*JudgeState, *TapeMode):
        assert f"| `{word}` |" in manual, word
