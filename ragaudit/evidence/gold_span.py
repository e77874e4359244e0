"""Where a gold label's span stands: in the source, in the extracted text, whole in a chunk."""

from dataclasses import dataclass

from ragaudit.evidence.identity import Identities
from ragaudit.evidence.spans import find
from ragaudit.model.inventory import Chunk, Source
from ragaudit.model.trace import Gold, SpanFound, SpanIn


@dataclass(frozen=True)
class SpanStates:
    """Each state as in DATA.md's `span_in`. `elsewhere` = the sibling that holds the span, not the gold."""

    source: SpanFound
    extracted: SpanFound
    chunk: SpanFound
    elsewhere: str | None = None


def locate(gold: Gold, chunk: Chunk | None, source: Source | None, identities: Identities) -> SpanStates:
    """Complete the label's `span_in` from the texts at hand. Given values win; no text, no verdict (None)."""
    given = gold.span_in or SpanIn()
    if gold.span is None:
        return SpanStates(given.source, given.extracted, given.chunk)
    in_source = given.source
    if in_source is None and source is not None and source.text is not None:
        in_source = find(gold.span, source.text)
    extracted = given.extracted
    if extracted is None and source is not None and source.extracted_text is not None:
        extracted = find(gold.span, source.extracted_text)
    if given.chunk is not None:
        return SpanStates(in_source, extracted, given.chunk)
    in_chunk, elsewhere = _in_chunks(gold, chunk, source, identities)
    if extracted is None and in_chunk is True:
        extracted = True
    return SpanStates(in_source, extracted, in_chunk, elsewhere)


def _best(span: str, rows: list[Chunk]) -> SpanFound:
    """How far the span survives in any of these chunks, none of which holds it word for word."""
    found = {find(span, row.text or "") for row in rows}
    return next((state for state in ("normalised", "partial") if state in found), False)


def _in_chunks(
    gold: Gold, chunk: Chunk | None, source: Source | None, identities: Identities
) -> tuple[SpanFound, str | None]:
    """The span in the gold chunk's own text, else in its siblings'; False only when every sibling's text is known.

    A span of which a sibling holds a part was split, though the gold's own part may be too short to tell.
    """
    span = gold.span or ""
    own = find(span, chunk.text) if chunk is not None and chunk.text is not None else None
    if own is True:
        return True, None
    source_id = (source.source_id if source else None) or gold.source_id or (chunk.source_id if chunk else None)
    siblings = [
        row
        for row in (identities.inventory.chunk(i) for i in identities.inventory.by_source.get(source_id or "", ()))
        if row is not None and row is not chunk
    ]
    texts = [row for row in siblings if row.text is not None]
    holder = next((row.chunk_id for row in texts if find(span, row.text or "") is True), None)
    if chunk is None or chunk.text is None:
        # The gold's own text is unknown: all its siblings together can still show that the span survived, or not.
        index = identities.inventory.index
        whole = (
            bool(texts) and len(texts) == len(siblings) and chunk is None and not (index and index.complete is False)
        )
        return (True if holder else _best(span, texts) if whole else None), None
    if holder is not None:
        return own, holder
    if own in ("partial", "normalised"):
        return own, None
    if len(texts) < len(siblings):
        return None, None
    return ("partial" if any(find(span, row.text or "") == "partial" for row in texts) else False), None
