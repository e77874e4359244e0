"""What an export is worth: whether it is complete and why not, what could not be read, what an audit can decide now."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragaudit.inventories.export import Asked, Seen
from ragaudit.inventories.finish import Counts
from ragaudit.inventories.work import Work


@dataclass(frozen=True)
class Decides:
    """One stage, whether an audit can decide it with this inventory, and by what or what is missing."""

    stage: str
    can: bool
    why: str


@dataclass(frozen=True)
class Account:
    """What was exported, for people and scripts."""

    store: str
    place: str
    collection: str
    rows: int
    """Rows of the store that were read."""
    chunks: int
    sources: int
    index: Mapping[str, Any]
    complete: bool | None
    why: tuple[str, ...]
    """Why it is not complete, or not known to be."""
    notes: Mapping[str, tuple[int, str]]
    remarks: tuple[str, ...]
    decides: tuple[Decides, ...]

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "schema": "ragaudit.inventory.account/1",
            "store": self.store,
            "place": self.place,
            "collection": self.collection,
            "rows": self.rows,
            "chunks": self.chunks,
            "sources": self.sources,
            "complete": self.complete,
            "why_not_complete": list(self.why),
            "notes": [{"what": what, "count": n, "first": first} for what, (n, first) in self.notes.items()],
            "remarks": list(self.remarks),
            "decides": [{"stage": each.stage, "can": each.can, "why": each.why} for each in self.decides],
            "index": dict(self.index),
        }


def completeness(work: Work, asked: Asked, seen: Seen, said: bool | None) -> tuple[bool | None, tuple[str, ...]]:
    """Whether absence from this export means absence from the store, and every reason why not.

    Args:
        work: The rows.
        asked: What was exported.
        seen: What the store said.
        said: `--complete yes|no`: no always counts; yes only where the store itself does not know.

    Returns:
        True, False, or None for not known; and the reasons.
    """
    first, last, rows = seen.first, seen.last, work.count()
    reasons = list(last.restricted)
    if said is False:
        reasons.append("you said so (--complete no)")
    if seen.cut:
        reasons.append(f"--limit {asked.limit} ended it")
    if asked.only:
        reasons.append("--only " + ", ".join(f"{name}={value}" for name, value in asked.only) + " left rows out")
    if last.is_declared_complete is False:
        reasons.append("the file says that it is not")
    if not last.is_snapshot or seen.resumed:
        if first.rows is not None and last.rows is not None and first.rows != last.rows:
            reasons.append(f"the store held {first.rows:,} rows at the start and {last.rows:,} at the end")
        elif first.mark != last.mark:
            reasons.append("the store was written to during the export")
    if not reasons and last.rows is not None and rows != last.rows:
        reasons.append(f"{rows:,} of {last.rows:,} rows could be read")
    if reasons:
        return False, tuple(reasons)
    if last.rows is None and last.is_declared_complete is None and not said:
        return None, ("nothing says whether this is the whole index: pass --complete yes if it is",)
    return True, ()


def account(
    work: Work,
    asked: Asked,
    seen: Seen,
    counts: Counts,
    complete: bool | None,
    why: tuple[str, ...],
    index: dict[str, Any],
) -> Account:
    """Put it together, after the rows were written."""
    remarks = list(seen.last.notes)
    if seen.resumed and seen.last.mark is None and complete:
        remarks.append("the export was interrupted: a row that was replaced by another meanwhile would not be seen")
    if counts.with_source < counts.chunks:
        remarks.append(
            f"{counts.chunks - counts.with_source:,} chunks name no source: name the field with --source-field"
        )
    if counts.merged:
        remarks.append(f"{counts.merged:,} rows hold the same text under the same id as another: one chunk each")
    if counts.renamed:
        field = asked.fields.id or "chunk_id"
        remarks.append(f"{counts.renamed:,} rows are called by the store's id, for {field!r} is not unique")
    if len(counts.revisions) > 1:
        remarks.append(f"rows of {len(counts.revisions)} index revisions: {', '.join(list(counts.revisions)[:4])}")
    mixed = [name for name, kinds in counts.types.items() if len(kinds) > 1]
    if mixed:
        remarks.append(f"metadata of more than one type: {', '.join(mixed[:6])}")
    return Account(
        store=asked.store,
        place=asked.place,
        collection=seen.last.collection,
        rows=work.count(),
        chunks=counts.chunks,
        sources=index["sources_indexed"],
        index=index,
        complete=complete,
        why=why,
        notes=work.notes(),
        remarks=tuple(remarks),
        decides=tuple(_decides(counts, complete, index)),
    )


def _decides(counts: Counts, complete: bool | None, index: Mapping[str, Any]) -> list[Decides]:
    arms = index.get("arms", {})
    n = counts.chunks
    absence = "a gold chunk that is not here is in no index" if complete else "absence proves nothing: not complete"
    measured = [name for name, arm in arms.items() if arm.get("norm_p50") is not None]
    modelled = [name for name, arm in arms.items() if arm.get("models")]
    metric = [name for name, arm in arms.items() if arm.get("metric")]
    missing = [
        word for word, found in (("models", modelled), ("metric", metric), ("vector lengths", measured)) if not found
    ]
    return [
        Decides("ingestion", complete is True, absence),
        Decides("parse", False, "needs the source texts: add text and extracted_text to sources.jsonl"),
        Decides(
            "chunk",
            counts.with_text == n > 0,
            "whether the answer stands whole in a chunk"
            if counts.with_text == n
            else f"{n - counts.with_text:,} chunks have no text: give the span's words in gold.span_in",
        ),
        Decides("embed", not missing, "models, metric, lengths" if not missing else f"not known: {', '.join(missing)}"),
        Decides(
            "filter",
            counts.with_acl == n > 0,
            "each chunk's stored ACL and the types of its metadata"
            if counts.with_acl == n
            else f"{n - counts.with_acl:,} chunks have no ACL: name its field with --acl-field",
        ),
    ]
