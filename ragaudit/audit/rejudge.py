"""Judges queries of a finished audit: asks, diagnoses them anew, and puts each into the file as it is done."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ragaudit.audit.batch import diagnose_batch
from ragaudit.audit.judging import Judge
from ragaudit.audit.proposals import experiments_of
from ragaudit.audit.reopen import Audited, refuse_if_changed
from ragaudit.audit.summing import sum_again
from ragaudit.errors import InputError
from ragaudit.evidence.candidates import sample_of
from ragaudit.judge.asking import BUDGET_SPENT, STOPPED
from ragaudit.model.experiment import Experiment
from ragaudit.model.judgement import Judgement, JudgeSample, JudgeState
from ragaudit.model.result import JudgeNote, Summary
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import read_traces
from ragaudit.store import AuditUpdater

if TYPE_CHECKING:
    from ragaudit.judge.plan import Lookup, Plan
    from ragaudit.judge.progress import JudgeProgress

BATCH = 50
"""Finished queries that are written in one transaction, at most."""

HELD_SECONDS = 0.2
"""How long a finished query waits for others to be written with, at most."""


@dataclass(frozen=True)
class Open:
    """What there is to judge among some queries."""

    ids: frozenset[str]
    judged: int = 0
    """Queries that were judged before, completely: they are not asked about again."""
    nothing: int = 0
    """Queries that leave nothing open: labelled and judged by people, or without reference and answer."""


@dataclass(frozen=True)
class Moment:
    """How far judging is. Every query that is `done` is in the audit file."""

    total: int
    done: int = 0
    unscored: int = 0
    """Of those done, the queries with a metric that the judge was asked for and gave nothing usable."""
    calls: "JudgeProgress | None" = None
    """None = nothing was asked or replayed yet."""
    seconds: float = 0.0
    """Since the start, pauses left out."""
    is_paused: bool = False
    is_summing: bool = False
    """The queries are done; the figures of the run are made anew."""


@dataclass(frozen=True)
class Judged:
    """How judging ended."""

    moment: Moment
    summary: Summary
    budget_spent: bool = False
    """Queries are left because a limit of [judge] was reached."""

    @property
    def left(self) -> int:
        """Queries that were not judged; their replies so far are on the tape."""
        return self.moment.total - self.moment.done


def _silent(_: Moment) -> None:
    """No progress wanted."""


def _never() -> bool:
    return False


def open_queries(
    audited: Audited, query_ids: Collection[str], said: Callable[[str], Judgement | None], *, again: bool = False
) -> Open:
    """Which of these queries there is something to ask about.

    Args:
        audited: The audit with its bundle.
        query_ids: The queries that were chosen.
        said: What the judge said of a query so far.
        again: Those that were judged before, too.
    """
    chosen = set(query_ids)
    wanting = chosen & audited.wanting
    todo = wanting if again else {query_id for query_id in wanting if is_open(said(query_id))}
    return Open(frozenset(todo), len(wanting) - len(todo), len(chosen) - len(wanting))


def is_open(judgement: Judgement | None) -> bool:
    """Is there something left to ask: nobody asked, a budget or a stop came between, or nothing usable came back?"""
    return judgement is None or _has_failed(judgement) or _cut_off(judgement, STOPPED, BUDGET_SPENT)


def plan(audited: Audited, judge: Judge, todo: Collection[str], lookup: "Lookup", stop: Callable[[], bool]) -> "Plan":
    """What judging these queries would take. Nothing is sent or written.

    Args:
        audited: The audit with its bundle.
        judge: Who would judge; its tape is not touched.
        todo: The queries that would be asked about.
        lookup: What is on the tape.
        stop: Asked before each query; True = the plan covers those before it.
    """
    from ragaudit.judge.plan import plan as worked_out

    samples = (_sample(audited, trace) for trace in _traces(audited, todo, stop))
    return worked_out(samples, prompts=judge.prompts, how=judge.how, lookup=lookup)


def rejudge(
    audited: Audited,
    judge: Judge,
    query_ids: Collection[str],
    *,
    again: bool = False,
    progress: Callable[[Moment], None] = _silent,
    stop: Callable[[], bool] = _never,
    pause: Callable[[], bool] = _never,
    clock: Callable[[], float] = time.monotonic,
) -> Judged:
    """Judge those of these queries that leave something open, and write each into the audit file.

    At the end, also after a stop or an error, the figures of the run are made anew. A query that was not finished
    stays as it was. Killed at any moment, the file is whole; `Summary.behind` then says that figures are older.

    Args:
        audited: The audit with its bundle.
        judge: Who is asked; its tape stays the caller's to close.
        query_ids: The queries that were chosen; those that leave nothing open are passed over.
        again: Ask also about queries that were judged before. One that then fails keeps what was said before.
        progress: Told while waiting and after each query, in the caller's thread.
        stop: Asked about ten times a second; True = ask nothing more, keep what is done.
        pause: Asked as often; while True nothing new is asked.
        clock: Seconds.

    Raises:
        InputError: The bundle is not the audited one any more, or another judge judged the rest of the audit.
        AuditFileError: The audit file cannot be written, or was replaced.
        JudgeError: The judge cannot be asked at all, or a reply is not on the tape that must be.
    """
    refuse_if_changed(audited)
    with AuditUpdater.open(audited.path) as updater:
        before = updater.summary()
        if (before.run.fingerprint, before.run.inputs) != (audited.run.fingerprint, audited.run.inputs):
            raise InputError(f"{audited.path}: another audit took its place. Open it again.")
        refuse_mixing(audited, before.judge or updater.judge(), judge)
        todo = open_queries(audited, query_ids, updater.judgement, again=again)
        start = Moment(len(todo.ids), is_paused=pause())
        work = _Work(audited, judge, updater, start, progress, pause, clock, again=again)
        progress(work.moment)
        samples = work.samples(todo.ids, stop)
        try:
            asking = judge.over(samples, progress=work.look, stop=stop, pause=pause)
            with closing(asking) as judgements:
                for judgement in judgements:
                    work.take(judgement)
        finally:
            work.flush()
            summary = work.summed(before)
        return Judged(replace(work.moment, is_summing=False), summary, work.budget_spent)


def refuse_mixing(audited: Audited, note: JudgeNote | None, judge: Judge) -> None:
    """Refuse to judge a part of an audit whose rest was judged otherwise: one mean would then be of two judges.

    Raises:
        InputError: Model, mode, cuts or the version of a prompt differ.
    """
    if note is None:
        return
    versions = judge.prompts.versions()
    differs = [
        f"{what} {before} then, {now} now"
        for what, before, now in (
            ("model", note.model, judge.how.model),
            ("mode", note.mode, judge.how.mode),
            *((f"[judge.cuts] {name}", cut, judge.cuts.get(name)) for name, cut in note.cuts.items()),
            *((f"prompt {name}", f"v{n}", f"v{versions.get(name)}") for name, n in note.prompts.items()),
        )
        if before != now
    ]
    if differs:
        raise InputError(
            f"{audited.path}: other queries were judged otherwise ({'; '.join(differs)}), and a mean cannot be of two "
            "judges. Set it back, or judge all of them: `ragaudit judge run BUNDLE`."
        )


@dataclass
class _Work:
    """Judging under way: what is finished and not written yet, and how far it is."""

    audited: Audited
    judge: Judge
    updater: AuditUpdater
    moment: Moment
    progress: Callable[[Moment], None]
    pause: Callable[[], bool]
    clock: Callable[[], float]
    again: bool
    budget_spent: bool = False
    _pending: dict[str, Trace] = field(default_factory=dict)
    """The traces of the samples that were handed out."""
    _finished: list[tuple[Trace, Judgement]] = field(default_factory=list)
    _looked: float = 0.0
    _held_since: float = 0.0

    def __post_init__(self) -> None:
        self._looked = self.clock()

    def samples(self, todo: Collection[str], stop: Callable[[], bool]) -> Iterator[JudgeSample]:
        for trace in _traces(self.audited, todo, stop):
            self._pending[trace.query_id] = trace
            yield _sample(self.audited, trace)

    def look(self, calls: "JudgeProgress") -> None:
        """Called between queries, and while waiting."""
        now = self.clock()
        is_paused = self.pause()
        seconds = self.moment.seconds + (0.0 if self.moment.is_paused else now - self._looked)
        self._looked = now
        if self._finished and now - self._held_since >= HELD_SECONDS:
            self.flush()
        self.moment = replace(self.moment, calls=calls, seconds=seconds, is_paused=is_paused)
        self.progress(self.moment)

    def take(self, judgement: Judgement) -> None:
        """A query is finished, or as good as it gets."""
        trace = self._pending.pop(judgement.query_id)
        if _cut_off(judgement, STOPPED, BUDGET_SPENT):
            self.budget_spent |= _cut_off(judgement, BUDGET_SPENT)
            return
        if not self._finished:
            self._held_since = self.clock()
        self._finished.append((trace, judgement))
        if len(self._finished) >= BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what is finished; then it counts as done."""
        if not self._finished:
            return
        kept = [(t, j) for t, j in self._finished if not (self.again and is_open(j) and self._was_scored(t.query_id))]
        said = {judgement.query_id: judgement for _, judgement in kept}
        results = diagnose_batch([trace for trace, _ in kept], self.audited.around, said)
        rows = [(result, said[result.diagnosis.query_id]) for result in results]
        if rows:
            self.updater.replace(rows, self._note())
        failed = sum(_has_failed(judgement) for _, judgement in self._finished)
        done, unscored = self.moment.done + len(self._finished), self.moment.unscored + failed
        self._finished = []
        self.moment = replace(self.moment, done=done, unscored=unscored)

    def summed(self, before: Summary) -> Summary:
        """The figures anew, if anything changed."""
        if not self.updater.summary().behind:
            return before
        self.moment = replace(self.moment, is_summing=True, is_paused=False)
        self.progress(self.moment)
        return sum_again(self.updater, self._note(), self._experiments)

    def _note(self) -> JudgeNote:
        how = self.judge.how
        return JudgeNote(model=how.model, mode=how.mode, prompts={}, cuts=dict(self.judge.cuts))

    def _experiments(self, summary: Summary) -> tuple[Experiment, ...]:
        traces = read_traces(self.audited.bundle, limit=self.audited.run.traces)
        judgements = (judgement for _, judgement in self.updater.stored() if judgement is not None)
        return experiments_of(traces, self.updater.results, self.audited.around, summary.metrics, judgements)

    def _was_scored(self, query_id: str) -> bool:
        return not is_open(self.updater.judgement(query_id))


def _traces(audited: Audited, ids: Collection[str], stop: Callable[[], bool]) -> Iterator[Trace]:
    """The traces of these queries, in the order of the file; reads no further than the last of them."""
    left = set(ids)
    for trace in read_traces(audited.bundle, limit=audited.run.traces):
        if not left or stop():
            return
        if trace.query_id in left:
            left.remove(trace.query_id)
            yield trace


def _sample(audited: Audited, trace: Trace) -> JudgeSample:
    around = audited.around
    pipeline = around.settings.pipeline.with_overrides(trace.config)
    return sample_of(trace, around.identities, around.acl, pipeline, audited.search)


def _has_failed(judgement: Judgement) -> bool:
    return JudgeState.JUDGE_FAILED in judgement.states.values()


def _cut_off(judgement: Judgement, *how: str) -> bool:
    """Were calls never sent, for one of these reasons?"""
    return any((call.error or "").startswith(how) for call in judgement.calls)
