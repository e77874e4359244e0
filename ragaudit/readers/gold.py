"""Gold as logs and qrels give it, settled into one form: each relevant id once, with all that is known of it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from ragaudit.model.trace import Gold, GoldMode
from ragaudit.readers.fields import explained, id_of, items_of, quoted, shown
from ragaudit.readers.lines import LineError

RELEVANT = 1.0
"""An id is relevant from this grade on."""


class SettledGold(NamedTuple):
    """The gold of one query. `remarks` are (kind, message) pairs about what was left out or does not agree."""

    gold: tuple[Gold, ...]
    gold_groups: tuple[tuple[str, ...], ...] | None
    gold_labelled: bool
    remarks: tuple[tuple[str, str], ...] = ()


def settle_gold(
    gold_ids: Sequence[str] | None,
    gold: Any,
    gold_groups: Sequence[Sequence[str]] | None,
    qrels_row: Mapping[str, float] | None = None,
) -> SettledGold:
    """Merge the ways of saying what is relevant. None = not said; an empty list = nothing is relevant.

    `gold_groups` names the ids when it is given and not empty (an empty one says nothing about grouping); otherwise
    `gold_ids` and `gold` together do. `gold` adds what it knows of each id. Qrels name the ids only when the trace
    says nothing at all; else they supply grades for ids that both list, and where the two disagree the trace wins.

    Raises:
        LineError: `gold` (as the file holds it) or a group is not in a form that can be used.
    """
    if gold_ids is None and gold is None and gold_groups is None:
        if qrels_row is None:
            return SettledGold((), None, False)
        return SettledGold(tuple(Gold(id=key, grade=grade) for key, grade in qrels_row.items()), None, True)
    rich = {} if gold is None else _rich(items_of(gold, "gold", "objects with an id"))
    groups = None if gold_groups is None else _groups(gold_groups) or None
    remarks: list[tuple[str, str]] = []
    wanted = dict.fromkeys(gold_ids or ())
    if groups is None:
        wanted |= dict.fromkeys(rich)
    else:
        wanted = dict.fromkeys(key for group in groups for key in group)
        beside = next((key for key, entry in rich.items() if key not in wanted and entry.grade >= RELEVANT), None)
        wanted |= dict.fromkeys(key for key, entry in rich.items() if entry.grade < RELEVANT)
        if beside is not None:
            text = f"gold lists {quoted(beside)}, which is in no group of gold_groups: left out. Add it to a group."
            remarks.append(("gold_outside_groups", text))
    settled = {key: rich.get(key) or Gold(id=key) for key in wanted}
    if qrels_row is not None:
        remarks += _graded(settled, qrels_row)
    return SettledGold(tuple(settled.values()), groups, True, tuple(remarks))


def gold_mode_of(value: Any) -> GoldMode:
    """`all` (also when nothing is said) or `any`."""
    if value is None:
        return GoldMode.ALL
    try:
        return GoldMode(value)
    except ValueError:
        raise LineError(f'gold_mode: {shown(value)} is not a mode. Log "all" or "any".') from None


def _rich(entries: Sequence[Any]) -> dict[str, Gold]:
    found: dict[str, Gold] = {}
    for n, entry in enumerate(entries):
        if not isinstance(entry, dict):
            key = id_of(entry, f"gold[{n}]")
            found.setdefault(key, Gold(id=key))
            continue
        try:
            # a null is an absent key: the grade of {"id": "c1", "grade": null} is the default
            record = Gold.model_validate({key: value for key, value in entry.items() if value is not None})
        except ValidationError as error:
            raise LineError(explained(error, entry, f"gold[{n}]")) from None
        found.setdefault(id_of(record.id, f"gold[{n}].id"), record)
    return found


def _groups(groups: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    distinct: dict[frozenset[str], tuple[str, ...]] = {}
    for n, group in enumerate(groups):
        ids = tuple(dict.fromkeys(group))
        if not ids:
            raise LineError(f"gold_groups[{n}]: the group is empty, nothing can satisfy it. Leave it out.")
        distinct.setdefault(frozenset(ids), ids)
    return tuple(distinct.values())


def _graded(settled: dict[str, Gold], qrels_row: Mapping[str, float]) -> list[tuple[str, str]]:
    """Fill grades in place from the qrels, and report when the two name different ids."""
    for key, entry in settled.items():
        grade = qrels_row.get(key)
        if grade is not None and grade >= RELEVANT and "grade" not in entry.model_fields_set:
            settled[key] = entry.model_copy(update={"grade": grade})
    ours = {key for key, entry in settled.items() if entry.grade >= RELEVANT}
    theirs = {key for key, grade in qrels_row.items() if grade >= RELEVANT}
    if ours == theirs:
        return []
    first = min(ours ^ theirs)
    side = "qrels" if first in theirs else "trace"
    differing = "1 id" if len(ours ^ theirs) == 1 else f"{len(ours ^ theirs)} ids"
    text = (
        f"gold in the trace and in the qrels differ in {differing} (first: {quoted(first)}, only in the"
        f" {side}); the trace counts. Write null, not [], for a query that nobody labelled, or drop one of the two."
    )
    return [("gold_differs_from_qrels", text)]
