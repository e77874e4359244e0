"""The steps that a framework told of -> the lists of a query: which was an arm, which the fusion, which came last.

A retriever without retrievers below it is an arm; one with several is the fusion; one whose name says reranker, filter
or threshold is that. Any other wrapper is taken for no stage, because its name does not say which. `stages` overrules.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaudit.model.texts import packed
from ragaudit.record.hits import Row
from ragaudit.record.query import OTHERS, Query
from ragaudit.record.recorder import Recorder

Stages = Mapping[str, str]
"""Name of a step -> `arm`, `arm:NAME`, `fused`, `after_filter`, `after_threshold`, `rerank_input`, `after_rerank`,
`ignore`."""

_HINTS = (
    ("after_rerank", re.compile(r"re-?rank|ranker|compress", re.IGNORECASE)),
    ("after_threshold", re.compile(r"threshold|similaritypostprocessor|cutoff", re.IGNORECASE)),
    ("after_filter", re.compile(r"filter", re.IGNORECASE)),
)
_BEFORE_RERANK = ("after_filter", "after_threshold")
_ARMS = (
    ("bm25", re.compile(r"bm25", re.IGNORECASE)),
    ("dense", re.compile(r"vector|embedding|dense", re.IGNORECASE)),
)


@dataclass
class Step:
    """One retriever, reranker or the like, as the framework ran it."""

    key: Any
    name: str
    is_retriever: bool = True
    stage: str | None = None
    """The list it made, where the framework's own kinds say so."""
    query_text: str | None = None
    hits: list[Row] | None = None
    taken: list[Row] | None = None
    """What it was given, where that is known."""
    filter: Any = None
    limit: int | None = None
    error: str | None = None


@dataclass
class Journey:
    """The steps of one query in the order in which they began, with what was asked of the model."""

    query: Query | None
    """The query that was open when it began; None = it becomes a query of its own."""
    question: str | None = None
    steps: list[Step] = field(default_factory=list)
    parents: dict[Any, Any] = field(default_factory=dict)
    """Every run or span -> the one above it."""
    packed: list[Row] | None = None
    """What was handed to the prompt, where the framework says so."""
    prompt: str | None = None
    answer: str | None = None
    finish_reason: str | None = None
    failed: str | None = None
    """The class of the exception that ended it."""
    fields: dict[str, Any] = field(default_factory=dict)
    """What the application said beside: `query_id`, `user_acl`, `filters`, `gold_ids` and other fields of DATA.md."""

    def searched(self) -> None:
        """A search ended: what the model was asked before it was no answer to it."""
        self.prompt = self.answer = self.finish_reason = self.packed = None

    def asked(self, prompt: str) -> None:
        """The model is asked; an answer may need several prompts."""
        self.prompt = prompt if self.prompt is None else f"{self.prompt}\n{prompt}"

    def record(self, recorder: Recorder, stages: Stages) -> None:
        """It has ended: fill the open query, or write one of its own. What retrieved nothing at all is no query."""
        if self.query is not None:
            if self.query.is_open:  # else it was not sampled, or has ended
                self._fill(self.query, stages)
            return
        if not self.steps:
            return
        known = {name: value for name, value in self.fields.items() if name in OTHERS}
        known |= {"filters_applied": self.fields["filters"]} if "filters" in self.fields else {}
        query = recorder.query(self.question or "", self.fields.get("query_id"), **known)
        if (gold := self.fields.get("gold", self.fields.get("gold_ids"))) is not None:
            query.gold(gold)
        if self.failed is not None:
            query.failed(self.failed)
        self._fill(query, stages)
        query.close()

    def _fill(self, query: Query, stages: Stages) -> None:
        made: dict[str, Step] = {}
        arms: list[Step] = []
        for step in self.steps:
            below = [s for s in self.steps if s.is_retriever and _is_above(step.key, s.key, self.parents)]
            stage = stages.get(step.name) or step.stage or _stage(step, below)
            reranker = made.get("after_rerank")
            is_behind = reranker is not None and not _is_above(reranker.key, step.key, self.parents)
            if stage in _BEFORE_RERANK and is_behind:
                continue  # a floor behind the reranker: the lists of DATA.md have no place for it
            if stage.startswith("arm"):
                _, _, name = stage.partition(":")
                _arm(query, name or arm_name(step.name), step, self.question)
                arms.append(step)
            elif stage != "ignore" and step.hits is not None:
                inner = [s for s in below if self.parents.get(s.key) == step.key]
                if len(inner) == 1 and step.taken is None:  # a compressor gets what the one retriever in it returned
                    step.taken = inner[0].hits
                outer = made.get(stage)
                if outer is None or not _is_above(outer.key, step.key, self.parents):
                    made[stage] = step
        _lists(query, made)
        _context(query, self, _pool(self.steps, arms, self.parents))


