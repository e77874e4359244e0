"""Names that people use where a tool has a free field: metadata, variables, extra columns."""

from collections.abc import Mapping
from typing import Any

from ragaudit.importers.cells import id_text, ids_in, plain
from ragaudit.importers.draft import MAX_K, Draft
from ragaudit.importers.predicates import clauses_of
from ragaudit.importers.report import ImportReport

QUERY_ID = ("query_id", "qid")
GOLD_IDS = (
    "gold_ids",
    "expected_ids",
    "reference_context_ids",
    "relevant_ids",
    "relevant_docs",
    "expected_document_ids",
)
RETRIEVED_IDS = ("final_context_ids", "retrieved_context_ids", "retrieved_ids", "context_ids")
TEXTS = ("index_revision", "embedding_model", "session_id", "timestamp")
OBJECTS = ("filters_applied", "filters", "filter")
K = ("k_final", "k")


def query_id_in(values: Mapping[str, Any]) -> str | None:
    """The query's id by one of the usual names."""
    return next((found for key in QUERY_ID if (found := id_text(values.get(key))) is not None), None)


def gold_ids_in(values: Mapping[str, Any]) -> list[str] | None:
    """The gold ids by one of the usual names."""
    return _first_ids(values, GOLD_IDS)


def retrieved_ids_in(values: Mapping[str, Any]) -> list[str] | None:
    """The ids of what was retrieved by one of the usual names."""
    return _first_ids(values, RETRIEVED_IDS)


def set_by_convention(draft: Draft, values: Mapping[str, Any], report: ImportReport, place: str) -> None:
    """Set what the usual names say of the query; each is noted, because no format promises it."""
    for name in TEXTS:
        if isinstance(values.get(name), str) and values[name]:
            _set(draft, name, values[name], name, report, place)
    for name in OBJECTS:
        if isinstance(found := plain(values.get(name)), dict):
            _set(draft, "filters_applied", clauses_of(found) or found, name, report, place)
    for name in K:
        found = plain(values.get(name))
        if isinstance(found, int) and not isinstance(found, bool) and 0 < found <= MAX_K:
            _set(draft, "k_final", found, name, report, place)
    if (principals := ids_in(values.get("user_acl"))) is not None:
        _set(draft, "user_acl", principals, "user_acl", report, place)


def _set(draft: Draft, name: str, value: Any, key: str, report: ImportReport, place: str) -> None:
    draft.observed(name, value)
    report.note(f"{name}: taken from the field {key} that you added", place)


def _first_ids(values: Mapping[str, Any], keys: tuple[str, ...]) -> list[str] | None:
    return next((ids for key in keys if (ids := ids_in(values.get(key))) is not None), None)
