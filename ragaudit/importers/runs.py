"""A tree of runs, as tracing tools log it -> the retrievals in it, each with its lists by stage. One rule for them all.

A retriever without retrievers below it is an arm; one with them is the fused list of what they found; a reranker, or a
retriever around others whose class is a compressor or reranker, is the list after the reranker. Where steps stand side
by side, as in a pipeline written by hand, the name decides. `--stage NAME=LIST` wins over all of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ragaudit.importers.report import ImportReport
from ragaudit.importers.stage import MERGES, RERANKS, Stage, stage_of_word
from ragaudit.model.texts import folded

LAST = (Stage.FINAL, Stage.AFTER_RERANK, Stage.AFTER_THRESHOLD, Stage.AFTER_FILTER, Stage.FUSED)
"""The merged lists, the latest first."""
_COMPRESSES = "ContextualCompressionRetriever"
"""LangChain's retriever that hands all that the one inside it found to a compressor or reranker."""
_ARM_TAG = re.compile(r"^retriever_\d+$")


class Kind(StrEnum):
    """What a run does."""

    RETRIEVER = "retriever"
    RERANKER = "reranker"
    EMBEDDING = "embedding"
    PROMPT = "prompt"
    LLM = "llm"
    OTHER = "other"


@dataclass(frozen=True)
class Run:
    """One step of one trace. `None` = not logged; an empty list of documents = it ran and found nothing."""

    id: str
    name: str
    kind: Kind
    place: str
    parent: str | None = None
    start: str = ""
    """Sorts by time within a trace."""
    query: str | None = None
    documents: list[Any] | None = None
    given: list[Any] | None = None
    """The candidates of a reranker."""
    prompt: str | None = None
    answer: str | None = None
    model: str | None = None
    limit: int | None = None
    filter: dict[str, Any] | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    error: str | None = None
    is_finished: bool = True


@dataclass
class Retrieval:
    """One search with all that was done to its lists, in the order of the pipeline."""

    arms: dict[str, Run] = field(default_factory=dict)
    lists: dict[Stage, Run] = field(default_factory=dict)
    """The run that made each merged list."""
    start: str = ""

    @property
    def last(self) -> Run | None:
        """The run whose list the prompt was packed from; None where several arms stand without a merged list."""
        merged = next((self.lists[stage] for stage in LAST if stage in self.lists), None)
        return next(iter(self.arms.values())) if merged is None and len(self.arms) == 1 else merged

    @property
    def outer(self) -> Run:
        """The run that stands for the whole retrieval: the last one, else the first arm."""
        return self.last or next(iter([*self.arms.values(), *self.lists.values()]))


def moment(text: Any) -> str:
    """A time as digits that sort by time, whatever punctuation it is written with; empty = no time."""
    digits = re.sub(r"\D", "", str(text)[:26]) if isinstance(text, str) else ""
    return digits[:20].ljust(20, "0") if digits else ""


def root_of(runs: Sequence[Run]) -> Run:
    """The outermost run: the first without a parent, else the first whose parent is not here, else the first."""
    here = {run.id for run in runs}
    first = sorted(runs, key=lambda run: run.start)
    outer = (run for run in first if run.parent is None), (run for run in first if run.parent not in here)
    return next(outer[0], None) or next(outer[1], first[0])


def retrievals(runs: Sequence[Run], stages: Mapping[str, str], report: ImportReport) -> list[Retrieval]:
    """The retrievals of one trace in the order of time.

    A new one begins when a search with another text follows a list that was merged or reranked: an agent that searches
    again. Their lists are never put together.
    """
    tree = _Tree(runs, stages, report)
    found: list[Retrieval] = []
    for top in tree.tops:
        part = tree.part(top, len(found[-1].arms) if found else 0)
        if not found or (found[-1].lists and not _is_same_search(found[-1], part)):
            found.append(Retrieval(start=top.start))
        _add(found[-1], part, report)
    return [each for each in found if each.arms or each.lists]


