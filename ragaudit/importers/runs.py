"""A tree of runs, as tracing tools log it -> the retrievals in it, each with its lists by stage. One rule for them all.

A retriever without retrievers below it is an arm; one with them is the fused list of what they found; a reranker, or a
retriever around others whose class is a compressor or reranker, is the list after the reranker. Where steps stand side
by side, as in a pipeline written by hand, the name decides. `--stage NAME=LIST` wins over all of it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ragaudit.errors import ConfigError
from ragaudit.importers.report import ImportReport

STAGES = (
    "arm",
    "fused",
    "after_filter",
    "after_threshold",
    "rerank_input",
    "after_rerank",
    "final",
    "answer",
    "ignore",
)
LAST = ("final", "after_rerank", "after_threshold", "after_filter", "fused")
"""The merged lists, the latest first."""
_BY_NAME = (
    ("after_rerank", re.compile(r"re-?rank|compress|cross.?encoder", re.IGNORECASE)),
    ("fused", re.compile(r"rrf|fus(e|ion)|ensemble|hybrid|merge|join", re.IGNORECASE)),
    ("after_threshold", re.compile(r"threshold|cut.?off|autocut", re.IGNORECASE)),
    ("after_filter", re.compile(r"filter", re.IGNORECASE)),
)
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
    trace: str = ""
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
    lists: dict[str, Run] = field(default_factory=dict)
    """Stage -> the run that made the list."""
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


def checked_stages(stages: Mapping[str, str]) -> Mapping[str, str]:
    """The `--stage` pairs.

    Raises:
        ConfigError: One names a list that there is none of.
    """
    for name, stage in stages.items():
        if stage not in STAGES and not (stage.startswith("arm:") and stage != "arm:"):
            raise ConfigError(f"--stage {name}={stage}: no such list. Use arm:NAME, or one of: {', '.join(STAGES)}.")
    return stages


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

    A new one begins with an arm that comes after a merged or reranked list, or after a call of the model: an agent that
    searches again. Their lists are never put together.
    """
    tree = _Tree(runs, stages, report)
    calls = sorted(run.start for run in runs if run.kind is Kind.LLM)
    found: list[Retrieval] = []
    before = ""
    for top in tree.tops:
        part = tree.part(top)
        called = any(before <= call < top.start for call in calls)
        if not found or (part.arms and (called or found[-1].lists)):
            found.append(Retrieval(start=top.start))
        _add(found[-1], part, report)
        before = top.start
    return [each for each in found if each.arms or each.lists]


class _Tree:
    """The runs that make lists, by the nearest such run around them."""

    def __init__(self, runs: Sequence[Run], stages: Mapping[str, str], report: ImportReport) -> None:
        self._stages, self._report = stages, report
        by_id = {run.id: run for run in runs}
        has_retriever = any(run.kind is Kind.RETRIEVER for run in runs)
        makers = [run for run in sorted(runs, key=lambda run: run.start) if self._makes_a_list(run, has_retriever)]
        ids = {run.id for run in makers}
        self._inner: dict[str, list[Run]] = {}
        self.tops: list[Run] = []
        for run in makers:
            above = next((each for each in _above(run, by_id) if each in ids), None)
            if above is None:
                self.tops.append(run)
            else:
                self._inner.setdefault(above, []).append(run)

    def part(self, top: Run) -> Retrieval:
        """What one run and those inside it contribute."""
        part = Retrieval()
        waiting = [(top, False)]
        while waiting:
            run, is_arm = waiting.pop(0)
            inner = self._inner.get(run.id, [])
            said = self._stages.get(run.name)
            stage = said or ("arm" if is_arm else self._stage(run, inner))
            if stage in ("ignore", "answer"):
                waiting[:0] = [(each, is_arm) for each in inner]
            elif stage == "arm" or stage.startswith("arm:"):
                part.arms[_free(stage[4:] or run.name, run, part.arms)] = run
                if inner:
                    self._report.note("lists inside an arm: left out", run.place)
            else:
                if stage in part.lists:
                    self._report.note(f"{stage}: several lists, the outermost one stands", run.place)
                else:
                    part.lists[stage] = run
                waiting[:0] = [(each, stage == "fused" or len(inner) > 1) for each in inner]
        return part

    def _makes_a_list(self, run: Run, has_retriever: bool) -> bool:
        if run.kind in (Kind.RETRIEVER, Kind.RERANKER) or run.name in self._stages:
            return True
        if run.kind in (Kind.LLM, Kind.EMBEDDING, Kind.PROMPT) or run.documents is None:
            return False
        if has_retriever and _named(run) not in ("fused", "after_rerank"):
            return False
        self._report.note(
            f"taken for a step of the retrieval, because its output is a list of hits: {run.name}", run.place
        )
        return True

    def _stage(self, run: Run, inner: list[Run]) -> str:
        named = _named(run)
        if run.kind is Kind.RERANKER or (inner and named == "after_rerank"):
            return "after_rerank"
        if inner:
            return "fused"
        is_alone = len(self.tops) == 1
        if named is None or is_alone or run is self.tops[0]:
            return "arm"
        self._report.note(f"taken for {named} by its name: {run.name}", run.place)
        return named


def _named(run: Run) -> str | None:
    return next((stage for stage, pattern in _BY_NAME if pattern.search(run.name)), None)


def _above(run: Run, by_id: Mapping[str, Run]) -> Iterator[str]:
    """Ids of the runs around it, from the inside; ends where the parents form a circle."""
    seen = {run.id}
    parent = run.parent
    while parent is not None and parent not in seen and parent in by_id:
        yield parent
        seen.add(parent)
        parent = by_id[parent].parent


def _add(found: Retrieval, part: Retrieval, report: ImportReport) -> None:
    for name, run in part.arms.items():
        found.arms[_free(name, run, found.arms)] = run
    for stage, run in part.lists.items():
        if stage in found.lists:
            report.note(f"{stage}: several lists one after the other, the last one stands", run.place)
        found.lists[stage] = run


def _free(name: str, run: Run, taken: Mapping[str, Run]) -> str:
    """A name for an arm that no other has: with its LangChain tag (`retriever_2`), else numbered."""
    if name not in taken:
        return name
    tag = next((tag for tag in run.tags if _ARM_TAG.match(tag)), None)
    if tag is not None and f"{name} {tag}" not in taken:
        return f"{name} {tag}"
    return next(free for n in range(2, len(taken) + 3) if (free := f"{name} #{n}") not in taken)
