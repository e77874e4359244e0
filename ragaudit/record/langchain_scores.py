"""Scores, k, filter and embedding model of LangChain's vector searches, kept beside the documents, by the run's id."""

import asyncio
import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.vectorstores import VectorStore, VectorStoreRetriever

from ragaudit.record.guard import Faults, shielded
from ragaudit.record.plain import number
from ragaudit.record.steps import Journey, Step

MAX_KEPT = 1_000
"""Searches whose scores wait for the handler; of those that nobody asks for, the oldest are forgotten."""

_SCORED = {"similarity": "similarity_search_with_score"}
_SCORED |= {"similarity_score_threshold": "similarity_search_with_relevance_scores"}


@dataclass(frozen=True)
class Searched:
    """What one vector search was asked, and the scores it gave, by the place in the list."""

    scores: tuple[float | None, ...]
    limit: int | None
    filter: Any
    model: str | None


class _Kept:
    """Searches by run id."""

    def __init__(self) -> None:
        self._by_run: OrderedDict[Any, Searched] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, run_id: Any, searched: Searched) -> None:
        with self._lock:
            self._by_run[run_id] = searched
            while len(self._by_run) > MAX_KEPT:
                self._by_run.popitem(last=False)

    def take(self, run_id: Any) -> Searched | None:
        with self._lock:
            return self._by_run.pop(run_id, None)


_kept = _Kept()


def capture_scores(faults: Faults | None = None) -> Callable[[], None]:
    """Also record scores, k, filter and embedding model of every `VectorStoreRetriever`, which callbacks do not see.

    Replaces two methods of that class for the whole process, until the function that is returned is called. The search
    is asked by `similarity_search_with_score` in place of `similarity_search`; the documents are not changed. A store
    without that method, or where it fails, is asked as before.
    """
    faults = faults or Faults()
    kind = VectorStoreRetriever
    before, before_async = kind._get_relevant_documents, kind._aget_relevant_documents

    @functools.wraps(before)
    def search(self: Any, query: str, *, run_manager: Any, **kwargs: Any) -> Any:
        asked = self.search_kwargs | kwargs
        method = _scored(self, "")
        pairs = None if method is None else shielded(faults, "capture_scores", lambda: _pairs(method(query, **asked)))
        shielded(faults, "capture_scores", lambda: _keep(self, run_manager.run_id, asked, pairs))
        if pairs is None:
            return before(self, query, run_manager=run_manager, **kwargs)
        return [document for document, _ in pairs]

    @functools.wraps(before_async)
    async def search_async(self: Any, query: str, *, run_manager: Any, **kwargs: Any) -> Any:
        asked = self.search_kwargs | kwargs
        method, pairs = _scored(self, "a"), None
        if method is not None:
            (pairs,) = await asyncio.gather(method(query, **asked), return_exceptions=True)
            if isinstance(pairs, BaseException):
                faults.add("capture_scores", type(pairs).__name__, error=pairs)
                pairs = None
            if pairs is not None:
                found = pairs
                pairs = shielded(faults, "capture_scores", lambda: _pairs(found))
        shielded(faults, "capture_scores", lambda: _keep(self, run_manager.run_id, asked, pairs))
        if pairs is None:
            return await before_async(self, query, run_manager=run_manager, **kwargs)
        return [document for document, _ in pairs]

    def undo() -> None:
        _replace(before, before_async)

    _replace(search, search_async)
    return undo


def add_scores(step: Step, run_id: UUID, journey: Journey) -> None:
    """Add what was kept of this run, if anything was."""
    seen = _kept.take(run_id)
    if seen is None:
        return
    for hit, score in zip(step.hits or (), seen.scores, strict=False):
        if score is not None:
            hit["score"] = score
    step.limit = seen.limit
    step.filter = seen.filter if seen.filter is not None else {}
    if seen.model is not None:
        journey.fields.setdefault("embedding_model", seen.model)


def _replace(search: Any, search_async: Any) -> None:
    VectorStoreRetriever._get_relevant_documents = search  # type: ignore[method-assign]
    VectorStoreRetriever._aget_relevant_documents = search_async  # type: ignore[method-assign]


def _scored(retriever: Any, prefix: str) -> Any:
    """The store's own search that also gives scores, None where there is none: then the search is left as it is."""
    name = _SCORED.get(retriever.search_type)
    if name is None:
        return None
    # The base class raises for the first; it has the second, which stands on the first.
    needed = getattr(type(retriever.vectorstore), _SCORED["similarity"], None)
    if needed is None or needed is VectorStore.similarity_search_with_score:
        return None
    return getattr(retriever.vectorstore, prefix + name)


def _keep(retriever: Any, run_id: Any, asked: Mapping[str, Any], pairs: Any) -> None:
    embeddings = getattr(retriever.vectorstore, "embeddings", None)
    names = (getattr(embeddings, name, None) for name in ("model", "model_name", "model_id"))
    limit = asked.get("k")
    searched = Searched(
        tuple(number(score) for _, score in pairs or ()),
        limit if isinstance(limit, int) else None,
        asked.get("filter", asked.get("where")),
        next((name for name in names if isinstance(name, str)), None),
    )
    _kept.put(run_id, searched)


def _pairs(found: Any) -> list[tuple[Any, Any]]:
    """What the store gave, read once and seen to be pairs."""
    return [(document, score) for document, score in found]
