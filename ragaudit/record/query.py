"""One query while it runs: every list is copied when it is handed over, and the row is made when the query ends."""

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Self

from ragaudit.record.filters import filter_of
from ragaudit.record.guard import Faults, guarded, shielded
from ragaudit.record.hits import Row, hits_of
from ragaudit.record.plain import chunk_id, plain, words
from ragaudit.record.prompt import prompt_text

Deliver = Callable[[dict[str, Any], str | None], None]
"""Takes the finished row and the prompt as text."""

_current: ContextVar["Query | None"] = ContextVar("ragaudit_query", default=None)

OTHERS: dict[str, tuple[type, ...]] = {
    "answerable": (bool,),
    "config": (dict,),
    "conversation": (dict,),
    "embedding_model": (str,),
    "filters_applied": (dict,),
    "id_map": (dict,),
    "index_revision": (str,),
    "k_final": (int,),
    "notes": (str,),
    "probes": (list,),
    "prompt_tokens": (int,),
    "query_rewrite": (str, list, dict),
    "reference": (str,),
    "session_id": (str,),
    "slices": (dict,),
    "user_acl": (list,),
}
"""What `Query.set` takes, with the types that DATA.md gives."""
_READ: dict[str, Callable[[Any], Any]] = {"filters_applied": filter_of, "session_id": chunk_id, "user_acl": words}


