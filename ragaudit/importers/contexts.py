"""What a tool says the generator got: texts, ids or both -> the final context of a trace."""

from collections.abc import Iterable, Sequence
from typing import Any

from ragaudit.importers.cells import id_text
from ragaudit.importers.draft import Draft
from ragaudit.importers.matching import Texts
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport


def documents_of(
    ids: Sequence[Any] | None, texts: Sequence[Any] | None, report: ImportReport, place: str
) -> list[Any] | None:
    """One document for each place of two parallel lists; None = there is neither.

    Lists of different lengths cannot be told to belong together: then the ids alone are taken, and that is noted.
    """
    if ids is None:
        return None if texts is None else list(texts)
    if texts is not None and len(texts) == len(ids):
        return [{"id": key, "text": str(text)} for key, text in zip(ids, texts, strict=True)]
    if texts is not None:
        report.note("as many ids as texts there are not: the ids were taken, without texts", place)
    return [{"id": key} for key in ids]


def set_context(
    draft: Draft,
    documents: Iterable[Any] | None,
    report: ImportReport,
    place: str,
    inventory: Texts | None,
    *,
    is_sure: bool = True,
) -> None:
    """Set the final context and its texts. None sets nothing; an empty list says that the context was empty.

    An id that was packed twice stands twice: it took two places.

    Args:
        draft: The trace.
        documents: What was packed, in its order.
        report: Told how the ids were found.
        place: Where it stands.
        inventory: Chunks to look texts up in.
        is_sure: Whether the input says that this was the context; else it is assumed.
    """
    if documents is None:
        return
    hits = hits_of(documents, report, place, texts=inventory)
    (draft.observed if is_sure else draft.assumed)("final_context_ids", [hit["id"] for hit in hits])
    texts: dict[str, str] = {}
    for hit in hits:
        if "text" in hit:
            texts.setdefault(hit["id"], hit["text"])
    draft.observed("context_texts", texts or None)


def are_counters(pairs: Iterable[tuple[Any, Any]]) -> bool:
    """Whether "ids" only number the passages of each query: the same one names different texts."""
    texts: dict[str, Any] = {}
    named = ((key, text) for each, text in pairs if (key := id_text(each)) is not None)
    return any(texts.setdefault(key, text) != text for key, text in named)
