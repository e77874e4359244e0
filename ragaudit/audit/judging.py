"""What the judge is asked about a run, and how its verdicts become proxy gold and answer judgements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ragaudit.config import AclSettings, JudgeSettings, QuadrantSettings
from ragaudit.evidence.candidates import PASSAGE, Searchable, sample_of, searchable
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.spans import find
from ragaudit.judge.progress import Tally
from ragaudit.model.inventory import Inventory
from ragaudit.model.judgement import ANSWER_COLUMN, FoundEvidence, Judgement, JudgeSample, JudgeState, Side, Verdict
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Answer, Gold, GoldMode, Trace
from ragaudit.readers.bundle import Bundle, read_traces

if TYPE_CHECKING:  # an audit without a judge loads none of this
    from ragaudit.judge.client import Client
    from ragaudit.judge.how import HowToJudge
    from ragaudit.judge.limits import Limits
    from ragaudit.judge.progress import JudgeProgress
    from ragaudit.judge.prompts import PromptSet
    from ragaudit.judge.tape import Tape


def _silent(_: JudgeProgress) -> None:
    """No progress wanted."""


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Judged:
    """A trace as the judge completes it, and what is left open.

    `unfound` are the reference claims that no chunk this user may read supports, as far as was looked.
    """

    trace: Trace
    by_judge: bool
    """The gold is evidence that the judge found, not a label."""
    unfound: tuple[str, ...] = ()


@dataclass(frozen=True)
class Judge:
    """Who is asked, how, and where the replies are kept."""

    how: HowToJudge
    prompts: PromptSet
    tape: Tape
    limits: Limits
    client: Client | None
    """None = replies come from the tape alone."""
    cuts: Mapping[str, float]
    """Where the 2x2 is cut, by metric."""
    so_far: Tally = field(default_factory=Tally)
    """What was used of the limits: they hold for all batches together."""

    def ask(
        self,
        batch: Sequence[Trace],
        identities: Identities,
        acl: AclSettings,
        pipeline: Pipeline,
        search: Searchable,
        progress: Callable[[int], None],
    ) -> dict[str, Judgement]:
        """Judge the queries of a batch that want it, by query id; `progress` is told how many are judged."""
        said: dict[str, Judgement] = {}
        for judgement in self.over(samples_of(batch, identities, acl, pipeline, search)):
            said[judgement.query_id] = judgement
            progress(len(said))
        return said

    def over(
        self,
        samples: Iterable[JudgeSample],
        *,
        progress: Callable[[JudgeProgress], None] = _silent,
        stop: Callable[[], bool] = _never,
        pause: Callable[[], bool] = _never,
    ) -> Generator[Judgement, None, None]:
        """Judge samples within the limits; yields in their order, as they are done. See `judge.runner.run`."""
        from ragaudit.judge.kept import KeptJudgements
        from ragaudit.judge.runner import run

        return run(
            samples,
            prompts=self.prompts,
            how=self.how,
            tape=self.tape,
            client=self.client,
            limits=self.limits,
            so_far=self.so_far,
            kept=KeptJudgements.of(self.tape, self.prompts, self.how),
            progress=progress,
            stop=stop,
            pause=pause,
        )


def wants_judge(trace: Trace) -> bool:
    """Is there something that only a judge can tell: gold without labels, or an answer that nobody judged?"""
    answer = trace.answer or Answer()
    if trace.answerable is False:
        return answer.text is not None and answer.abstained is None
    unlabelled = not trace.gold_labelled and trace.reference is not None
    unjudged = bool(answer.text) and answer.abstained is not True and None in (answer.correct, answer.supported)
    return unlabelled or unjudged


def samples(bundle: Bundle, *, limit: int | None = None) -> Iterator[JudgeSample]:
    """What the judge would be asked about, one sample a query that wants it."""
    search = searchable(bundle.inventory)
    settings, identities = bundle.settings, Identities.of(bundle.inventory)
    traces = read_traces(bundle, limit=limit)
    yield from samples_of(traces, identities, settings.acl or AclSettings(), settings.pipeline, search)


def samples_of(
    traces: Iterable[Trace], identities: Identities, acl: AclSettings, pipeline: Pipeline, search: Searchable
) -> Iterator[JudgeSample]:
    """One sample for each of these traces that wants a judge."""
    for trace in traces:
        if wants_judge(trace):
            yield sample_of(trace, identities, acl, pipeline.with_overrides(trace.config), search)


def complete(trace: Trace, judgement: Judgement, settings: JudgeSettings, inventory: Inventory) -> Judged:
    """Lay the judge's verdicts over a trace. What a person or a label said stays as it is."""
    answer = _answer(trace, judgement, settings)
    completed = trace if answer == trace.answer else trace.model_copy(update={"answer": answer})
    if trace.gold_labelled or not trace.reference:
        return Judged(completed, by_judge=False)
    groups, unfound = _evidence(judgement)
    if not groups and not unfound:
        return Judged(completed, by_judge=False)
    ids = dict.fromkeys(chunk_id for group in groups for chunk_id in group)
    gold = tuple(_proxy(chunk_id, judgement.found, inventory) for chunk_id in ids)
    update = {"gold": gold, "gold_groups": groups or None, "gold_mode": GoldMode.ALL, "gold_labelled": bool(gold)}
    return Judged(completed.model_copy(update=update), by_judge=True, unfound=unfound)


