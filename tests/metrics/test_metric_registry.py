from pathlib import Path

from ragaudit.metrics.registry import BY_NAME, REGISTRY
from ragaudit.model.result import JUDGED, METRICS

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_metric_is_registered_once_in_the_order_of_the_result():
    assert tuple(info.name for info in REGISTRY) == METRICS + JUDGED
    assert len(BY_NAME) == len(REGISTRY)


def test_what_a_metric_needs_follows_from_where_it_is_listed():
    assert {info.name: info.needs for info in REGISTRY} == {name: "gold" for name in METRICS} | {
        name: "judge" for name in JUDGED
    }


def test_every_registered_metric_has_a_section_in_the_documentation_with_its_question():
    text = DOCS.read_text(encoding="utf-8")
    sections = {part.splitlines()[0].strip("` "): part for part in text.split("\n### ")[1:]}
    assert set(sections) >= set(BY_NAME)
    assert [info.name for info in REGISTRY if info.question not in sections[info.name]] == []
