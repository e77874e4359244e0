"""The unfinished export -> the rows of chunks.jsonl and sources.jsonl, and index.json."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragaudit.inventories.export import Asked, Seen
from ragaudit.inventories.work import Work

MOST_FIELDS = 1000
"""Metadata fields whose types are told; more are field names made from data."""


@dataclass
class Counts:
    """What the rows were, counted while they are written."""

    chunks: int = 0
    with_text: int = 0
    with_acl: int = 0
    with_source: int = 0
    merged: int = 0
    """Rows of the store that hold the same text under the same id as another: one chunk."""
    renamed: int = 0
    """Rows that keep the store's id, because their own id is taken by another text."""
    types: dict[str, Counter[str]] = field(default_factory=dict)
    revisions: Counter[str] = field(default_factory=Counter)


def chunks(work: Work, asked: Asked, counts: Counts) -> Iterator[dict[str, Any]]:
    """The rows of chunks.jsonl in the store's order, each id once.

    Where rows with different texts share an own id that nobody named with `--id-field`, no own id is believed: every
    row is called by the store's id. Where the field was named, the first keeps the id.
    """
    work.settle()
    distrusted = asked.fields.id is None and _clash(work)
    for n, key, chunk_id, digest, text in work.query("SELECT n, key, chunk_id, hash, row FROM rows ORDER BY n"):
        row = json.loads(text)
        if distrusted and chunk_id != key:
            _call_by_key(row, key)
            counts.renamed += 1
        elif not distrusted:
            first = work.one("SELECT min(n) FROM rows WHERE chunk_id = ?", chunk_id)
            if first == n:
                _with_twins(work, row, n, chunk_id, digest, counts)
            elif work.one("SELECT hash FROM rows WHERE n = ?", first) == digest and digest is not None:
                continue
            else:
                _call_by_key(row, key)
                row["note"] = f"its own id {chunk_id!r} is that of another row, too"
                counts.renamed += 1
        _count(row, counts)
        yield row


def _call_by_key(row: dict[str, Any], key: str) -> None:
    row["chunk_id"] = key
    row["aliases"] = [alias for alias in row.pop("aliases", ()) if alias != key]
    if not row["aliases"]:
        del row["aliases"]


def _clash(work: Work) -> bool:
    """Whether one own id stands over different texts, or is another row's store id."""
    sql = """SELECT 1 FROM rows GROUP BY chunk_id HAVING count(*) > 1
             AND (count(DISTINCT hash) > 1 OR count(hash) < count(*)) LIMIT 1"""
    return work.one(sql) is not None


def _with_twins(work: Work, row: dict[str, Any], n: int, chunk_id: str, digest: str | None, counts: Counts) -> None:
    if digest is None:
        return
    same = "SELECT n, key FROM rows WHERE chunk_id = ? AND n > ? AND hash = ? ORDER BY n"
    twins = list(work.query(same, chunk_id, n, digest))
    if not twins:
        return
    row["aliases"] = [*row.get("aliases", []), *(key for _, key in twins)]
    row["note"] = f"{len(twins) + 1} rows of the store"
    counts.merged += len(twins)
    for twin, _ in twins:
        for arm, present in work.query("SELECT arm, present FROM held WHERE n = ?", twin):
            row["in"] = {**row.get("in", {}), arm: bool(present) or row.get("in", {}).get(arm, False)}


def _count(row: Mapping[str, Any], counts: Counts) -> None:
    counts.chunks += 1
    counts.with_text += "text" in row
    counts.with_acl += "acl" in row
    counts.with_source += "source_id" in row
    metadata = row.get("metadata") or {}
    for name, value in metadata.items():
        if value is not None and (name in counts.types or len(counts.types) < MOST_FIELDS):
            counts.types.setdefault(name, Counter())[type(value).__name__] += 1
    revision = metadata.get("index_revision")
    if isinstance(revision, str) and (revision in counts.revisions or len(counts.revisions) < MOST_FIELDS):
        counts.revisions[revision] += 1


