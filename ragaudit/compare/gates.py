"""What `[gates]` may say, checked before anything is measured: one rule for each number that must hold."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from ragaudit.errors import ConfigError
from ragaudit.model.comparison import LOWER_IS_BETTER
from ragaudit.model.diagnosis import STAGES, Outcome
from ragaudit.model.result import JUDGED, METRICS

LEAKS = "leaks"
STAGE_TABLE = "stages"
OUTCOME_TABLE = "outcomes"
_KEYS = ("min", "max", "max_drop", "on", "coverage")
_METRICS = (*METRICS, *JUDGED)


class Kind(StrEnum):
    """What a rule compares."""

    MIN = "min"
    MAX = "max"
    MAX_DROP = "max_drop"
    COVERAGE = "coverage"
    COUNT = "count"
    LEAKS = "leaks"


class On(StrEnum):
    """Which figure of a metric a rule looks at."""

    MEAN = "mean"
    LOW = "low"
    """The bound of the 95 % interval on the bad side: the lower one, unless lower is better."""


@dataclass(frozen=True)
class Rule:
    """One gate: `subject` is a metric, a stage or an outcome."""

    gate: str
    kind: Kind
    subject: str
    limit: float
    on: On = On.MEAN

    @property
    def relative(self) -> bool:
        """It needs a baseline."""
        return self.kind is Kind.MAX_DROP


def rules(gates: Mapping[str, Any], place: str) -> tuple[Rule, ...]:
    """The rules of `[gates]`.

    Args:
        gates: The table as it was read.
        place: What it was read from, for messages.

    Raises:
        ConfigError: A key is no metric, or a value makes no sense.
    """
    found: list[Rule] = []
    for key, value in gates.items():
        if key == LEAKS:
            found.append(_leaks(value, place))
        elif key in (STAGE_TABLE, OUTCOME_TABLE):
            found += _counts(key, value, place)
        elif key in _METRICS:
            found += _metric(key, value, place)
        else:
            raise ConfigError(f"{place}: gates.{key}: is no metric. {_nearest(key, (*_METRICS, LEAKS, *_TABLES))}")
    return tuple(found)


_TABLES = (STAGE_TABLE, OUTCOME_TABLE)


def _metric(metric: str, value: Any, place: str) -> Iterator[Rule]:
    falls = metric in LOWER_IS_BETTER
    bound = Kind.MAX if falls else Kind.MIN
    if not isinstance(value, Mapping):
        yield Rule(f"{metric}.{bound}", bound, metric, _share(value, f"{place}: gates.{metric}"))
        return
    for key in value:
        if key not in _KEYS:
            raise ConfigError(f"{place}: gates.{metric}.{key}: unknown. {_nearest(key, _KEYS)}")
    on = value.get("on", On.MEAN.value)
    if on not in tuple(On):
        raise ConfigError(f'{place}: gates.{metric}.on: must be "mean" or "low", not {on!r}. Correct the value.')
    wrong = Kind.MIN if falls else Kind.MAX
    if wrong.value in value:
        better = "lower is better: write max" if falls else "higher is better: write min"
        raise ConfigError(f"{place}: gates.{metric}.{wrong}: of {metric} {better}.")
    said = [Kind(key) for key in _KEYS if key in value and key != "on"]
    if not said:
        raise ConfigError(f"{place}: gates.{metric}: asks nothing. Write {bound}, max_drop or coverage.")
    for kind in said:
        limit = _share(value[kind.value], f"{place}: gates.{metric}.{kind}")
        yield Rule(f"{metric}.{kind}", kind, metric, limit, On(on))


def _leaks(value: Any, place: str) -> Rule:
    if isinstance(value, bool) or value != 0:
        raise ConfigError(f"{place}: gates.leaks: must be 0. No leak is one to get used to; write leaks = 0.")
    return Rule(LEAKS, Kind.LEAKS, LEAKS, 0.0)


def _counts(table: str, value: Any, place: str) -> Iterator[Rule]:
    known = [stage.value for stage in STAGES] if table == STAGE_TABLE else [outcome.value for outcome in Outcome]
    if not isinstance(value, Mapping):
        raise ConfigError(f"{place}: gates.{table}: is a value. Write a table: [gates.{table}].")
    for key, limit in value.items():
        if key not in known:
            raise ConfigError(f"{place}: gates.{table}.{key}: unknown. {_nearest(key, known)}")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
            raise ConfigError(f"{place}: gates.{table}.{key}: must be a number of queries from 0, not {limit!r}.")
        yield Rule(f"{table}.{key}", Kind.COUNT, key, float(limit))


def _share(value: Any, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfigError(f"{place}: must be a number from 0 to 1, not {value!r}. Correct the value.")
    return float(value)


def _nearest(key: str, known: tuple[str, ...] | list[str]) -> str:
    near = get_close_matches(key, known, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Known here: {', '.join(known)}."
