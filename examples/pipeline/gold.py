"""Gold: which chunk holds the evidence, where the span stands, and whether it reached the prompt."""

from __future__ import annotations

from collections.abc import Sequence

from .cases import Case, GoldSpan
from .corpus import Source, normalise
from .run import Run
from .store import Row, Store
from .tokens import words


def gold_id(gold: GoldSpan, actual: Store, reference: Store) -> str:
    """The id of the gold chunk in the index as it is; else the id it has when nothing is broken.

    Where the span is whole in no chunk, the chunk under the same heading that shares most of its words is taken.
    """
    if gold.label_id:
        return gold.label_id
    found = _holder(gold, actual)
    if found is not None:
        return found
    healthy = _holder(gold, reference)
    if healthy is None:
        raise ValueError(f"{gold.source}: span in no chunk: {gold.span!r}")
    heading = reference.rows[healthy].heading
    near = [row for row in _rows(gold.source, actual) if row.heading == heading]
    if not near:
        return healthy
    wanted = set(words(gold.span))
    return max(near, key=lambda row: (len(wanted & set(words(row.text))), row.chunk_id == healthy)).chunk_id


def is_readable(gold: GoldSpan, case: Case, sources: dict[str, Source]) -> bool:
    """May this user read the source, by the source's own ACL?"""
    return bool(set(case.user_acl) & set(sources[gold.source].acl))


def is_delivered(gold: GoldSpan, run: Run) -> bool:
    """Is the evidence whole in one passage of the rendered prompt?"""
    return any(
        row.source_id == gold.source and _holds(gold, row.text) for row in run.packed if row.chunk_id in run.prompt.ids
    )


def is_satisfied(case: Case, run: Run, eligible: Sequence[GoldSpan]) -> bool:
    """Did the prompt get what the query needs: all, any, or one of each group?"""
    delivered = [is_delivered(gold, run) for gold in case.gold]
    if case.gold_groups:
        return all(any(delivered[index] for index in group) for group in case.gold_groups)
    needed = [is_delivered(gold, run) for gold in eligible]
    return any(needed) if case.gold_mode == "any" else all(needed)


def span_in(gold: GoldSpan, sources: dict[str, Source], actual: Store) -> dict[str, bool | str | None]:
    """Where the span stands: source, extracted text, chunk."""
    parsed = actual.ingested[gold.source].parsed
    rows = _rows(gold.source, actual)
    chunk: bool | str | None = any(_holds(gold, row.text) for row in rows)
    if not chunk and (any(gold.span in row.text for row in rows) or _is_cut(gold.span, rows)):
        chunk = "partial"
    return {
        "source": _in(gold, sources[gold.source].text),
        "extracted": _in(gold, parsed.text) if parsed else None,
        "chunk": chunk if rows else None,
    }


def _is_cut(span: str, rows: list[Row]) -> bool:
    """One chunk holds its first words, another one the rest."""
    words = span.split()
    cuts = ((" ".join(words[:n]), " ".join(words[n:])) for n in range(1, len(words)))
    return any(any(head in row.text for row in rows) and any(tail in row.text for row in rows) for head, tail in cuts)


def _in(gold: GoldSpan, text: str) -> bool:
    return gold.span in text and gold.header in text


def _holder(gold: GoldSpan, store: Store) -> str | None:
    return next((row.chunk_id for row in _rows(gold.source, store) if _holds(gold, row.text)), None)


def _holds(gold: GoldSpan, text: str) -> bool:
    return normalise(gold.span) in normalise(text) and normalise(gold.header) in normalise(text)


def _rows(source_id: str, store: Store) -> list[Row]:
    return [row for row in store.rows.values() if row.source_id == source_id and not row.is_parent]
