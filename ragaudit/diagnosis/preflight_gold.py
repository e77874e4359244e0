"""Preflight: are the gold ids of this run's id space? Absence from the lists alone proves nothing: it may be a miss."""

from collections.abc import Iterable

from ragaudit.diagnosis.preflight_rules import noted
from ragaudit.evidence.id_forms import form_of
from ragaudit.evidence.logged import logged_source
from ragaudit.model.counting import counted, queries
from ragaudit.model.inventory import Inventory
from ragaudit.model.result import Finding, Level
from ragaudit.model.trace import Gold, Hit, Trace
from ragaudit.readers.fields import quoted

ENOUGH = 5
"""Distinct gold ids; of fewer nothing is proven."""
MOST = 1000
"""Unknown gold ids, and forms of listed ids, that are held."""


class GoldIds:
    """Watches every trace once. Holds the gold ids that nothing knows, and how listed ids look while none is known."""

    def __init__(self, inventory: Inventory) -> None:
        self._inventory = inventory
        self._unknown: dict[str, None] = {}
        self._known = 0
        self._queries = 0
        self._fits = False
        """The chunk table knows an id of the lists: it is of their id space."""
        self._looks: dict[str, str] = {}
        """Form of listed ids -> the first of them."""
        self._forms: set[str] = set()
        """Of the unknown gold."""
        self._alike = False
        """A listed id looks like one of them, or nobody can tell any more."""

    def watch(self, trace: Trace) -> None:
        """Look up the gold of one trace."""
        if not trace.gold:
            return
        self._queries += 1
        hits = [hit for each in trace.lists().values() for hit in each]
        listed = {hit.id for hit in hits}
        listed.update(trace.final_context_ids or (), trace.prompt_ids or (), (trace.id_map or {}).values())
        for gold in trace.gold:
            if gold.id in listed or self._is_known(gold) or _is_source_of(gold, hits):
                self._known += 1
            elif len(self._unknown) < MOST:
                self._unknown[gold.id] = None
                self._forms.add(form_of(gold.id))
        if self._known:
            return
        self._fits = self._fits or any(self._inventory.chunk(each) is not None for each in listed)
        if not self._alike:
            self._look_at(listed)

    def _is_known(self, gold: Gold) -> bool:
        chunk, source = self._inventory.chunk(gold.id), self._inventory.source(gold.id)
        return chunk is not None or source is not None or self._inventory.source(gold.source_id) is not None

    def _look_at(self, listed: Iterable[str]) -> None:
        for each in sorted(listed):
            self._looks.setdefault(form_of(each), each)
        self._alike = len(self._looks) > MOST or not self._forms.isdisjoint(self._looks)

    @property
    def _whole_table(self) -> bool:
        index = self._inventory.index
        return self._inventory.chunks is not None and (index is None or index.complete is not False)

    def findings(self) -> Iterable[Finding]:
        """That gold and traces are of different id spaces, where that is as good as proven; else what may be."""
        if not self._unknown:
            return
        first, n = next(iter(self._unknown)), len(self._unknown)
        if proof := self._proof():
            yield noted(
                "gold_id_space",
                Level.BLOCK,
                f"none of the {counted(n, 'gold id')} of {queries(self._queries)} {proof}: "
                "traces and gold are of different id spaces",
                "Re-key the gold by content hash or id_map, or pass the gold of this run.",
            )
            return
        ids = f"{'at least ' * (n == MOST)}{counted(n, 'gold id')} (first: {quoted(first)})"
        if self._whole_table:
            yield noted(
                "unknown_gold",
                Level.WARN,
                f"no list and no inventory knows {ids}: labels of another build, or chunks that were never stored",
                "Check that the labels are of this corpus build; map other ids with aliases or id_map.",
            )
        else:
            yield noted(
                "unknown_gold",
                Level.WARN,
                f"no list holds {ids}: these queries miss them, or the labels are of another build",
                "Give a whole chunks.jsonl, which tells the two apart; map other ids with id_map.",
            )

    def _proof(self) -> str | None:
        """Why no gold id can be of this run's id space; None = it cannot be said."""
        if self._known or len(self._unknown) < ENOUGH:
            return None
        first = next(iter(self._unknown))
        if self._whole_table and self._fits:
            return f"is known to chunks.jsonl or any list (first: {quoted(first)})"
        if self._looks and not self._alike and all(map(_is_numbered, (*self._forms, *self._looks))):
            like = next(iter(self._looks.values()))
            return f"is in any list, and no listed id looks like them (gold: {quoted(first)}, listed: {quoted(like)})"
        return None


def _is_source_of(gold: Gold, hits: Iterable[Hit]) -> bool:
    """A hit was logged with the document that the label names."""
    named = {gold.id, gold.source_id or gold.id}
    return any(logged_source(hit) in named for hit in hits)


def _is_numbered(form: str) -> bool:
    """It follows a scheme. Names in words (`late-fees`) may all look different and be of one id space."""
    return form == "x" or "9" in form