def arm_name(name: str) -> str:
    """`bm25` and `dense` for a class that is plainly one of them; a name that the user gave stays."""
    if not name.endswith("Retriever"):
        return name
    return next((arm for arm, pattern in _ARMS if pattern.search(name)), name)


def _stage(step: Step, below: Sequence[Step]) -> str:
    if step.is_retriever and not below:
        return "arm"
    hinted = next((stage for stage, pattern in _HINTS if pattern.search(step.name)), None)
    return hinted or ("fused" if len(below) > 1 else "ignore")


def _arm(query: Query, name: str, step: Step, question: str | None) -> None:
    status = "errored" if step.error is not None else None
    sent = step.query_text if step.query_text != question else None
    query.arm(name, step.hits, query_text=sent, filter=step.filter, limit=step.limit, status=status, error=step.error)


def _lists(query: Query, made: Mapping[str, Step]) -> None:
    put = {
        "fused": query.fused,
        "after_filter": query.after_filter,
        "after_threshold": query.after_threshold,
        "rerank_input": query.rerank_input,
        "after_rerank": query.reranked,
    }
    for stage, step in made.items():
        if stage in put:
            put[stage](step.hits)
    reranker = made.get("after_rerank")
    if reranker is not None and reranker.taken is not None and "rerank_input" not in made:
        query.rerank_input(reranker.taken)


def _pool(steps: Sequence[Step], arms: Sequence[Step], parents: Mapping[Any, Any]) -> list[Row] | None:
    """What could have been packed: what the last outermost step returned, or all arms when nothing joined them."""
    tops = [step for step in steps if step.hits is not None and not _inside(step, steps, parents)]
    if not tops:
        return None
    loose = [step for step in tops if any(step is arm for arm in arms)]
    last = loose if any(step is tops[-1] for step in loose) else tops[-1:]
    return [hit for step in last for hit in step.hits or ()]


def _context(query: Query, journey: Journey, pool: list[Row] | None) -> None:
    """The packed chunks, in the order in which their texts stand in the prompt: derived."""
    if journey.answer is not None:
        query.answer(journey.answer, finish_reason=journey.finish_reason)
    if journey.packed is not None:
        query.context(journey.packed, prompt=journey.prompt)
        return
    if journey.prompt is None:
        return
    if query.says("final_context_ids") is not None:
        query.prompted(journey.prompt)
    else:
        pool = pool if pool is not None else query.candidates()
        texts = {hit["id"]: hit["text"] for hit in pool if "text" in hit}
        if ids := packed(texts.items(), journey.prompt):
            packed_texts = {each: texts[each] for each in ids}
            query.derived(final_context_ids=ids, prompt_ids=ids, context_texts=packed_texts)


def _is_above(key: Any, other: Any, parents: Mapping[Any, Any]) -> bool:
    """`key` stands on the way from `other` to the root."""
    seen = 0
    at = parents.get(other)
    while at is not None and seen < 1_000:
        if at == key:
            return True
        at, seen = parents.get(at), seen + 1
    return False


def _inside(step: Step, steps: Sequence[Step], parents: Mapping[Any, Any]) -> bool:
    return any(_is_above(other.key, step.key, parents) for other in steps if other is not step and other.hits)
