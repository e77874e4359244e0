"""The causes that ragaudit knows: a name, its stage, what it says, what to change; and the check that finds it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.model.diagnosis import Stage
from ragaudit.model.trace import Trace

Check = Callable[[GoldFacts], str | None]
"""Looks at one gold id; returns the sentence that proves the cause, or None."""

AnswerCheck = Callable[[Trace], str | None]
"""Looks at the answer of a query whose evidence was delivered."""


@dataclass(frozen=True)
class CauseInfo:
    """A cause as people read it. `remedy` names one variable to change, and never wider access."""

    name: str
    stage: Stage
    summary: str
    remedy: str


CAUSES: dict[str, CauseInfo] = {}
"""Every registered cause by name, in the order of registration."""

_CHECKS: dict[str, list[tuple[CauseInfo, Check]]] = {}
_ANSWER_CHECKS: dict[str, AnswerCheck] = {}


@dataclass(frozen=True)
class Fired:
    """A cause that fired, with its proof."""

    name: str
    stage: Stage
    evidence: str


def cause(name: str, stage: Stage, step: str, *, summary: str, remedy: str) -> Callable[[Check], Check]:
    """Register a check under a name and the step of the procedure that asks it. A second use of a name is refused."""

    def register(check: Check) -> Check:
        info = CauseInfo(name, stage, summary, remedy)
        _describe(info)
        _CHECKS.setdefault(step, []).append((info, check))
        return check

    return register


def answer_cause(name: str, stage: Stage, *, summary: str, remedy: str) -> Callable[[AnswerCheck], AnswerCheck]:
    """Register a check that looks at the answer once the evidence is known to have been in the prompt."""

    def register(check: AnswerCheck) -> AnswerCheck:
        _describe(CauseInfo(name, stage, summary, remedy))
        _ANSWER_CHECKS[name] = check
        return check

    return register


def _describe(info: CauseInfo) -> None:
    if info.name in CAUSES:
        raise ValueError(f"cause {info.name!r} is registered twice")
    CAUSES[info.name] = info


def fired(step: str, facts: GoldFacts) -> Iterator[Fired]:
    """Every cause of a step that fires on this gold id, in the order of registration."""
    for info, check in _CHECKS.get(step, ()):
        sentence = check(facts)
        if sentence is not None:
            yield Fired(info.name, info.stage, sentence)


def fired_answer(trace: Trace) -> Iterator[Fired]:
    """Every cause in the answer that fires, in the order of registration."""
    for name, check in _ANSWER_CHECKS.items():
        sentence = check(trace)
        if sentence is not None:
            yield Fired(name, CAUSES[name].stage, sentence)


STAGE_NOTES: dict[Stage, str] = {
    Stage.INGESTION: "The source, or its current version, is not in the index.",
    Stage.PARSE: "The document is there, and the answer's words did not survive extraction.",
    Stage.CHUNK: "The words were extracted, and no chunk holds them whole.",
    Stage.EMBED: "The chunk is written, and its vector or the vector index cannot find it.",
    Stage.RETRIEVE: "The index is sound, and no arm brings the chunk within K.",
    Stage.FUSE: "An arm found it, and fusion or a threshold lost it.",
    Stage.FILTER: "A filter or access rule dropped what the user may read, or let in what the user may not.",
    Stage.RERANK: "It was a candidate, and reranking, packing or the prompt lost it.",
    Stage.GENERATE: "It was in the prompt, and the answer is wrong all the same: not a retrieval problem.",
}
"""One sentence for each of the nine stages."""
