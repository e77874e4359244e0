"""Refuses a comparison that would prove nothing, with every reason; exceptions are named by hand and stay visible."""

from collections.abc import Collection, Iterable, Sequence

from ragaudit.compare.variables import K
from ragaudit.errors import InputError
from ragaudit.model.comparison import Baseline, Difference, means


def admitted(
    base: Baseline,
    candidate: Baseline,
    changed: Iterable[Difference],
    others: Iterable[Difference],
    allow: Collection[str],
    planned: str | None = None,
) -> tuple[tuple[Difference, ...], tuple[Difference, ...]]:
    """The same differences, the allowed ones marked, when the two runs may be compared.

    Args:
        base: What there was.
        candidate: What was tried.
        changed: Pipeline variables that differ.
        others: Conditions that differ.
        allow: Names of differences that are accepted.
        planned: The variable that an experiment planned to change: whatever it means is the one change that is tested.

    Raises:
        InputError: More than one variable changed, or a condition differs, and `allow` does not name it.
    """
    changed, others = _marked(changed, allow), _marked(others, allow)

    def stands_out(difference: Difference) -> bool:
        return not difference.allowed and (planned is None or not means(planned, difference.name))

    tested = [difference for difference in changed if stands_out(difference)]
    reasons = [_reason(difference) for difference in others if stands_out(difference)]
    if len(tested) > 1:
        reasons.append(
            f"{len(tested)} pipeline variables changed, so that no effect belongs to one of them: "
            + "; ".join(f"{each.name} {_values(each)}" for each in tested)
        )
    if not reasons:
        return changed, others
    nameable = [each.name for each in others if stands_out(each) and each.name != "acl"]
    nameable += [each.name for each in tested[1:]] if len(tested) > 1 else []
    exception = f", or name the exception: {' '.join(f'--allow {name}' for name in nameable)}" if nameable else ""
    listed = "\n".join(f"  - {reason}" for reason in reasons)
    raise InputError(
        f"{base.name} and {candidate.name}: cannot be compared.\n{listed}\n"
        f"Audit a candidate that differs in one variable{exception}."
    )


def _reason(difference: Difference) -> str:
    where = f" ({_ids(difference.queries)})" if difference.queries else ""
    what = {
        K: "K differs: metrics at another K are other metrics",
        "acl": "who may read what differs: access is no variable of an experiment",
        "gold": "the gold labels differ",
        "judge": "the judge differs",
        "audit": "the audit counted otherwise",
    }[difference.name.partition(".")[0]]
    return f"{what}: {difference.name} {_values(difference)}{where}"


def _values(difference: Difference) -> str:
    return f"{_short(difference.before)} -> {_short(difference.after)}"


def _short(value: object) -> str:
    text = "not said" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _ids(queries: Sequence[str]) -> str:
    more = f" and {len(queries) - 3:,} more" if len(queries) > 3 else ""
    return ", ".join(queries[:3]) + more


def _marked(differences: Iterable[Difference], allow: Collection[str]) -> tuple[Difference, ...]:
    return tuple(
        difference.model_copy(update={"allowed": any(means(name, difference.name) for name in allow)})
        for difference in differences
    )