class _Tree:
    """The runs that make lists, by the nearest such run around them."""

    def __init__(self, runs: Sequence[Run], stages: Mapping[str, str], report: ImportReport) -> None:
        self._stages, self._report = stages, report
        has_retriever = any(run.kind is Kind.RETRIEVER for run in runs)
        makers = [run for run in sorted(runs, key=lambda run: run.start) if self._makes_a_list(run, has_retriever)]
        nearest = _nearest(_parents(runs), {run.id for run in makers})
        self._inner: dict[str, list[Run]] = {}
        self.tops: list[Run] = []
        for run in makers:
            above = nearest.get(run.id)
            if above is None:
                self.tops.append(run)
            else:
                self._inner.setdefault(above, []).append(run)

    def part(self, top: Run, beside: int) -> Retrieval:
        """What one run and those inside it contribute; `beside` = arms of the retrieval so far."""
        part = Retrieval()
        waiting = [(top, False)]
        while waiting:
            run, is_arm = waiting.pop(0)
            inner = self._inner.get(run.id, [])
            told, arm = self._told(run)
            stage = told or (Stage.ARM if is_arm else self._stage(run, inner, beside))
            if stage in (Stage.IGNORE, Stage.ANSWER):
                waiting[:0] = [(each, is_arm) for each in inner]
                continue
            if stage is Stage.ARM:
                _add_arm(part, arm or run.name, run, self._report)
                if inner:
                    self._report.note("lists inside an arm: left out", run.place)
                continue
            if stage in part.lists:
                what = f"several lists for {stage.value}, one inside the other: the outer one is taken"
                self._report.note(what, run.place)
            part.lists.setdefault(stage, run)
            if run.name == _COMPRESSES and len(inner) == 1:
                part.lists.setdefault(Stage.RERANK_INPUT, inner[0])
            waiting[:0] = [(each, stage is Stage.FUSED or len(inner) > 1) for each in inner]
        return part

    def _makes_a_list(self, run: Run, has_retriever: bool) -> bool:
        if run.kind in (Kind.RETRIEVER, Kind.RERANKER) or run.name in self._stages:
            return True
        if run.kind in (Kind.LLM, Kind.EMBEDDING, Kind.PROMPT) or run.documents is None:
            return False
        if has_retriever and not RERANKS.search(run.name) and not MERGES.search(run.name):
            return False
        self._report.note(
            f"taken for a step of the retrieval, because its output is a list of hits: {run.name}", run.place
        )
        return True

    def _told(self, run: Run) -> tuple[Stage | None, str]:
        """What the user said of it, on the command line or in the metadata of the run (`stage`, `arm`); and its arm."""
        arm, stage = run.metadata.get("arm"), run.metadata.get("stage")
        named = str(arm) if arm else ""
        word = self._stages.get(run.name) or (stage if isinstance(stage, str) else None)
        if word is None or stage_of_word(word) is None:
            return (Stage.ARM if named else None), named
        return stage_of_word(word), word.partition(":")[2] or named

    def _stage(self, run: Run, inner: list[Run], beside: int) -> Stage:
        if run.kind is Kind.RERANKER or ((inner or beside) and RERANKS.search(run.name)):
            return Stage.AFTER_RERANK
        return Stage.FUSED if inner or (beside > 1 and MERGES.search(run.name)) else Stage.ARM


def _parents(runs: Sequence[Run]) -> dict[str, str]:
    """Run -> the run around it. A circle of parents is opened at the run of it that began first."""
    parents = {run.id: run.parent for run in runs if run.parent is not None}
    begin = {run.id: run.start for run in runs}
    done: set[str] = set()
    for run in runs:
        path = dict.fromkeys([run.id])
        while (parent := parents.get(next(reversed(path)))) is not None and parent not in done:
            if parent in path:
                circle = list(path)[list(path).index(parent) :]
                del parents[min(circle, key=lambda each: begin[each])]
                break
            path[parent] = None
        done |= path.keys()
    return parents


def _nearest(parents: Mapping[str, str], makers: set[str]) -> dict[str, str]:
    """Run -> the closest of `makers` around it, where there is one. Each step of the tree is climbed once."""
    found: dict[str, str | None] = {}
    for run_id in parents:
        path = []
        at: str | None = run_id
        while at is not None and at not in found:
            path.append(at)
            parent = parents.get(at)
            at = None if parent in makers else parent
        last = parents.get(path[-1]) if path and at is None else found.get(at or "")
        for each in path:
            found[each] = last
    return {run_id: above for run_id, above in found.items() if above is not None}


def _is_same_search(one: Retrieval, other: Retrieval) -> bool:
    """The other one makes no search, or one with a text that was searched for; without texts nobody can say."""
    before, after = ({folded(run.query) for run in each.arms.values() if run.query} for each in (one, other))
    return not before or not after or bool(before & after)


def _add(found: Retrieval, part: Retrieval, report: ImportReport) -> None:
    for name, run in part.arms.items():
        _add_arm(found, name, run, report)
    for stage, run in part.lists.items():
        if stage in found.lists:
            report.note(f"several lists for {stage.value}: the last one is taken", run.place)
        found.lists[stage] = run


def _add_arm(found: Retrieval, name: str, run: Run, report: ImportReport) -> None:
    """Add an arm under a name that no other has: with its LangChain tag (`retriever_2`), else numbered."""
    tag = next((f"{name} {tag}" for tag in run.tags if _ARM_TAG.match(tag)), name)
    if name in found.arms and tag not in found.arms:
        name = tag
    elif name in found.arms:
        free = (f"{name} #{number}" for number in range(2, len(found.arms) + 3))
        name = next(each for each in free if each not in found.arms)
        report.note("an arm was asked several times in one query: each is an arm, NAME #2", f"{run.place}, {name}")
    found.arms[name] = run
