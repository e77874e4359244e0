"""What a sample of a cause is: a bundle that has it, its sentence, and the near miss with one value changed."""

from dataclasses import dataclass
from typing import Any

from diagnosis_builders import Bundle, bundle, merged


@dataclass(frozen=True)
class Sample:
    """One cause.

    Attributes:
        has: The bundle that has the cause, as arguments of `bundle`.
        near: The decisive value changed, laid over `has`.
        says: The evidence sentence, word for word.
        verdict: Outcome, stage and causes of the bundle that has it.
        then: The same of the near miss.
    """

    has: dict[str, Any]
    near: dict[str, Any]
    says: str
    verdict: str
    then: str

    @property
    def bundle(self) -> Bundle:
        """The bundle that has the cause."""
        return bundle(**self.has)

    @property
    def near_miss(self) -> Bundle:
        """The bundle that just does not have it."""
        return bundle(**merged(self.has, self.near))


def probe(name: str, value: Any, arm: str | None = None, note: str | None = None) -> dict[str, Any]:
    """One probe on the gold."""
    found = {"probe": name, "gold_id": "g", "arm": arm, "value": value, "note": note}
    return {key: item for key, item in found.items() if key in ("probe", "gold_id", "value") or item is not None}


def exact(rank: int | None, arm: str = "dense") -> dict[str, Any]:
    """An exact search on the vector arm: the gold's rank there."""
    return probe("exact_rank", rank, arm)


def answered(**judged: Any) -> dict[str, Any]:
    """The trace of a query whose prompt is known, with its answer."""
    return {"prompt_ids": ["d1", "g", "d3"], "answer": judged}
