"""A trace while an importer puts it together: each field with how it was come by. The first and surest word stands."""

import hashlib
from collections.abc import Mapping
from typing import Any

from ragaudit.model.trace import Provenance

MAX_K = 1_000_000
"""A larger K is none: an audit refuses it."""
_ORDER = (Provenance.OBSERVED, Provenance.DERIVED, Provenance.ASSUMED)


class Draft:
    """One trace in the making. `None` never sets a field; an empty list does, because absent is not empty."""

    def __init__(self, query_id: str, query_text: str) -> None:
        self._row: dict[str, Any] = {"query_id": query_id, "query_text": query_text}
        self._how: dict[str, Provenance] = {}

    def observed(self, name: str, value: Any) -> None:
        """The input says so in so many words."""
        self._set(name, value, Provenance.OBSERVED)

    def derived(self, name: str, value: Any) -> None:
        """It follows from the input: the tree of spans, the text of the prompt, the length of a list."""
        self._set(name, value, Provenance.DERIVED)

    def assumed(self, name: str, value: Any) -> None:
        """The input does not say; this is the likely value, and verdicts that rest on it say so."""
        self._set(name, value, Provenance.ASSUMED)

    def get(self, name: str) -> Any:
        """What the field holds, None = not set."""
        return self._row.get(name)

    def settle(self, k: int | None) -> None:
        """Fill what every trace needs: the final context and K.

        Without a final context the last list of the journey is taken for it, cut at K where K is known: assumed.
        Without a K it is the length of the final context: derived where that was observed or derived, else assumed.
        """
        if k is not None:
            self._row["k_final"] = k
            self._how.pop("k_final", None)
        if self.get("final_context_ids") is None:
            self.assumed("final_context_ids", self._last_list())
        found = self.get("final_context_ids")
        if self.get("k_final") is None and found:
            sure = self._how.get("final_context_ids") is not Provenance.ASSUMED
            (self.derived if sure else self.assumed)("k_final", len(found))

    def row(self) -> dict[str, Any]:
        """The row for traces.jsonl."""
        how = {name: way.value for name, way in self._how.items() if way is not Provenance.OBSERVED}
        return self._row | ({"provenance": how} if how else {})

    def _set(self, name: str, value: Any, way: Provenance) -> None:
        if value is None:
            return
        if name in self._row and _ORDER.index(self._how.get(name, Provenance.OBSERVED)) <= _ORDER.index(way):
            return
        self._row[name] = value
        self._how[name] = way

    def _last_list(self) -> list[str] | None:
        arms = self.get("arms") or {}
        only = next(iter(arms.values())) if len(arms) == 1 else None
        hits = next((found for name in _LISTS if (found := self.get(name)) is not None), only)
        if not isinstance(hits, list):
            return None
        ids = list(dict.fromkeys(str(hit["id"]) for hit in hits))
        k = self.get("k_final")
        return ids if k is None else ids[:k]


def line_id(number: int, question: str) -> str:
    """An id for a query that nobody gave one: its number in the file, from 1, and the hash of its text."""
    return f"{number}-{hashlib.sha256(question.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


def unusable(row: Mapping[str, Any]) -> str | None:
    """Why an audit could not read this row of traces.jsonl; None = it can."""
    if row.get("arms") is None and row.get("final_context_ids") is None:
        return "no list of hits and no context: nothing was retrieved, or nothing of it was logged"
    if row.get("k_final") is None:
        return "the context is empty or absent, so that K is not known: pass --k"
    return None


_LISTS = ("after_rerank", "after_threshold", "after_filter", "fused")
