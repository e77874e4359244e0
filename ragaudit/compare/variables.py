"""Which pipeline variables differ between two runs, and what else must be equal for their numbers to compare."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragaudit.model.comparison import Baseline, Difference, FrozenQuery
from ragaudit.model.variables import THRESHOLDS, flat

Pairs = Sequence[tuple[FrozenQuery, FrozenQuery]]
"""The queries of both runs: (before, after)."""

K = "k_final"


def changed_variables(base: Baseline, candidate: Baseline, pairs: Pairs) -> list[Difference]:
    """The pipeline variables that differ, unknown keys included, for the whole run or by some queries' departures.

    A floor of `pipeline.thresholds` is one variable, wherever it moves; so are the fusion weights together. K is
    no pipeline variable: see `conditions`.
    """
    before, after = flat(base.pipeline), flat(candidate.pipeline)
    found = [
        difference
        for name in sorted(before.keys() | after.keys())
        if name != f"pipeline.{K}" and before.get(name) != after.get(name)
        for difference in _spread(name, before.get(name), after.get(name))
    ]
    for_all = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    by_query: dict[str, list[tuple[str, Any, Any]]] = {}
    for was, now in pairs:
        if was.config == now.config:
            continue
        for name in (was.config.keys() | now.config.keys()) - for_all - {f"pipeline.{K}"}:
            one, other = was.config.get(name, before.get(name)), now.config.get(name, after.get(name))
            if one != other:
                for each in _spread(name, one, other):
                    by_query.setdefault(each.name, []).append((now.query_id, each.before, each.after))
    found += [
        Difference(name=name, before=rows[0][1], after=rows[0][2], queries=tuple(row[0] for row in rows))
        for name, rows in sorted(by_query.items())
    ]
    return found


def conditions(base: Baseline, candidate: Baseline, pairs: Pairs) -> list[Difference]:
    """What differs though no number compares when it does: K, ACL, gold, the judge, how the audit counted."""
    found = []
    other_k = _where(pairs, "k")
    k_said = [side.pipeline.get(K) for side in (base, candidate)]
    if other_k or (None not in k_said and k_said[0] != k_said[1]):
        ks = [(was.k, now.k) for was, now in pairs if was.k != now.k]
        was_k, now_k = ks[0] if ks else k_said
        where = () if len(other_k) == len(pairs) else other_k
        found.append(Difference(name=K, before=was_k, after=now_k, queries=where))
    if base.acl != candidate.acl:
        found.append(Difference(name="acl", before=_acl(base), after=_acl(candidate)))
    elif who := _where(pairs, "access"):
        note = "who asks, and which gold they may read"
        found.append(Difference(name="acl", before=note, after="not the same", queries=who))
    if labels := _where(pairs, "gold"):
        found.append(Difference(name="gold", before=base.gold_version, after=candidate.gold_version, queries=labels))
    found += _judge_differences(base, candidate)
    for name, was, now in (
        ("audit.scope", base.scope, candidate.scope),
        ("audit.gain", base.gain, candidate.gain),
    ):
        if was != now:
            found.append(Difference(name=name, before=was, after=now))
    return found


def _spread(name: str, before: Any, after: Any) -> Iterator[Difference]:
    """One difference, but of a list of tables one for each that was added, removed or changed."""
    if name != THRESHOLDS or not all(_tables(value) for value in (before, after)):
        yield Difference(name=name, before=before, after=after)
        return
    gone, new = list(enumerate(before or ())), list(enumerate(after or ()))
    for place, row in list(gone):
        same = next(((other, one) for other, one in new if one == row), None)
        if same is not None:
            gone.remove((place, row))
            new.remove(same)
    if not gone and not new:
        yield Difference(name=name, before=before, after=after)  # the same floors in another order
    for number in range(max(len(gone), len(new))):
        was = gone[number] if number < len(gone) else None
        now = new[number] if number < len(new) else None
        place = (was or now or (0, None))[0]
        yield Difference(name=f"{name}[{place}]", before=was and was[1], after=now and now[1])


def _tables(value: Any) -> bool:
    return value is None or (isinstance(value, list | tuple) and all(isinstance(row, Mapping) for row in value))


def _judge_differences(base: Baseline, candidate: Baseline) -> list[Difference]:
    was, now = base.judge, candidate.judge
    if was is None or now is None:
        if was is now:
            return []
        return [Difference(name="judge", before=was and was.model, after=now and now.model)]
    found = [
        Difference(name=f"judge.{field}", before=getattr(was, field), after=getattr(now, field))
        for field in ("model", "mode")
        if getattr(was, field) != getattr(now, field)
    ]
    found += [
        Difference(name=f"judge.prompts.{prompt}", before=was.prompts.get(prompt), after=now.prompts.get(prompt))
        for prompt in sorted(was.prompts.keys() | now.prompts.keys())
        if was.prompts.get(prompt) != now.prompts.get(prompt)
    ]
    return found


def _where(pairs: Pairs, field: str) -> tuple[str, ...]:
    return tuple(now.query_id for was, now in pairs if getattr(was, field) != getattr(now, field))


def _acl(side: Baseline) -> str:
    everyone = f", everyone holds {', '.join(side.acl.everyone)}" if side.acl.everyone else ""
    return f"rule {side.acl.rule}{everyone}"
