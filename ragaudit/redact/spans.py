"""What the audit would see of answer spans, written down before the texts go: `gold[].span_in` of DATA.md."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ragaudit.evidence.gold_span import locate
from ragaudit.evidence.identity import Identities
from ragaudit.model.trace import Gold


@dataclass(frozen=True)
class SpanStamp:
    """Finds each span of a trace in the texts of the inventory, by the audit's own rule."""

    identities: Identities

    def stamped(self, row: Any) -> Any:
        """The row with `span_in` filled in for each gold label with a span; every other row as it is.

        A label whose words stand in another chunk of its source is marked `suspect`: what shows it goes with the texts.
        """
        if not isinstance(row, dict) or not isinstance(row.get("gold"), list):
            return row
        return {**row, "gold": [self._label(one) for one in row["gold"]]}

    def _label(self, label: Any) -> Any:
        if not isinstance(label, Mapping) or not isinstance(label.get("span"), str):
            return label
        try:
            gold = Gold.model_validate(label)
        except ValidationError:
            return label
        chunk = self.identities.chunk_of(gold)
        inventory = self.identities.inventory
        source = inventory.source(gold.source_id or (chunk.source_id if chunk else None) or gold.id)
        found = locate(gold, chunk, source, self.identities)
        states = {"source": found.source, "extracted": found.extracted, "chunk": found.chunk}
        doubtful = {"suspect": True} if found.elsewhere is not None and found.chunk is False else {}
        return {**label, **doubtful, "span_in": {**(label.get("span_in") or {}), **states}}
