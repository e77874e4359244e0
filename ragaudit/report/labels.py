"""Reviews as labels: one row a reviewed query for other programs, and the corrected gold as TREC qrels."""

from collections.abc import Iterator
from typing import Any

from ragaudit.model.diagnosis import Basis, Diagnosis
from ragaudit.model.review import Review, ReviewVerdict
from ragaudit.model.trace import Trace

GOLD_WRONG = "gold said to be wrong and not corrected"
NOT_WRITABLE = "ids that a line of qrels cannot hold"


def label_row(review: Review, diagnosis: Diagnosis) -> dict[str, Any]:
    """What a person said of a query, with the diagnosis it was said of and the one there is now."""
    return {
        "query_id": review.query_id,
        "verdict": None if review.verdict is None else review.verdict.value,
        "tags": list(review.tags),
        "note": review.note,
        "stage": None if review.stage is None else review.stage.value,
        "gold": None if review.gold is None else list(review.gold),
        "about": {"outcome": review.about_outcome.value, "stage": review.about_stage.value},
        "now": {
            "outcome": diagnosis.outcome.value,
            "stage": diagnosis.stage.value,
            "causes": list(diagnosis.causes),
        },
        "at": review.at.isoformat(),
    }


def grades(diagnosis: Diagnosis, trace: Trace | None, review: Review | None) -> dict[str, float] | None:
    """The gold of a query with its grades: as a person corrected it, else as it was labelled; None = not labelled.

    A corrected id keeps the grade that it was labelled with, 1 when it is new; a labelled id that the person took out
    gets 0, which says "judged, not relevant". Gold that a judge found is no label.
    """
    labelled: dict[str, float] | None = None
    if diagnosis.basis is Basis.GOLD and (trace is None or trace.gold_labelled):
        known = diagnosis.gold if trace is None else trace.gold
        labelled = {gold.id: gold.grade for gold in known}
    if review is None or review.gold is None:
        return labelled
    before = labelled or {}
    return {i: before.get(i) or 1.0 for i in review.gold} | {i: 0.0 for i in before if i not in review.gold}


def doubted(review: Review | None) -> bool:
    """A person says that the gold is wrong and not what it should be: it is no label any more."""
    return review is not None and review.verdict is ReviewVerdict.GOLD_WRONG and review.gold is None


def qrels_lines(query_id: str, graded: dict[str, float]) -> Iterator[str | None]:
    """`query 0 id grade`, tabs between, so that ids may hold spaces; None in place of an id that no line can hold."""
    for gold_id, grade in graded.items():
        if _writable(query_id) and _writable(gold_id):
            yield f"{query_id}\t0\t{gold_id}\t{int(grade) if grade.is_integer() else grade!r}"
        else:
            yield None


def _writable(name: str) -> bool:
    """Reads back as it is: no tab or line end in it, nothing at its ends that a reader strips, no half surrogate."""
    if not name or name != name.strip() or any(c in name for c in "\t\r\n") or name.startswith("\ufeff"):
        return False
    return not any("\ud800" <= c <= "\udfff" for c in name)
