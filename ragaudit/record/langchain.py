"""LangChain: a callback handler that records each run. `capture_scores()` adds what callbacks do not see."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from ragaudit.record.guard import guarded, shielded
from ragaudit.record.hits import hits_of
from ragaudit.record.langchain_scores import add_scores
from ragaudit.record.langchain_scores import capture_scores as capture_scores
from ragaudit.record.prompt import prompt_text
from ragaudit.record.recorder import Recorder
from ragaudit.record.steps import Stages, Step
from ragaudit.record.trails import Trails

_QUESTIONS = ("question", "query", "input", "user_input", "text")


class RagAuditHandler(BaseCallbackHandler):
    """Records what retrievers return and what the model is asked: `chain.invoke(x, config={"callbacks": [handler]})`.

    Inside `with rec.query(...)` it fills that query. Elsewhere each outermost run is a query of its own, and its fields
    come from `config["metadata"]`: `query_id`, `user_acl`, `filters`, `session_id`, `k_final`, `gold_ids` and so on.
    """

    run_inline = True  # in the order of events, also in async code

    def __init__(self, recorder: Recorder, *, stages: Stages | None = None) -> None:
        """One handler for the whole application.

        Args:
            recorder: Where queries go.
            stages: Name of a retriever -> the list it made, where its name does not say: `{"MyMerger": "fused"}`.
        """
        self.faults = recorder.faults
        self._recorder = recorder
        self._stages = stages or {}
        self._trails = Trails(recorder.faults)

    @guarded
    def on_chain_start(
        self,
        serialized: Any,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A chain begins; the outermost one is the query."""
        journey = self._trails.begin(run_id, parent_run_id, metadata)
        if parent_run_id is None:
            journey.question = _question(inputs)

    @guarded
    def on_chain_end(self, outputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any) -> None:
        """A chain ends; with the outermost one, the query does."""
        self._end(run_id)

    @guarded
    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A chain failed: what was seen until then is recorded."""
        self._end(run_id, error)

    @guarded
    def on_tool_start(
        self, serialized: Any, input_str: str, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A tool begins; retrievers may run inside it."""
        self._trails.begin(run_id, parent_run_id, kwargs.get("metadata"))

    @guarded
    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool ends."""
        self._end(run_id)

    @guarded
    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool failed."""
        self._end(run_id, error)

    @guarded
    def on_retriever_start(
        self,
        serialized: Any,
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """A retriever begins."""
        journey = self._trails.begin(run_id, parent_run_id, metadata)
        journey.question = journey.question or query
        journey.steps.append(Step(run_id, str(kwargs.get("name") or "retriever"), query_text=query))

    @guarded
    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: Any) -> None:
        """A retriever returned its documents."""
        step, journey = self._trails.step(run_id), self._trails.of(run_id)
        if step is not None and journey is not None:
            step.hits = shielded(self.faults, step.name[:40], lambda: hits_of(documents))
            add_scores(step, run_id, journey)
            journey.searched()
        self._end(run_id)

    @guarded
    def on_retriever_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A retriever failed: its arm is recorded as errored."""
        if step := self._trails.step(run_id):
            step.error = type(error).__name__
        self._end(run_id, error)

    @guarded
    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A chat model is asked: the last prompt of a query is the one that was answered."""
        journey = self._trails.begin(run_id, parent_run_id, kwargs.get("metadata"))
        journey.asked(prompt_text(messages[0]))

    @guarded
    def on_llm_start(
        self, serialized: Any, prompts: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """A model that takes text is asked."""
        journey = self._trails.begin(run_id, parent_run_id, kwargs.get("metadata"))
        journey.asked(prompt_text(prompts[0]))

    @guarded
    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A model answered."""
        if journey := self._trails.of(run_id):
            generation = response.generations[0][0]
            journey.answer = generation.text
            info = getattr(getattr(generation, "message", None), "response_metadata", None) or {}
            reason = info.get("finish_reason") or (generation.generation_info or {}).get("finish_reason")
            journey.finish_reason = reason if isinstance(reason, str) else None
        self._end(run_id)

    @guarded
    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A model failed."""
        self._end(run_id, error)

    def _end(self, run_id: UUID, error: BaseException | None = None) -> None:
        journey = self._trails.end(run_id, error)
        if journey is not None:
            journey.record(self._recorder, self._stages)


def _question(inputs: Any) -> str | None:
    """The question in what a chain was given: a text, a known key, or the last message."""
    if isinstance(inputs, str):
        return inputs
    if isinstance(inputs, Mapping):
        found = next((inputs[key] for key in _QUESTIONS if isinstance(inputs.get(key), str)), None)
        return found if found is not None else _question(inputs.get("messages"))
    if isinstance(inputs, list | tuple) and inputs:
        return prompt_text(inputs[-1][1] if isinstance(inputs[-1], tuple) else inputs[-1]) or None
    return None