class Query:
    """What is recorded of one query. Made by `Recorder.query`; every method is safe to call and never raises.

    Its methods may be called from several threads. What is called twice for one arm is kept apart as `dense#2`.
    """

    def __init__(self, row: dict[str, Any] | None, deliver: Deliver, faults: Faults) -> None:
        """`row` None: this query is not sampled, and all calls do nothing."""
        self.faults = faults
        self._row = row
        self._deliver = deliver
        self._prompt: str | None = None
        self._lock = threading.Lock()
        self._token: Token[Query | None] | None = None

    @property
    def is_open(self) -> bool:
        """It still takes what is recorded."""
        return self._row is not None

    @property
    def query_id(self) -> str | None:
        """The id of an open query; feedback may name it."""
        return None if self._row is None else self._row["query_id"]

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            leave(_current, self._token)
            self._token = None
        if kind is not None:
            self.failed(kind.__name__)
        self.close()

    @guarded
    def arm(
        self,
        name: str,
        hits: Any = None,
        *,
        query_text: str | None = None,
        filter: Any = None,
        limit: int | None = None,
        status: str | None = None,
        error: str | None = None,
        matching: int | None = None,
    ) -> None:
        """One search and what it returned. `status` "errored" or "off": then there are no hits.

        Args:
            name: The arm: `dense`, `bm25`.
            hits: Best first; see `ragaudit.record.hits` for the shapes. `[]` = it ran and found nothing.
            query_text: The text that was sent, when it is not the question.
            filter: The filter as this arm sent it.
            limit: How many hits were asked for.
            status: `ran`, `off` or `errored`; given hits mean `ran`.
            error: What went wrong, for a status `errored`.
            matching: Rows that satisfy the filter, where that is known.
        """
        if self._row is None:
            return
        found = None if hits is None else shielded(self.faults, f"arm {name[:40]}", lambda: hits_of(hits))
        state: dict[str, Any] = {"status": status or ("ran" if found is not None else None), "error": error}
        state |= {"query_text": query_text, "filter": None if filter is None else filter_of(filter)}
        state |= {"limit": limit, "returned": None if found is None else len(found), "matching": matching}
        with self._lock:
            if (row := self._row) is None:
                return
            name = _free(str(name), row.get("arm_status", {}))
            if found is not None:
                row.setdefault("arms", {})[name] = found
            row.setdefault("arm_status", {})[name] = {key: value for key, value in state.items() if value is not None}

    @guarded
    def fused(self, hits: Any) -> None:
        """The list after the arms were joined."""
        self._list("fused", hits)

    @guarded
    def after_filter(self, hits: Any) -> None:
        """The list after a filter that runs behind the search; a dictionary with a list for each arm, or one list."""
        self._list("after_filter", hits)

    @guarded
    def after_threshold(self, hits: Any) -> None:
        """The list after a score floor; a dictionary with a list for each arm, or one list."""
        self._list("after_threshold", hits)

    @guarded
    def rerank_input(self, hits: Any) -> None:
        """The candidates that the reranker gets."""
        self._list("rerank_input", hits)

    @guarded
    def reranked(self, hits: Any) -> None:
        """The list that the reranker returned."""
        self._list("after_rerank", hits)

    @guarded
    def context(self, packed: Any, *, prompt: Any = None, prompt_tokens: int | None = None) -> None:
        """What goes into the prompt, in this order.

        Args:
            packed: The chunks or their ids.
            prompt: The prompt as sent: text, or messages. It is not written: the packed texts are looked up in it, so
                that a chunk that was cut off is seen.
            prompt_tokens: Its length in tokens.
        """
        if self._row is None:
            return
        hits = hits_of(packed)
        text = None if prompt is None else prompt_text(prompt)
        texts = {hit["id"]: hit["text"] for hit in hits if "text" in hit}
        found: dict[str, Any] = {"final_context_ids": [hit["id"] for hit in hits]}
        if texts:
            found["context_texts"] = texts
            if len(texts) == len({hit["id"] for hit in hits}):
                found["final_context_chars"] = sum(len(hit["text"]) for hit in hits)
        if prompt_tokens is not None:
            found["prompt_tokens"] = prompt_tokens
        with self._lock:
            if (row := self._row) is not None:
                row |= found
                self._prompt = text if text is not None else self._prompt

    @guarded
    def answer(
        self,
        text: str | None = None,
        *,
        finish_reason: str | None = None,
        abstained: bool | None = None,
        correct: bool | None = None,
        supported: bool | None = None,
        supported_by: Sequence[Any] | None = None,
    ) -> None:
        """The answer; the judgements only where a person or a test gave them."""
        found: dict[str, Any] = {"text": text, "finish_reason": finish_reason, "abstained": abstained}
        found |= {"correct": correct, "supported": supported}
        found |= {"supported_by": None if supported_by is None else words(supported_by)}
        self._put("answer", {key: plain(value) for key, value in found.items() if value is not None})

    @guarded
    def gold(
        self,
        gold: Any = None,
        *,
        mode: str | None = None,
        groups: Sequence[Sequence[Any]] | None = None,
        reference: str | None = None,
        answerable: bool | None = None,
    ) -> None:
        """The labels, where they are known: ids or objects of DATA.md, or groups of which one id each is needed."""
        items = None if gold is None else [gold] if isinstance(gold, str) else list(gold)
        found: dict[str, Any] = {"gold_mode": mode, "reference": reference, "answerable": answerable}
        if items is not None and any(isinstance(item, Mapping) for item in items):
            found["gold"] = [plain(i) if isinstance(i, Mapping) else {"id": chunk_id(i)} for i in items]
        elif items is not None:
            found["gold_ids"] = [chunk_id(item) for item in items]
        if groups is not None:
            found["gold_groups"] = [words(group) for group in groups]
        self._merge("gold", {key: value for key, value in found.items() if value is not None})

    @guarded
    def set(self, **fields: Any) -> None:
        """Other fields of DATA.md: `prompt_tokens`, `query_rewrite`, `slices`, `probes`, `notes` and so on.

        A name that is no field, or a value of another type, is counted as an error and left out.
        """
        found = {}
        for name, value in fields.items():
            made = shielded(self.faults, name[:40], functools.partial(_READ.get(name, plain), value))
            if name not in OTHERS or not isinstance(made, OTHERS[name]):
                self.faults.add("set", f"{name[:40]} is no such field, or its value has another type")
            else:
                found[name] = made
        self._merge("set", found)

    @guarded
    def failed(self, name: str) -> None:
        """The application raised an exception of this class; what was recorded until then is kept."""
        self._merge("failed", {"application_error": name})

    @guarded
    def close(self) -> None:
        """The query has ended: hand it to the writer. Called by `with`; a second call does nothing."""
        with self._lock:
            row, self._row = self._row, None
        if row is not None:
            settle(row)
            self._deliver(row, self._prompt)

    @guarded
    def discard(self) -> None:
        """Forget it: nothing is written."""
        with self._lock:
            self._row = None

    def says(self, name: str) -> Any:
        """What an open query holds under a field so far, for adapters; None = nothing."""
        return None if self._row is None else self._row.get(name)

    def candidates(self) -> list[Row]:
        """What could be packed, for adapters: the last list so far, or all arms when nothing joined them."""
        with self._lock:
            row = self._row or {}
            joined = last_list(row)
            return joined if joined is not None else [hit for hits in row.get("arms", {}).values() for hit in hits]

    def derived(self, **fields: Any) -> None:
        """Fields that an adapter concluded; what was observed already stays."""
        self._concluded(fields, "derived")

    def assumed(self, **fields: Any) -> None:
        """Fields that an adapter takes for likely; verdicts that rest on them say so."""
        self._concluded(fields, "assumed")

    def prompted(self, prompt: Any) -> None:
        """The prompt as sent, when the packed chunks are known otherwise."""
        self._prompt = prompt_text(prompt)

    def _concluded(self, fields: Mapping[str, Any], how: str) -> None:
        with self._lock:
            if self._row is not None:
                conclude(self._row, fields, how)

    def _list(self, name: str, hits: Any) -> None:
        if self._row is None:
            return
        if name in ("after_filter", "after_threshold") and _is_per_arm(hits):
            self._put(name, {str(arm): hits_of(each) for arm, each in hits.items()})
        else:
            self._put(name, hits_of(hits))

    def _put(self, name: str, value: Any) -> None:
        self._merge(name, {name: value})

    def _merge(self, place: str, fields: Mapping[str, Any]) -> None:
        with self._lock:
            if (row := self._row) is not None:
                if place in row and place != "answer":
                    self.faults.add(place, "given twice in one query: the last is kept")
                row |= fields


