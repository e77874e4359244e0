"""Text that its user may not read stays hidden under every name that a log has for it, in trace and text door."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragaudit.audit.run import audit
from ragaudit.config import load_settings
from ragaudit.errors import AuditFileError
from ragaudit.model.diagnosis import Outcome, Severity, Stage
from ragaudit.model.result import QueryResult
from ragaudit.readers.bundle import locate, open_bundle
from ragaudit.report.diagnosis_text import diagnosis_text
from ragaudit.store import AuditReader
from ragaudit.store.texts import ReadableTexts

SECRET = "The salary band of level seven begins at ninety thousand."
WHY = "the query's user may not read it"
SOURCES = [{"source_id": "hr", "acl": ["role:hr"]}, {"source_id": "open", "acl": ["role:all"]}]
OPEN = {"chunk_id": "a", "source_id": "open", "text": "Refunds are possible within 30 days."}
HIDDEN = {"chunk_id": "h", "source_id": "hr", "text": SECRET}
CHILD = {"chunk_id": "k", "source_id": "hr", "parent_id": "P", "text": "salary"}
PARENT = {"chunk_id": "P", "kind": "parent", "text": SECRET}
CASES: dict[str, tuple[str, list[dict[str, Any]] | None, dict[str, Any], dict[str, Any]]] = {
    "document id": ("hr", None, {"text": SECRET}, {}),
    "source of the hit": ("x", None, {"text": SECRET, "source_id": "hr"}, {}),
    "source in its metadata": ("x", None, {"text": SECRET, "metadata": {"source_id": "hr"}}, {}),
    "row without a source": ("x", [{"chunk_id": "x", "text": SECRET}], {"metadata": {"source_id": "hr"}}, {}),
    "mapped id": ("p", [HIDDEN], {}, {"id_map": {"p": "h"}, "context_texts": {"p": SECRET}}),
    "source of the hit that maps to it": (
        "c",
        [{"chunk_id": "c", "text": SECRET}],
        {"text": SECRET},
        {"id_map": {"p": "c"}, "fused": [{"id": "p", "source_id": "hr"}]},
    ),
    "parent": ("P", [CHILD, PARENT], {}, {"context_texts": {"P": SECRET}}),
    "same text": ("x", [HIDDEN], {}, {"context_texts": {"x": SECRET}}),
    "own row": ("h", [HIDDEN], {"text": SECRET}, {}),
}


def write(
    folder: Path,
    trace: dict[str, Any],
    chunks: list[dict[str, Any]] | None,
    sources: list[dict[str, Any]],
    config: str = "",
) -> Path:
    full = {"query_id": "q1", "query_text": "refunds?", "k_final": 3, "user_acl": ["role:all"], **trace}
    (folder / "traces.jsonl").write_text(json.dumps(full) + "\n")
    (folder / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sources))
    if chunks is not None:
        (folder / "chunks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chunks))
    (folder / "ragaudit.toml").write_text(config)
    out, paths = folder / "run.audit", locate(folder)
    audit(open_bundle(paths, load_settings(paths.config, env={}, flags={"resamples": 10})), out)
    return out


def result_of(reader: AuditReader) -> QueryResult:
    result = reader.query("q1")
    assert result is not None
    return result


@pytest.mark.parametrize("packed", [True, False], ids=["packed", "listed"])
@pytest.mark.parametrize("name", CASES)
def test_it_is_a_leak_when_packed_and_hidden_in_any_case(tmp_path: Path, name: str, packed: bool) -> None:
    chunk_id, chunks, hit, log = CASES[name]
    trace = {
        "arms": {"dense": [{"id": "a"}, {"id": chunk_id, **hit}]},
        "final_context_ids": ["a", chunk_id] if packed else ["a"],
        "gold_ids": ["a"],
        **log,
    }
    out = write(tmp_path, trace, None if chunks is None else [OPEN, *chunks], SOURCES)
    with AuditReader.open(out) as reader:
        result = result_of(reader)
        texts = ReadableTexts(reader, reader.summary().run, result)
        assert SECRET not in repr(texts.trace)
        assert texts.text(chunk_id) is None
        assert texts.readable("a") is True
        if packed:
            assert texts.chunk(chunk_id).why == WHY
    assert result.diagnosis.leaks == ((chunk_id,) if packed else ())
    assert result.diagnosis.severity is (Severity.LEAK if packed else Severity.NORMAL)


def test_the_text_and_the_reference_of_gold_that_seems_to_be_another_s_are_not_shown(tmp_path: Path) -> None:
    trace = {
        "filters_applied": {"tenant": "acme"},
        "arms": {"dense": [{"id": "a"}, {"id": "z", "text": SECRET, "metadata": {"tenant": "globex"}}]},
        "final_context_ids": ["a"],
        "gold_ids": ["o"],
        "reference": SECRET,
    }
    other = {"chunk_id": "o", "source_id": "so", "metadata": {"tenant": "globex"}, "text": SECRET}
    mine = {"chunk_id": "a", "source_id": "sa", "metadata": {"tenant": "acme"}, "text": "open"}
    with AuditReader.open(write(tmp_path, trace, [mine, other], [])) as reader:
        result = result_of(reader)
        texts = ReadableTexts(reader, reader.summary().run, result)
        assert (texts.text("a"), texts.text("o"), texts.text("z")) == ("open", None, None)
        assert texts.chunk("o").why == "its metadata says it is another's, and no ACL says otherwise"
        assert texts.shows_reference is False
        shown = diagnosis_text(result, {}, {}, texts=texts.chunk)
    assert result.diagnosis.outcome is Outcome.UNDETERMINED
    assert SECRET not in shown
    assert "(its metadata says it is another's, and no ACL says otherwise)" in shown


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ({"filters_applied": {"lang": "en"}, "gold_ids": ["g"]}, ("yes", "no")),
        ({"filters_applied": {"lang": "de"}, "gold_ids": ["g"]}, ("no", "no")),
        ({"filters_applied": {"tenant": "acme"}, "gold_ids": ["o"]}, ("no", "no")),
        ({"filters_applied": {}, "gold_ids": ["h"]}, ("no", "yes")),
    ],
)
def test_gold_that_the_filter_lost_and_gold_that_is_not_the_user_s_are_slices(
    tmp_path: Path, trace: dict[str, Any], expected: tuple[str, str]
) -> None:
    rows = [
        {"chunk_id": "g", "source_id": "open", "metadata": {"lang": "de"}},
        {"chunk_id": "o", "metadata": {"tenant": "globex"}},
        HIDDEN,
    ]
    out = write(tmp_path, {"arms": {"dense": [{"id": "a"}]}, "final_context_ids": ["a"], **trace}, rows, SOURCES)
    with AuditReader.open(out) as reader:
        slices = result_of(reader).slices
    assert (slices["filter_excluded_gold"], slices["acl_excluded_gold"]) == expected


THEIRS = {"tenant": "globex"}
ROW = {"chunk_id": "o", "source_id": "so", "metadata": THEIRS, "text": SECRET}
BY_CLAUSE: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    "row": ("o", [ROW], {}),
    "hit": ("x", [], {"metadata": THEIRS, "text": SECRET}),
    "parent of a source": ("P", [{**ROW, "parent_id": "P"}, {"chunk_id": "P", "source_id": "so", "text": SECRET}], {}),
    "document": ("so", [ROW], {"text": SECRET}),
}


@pytest.mark.parametrize("user", [["role:all"], None], ids=["user", "no user"])
@pytest.mark.parametrize("where", ["expected", "arm", "config"])
@pytest.mark.parametrize("name", BY_CLAUSE)
def test_an_access_clause_hides_and_leaks_wherever_it_was_said(
    tmp_path: Path, name: str, where: str, user: list[str] | None
) -> None:
    chunk_id, rows, hit = BY_CLAUSE[name]
    trace: dict[str, Any] = {
        "user_acl": user,
        "filters_applied": {},
        "arms": {"dense": [{"id": "a"}, {"id": chunk_id, **hit}]},
        "final_context_ids": ["a", chunk_id],
        "gold_ids": ["a"],
        "answer": {"text": "ninety thousand", "correct": True},
    }
    clause = {"tenant": "acme"}
    trace |= {"arm_status": {"dense": {"status": "ran", "filter": clause}}} if where == "arm" else {}
    trace |= {"config": {"filter": {"expected": clause}}} if where == "config" else {}
    config = "[pipeline.filter]\nexpected = {tenant = 'acme'}\n" if where == "expected" else ""
    mine = {"chunk_id": "a", "source_id": "sa", "metadata": clause, "text": "open"}
    with AuditReader.open(write(tmp_path, trace, [mine, *rows], [{"source_id": "so"}], config)) as reader:
        result = result_of(reader)
        texts = ReadableTexts(reader, reader.summary().run, result)
        assert SECRET not in repr(texts.trace)
        assert (texts.text("a"), texts.text(chunk_id), texts.readable(chunk_id)) == ("open", None, False)
        assert texts.shows_answer is False
    assert (result.diagnosis.leaks, result.diagnosis.stage) == ((chunk_id,), Stage.FILTER)


def test_a_reference_written_from_a_document_of_another_tenant_is_not_shown(tmp_path: Path) -> None:
    trace = {"filters_applied": {"tenant": "acme"}, "arms": {"dense": []}, "gold_ids": ["so"], "reference": SECRET}
    with AuditReader.open(write(tmp_path, {**trace, "final_context_ids": []}, [ROW], [{"source_id": "so"}])) as reader:
        assert ReadableTexts(reader, reader.summary().run, result_of(reader)).shows_reference is False


def test_a_configuration_that_an_audit_cannot_have_is_damage(tmp_path: Path) -> None:
    trace = {"arms": {"dense": [{"id": "a"}]}, "final_context_ids": ["a"], "gold_ids": ["a"]}
    out = write(tmp_path, trace, [OPEN], SOURCES)
    with AuditReader.open(out) as reader:
        run = reader.summary().run.model_copy(update={"pipeline": {"filter": {"expected": 5}}})
        with pytest.raises(AuditFileError, match=r"run\.audit: damaged \(its configuration, filter\.expected\)\. Run"):
            ReadableTexts(reader, run, result_of(reader))
