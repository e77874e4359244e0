"""The filter language of the queue: `stage:rerank is:unreviewed recall<0.5 refund`, and what it becomes in SQL."""

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum

from ragaudit.errors import ConfigError
from ragaudit.model.diagnosis import STAGES, Gap, Outcome, Stage
from ragaudit.model.judgement import JudgeState
from ragaudit.model.result import JUDGED, METRICS
from ragaudit.model.review import ReviewVerdict

FAILING = "is:failing"
"""What the queue shows unless told otherwise."""

_TERM = re.compile(r'(?P<not>[-!])?(?:(?P<key>[a-z_@]+)(?P<op>:|<=|>=|<|>))?(?P<value>"[^"]*"|[^\s"]+)')
_NEVER_NULL = ("q.stage", "q.outcome")
_NUMERIC = ("<", "<=", ">", ">=")

Condition = tuple[str, tuple[object, ...]]
"""SQL over `queries q`, and its values."""


class Sort(StrEnum):
    """The order of the queue."""

    TRACES = "traces"
    """Leaks first, then as in the traces."""
    STAGE = "stage"
    CAUSE = "cause"
    ID = "id"


_STAGE_ORDER = "CASE q.stage " + " ".join(f"WHEN '{stage}' THEN {n}" for n, stage in enumerate(STAGES)) + " ELSE 99 END"
SORT_KEYS: dict[Sort, str] = {
    Sort.TRACES: "0",
    Sort.STAGE: _STAGE_ORDER,
    Sort.CAUSE: "coalesce(json_extract(q.causes, '$[0]'), '~')",
    Sort.ID: "q.query_id",
}
"""What rows are ordered by; those that are alike stand in the order of the traces."""


@dataclass(frozen=True)
class Filter:
    """A parsed filter: every condition must hold. `text` is what was typed."""

    text: str = ""
    conditions: tuple[Condition, ...] = ()
    marked: bool | None = None
    """True = only marked queries, False = only the others, None = all."""

    def where(self, marks: Collection[str] = ()) -> Condition:
        """One condition for a WHERE, with its values in order."""
        parts = [sql for sql, _ in self.conditions]
        values = [value for _, found in self.conditions for value in found]
        if self.marked is not None:
            parts.append(f"q.query_id {'' if self.marked else 'NOT '}IN (SELECT value FROM json_each(?))")
            values.append(json.dumps(sorted(marks)))
        return " AND ".join(parts) or "true", tuple(values)


EVERYTHING = Filter()


def exactly(query_id: str) -> Filter:
    """The one query of this id."""
    return Filter(query_id, (("q.query_id = ?", (query_id,)),))


def noted(where: Filter) -> Filter:
    """Of these, the queries about which a person said something."""
    return replace(where, conditions=(*where.conditions, (_IS["noted"], ())))


def containing(text: str) -> Filter:
    """Queries whose id or text holds this, upper and lower case alike (ASCII)."""
    return Filter(text, (_search(text),))


def parse_filter(text: str) -> Filter:
    """Read a filter. Terms stand side by side and all must hold; `-` or `!` before one inverts it.

    `stage:rerank,fuse`, `cause:top_n_cut`, `outcome:fail`, `gap:stale_version`, `is:failing` (passing, undetermined,
    leak, reviewed, unreviewed, judged, marked, delivered), `verdict:agree`, `tag:short-text`, `judge:judge_failed`,
    `slice:language=de`, `recall<0.5` (any metric), and words that the id or the query must hold ("in quotes" for
    several).

    Raises:
        ConfigError: A key, a value or a number is not known.
    """
    conditions: list[Condition] = []
    marked = None
    for term in _terms(text):
        key, op, value = term["key"], term["op"], term["value"].strip('"')
        inverted = bool(term["not"])
        if key == "is" and value == "marked":
            marked = not inverted
            continue
        sql, values = _condition(key, op, value)
        conditions.append((f"NOT ({sql})" if inverted else sql, values))
    return Filter(" ".join(text.split()), tuple(conditions), marked)


def _terms(text: str) -> list[re.Match[str]]:
    found, end = [], 0
    while rest := text[end:].lstrip():
        end = len(text) - len(rest)
        term = _TERM.match(text, end)
        if term is None or (term.end() < len(text) and not text[term.end()].isspace()):
            raise ConfigError(
                f"filter: {rest[:20]!r} is not understood. Put words that hold quotes or spaces in quotes."
            )
        found.append(term)
        end = term.end()
    return found


def _condition(key: str | None, op: str | None, value: str) -> Condition:
    if key is None and value.endswith(":") and value[:-1] in _KEYS:
        raise ConfigError(f"filter: {value} no value. Write {_EXAMPLES[value[:-1]]}.")
    if key is None:
        return _search(value)
    if op in _NUMERIC:
        return _metric(key, op, value)
    if key not in _KEYS:
        raise ConfigError(f"filter: {key!r} is not a key. Use {', '.join((*_KEYS, 'a metric'))}.")
    return _KEYS[key](value)


def _search(value: str) -> Condition:
    pattern = "%" + "".join("\\" + c if c in "\\%_" else c for c in value) + "%"
    return "(q.query_id LIKE ? ESCAPE '\\' OR q.query_text LIKE ? ESCAPE '\\')", (pattern, pattern)


