"""The tables of the manual are those of the registries, and nothing stands in the manual that the program lost."""

import re
import runpy

import pytest

from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES
from ragaudit.metrics.registry import REGISTRY
from ragaudit.model.diagnosis import STAGES
from tests.conftest import ROOT

DOCS = ROOT / "docs"
GENERATOR = runpy.run_path(str(DOCS / "tables.py"))
TABLES, written, anchor = GENERATOR["TABLES"], GENERATOR["written"], GENERATOR["anchor"]


def headings(page: str, marks: str) -> list[str]:
    return re.findall(rf"^{marks} (.+)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("page", TABLES)
def test_the_tables_of_a_page_are_as_the_program_is(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert written(page, text) == text, "run `make docs-tables`"


def test_the_manual_of_causes_holds_each_cause_once_under_its_stage():
    sections = (DOCS / "causes.md").read_text(encoding="utf-8").split("\n## ")[1:]
    found = {part.splitlines()[0]: set(re.findall(r"^### (.+)$", part, re.MULTILINE)) for part in sections}
    known = {stage.label: {name for name, info in CAUSES.items() if info.stage is stage} for stage in STAGES}
    assert {stage: found.get(stage) for stage in known} == known
    assert len(headings("causes.md", "###")) == len(CAUSES)


def test_the_manual_of_stages_holds_each_stage_once_in_order():
    found = headings("stages.md", "##")
    assert [heading for heading in found if heading in {stage.label for stage in STAGES}] == [s.label for s in STAGES]


def test_the_manual_of_metrics_holds_each_metric_once_in_order():
    assert headings("metrics.md", "###") == [info.name for info in REGISTRY]


def test_a_page_without_a_mark_is_refused():
    with pytest.raises(ValueError, match="Write both where the table belongs"):
        written("stages.md", "# Stages\n")


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("Embed/index", "embedindex"),
        ("hit@k", "hitk"),
        ("1 Index and parse the gold's sources", "1-index-and-parse-the-golds-sources"),
        ("source_stale", "source_stale"),
    ],
)
def test_an_anchor_is_made_as_github_makes_it(heading, expected):
    assert anchor(heading) == expected