def current() -> Query | None:
    """The query that this thread or task works for, None outside one."""
    return _current.get()


def conclude(row: dict[str, Any], fields: Mapping[str, Any], how: str) -> None:
    """Set fields that nobody observed, with the word for how they were come by."""
    for name, value in fields.items():
        if value is not None and name not in row:
            row[name] = value
            row.setdefault("provenance", {})[name] = how


def settle(row: dict[str, Any]) -> None:
    """Fill what every trace needs, as `ragaudit import` does: the final context, and K.

    Without a final context the last list of the journey is taken for it, cut at K where K is known: assumed. Without
    a K it is the length of the final context: derived where that was observed or derived, else assumed.
    """
    if "final_context_ids" not in row:
        conclude(row, {"final_context_ids": _last(row)}, "assumed")
    if "k_final" not in row and row.get("final_context_ids"):
        sure = row.get("provenance", {}).get("final_context_ids") != "assumed"
        conclude(row, {"k_final": len(row["final_context_ids"])}, "derived" if sure else "assumed")


def _last(row: dict[str, Any]) -> list[str] | None:
    hits = last_list(row)
    if hits is None:
        return None
    ids = list(dict.fromkeys(hit["id"] for hit in hits))
    return ids[: row["k_final"]] if "k_final" in row else ids


def last_list(row: Mapping[str, Any]) -> list[Row] | None:
    """The last list before packing: the reranker's, else what came before it, else the only arm's."""
    arms = row.get("arms") or {}
    only = next(iter(arms.values())) if len(arms) == 1 else None
    names = ("after_rerank", "after_threshold", "after_filter", "fused")
    return next((hits for name in names if isinstance(hits := row.get(name), list)), only)


def _is_per_arm(hits: Any) -> bool:
    """A dictionary of lists; Chroma's answer is one too, with a list of ids."""
    return isinstance(hits, Mapping) and "ids" not in hits and all(isinstance(h, list | tuple) for h in hits.values())


def _free(name: str, taken: Mapping[str, Any]) -> str:
    n = 1
    free = name
    while free in taken:
        n += 1
        free = f"{name}#{n}"
    return free


def leave(variable: ContextVar[Any], token: Token[Any]) -> None:
    """Set a variable back; to None where it was entered in another context: another task finished a generator."""
    try:
        variable.reset(token)
    except ValueError:
        variable.set(None)