def _metric(key: str, op: str, value: str) -> Condition:
    names = [name for name in (*METRICS, *JUDGED) if name in (key, f"{key}@k")]
    try:
        bound = float(value)
    except ValueError:
        raise ConfigError(f"filter: {key}{op}{value}: not a number. Write, for example, recall<0.5.") from None
    if not names:
        raise ConfigError(f"filter: {key!r} is not a metric. Use {', '.join((*METRICS, *JUDGED))}.")
    # An undefined metric is null in the row: neither under nor over any bound.
    sql = f"""(SELECT json_extract(r.result, '$.metrics."{names[0]}"') FROM results r WHERE r.seq = q.seq) {op} ?"""
    return f"coalesce({sql}, false)", (bound,)


def _one_of(column: str, known: Collection[str], what: str) -> Callable[[str], Condition]:
    def condition(value: str) -> Condition:
        wanted = [_named(name, known, what) for name in value.split(",")]
        sql = f"{column} IN ({', '.join('?' * len(wanted))})"
        # A column that may be null is made to answer: `-gap:x` means the queries without a gap too.
        return sql if column in _NEVER_NULL else f"coalesce({sql}, false)", tuple(wanted)

    return condition


def _named(name: str, known: Collection[str], what: str) -> str:
    """The known name that was meant: itself, with `-` for `_`, or by a beginning that only one name has."""
    plain = name.lower().replace("-", "_")
    near = [one for one in known if one.startswith(plain)]
    if plain in known:
        return plain
    if len(near) == 1 and plain:
        return near[0]
    raise ConfigError(f"filter: {name!r} is not {what}. Use {', '.join(near or known)}.")


def _cause(value: str) -> Condition:
    wanted = [name.replace("-", "_") for name in value.split(",")]
    return f"q.seq IN (SELECT c.seq FROM causes c WHERE c.cause IN ({', '.join('?' * len(wanted))}))", tuple(wanted)


def _tag(value: str) -> Condition:
    return "EXISTS (SELECT 1 FROM reviews v, json_each(v.tags) t WHERE v.query_id = q.query_id AND t.value = ?)", (
        value,
    )


def _slice(value: str) -> Condition:
    name, equals, wanted = value.partition("=")
    if not equals:
        raise ConfigError(f"filter: slice:{value}: no value. Write slice:{value}=VALUE.")
    return (
        "EXISTS (SELECT 1 FROM results r, json_each(r.result, '$.slices') s "
        "WHERE r.seq = q.seq AND s.key = ? AND s.value = ?)",
        (name, wanted),
    )


def _judge(value: str) -> Condition:
    wanted = _named(value, [state.value for state in JudgeState], "a state of the judge")
    return (
        "EXISTS (SELECT 1 FROM judgements j, json_each(j.judgement, '$.states') s WHERE j.seq = q.seq AND s.value = ?)",
        (wanted,),
    )


_JUDGED = "EXISTS (SELECT 1 FROM judgements j WHERE j.seq = q.seq)"
_REVIEWED = "EXISTS (SELECT 1 FROM reviews v WHERE v.query_id = q.query_id AND v.verdict IS NOT NULL)"
_IS: dict[str, str] = {
    "failing": "(q.outcome = 'fail' OR q.seq < 0)",
    "passing": "q.outcome = 'pass'",
    "undetermined": "(q.outcome = 'undetermined' OR q.stage = 'undetermined')",
    "leak": "q.seq < 0",
    "reviewed": _REVIEWED,
    "unreviewed": f"NOT {_REVIEWED}",
    "noted": "EXISTS (SELECT 1 FROM reviews v WHERE v.query_id = q.query_id)",
    "judged": _JUDGED,
    "unjudged": f"NOT {_JUDGED}",
}


def _is(value: str) -> Condition:
    return _IS[_named(value, [*_IS, "marked"], "known after `is:`")], ()


_KEYS: dict[str, Callable[[str], Condition]] = {
    "stage": _one_of("q.stage", [stage.value for stage in Stage], "a stage"),
    "cause": _cause,
    "outcome": _one_of("q.outcome", [outcome.value for outcome in Outcome], "an outcome"),
    "gap": _one_of("q.gap", [gap.value for gap in Gap], "a gap"),
    "is": _is,
    "verdict": _one_of(
        "(SELECT v.verdict FROM reviews v WHERE v.query_id = q.query_id)",
        [verdict.value for verdict in ReviewVerdict],
        "a verdict",
    ),
    "tag": _tag,
    "judge": _judge,
    "slice": _slice,
}

_EXAMPLES = {
    "stage": "stage:rerank",
    "cause": "cause:top_n_cut",
    "outcome": "outcome:fail",
    "gap": "gap:stale_version",
    "is": "is:unreviewed",
    "verdict": "verdict:disagree",
    "tag": "tag:short-text",
    "judge": "judge:judge_failed",
    "slice": "slice:language=de",
}

KEYS: tuple[str, ...] = tuple(_KEYS)
IS: tuple[str, ...] = (*_IS, "marked")
