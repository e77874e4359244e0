"""Causes before the index: the label itself, ingestion, parsing, chunking."""

from ragaudit.diagnosis.facts import GoldFacts, moment
from ragaudit.diagnosis.namespaces import read_elsewhere, reads_it
from ragaudit.diagnosis.registry import cause
from ragaudit.model.diagnosis import Stage
from ragaudit.model.inventory import Source, SourceStatus

_BAD_STATUS = (SourceStatus.FAILED, SourceStatus.SKIPPED, SourceStatus.PENDING, SourceStatus.DELETED)

# --- ingestion: could the gold be found at all? -----------------------------------------------------------------


@cause(
    "source_stale",
    Stage.INGESTION,
    "source",
    summary="The index holds an older version of the source than the one that has the answer.",
    remedy="Re-ingest that one source; check that source_hash equals indexed_hash, then run the query again.",
)
def source_stale(f: GoldFacts) -> str | None:
    source = f.row.source
    if source is None or (f.row.span.chunk is True and f.written):
        return None
    if source.source_hash is None or source.indexed_hash is None:
        updated, indexed = moment(source.updated_at), moment(source.indexed_at)
        if updated is None or indexed is None or updated <= indexed or f.seen:
            return None
        return f"source {source.source_id}: updated at {source.updated_at}, last indexed at {source.indexed_at}"
    if source.source_hash == source.indexed_hash:
        return None
    return (
        f"source {source.source_id}: its hash is {source.source_hash}, the indexed hash is {source.indexed_hash}: "
        "the index holds another version"
    )


@cause(
    "source_missing",
    Stage.INGESTION,
    "source",
    summary="The source document never reached the index.",
    remedy="Re-ingest that one source with the same parser, chunker and model, and check its row in the index.",
)
def source_missing(f: GoldFacts) -> str | None:
    source = f.row.source
    if source is None or f.written:
        if source is None and not f.seen and _listed_nowhere(f):
            return f"source {f.row.gold.source_id}: not in the complete export of sources"
        return None
    if source.registered is False:
        return f"source {source.source_id}: not registered with the indexer"
    if source.status in _BAD_STATUS:
        return f"source {source.source_id}: the last ingestion ended as {source.status.value!r}"
    held = source.chunks_indexed
    if held and not any(held.values()) and source.chunks_expected != 0 and source.extracted_chars != 0:
        return f"source {source.source_id}: 0 chunks in {', '.join(held)}"
    return None


def _listed_nowhere(f: GoldFacts) -> bool:
    """A complete export that lacks the source is evidence; a partial one, or none, is not."""
    return (
        f.index.complete is True
        and bool(f.identities.inventory.sources)
        and f.row.gold.source_id is not None
        and f.row.chunk is None
    )


@cause(
    "half_written",
    Stage.INGESTION,
    "source",
    summary="Only part of the source's chunks were written, and the gold is not among them.",
    remedy="Write that one source again in a single run; compare chunks_indexed with chunks_expected.",
)
def half_written(f: GoldFacts) -> str | None:
    source = f.row.source
    if source is None or source.chunks_expected is None or not source.chunks_indexed:
        return None
    short = {arm: n for arm, n in source.chunks_indexed.items() if n < source.chunks_expected}
    if f.written:  # one arm has it; it is missing where its source was cut off
        missed = {arm.name for arm in f.missed_arms if arm.place is None and f.in_index.get(arm.name) is False}
        short = {} if f.in_arm_within_k else {arm: n for arm, n in short.items() if arm in missed}
    if not short:
        return None
    counts = ", ".join(f"{arm} holds {n} of {source.chunks_expected}" for arm, n in short.items())
    told = f", and {f.id} is not among them" if f.written is not None else f"; nothing shows {f.id} among them"
    return f"source {source.source_id}: {counts} chunks{told}"


@cause(
    "wrong_namespace",
    Stage.INGESTION,
    "source",
    summary="The gold was written to another namespace or collection than the one that is searched.",
    remedy="Write that source to the namespace that is searched; check the row count there.",
)
def wrong_namespace(f: GoldFacts) -> str | None:
    found = read_elsewhere(f)
    if found is None or any(reads_it(f, arm) for arm in f.arms):
        return None
    mine, searched, held = found
    return f"{f.id} stands in namespace {mine!r}; the search reads {searched!r}{held}"


