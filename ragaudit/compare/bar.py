"""What CI holds a run against: gates, a baseline, both or neither; and which queries fall short of it, worst first."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from ragaudit.compare.changes import change_of, newly
from ragaudit.compare.gates import Rule
from ragaudit.compare.gating import hold
from ragaudit.compare.pairing import paired_queries
from ragaudit.model.comparison import Baseline, GateReport, GateResult, QueryChange


class Why(StrEnum):
    """What a query falls short of."""

    LEAK = "leak"
    """It shows what its user may not read: held against every run, with or without a gate."""
    NEWLY_FAILING = "newly_failing"
    """It fails, and did not in the baseline."""
    GATE = "gate"
    """It is among the queries that make a gate fire."""


@dataclass(frozen=True)
class Shortfall:
    """Why one query fails a build. `gates` are those that fired and count it."""

    why: Why
    change: QueryChange | None = None
    gates: tuple[GateResult, ...] = ()


@dataclass(frozen=True)
class Bar:
    """What a run was held against. Empty when its owner wrote no gates and named no baseline."""

    report: GateReport | None = None
    unchecked: tuple[str, ...] = ()
    """Gates that are measured against a baseline, when there is none."""
    short: Mapping[str, Shortfall] = field(default_factory=dict)
    """Query id -> why it falls short; leaks, then newly failing ones, then those of gates; in each the worst first."""
    before: Mapping[str, str] = field(default_factory=dict)
    """Query id -> its state in the baseline."""
    missing: tuple[str, ...] = ()
    """Queries of the baseline that the run does not have."""

    @property
    def gates(self) -> tuple[GateResult, ...]:
        """Every gate that was measured."""
        return () if self.report is None else self.report.gates

    @property
    def baseline(self) -> str | None:
        """The baseline's name."""
        return None if self.report is None else self.report.baseline


NOTHING = Bar()


def bar(run: Baseline, rules: Sequence[Rule], before: Baseline | None = None, *, allow: Collection[str] = ()) -> Bar:
    """Hold a run against gates and a baseline, and name the queries that fall short.

    A gate whose figure is undefined fires, and no query is named for it: nothing is known of any.

    Args:
        run: The run, as frozen.
        rules: From `[gates]`; there may be none.
        before: The baseline.
        allow: Conditions that may differ from the baseline, as for `hold`.

    Raises:
        InputError: The run and the baseline share no query, or K, the ACL, the gold or the judge differ.
    """
    measured = [rule for rule in rules if before is not None or not rule.relative]
    report = hold(run, measured, before, allow=allow)
    changes: dict[str, QueryChange] = {}
    worst: list[str] = []
    missing: tuple[str, ...] = ()
    if before is not None:
        pairs = paired_queries(before, run)
        changes = {now.query_id: change_of(was, now) for was, now in pairs}
        worst = [change.query_id for change in newly(pairs, list(changes.values()), failing=True)]
        missing = tuple(query.query_id for query in before.queries if query.query_id not in changes)
    counted: dict[str, list[GateResult]] = {}
    for gate in report.fired:
        for query_id in gate.queries if gate.value is not None else ():
            counted.setdefault(query_id, []).append(gate)
    leaking = [query.query_id for query in run.queries if query.leaks]
    leaking.sort(key=lambda query_id: (query_id in changes and not changes[query_id].leaks, query_id))
    short: dict[str, Shortfall] = {}
    for why, query_ids in ((Why.LEAK, leaking), (Why.NEWLY_FAILING, worst), (Why.GATE, counted)):
        for query_id in query_ids:
            short.setdefault(query_id, Shortfall(why, changes.get(query_id), tuple(counted.get(query_id, ()))))
    return Bar(
        report=report,
        unchecked=tuple(rule.gate for rule in rules if rule not in measured),
        short=short,
        before={} if before is None else {query.query_id: query.state for query in before.queries},
        missing=missing,
    )
