"""Haystack: a tracer that wraps the one in use, and records what the components of a pipeline took and returned."""

import contextlib
import functools
import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from haystack.tracing.tracer import NullTracer, Span, Tracer

from ragaudit.record.guard import shielded
from ragaudit.record.hits import Row, hits_of
from ragaudit.record.plain import number
from ragaudit.record.prompt import prompt_text
from ragaudit.record.query import current, leave
from ragaudit.record.recorder import Recorder
from ragaudit.record.steps import Journey, Stages, Step

_QUESTIONS = ("query", "question", "text", "query_text")
_KINDS = (("Retriever", None), ("Joiner", "fused"), ("Ranker", "after_rerank"))

_journey: ContextVar[Journey | None] = ContextVar("ragaudit_haystack", default=None)
_span: ContextVar["_Watched | None"] = ContextVar("ragaudit_haystack_span", default=None)


class RagAuditTracer(Tracer):
    """`haystack.tracing.enable_tracing(RagAuditTracer(rec, wrap=existing))`: the existing tracer goes on as before.

    Haystack has one tracer for the process. What this one reads does not need content tracing to be on; the wrapped one
    gets content only when it is, as without ragaudit. Inside `with rec.query(...)` that query is filled. Elsewhere each
    run of a pipeline that retrieves is a query of its own.
    """

    def __init__(self, recorder: Recorder, *, wrap: Tracer | None = None, stages: Stages | None = None) -> None:
        """Wrap a tracer.

        Args:
            recorder: Where queries go.
            wrap: The tracer in use: `haystack.tracing.tracer.actual_tracer`; None = there is none.
            stages: Name of a component -> the list it made, where its type does not say: `{"old": "after_filter"}`.
        """
        self._recorder = recorder
        self._wrapped = wrap if wrap is not None else NullTracer()
        self._stages = stages or {}

    @contextlib.contextmanager
    def trace(
        self, operation_name: str, tags: dict[str, Any] | None = None, parent_span: Span | None = None
    ) -> Iterator[Span]:
        """A pipeline or a component runs."""
        is_outermost = operation_name == "haystack.pipeline.run" and _journey.get() is None
        above = parent_span.inner if isinstance(parent_span, _Watched) else parent_span
        with self._wrapped.trace(operation_name, tags=tags, parent_span=above) as inner:
            watched = _Watched(inner, dict(tags or {}))
            span_token = _span.set(watched)
            journey = Journey(current()) if is_outermost else _journey.get()
            token = _journey.set(journey)
            failed = True
            try:
                yield watched
                failed = False
            finally:
                leave(_journey, token)
                leave(_span, span_token)
                if journey is not None:
                    error = getattr(sys.exc_info()[0], "__name__", None) if failed else None
                    end = functools.partial(self._ended, watched, journey, error, is_outermost)
                    shielded(self._recorder.faults, "haystack", end)

    def current_span(self) -> Span | None:
        """The span that is open in this task, else what the wrapped tracer says."""
        return _span.get() or self._wrapped.current_span()

    def _ended(self, watched: "_Watched", journey: Journey, error: str | None, is_outermost: bool) -> None:
        self._component(watched.tags, journey, error)
        if is_outermost:
            journey.failed = error
            journey.record(self._recorder, self._stages)

    def _component(self, tags: Mapping[str, Any], journey: Journey, error: str | None) -> None:
        if "haystack.pipeline.input_data" in tags:
            journey.question = journey.question or _question(tags["haystack.pipeline.input_data"])
        name, kind = tags.get("haystack.component.name"), str(tags.get("haystack.component.type", ""))
        if not isinstance(name, str):
            return
        given = tags.get("haystack.component.input")
        made = tags.get("haystack.component.output")
        given = given if isinstance(given, Mapping) else {}
        made = made if isinstance(made, Mapping) else {}
        step = _step(name, kind, given, made, error, len(journey.steps))
        if step is not None:
            journey.steps.append(step)
            journey.searched()
        _talk(journey, given, made)


class _Watched(Span):
    """A span of the wrapped tracer whose tags are also seen here, content tags as well."""

    def __init__(self, inner: Span, tags: dict[str, Any]) -> None:
        self.inner = inner
        self.tags = tags

    def set_tag(self, key: str, value: Any) -> None:
        self.tags[key] = value
        self.inner.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:
        self.tags[key] = _copied(value)
        self.inner.set_content_tag(key, value)

    def raw_span(self) -> Any:
        return self.inner.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        return self.inner.get_correlation_data_for_logs()


def _copied(value: Any) -> Any:
    """The outer objects only: what a component puts into its inputs later is not seen."""
    if type(value) is not dict:
        return value
    return {key: list(item) if type(item) is list else item for key, item in value.items()}


def _step(
    name: str, kind: str, given: Mapping[str, Any], made: Mapping[str, Any], error: str | None, n: int
) -> Step | None:
    """A component that returns documents, or a retriever that failed."""
    known, stage = next(((word, stage) for word, stage in _KINDS if word in kind), (None, None))
    documents = made.get("documents")
    if not isinstance(documents, list) and not (error is not None and known == "Retriever"):
        return None
    step = Step((name, n), name, is_retriever=known == "Retriever", stage="arm" if known == "Retriever" else stage)
    step.hits = hits_of(documents) if isinstance(documents, list) else None
    step.error = error
    if known == "Retriever":
        query = given.get("query")
        limit = number(given.get("top_k"))
        step.query_text = query if isinstance(query, str) else None
        step.limit = None if limit is None else int(limit)
        step.filter = given.get("filters")
    elif _are_documents(given.get("documents")):
        step.taken = hits_of(given["documents"])
    return step


def _talk(journey: Journey, given: Mapping[str, Any], made: Mapping[str, Any]) -> None:
    """A prompt builder (documents in, a prompt out) and a generator (replies out)."""
    prompt = made.get("prompt")
    if prompt is not None:
        lists = [value for value in given.values() if _are_documents(value)]
        journey.packed = _joined(lists) if lists else journey.packed
        journey.asked(prompt_text(prompt))
    replies = made.get("replies")
    if isinstance(replies, list) and replies:
        if journey.prompt is None and (sent := given.get("prompt", given.get("messages"))) is not None:
            journey.asked(prompt_text(sent))
        journey.answer = prompt_text(replies[0])
        info = made.get("meta") or [getattr(replies[0], "meta", None)]
        reason = info[0].get("finish_reason") if isinstance(info, list) and isinstance(info[0], Mapping) else None
        journey.finish_reason = reason if isinstance(reason, str) else None


def _joined(lists: list[list[Any]]) -> list[Row]:
    return [row for documents in lists for row in hits_of(documents)]


def _are_documents(value: Any) -> bool:
    return isinstance(value, list) and all(hasattr(item, "content") and hasattr(item, "meta") for item in value)


def _question(data: Any) -> str | None:
    """The question in what a pipeline was given: `{component: {"query": ...}}`."""
    if not isinstance(data, Mapping):
        return None
    levels = [data, *(inputs for inputs in data.values() if isinstance(inputs, Mapping))]
    found = (level[name] for name in _QUESTIONS for level in levels if isinstance(level.get(name), str))
    return next(found, None)
