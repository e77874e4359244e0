"""An audit of the redacted bundle says what the audit of the original says."""

from pathlib import Path
from typing import Any

import pytest
from redact_builders import PUT, VALUES, audited, personal_bundle, walker

from ragaudit.redact.fields import TextMode
from ragaudit.redact.run import redact_folder


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("personal")
    bundle = personal_bundle(Path(__file__).resolve().parents[2] / "examples" / "demo", folder / "bundle")
    return bundle, audited(bundle, folder / "run.audit")


def said(document: dict[str, Any]) -> list[tuple[Any, ...]]:
    keys = (
        "outcome",
        "stage",
        "secondary",
        "causes",
        "gap",
        "could_be",
        "severity",
        "metrics",
        "undefined",
        "delivered",
    )
    gold = ("grade", "eligible", "outcome", "stage")
    return [
        (*(one[key] for key in keys), [[label[key] for key in gold] for label in one["gold"]])
        for one in document["queries"]
    ]


def test_redacted_texts_ids_and_principals_change_no_outcome_stage_cause_or_metric(
    original: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    bundle, before = original
    redact_folder(bundle, tmp_path / "out", walker(), lambda n: None)
    after = audited(tmp_path / "out", tmp_path / "run.audit")
    assert said(after) == said(before)
    for part in ("outcomes", "stages", "metrics", "at", "canary", "not_retrieval"):
        assert len(after[part]) == len(before[part])
    for part in ("outcomes", "stages", "metrics", "at", "canary"):
        assert after[part] == before[part]
    assert sum(before["stages"].values()) > 40


def test_no_planted_value_is_left_in_any_file(original: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    bundle, _ = original
    redact_folder(bundle, tmp_path / "out", walker(), lambda n: None)
    written = "".join(path.read_text("utf-8") for path in (tmp_path / "out").iterdir())
    held = "".join(path.read_text("utf-8") for path in bundle.iterdir())
    assert [value for value in VALUES if value not in held] == []
    assert [value for value in VALUES if value in written] == []
    assert len(PUT) == 7


def test_without_texts_ranks_access_and_spans_still_say_the_same(
    original: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    bundle, before = original
    redact_folder(bundle, tmp_path / "out", walker(TextMode.DROP), lambda n: None)
    after = audited(tmp_path / "out", tmp_path / "run.audit")
    assert after["metrics"] == before["metrics"]
    assert [one["outcome"] for one in after["queries"]] == [one["outcome"] for one in before["queries"]]
    assert [one["stage"] for one in after["queries"]] == [one["stage"] for one in before["queries"]]