@cause(
    "not_yet_visible",
    Stage.INGESTION,
    "source",
    summary="The gold became searchable only after the query ran.",
    remedy="Wait for the refresh, or read with the consistency that the freshness needs; then run the query again.",
)
def not_yet_visible(f: GoldFacts) -> str | None:
    asked = moment(f.trace.timestamp)
    if f.seen or asked is None:
        return None
    chunk, source = f.row.chunk, f.row.source
    for what, when in (
        ("visible", chunk.visible_at if chunk else None),
        ("indexed", chunk.indexed_at if chunk else None),
        ("indexed with its source", source.indexed_at if source else None),
    ):
        at = moment(when)
        if at is not None and at > asked:
            return f"{f.id} became {what} at {when}, after the query at {f.trace.timestamp}"
    return None


@cause(
    "chunk_not_written",
    Stage.INGESTION,
    "source",
    summary="The chunk exists in the chunk store and in no index.",
    remedy="Write that one chunk again under an id of its own; check its row in each arm's index.",
)
def chunk_not_written(f: GoldFacts) -> str | None:
    if f.written is not False or f.row.span.chunk is False:
        return None
    if f.probe_says("fetch_by_id") is False:
        return f"{f.id}: fetched by id, the index does not hold it"
    chunk = f.row.chunk
    digests = {chunk.content_hash} - {None} if chunk else set()
    twins = [
        twin
        for digest in digests
        for twin in f.identities.by_hash.get(digest or "", ())
        if chunk is not None and twin != chunk.chunk_id
    ]
    twin = f"; {twins[0]} has the same text: an id made from the text alone overwrites one of them" if twins else ""
    return f"{f.id}: not in the index of {', '.join(f.in_index)}{twin}"


@cause(
    "stale_version_served",
    Stage.INGESTION,
    "served",
    summary="A deleted or superseded document is still in the index and took the gold's place.",
    remedy="Remove that one outdated source from the index; run the query again.",
)
def stale_version_served(f: GoldFacts) -> str | None:
    own = f.row.source
    for chunk_id in f.trace.final_context_ids or f.trace.prompt_ids or ():
        source = _source_of(f, chunk_id)
        if source is None or (own is not None and source.source_id == own.source_id):
            continue
        if _gone_at_source(source) and (f.delivered or _crowded_out(f)):
            return f"{chunk_id} in the context comes from {source.source_id}, which was deleted at the source"
        replaced = source.superseded_by is not None and own and _leads_to(f, source.superseded_by, own.source_id)
        if replaced and (f.delivered or (f.in_any_arm and not f.in_arm_within_k)):
            return f"{chunk_id} in the context comes from {source.source_id}, superseded by {source.superseded_by}"
    return None


def _source_of(f: GoldFacts, chunk_id: str) -> Source | None:
    chunk = f.identities.inventory.chunk(chunk_id)
    return f.identities.inventory.source(chunk.source_id if chunk else None)


def _gone_at_source(source: Source) -> bool:
    return source.in_source_of_truth is False or source.status is SourceStatus.DELETED


def _crowded_out(f: GoldFacts) -> bool:
    """Without the hits of deleted sources above it, the gold would be within K."""
    for arm in f.arms:
        if arm.place is not None and not arm.holds(f.k):
            above = [_source_of(f, hit.id) for hit in arm.hits[: arm.place.rank - 1]]
            if arm.place.rank - sum(source is not None and _gone_at_source(source) for source in above) <= f.k:
                return True
    return False


def _leads_to(f: GoldFacts, source_id: str | None, target: str) -> bool:
    for _ in range(20):
        if source_id is None or source_id == target:
            return source_id == target
        source = f.identities.inventory.source(source_id)
        source_id = source.superseded_by if source else None
    return False


# --- parse --------------------------------------------------------------------------------------------------------


@cause(
    "empty_extraction",
    Stage.PARSE,
    "parse",
    summary="The parser returned no text, or next to none, for the source.",
    remedy="Parse that one file with another parser setting; check its extracted text before indexing it.",
)
def empty_extraction(f: GoldFacts) -> str | None:
    source = f.row.source
    if source is None or f.written or source.extracted_chars is None or source.source_chars == 0:
        return None
    if source.extracted_chars > 0.05 * (source.source_chars or 0):
        return None
    return (
        f"source {source.source_id}: {source.extracted_chars} characters extracted of {source.source_chars or 'some'}"
    )


