"""docs/data.md against the records: every field that a bundle may hold is described, in the table of its file."""

import re

import pytest

from ragaudit.model.inventory import Chunk, Index, IndexArm, Source
from ragaudit.model.trace import Answer, ArmStatus, Conversation, Gold, Hit, Probe, Trace
from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
SECTIONS = {part.splitlines()[0]: part for part in PAGE.split("\n## ")[1:]}
RECORDS = [
    ("traces.jsonl", Trace),
    ("traces.jsonl", Gold),
    ("traces.jsonl", Answer),
    ("traces.jsonl", ArmStatus),
    ("traces.jsonl", Conversation),
    ("traces.jsonl", Probe),
    ("sources.jsonl", Source),
    ("chunks.jsonl", Chunk),
    ("index.json", Index),
    ("index.json", IndexArm),
]

MADE_BY_THE_READER = {"gold_labelled"}


def named(section: str) -> set[str]:
    """Every word in code of a section."""
    return set(re.findall(r"`([^`]+)`", section))


@pytest.mark.parametrize(("file", "record"), RECORDS, ids=lambda value: getattr(value, "__name__", value))
def test_every_field_of_a_record_is_described_where_its_file_is(file, record):
    fields = {field.alias or name for name, field in record.model_fields.items()} - MADE_BY_THE_READER
    assert fields - named(SECTIONS[file]) == set()


def test_every_field_of_a_hit_is_described():
    section = SECTIONS["traces.jsonl"]
    fields = set(Hit.__struct_fields__) - {"extra"}
    assert {field for field in fields if f'"{field}"' not in section and field not in named(section)} == set()


def test_a_trace_with_the_required_fields_alone_is_read():
    rows = re.findall(r"^\| `(\w+)` \|", PAGE.split("### The fields to have")[1].split("###")[0], re.MULTILINE)
    assert rows == [name for name in Trace.model_fields if name in rows]
    required = [name for name, field in Trace.model_fields.items() if field.is_required()]
    assert required == ["query_id", "query_text", "k_final"]
