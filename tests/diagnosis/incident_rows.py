"""Incidents as JSON lines: the public ones beside the repository, and our own when they are there."""

import json
from pathlib import Path
from typing import Any

import pytest
from diagnosis_builders import Bundle

_TESTS = Path(__file__).resolve().parents[1]
PUBLIC = _TESTS.parents[1] / "shared" / "incidents" / "incidents.jsonl"
OWN = _TESTS / "data"


def rows(path: Path) -> list[dict[str, Any]]:
    """The incidents of one file; none when it is missing."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def public() -> list[dict[str, Any]]:
    """The incidents that are given with the task."""
    return rows(PUBLIC)


def own() -> list[dict[str, Any]]:
    """The incidents that stand in the repository."""
    return [row for path in sorted(OWN.glob("own_incidents_*.jsonl")) for row in rows(path)]


def parameters() -> list[Any]:
    """Every incident as a test parameter, or one skipped one that says what is missing."""
    found = [pytest.param(row, id=row["incident_id"]) for row in (*public(), *own())]
    if not public():
        found.append(pytest.param(None, id="public", marks=pytest.mark.skip(reason="../shared/incidents is not here")))
    return found


def bundle_of(row: dict[str, Any]) -> Bundle:
    """The incident's bundle."""
    parts = row["bundle"]
    return Bundle(*(parts.get(name) for name in ("trace", "sources", "chunks", "index", "pipeline")))