def sources(work: Work) -> Iterator[dict[str, Any]]:
    """The rows of sources.jsonl: the documents that at least one row names, with what each arm holds of them."""
    arms = [arm for (arm,) in work.query("SELECT DISTINCT arm FROM held ORDER BY arm")]
    sql = """SELECT source_id, count(*), count(chars), sum(chars) FROM rows
             WHERE source_id IS NOT NULL GROUP BY source_id ORDER BY min(n)"""
    for source_id, n, texts, chars in work.query(sql):
        row: dict[str, Any] = {"source_id": source_id}
        if arms:
            held = dict(
                work.query(
                    "SELECT arm, sum(present) FROM held JOIN rows USING (n) WHERE source_id = ? GROUP BY arm", source_id
                )
            )
            row["chunks_indexed"] = {arm: held[arm] for arm in arms if arm in held}
        if texts == n:
            row["chunked_chars"] = chars
        yield row


def index(work: Work, seen: Seen, counts: Counts, complete: bool | None, why: tuple[str, ...]) -> dict[str, Any]:
    """The one object of index.json."""
    last = seen.last
    namespaces = dict(
        work.query("SELECT namespace, count(*) FROM rows WHERE namespace IS NOT NULL GROUP BY namespace ORDER BY 1")
    )
    own = next(iter(counts.revisions)) if len(counts.revisions) == 1 else None
    found = {
        "revision": own or last.revision,
        "snapshot_at": seen.snapshot_at,
        "namespace": next(iter(namespaces)) if len(namespaces) == 1 else None,
        "namespaces": namespaces or None,
        "arms": {arm: _arm(work, arm, last.arms.get(arm, {})) for arm in _arms(work, seen)},
        "chunks_in_store": counts.chunks,
        "sources_indexed": work.one("SELECT count(DISTINCT source_id) FROM rows"),
        "metadata_types": {name: _type(kinds) for name, kinds in sorted(counts.types.items())} or None,
        "complete": complete,
        "note": "; ".join(why) or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _type(kinds: Counter[str]) -> str:
    """One type, or all of them: `int|str` is a filter's fault waiting to happen."""
    return "|".join(sorted(kinds))


def _arms(work: Work, seen: Seen) -> list[str]:
    observed = [arm for (arm,) in work.query("SELECT DISTINCT arm FROM held ORDER BY arm")]
    return [*seen.last.arms, *(arm for arm in observed if arm not in seen.last.arms)]


def _arm(work: Work, arm: str, known: Mapping[str, Any]) -> dict[str, Any]:
    rows = work.one("SELECT sum(present) FROM held WHERE arm = ?", arm)
    models = dict(
        work.query(
            "SELECT model, count(*) FROM held WHERE arm = ? AND present AND model IS NOT NULL GROUP BY model", arm
        )
    )
    dims = {
        str(dim): n
        for dim, n in work.query(
            "SELECT dim, count(*) FROM held WHERE arm = ? AND dim IS NOT NULL GROUP BY dim ORDER BY dim", arm
        )
    }
    counted = {
        "chunks": rows,
        "models": models or None,
        "dims": dims or None,
        **{f"norm_p{percent}": _norm(work, arm, percent) for percent in (5, 50, 95)},
    }
    return {name: value for name, value in {**known, **_given(counted)}.items() if value is not None}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _norm(work: Work, arm: str, percent: int) -> float | None:
    """A percentile of the vector lengths by nearest rank; None when none was read."""
    n = int(work.one("SELECT count(norm) FROM held WHERE arm = ?", arm))
    if not n:
        return None
    place = max(-(-n * percent // 100) - 1, 0)
    sql = "SELECT norm FROM held WHERE arm = ? AND norm IS NOT NULL ORDER BY norm LIMIT 1 OFFSET ?"
    return float(work.one(sql, arm, place))
