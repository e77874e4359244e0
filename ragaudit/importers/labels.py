"""Gold as tools give it: ids, or texts that are looked up in an inventory. How it was found stays with it."""

from typing import Any

from ragaudit.importers.cells import id_text
from ragaudit.importers.draft import Draft
from ragaudit.importers.matching import Texts
from ragaudit.importers.report import ImportReport


def set_gold(
    draft: Draft,
    ids: list[Any] | None,
    texts: list[Any] | None,
    inventory: Texts | None,
    report: ImportReport,
    place: str,
) -> None:
    """Set the gold of a trace: from ids where there are any, else from texts that the inventory holds.

    Chunks with the same text are alternatives of one another. A text that no chunk holds is counted and gives no gold;
    when none is found, the query stays unlabelled.
    """
    if ids is not None:
        found = [id_text(each) for each in ids]
        if None not in found:
            draft.observed("gold_ids", found)
            return
        report.note("gold ids that are no text and no whole number: not read, export ids as text", place)
    if not texts:
        return
    if inventory is None:
        report.note("gold is given as text: pass --chunks to find its ids, else these queries are unlabelled", place)
        return
    groups = []
    for text in texts:
        match = inventory.find(str(text))
        if match is None:
            report.note("gold texts that no chunk of the inventory holds: left out", place)
            continue
        report.note(f"gold found by text in the inventory: {match.method}", place)
        groups.append(list(match.ids))
    if groups:
        draft.derived("gold_groups", groups)