def _proxy(chunk_id: str, found: Iterable[FoundEvidence], inventory: Inventory) -> Gold:
    """Gold that the judge found: a chunk, or words of a source document that no chunk was found to hold.

    A span is looked for word for word, so a quote becomes one only where the source itself has those words: a model's
    quote is close enough to read by, and a word that differs would look like a wrong label or a broken text.
    """
    if not chunk_id.startswith(PASSAGE):
        return Gold(id=chunk_id)
    source_id = chunk_id.removeprefix(PASSAGE).rpartition("#")[0]
    source = inventory.source(source_id)
    text = (source.text if source else None) or ""
    quotes = (each.quote for each in found if each.chunk_id == chunk_id and each.quote)
    span = next((quote for quote in quotes if find(quote, text) is True), None)
    return Gold(id=chunk_id, source_id=source_id, span=span)


def _evidence(judgement: Judgement) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """For each reference claim the chunks that support it: packed ones, else found ones. A group is one claim's."""
    groups: dict[tuple[str, ...], None] = {}
    unfound = []
    for claim in judgement.claims:
        if claim.side is not Side.REFERENCE:
            continue
        cells = [c for c in judgement.cells if c.claim_id == claim.id and c.chunk_id != ANSWER_COLUMN]
        packed = [c.chunk_id for c in cells if c.verdict is Verdict.SUPPORTED]
        found = [f.chunk_id for f in judgement.found if f.claim_id == claim.id]
        found = [chunk_id for chunk_id in found if not chunk_id.startswith(PASSAGE)] or found
        if packed or found:
            groups.setdefault(tuple(dict.fromkeys(packed or found)))
        elif not any(c.verdict is None for c in cells):
            unfound.append(claim.text)
    return tuple(groups), tuple(unfound)


def _answer(trace: Trace, judgement: Judgement, settings: JudgeSettings) -> Answer | None:
    given = trace.answer
    if given is None or not given.text:
        return given
    update: dict[str, object] = {}
    if given.abstained is None and judgement.abstained is not None:
        update["abstained"] = judgement.abstained
    faithfulness = _scored(judgement, "faithfulness")
    if given.supported is None and faithfulness is not None:
        update["supported"] = faithfulness >= settings.cuts.faithfulness
    said = _scored(judgement, "answer_recall")
    if given.correct is None and said is not None:
        denied = any(c.chunk_id == ANSWER_COLUMN and c.verdict is Verdict.CONTRADICTED for c in judgement.cells)
        update["correct"] = said == 1.0 and not denied
    return given.model_copy(update=update) if update else given


def _scored(judgement: Judgement, metric: str) -> float | None:
    return judgement.metrics.get(metric) if judgement.states.get(metric) is JudgeState.SCORED else None


QUADRANTS = {
    (True, True): "good context, faithful",
    (True, False): "good context, unfaithful",
    (False, True): "poor context, faithful (dangerous)",
    (False, False): "poor context, unfaithful",
}
"""(context recall, faithfulness) at or over their cuts. A faithful answer to a poor context reads well and is wrong."""


def quadrant(judgement: Judgement, cuts: QuadrantSettings) -> str | None:
    """Where the query stands in the 2x2; None unless both metrics are scored."""
    recall, faithfulness = _scored(judgement, "context_recall"), _scored(judgement, "faithfulness")
    if recall is None or faithfulness is None:
        return None
    return QUADRANTS[recall >= cuts.context_recall, faithfulness >= cuts.faithfulness]
