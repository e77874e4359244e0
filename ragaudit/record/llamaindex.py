"""LlamaIndex: an event handler and a span handler on its instrumentation, which together know every list."""

from collections.abc import Callable
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.events.query import QueryStartEvent
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent, RetrievalStartEvent
from llama_index.core.instrumentation.span import BaseSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.base import BaseEvent
from pydantic import PrivateAttr

from ragaudit.record.guard import shielded
from ragaudit.record.hits import hits_of
from ragaudit.record.plain import number
from ragaudit.record.prompt import prompt_text
from ragaudit.record.recorder import Recorder
from ragaudit.record.steps import Stages, Step
from ragaudit.record.trails import Trails

_RETRIEVES = ("retrieve", "aretrieve")
_POSTPROCESSES = ("_postprocess_nodes", "_apostprocess_nodes")


def instrument(recorder: Recorder, *, stages: Stages | None = None) -> Callable[[], None]:
    """Record every query of this process, until the function that is returned is called.

    Inside `with rec.query(...)` that query is filled. Elsewhere each outermost call that searches (`engine.query`,
    `retriever.retrieve`) is a query of its own.

    Args:
        recorder: Where queries go.
        stages: Class of a retriever or postprocessor -> the list it made, where its name does not say.
    """
    root = get_dispatcher()
    trails = Trails(recorder.faults)
    events, spans = RagAuditEventHandler(recorder, trails), RagAuditSpanHandler(recorder, trails, stages)
    root.add_event_handler(events)
    root.add_span_handler(spans)

    def undo() -> None:
        root.event_handlers = [each for each in root.event_handlers if each is not events]
        root.span_handlers = [each for each in root.span_handlers if each is not spans]

    return undo


class RagAuditEventHandler(BaseEventHandler):
    """What was retrieved and what the model was asked. Scores are copied here: fusion changes them in place later."""

    _recorder: Recorder = PrivateAttr()
    _trails: Trails = PrivateAttr()

    def __init__(self, recorder: Recorder, trails: Trails) -> None:
        super().__init__()
        self._recorder = recorder
        self._trails = trails

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex's own lists."""
        return "RagAuditEventHandler"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        """One event."""
        shielded(self._recorder.faults, type(event).__name__, lambda: self._handle(event))

    def _handle(self, event: BaseEvent) -> None:
        journey = self._trails.of(event.span_id)
        if journey is None:
            return
        if isinstance(event, QueryStartEvent):
            journey.question = journey.question or _text(event.query)
        elif isinstance(event, RetrievalStartEvent):
            journey.question = journey.question or _text(event.str_or_query_bundle)
            if step := self._trails.step(event.span_id):
                step.query_text = _text(event.str_or_query_bundle)
        elif isinstance(event, RetrievalEndEvent):
            if step := self._trails.step(event.span_id):
                step.hits = hits_of(event.nodes)
            journey.searched()
        elif isinstance(event, LLMChatStartEvent):
            journey.asked(prompt_text(event.messages))
        elif isinstance(event, LLMCompletionStartEvent):
            journey.asked(event.prompt)
        elif isinstance(event, LLMChatEndEvent) and event.response is not None:
            journey.answer = prompt_text(event.response.message)
        elif isinstance(event, LLMCompletionEndEvent):
            journey.answer = event.response.text


class RagAuditSpanHandler(BaseSpanHandler[BaseSpan]):
    """Which call stands in which, how each retriever was set up, and what postprocessors made of the nodes."""

    _recorder: Recorder = PrivateAttr()
    _trails: Trails = PrivateAttr()
    _stages: Stages = PrivateAttr()

    def __init__(self, recorder: Recorder, trails: Trails, stages: Stages | None = None) -> None:
        super().__init__()
        self._recorder = recorder
        self._trails = trails
        self._stages = stages or {}

    @classmethod
    def class_name(cls) -> str:
        """The name in LlamaIndex's own lists."""
        return "RagAuditSpanHandler"

    def new_span(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        parent_span_id: str | None = None,
        tags: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A call begins."""
        shielded(self._recorder.faults, "new_span", lambda: self._begin(id_, bound_args, instance, parent_span_id))

    def prepare_to_exit_span(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any
    ) -> None:
        """A call returned."""
        shielded(self._recorder.faults, "exit_span", lambda: self._end(id_, result, None))

    def prepare_to_drop_span(
        self, id_: str, bound_args: Any, instance: Any = None, err: BaseException | None = None, **kwargs: Any
    ) -> None:
        """A call failed."""
        shielded(self._recorder.faults, "drop_span", lambda: self._end(id_, None, err))

    def _begin(self, id_: str, bound_args: Any, instance: Any, parent_span_id: str | None) -> None:
        journey = self._trails.begin(id_, parent_span_id)
        method = id_.split("-")[0].rpartition(".")[2]
        name = type(instance).__name__
        if method in _RETRIEVES and isinstance(instance, BaseRetriever):
            step = Step(id_, name)
            limit = number(_setting(instance, "similarity_top_k", "top_k"))
            step.limit = None if limit is None else int(limit)
            step.filter = _setting(instance, "filters")
            if isinstance(model := getattr(_setting(instance, "embed_model"), "model_name", None), str):
                journey.fields.setdefault("embedding_model", model)
            journey.steps.append(step)
        elif method in _POSTPROCESSES:
            nodes = bound_args.arguments.get("nodes")
            taken = None if nodes is None else hits_of(nodes)
            journey.steps.append(Step(id_, name, is_retriever=False, taken=taken))

    def _end(self, id_: str, result: Any, error: BaseException | None) -> None:
        journey, step = self._trails.of(id_), self._trails.step(id_)
        if journey is not None and step is not None:
            if error is not None:
                step.error = type(error).__name__
            elif not step.is_retriever and isinstance(result, list):
                step.hits = hits_of(result)
                journey.searched()
        finished = self._trails.end(id_, error)
        if finished is not None:
            finished.record(self._recorder, self._stages)


def _text(query: Any) -> str | None:
    found = query if isinstance(query, str) else getattr(query, "query_str", None)
    return found if isinstance(found, str) else None


def _setting(instance: Any, *names: str) -> Any:
    """An attribute, with or without the underscore that LlamaIndex gives to most."""
    for name in names:
        for each in (f"_{name}", name):
            if (found := getattr(instance, each, None)) is not None:
                return found
    return None