@cause(
    "text_lost",
    Stage.PARSE,
    "parse",
    summary="The answer's words are in the source and not in the extracted text.",
    remedy="Parse that one file so that the lost part stays (tables, text boxes, columns); re-index it alone.",
)
def text_lost(f: GoldFacts) -> str | None:
    if f.row.span.extracted not in (False, "partial"):
        return None
    source = f.row.source
    detail = ""
    if source is not None and source.tables_in_source and source.tables_extracted is not None:
        detail = f"; {source.tables_extracted} of {source.tables_in_source} tables were extracted"
    elif source is not None and source.source_chars and source.extracted_chars is not None:
        detail = f"; {source.extracted_chars} of {source.source_chars} characters were extracted"
    how = "only partly in" if f.row.span.extracted == "partial" else "not in"
    return f"{f.id}: the answer's words are {how} the extracted text{detail}"


@cause(
    "text_garbled",
    Stage.PARSE,
    "parse_missed",
    summary="The answer's words survive parsing only in a broken form that a search does not match.",
    remedy="Extract that one file in logical character order, with words whole; re-index it alone.",
)
def text_garbled(f: GoldFacts) -> str | None:
    if f.row.span.extracted != "normalised":
        return None
    note = f"; {f.row.source.note}" if f.row.source and f.row.source.note else ""
    return f"{f.id}: the answer's words are in the extracted text only after normalisation{note}"


# --- chunk --------------------------------------------------------------------------------------------------------


@cause(
    "no_chunks",
    Stage.CHUNK,
    "chunk",
    summary="Text was extracted and the chunker made no chunk of it.",
    remedy="Chunk that one document again; check that its chunks cover the extracted text.",
)
def no_chunks(f: GoldFacts) -> str | None:
    source = f.row.source
    if source is None or f.seen or source.chunks_expected != 0 or not source.extracted_chars:
        return None
    return f"source {source.source_id}: {source.extracted_chars} characters extracted, 0 chunks made"


@cause(
    "span_in_no_chunk",
    Stage.CHUNK,
    "chunk",
    summary="The answer's words are in the extracted text and in no chunk.",
    remedy="Chunk that one document again without dropping text (last piece, table rows); check coverage.",
)
def span_in_no_chunk(f: GoldFacts) -> str | None:
    source = f.row.source
    if f.row.span.chunk is not False and not _uncovered(f):
        return None
    covered = ""
    if source is not None and source.chunked_chars is not None and source.chunked_chars < (source.extracted_chars or 0):
        covered = f"; its chunks hold {source.chunked_chars} of {source.extracted_chars} extracted characters"
    return f"{f.id}: the answer's words are whole in no chunk{covered}"


def _uncovered(f: GoldFacts) -> bool:
    """The words were extracted, no chunk row stands for them, and the chunks do not cover the extracted text."""
    source = f.row.source
    if source is None or f.row.span.extracted is not True or f.row.span.chunk is not None or f.row.chunk or f.seen:
        return False
    covered, extracted = source.chunked_chars, source.extracted_chars
    return covered is not None and bool(extracted) and covered < 0.95 * (extracted or 0)


@cause(
    "span_split",
    Stage.CHUNK,
    "chunk",
    summary="The answer's words are split over chunks, or cut off from the header that gives them meaning.",
    remedy="Move the boundary for that one document (overlap, repeated table header, larger unit); re-index it alone.",
)
def span_split(f: GoldFacts) -> str | None:
    if f.row.span.chunk != "partial":
        return None
    return f"{f.id}: the chunk holds only part of the answer's words"


@cause(
    "span_broken",
    Stage.CHUNK,
    "chunk_missed",
    summary="The chunker broke the answer's words: they match only after normalisation.",
    remedy="Keep words whole when that one document is chunked; re-index it alone.",
)
def span_broken(f: GoldFacts) -> str | None:
    if f.row.span.chunk != "normalised" or f.row.span.extracted is not True:
        return None
    return f"{f.id}: the answer's words are whole in the extracted text, and in the chunk only after normalisation"


@cause(
    "context_lost",
    Stage.CHUNK,
    "chunk_missed",
    summary="The chunk lost the heading or header row that the question's words stand in.",
    remedy="Prefix the chunks of that one document with their heading or header row; re-index it alone.",
)
def context_lost(f: GoldFacts) -> str | None:
    rank = f.probe_rank("rank_with_context")
    if rank is None or rank > f.k:
        return None
    return f"{f.id}: rank {rank} once its heading is restored, outside the top {f.k} without it"
