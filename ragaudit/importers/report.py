"""What an import read, left out and why, and how it came by each field."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragaudit.model.trace import Provenance

FIELDS = (
    "query_text",
    "k_final",
    "user_acl",
    "index_revision",
    "embedding_model",
    "query_rewrite",
    "filters_applied",
    "arms",
    "fused",
    "rerank_input",
    "after_rerank",
    "final_context_ids",
    "gold",
    "answer",
    "reference",
    "session_id",
    "timestamp",
)
"""The fields of a trace that the report covers, in the order of DATA.md."""
PLACES = 3
"""Places kept for each reason."""


@dataclass(frozen=True)
class Reason:
    """Something left out, or worth knowing: how often, and where first."""

    count: int
    places: tuple[str, ...]


@dataclass
class ImportReport:
    """Filled while an input is read. `skipped` = records that gave no row, `notes` = what holds for rows."""

    format: str = ""
    rows: Counter[str] = field(default_factory=Counter)
    """File of the bundle -> rows written."""
    skipped: dict[str, Reason] = field(default_factory=dict)
    notes: dict[str, Reason] = field(default_factory=dict)
    fields: dict[str, Counter[str]] = field(default_factory=dict)
    """Field of a trace -> observed, derived, assumed, absent -> traces."""

    def skip(self, why: str, place: str) -> None:
        """Count a record that gives no row."""
        _count(self.skipped, why, place)

    def note(self, what: str, place: str, times: int = 1) -> None:
        """Count something that the reader of an audit should know: how ids were found, what was taken for what."""
        _count(self.notes, what, place, times)

    def trace(self, row: Mapping[str, Any]) -> None:
        """Take a trace that is written into the coverage of the fields."""
        how = row.get("provenance") or {}
        for name in FIELDS:
            held = name if name != "gold" else next((each for each in _GOLD if row.get(each) is not None), name)
            said = how.get(held, _OBSERVED) if row.get(held) not in (None, "") else "absent"
            self.fields.setdefault(name, Counter())[str(said)] += 1

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "schema": "ragaudit.import/1",
            "format": self.format,
            "rows": dict(self.rows),
            "skipped": {why: {"count": r.count, "places": list(r.places)} for why, r in self.skipped.items()},
            "notes": {what: {"count": r.count, "places": list(r.places)} for what, r in self.notes.items()},
            "fields": {name: dict(counts) for name, counts in self.fields.items()},
        }


_OBSERVED = Provenance.OBSERVED.value
_GOLD = ("gold_ids", "gold", "gold_groups")


def _count(kept: dict[str, Reason], why: str, place: str, times: int = 1) -> None:
    before = kept.get(why, Reason(0, ()))
    is_known = place in before.places or len(before.places) >= PLACES
    places = before.places if is_known else (*before.places, place)
    kept[why] = Reason(before.count + times, places)
