"""Faults before the index: ingestion, parsing, chunking."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ragaudit.drill.case import Broken, Case
from ragaudit.drill.registry import fault
from ragaudit.drill.relist import from_arms, without
from ragaudit.evidence.spans import find
from ragaudit.model.diagnosis import Stage
from ragaudit.model.inventory import Chunk, Source, SourceStatus
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Answer, Trace

Edit = Callable[[str, str], str]
"""(span, text) -> the text as the fault leaves it."""


def wrong_answer(trace: Trace) -> Trace:
    """The answer is wrong now, where answers are judged at all; what it said instead is not made up."""
    if trace.answer is None or trace.answer.correct is None:
        return trace
    return trace.model_copy(update={"answer": Answer(correct=False, finish_reason=trace.answer.finish_reason)})


def missed(case: Case, *, gone: bool, ids: frozenset[str] | None = None, **update: Any) -> Trace | None:
    """The query when no arm returned these ids (default: the gold), carried downstream, with a wrong answer."""
    taken = without(case, case.names if ids is None else ids, gone=gone)
    if taken is None:
        return None
    trace = from_arms(case, taken[0], arm_status=taken[1], probes=(), **update)
    return None if trace is None else wrong_answer(trace)


def sources_of(case: Case) -> dict[str, Source] | None:
    """The victims' source rows; None when one of them is not in the table."""
    rows = {f.row.source.source_id: f.row.source for f in case.gold if f.row.source is not None}
    return rows if rows and all(f.row.source is not None for f in case.gold) else None


def rows_of(case: Case, sources: dict[str, Source]) -> dict[str, Chunk]:
    """Every chunk row of these sources."""
    inventory = case.store.inventory
    ids = (i for source_id in sources for i in inventory.by_source.get(source_id, ()))
    return {i: row for i in ids if (row := inventory.chunk(i)) is not None}


def gold_rows(case: Case) -> dict[str, Chunk] | None:
    """The victims' chunk rows; None when one of them is not in the table."""
    rows = {f.row.chunk.chunk_id: f.row.chunk for f in case.gold if f.row.chunk is not None}
    return rows if rows and all(f.row.chunk is not None for f in case.gold) else None


# --- ingestion ----------------------------------------------------------------------------------------------------


def _no_source_table(broken: Broken) -> Broken:
    return replace(broken, hidden=frozenset({"sources"}))


def _never_ingested(case: Case, status: dict[str, Any]) -> Broken | None:
    sources = sources_of(case)
    if sources is None:
        return None
    rows = rows_of(case, sources)
    trace = missed(case, gone=True, ids=case.names | frozenset(rows))
    if trace is None:
        return None
    empty = {"indexed_hash": None, "indexed_at": None, "extracted_text": None, "extracted_chars": None}
    changed = {
        i: source.model_copy(
            update={
                **empty,
                "chunked_chars": None,
                "chunks_expected": None,
                "chunks_indexed": {arm: 0 for arm in source.chunks_indexed} if source.chunks_indexed else None,
                **status,
            }
        )
        for i, source in sources.items()
    }
    return Broken(trace, case.pipeline, changed, dict.fromkeys(rows))


@fault(
    "source_not_registered",
    Stage.INGESTION,
    "The source was never handed to the indexer.",
    hide=_no_source_table,
    hides="sources.jsonl",
)
def source_not_registered(case: Case) -> Broken | None:
    """No row, no chunk, no hit of that source; the source itself is known."""
    return _never_ingested(case, {"registered": False, "status": None})


@fault("source_failed", Stage.INGESTION, "The last ingestion of the source failed.")
def source_failed(case: Case) -> Broken | None:
    """Registered, failed, and nothing written."""
    return _never_ingested(case, {"registered": True, "status": SourceStatus.FAILED})


def _no_counts(broken: Broken) -> Broken:
    sources = {
        i: s and s.model_copy(update={"chunks_expected": None, "chunks_indexed": None})
        for i, s in broken.sources.items()
    }
    chunks = {i: c and c.model_copy(update={"present_in": None}) for i, c in broken.chunks.items()}
    return replace(broken, sources=sources, chunks=chunks)


@fault(
    "half_written",
    Stage.INGESTION,
    "The indexer stopped half way: some chunks of the source were written, the gold was not.",
    hide=_no_counts,
    hides="chunks_indexed, chunks.in",
)
def half_written(case: Case) -> Broken | None:
    """The gold's rows stand in the store and in no index."""
    sources, rows = sources_of(case), gold_rows(case)
    if sources is None or rows is None or any(row.present_in is None for row in rows.values()):
        return None
    if any(not s.chunks_indexed or not s.chunks_expected for s in sources.values()):
        return None
    trace = missed(case, gone=True)
    if trace is None:
        return None
    lost = {i: sum(row.source_id == i for row in rows.values()) for i in sources}
    written = {
        i: source.model_copy(
            update={"chunks_indexed": {a: max(n - lost[i], 0) for a, n in (source.chunks_indexed or {}).items()}}
        )
        for i, source in sources.items()
    }
    unwritten = {
        i: row.model_copy(update={"present_in": dict.fromkeys(row.present_in or {}, False)}) for i, row in rows.items()
    }
    return Broken(trace, case.pipeline, written, unwritten)


@fault("not_yet_visible", Stage.INGESTION, "The chunk became searchable only after the query.")
def not_yet_visible(case: Case) -> Broken | None:
    """Written, with a time of visibility behind the query's own."""
    rows = gold_rows(case)
    if rows is None or case.trace.timestamp is None or re.match(r"\d{4}-", case.trace.timestamp) is None:
        return None
    trace = missed(case, gone=True)
    later = f"{int(case.trace.timestamp[:4]) + 1}{case.trace.timestamp[4:]}".replace("-02-29", "-02-28")
    changed = {i: row.model_copy(update={"visible_at": later}) for i, row in rows.items()}
    return None if trace is None else Broken(trace, case.pipeline, {}, changed)


@fault("other_namespace", Stage.INGESTION, "The chunk was written to another namespace than the one searched.")
def other_namespace(case: Case) -> Broken | None:
    """The row names the namespace that it was written to."""
    rows, index = gold_rows(case), case.store.inventory.index
    if rows is None or index is None or index.namespace is None:
        return None
    trace = missed(case, gone=True)
    changed = {i: row.model_copy(update={"namespace": f"{index.namespace}-staging"}) for i, row in rows.items()}
    return None if trace is None else Broken(trace, case.pipeline, {}, changed)


@fault(
    "old_version_indexed",
    Stage.INGESTION,
    "The source was edited and not indexed again: the index still holds the version without the answer.",
    delivers=True,
)
def old_version_indexed(case: Case) -> Broken | None:
    """Found and packed as before, with the old words; the hashes differ."""
    edited = edit_texts(case, _cut, extracted=_cut)
    if edited is None or any(source is None or source.source_hash is None for source in edited.sources.values()):
        return None
    sources = {
        i: source and source.model_copy(update={"indexed_hash": content_hash(f"before {source.source_hash}")})
        for i, source in edited.sources.items()
    }
    return replace(edited, sources=sources)


# --- parse and chunk: the answer's words ----------------------------------------------------------------------------


def _pattern(span: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, span.split())), re.IGNORECASE)


def _cut(span: str, text: str) -> str:
    return _pattern(span).sub("", text)


def _spaced(span: str, text: str) -> str:
    """Letters apart, as an extractor leaves a letter-spaced line."""
    return _pattern(span).sub(lambda found: " ".join(found[0]), text)


def _halved(span: str, text: str) -> str:
    """Up to the middle of the span: the rest went to the next chunk."""
    found = _pattern(span).search(text)
    return text if found is None else text[: found.start() + -(-len(found[0]) // 2)]


def edit_texts(case: Case, chunked: Edit, *, extracted: Edit | None = None) -> Broken | None:
    """The victims' words changed in the chunks of their sources, and in the extracted text where an edit is given.

    None when the texts or the words are not known, or when another source's chunk carries the same text.
    """
    sources = sources_of(case)
    if sources is None or case.has_twins or any(f.row.gold.span is None for f in case.gold):
        return None
    rows = rows_of(case, sources)
    if any(row.text is None for row in rows.values()) or gold_rows(case) is None:
        return None
    trace, changed_rows, changed_sources = case.trace, dict(rows), dict(sources)
    for f in case.gold:
        span, own = f.row.gold.span or "", f.row.source.source_id if f.row.source else ""
        for i, row in changed_rows.items():
            if row.source_id == own:
                changed_rows[i] = _with_text(row, chunked(span, row.text or ""))
        source = changed_sources[own]
        if extracted is not None:
            if source.extracted_text is None:
                return None
            text = extracted(span, source.extracted_text)
            changed_sources[own] = source.model_copy(
                update={"extracted_text": text, "extracted_chars": source.extracted_chars and len(text)}
            )
            if find(span, text) is True:
                return None
        if any(find(span, row.text or "") is True for row in changed_rows.values() if row.source_id == own):
            return None
        trace = _relabelled(trace, f.id)
    for own, source in changed_sources.items():
        if source.chunked_chars is not None:
            held = sum(len(row.text or "") for row in changed_rows.values() if row.source_id == own)
            changed_sources[own] = source.model_copy(update={"chunked_chars": held})
    texts = {i: row.text or "" for i, row in changed_rows.items() if i in (trace.context_texts or {})}
    if texts:
        trace = trace.model_copy(update={"context_texts": {**(trace.context_texts or {}), **texts}})
    changed = {i: row for i, row in changed_rows.items() if row is not rows[i]}
    return Broken(wrong_answer(trace), case.pipeline, changed_sources, changed)


def _with_text(row: Chunk, text: str) -> Chunk:
    if text == row.text or not row.text:
        return row
    tokens = row.tokens and max(round(row.tokens * len(text) / len(row.text)), 1)
    return row.model_copy(
        update={"text": text, "tokens": tokens, "content_hash": row.content_hash and content_hash(text)}
    )


def _relabelled(trace: Trace, gold_id: str) -> Trace:
    """Where the words stand is left to the texts: what the label said of it was true of the healthy system."""
    gold = tuple(g.model_copy(update={"span_in": None}) if g.id == gold_id else g for g in trace.gold)
    return trace.model_copy(update={"gold": gold})


def _unreturned(case: Case, broken: Broken | None) -> Broken | None:
    """The same fault where the words were what the search needed: no arm returns the chunk."""
    trace = missed(case, gone=False)
    if broken is None or trace is None:
        return None
    return replace(broken, trace=trace.model_copy(update={"gold": broken.trace.gold}))


def _no_extracted_text(broken: Broken) -> Broken:
    sources = {
        i: s and s.model_copy(update={"extracted_text": None, "extracted_chars": None})
        for i, s in broken.sources.items()
    }
    return replace(broken, sources=sources)


def _no_chunk_text(broken: Broken) -> Broken:
    chunks = {i: c and c.model_copy(update={"text": None, "content_hash": None}) for i, c in broken.chunks.items()}
    sources = {i: s and s.model_copy(update={"chunked_chars": None}) for i, s in broken.sources.items()}
    return replace(broken, sources=sources, chunks=chunks)


@fault(
    "text_lost",
    Stage.PARSE,
    "The parser lost the answer's words; the chunk is found and packed without them.",
    delivers=True,
    hide=_no_extracted_text,
    hides="extracted_text",
)
def text_lost(case: Case) -> Broken | None:
    """The words are in the source and nowhere behind it."""
    return edit_texts(case, _cut, extracted=_cut)


@fault(
    "text_lost_missed",
    Stage.PARSE,
    "The parser lost the answer's words, and no arm finds the chunk without them.",
    hide=_no_extracted_text,
    hides="extracted_text",
)
def text_lost_missed(case: Case) -> Broken | None:
    """As `text_lost`, and the search misses."""
    return _unreturned(case, edit_texts(case, _cut, extracted=_cut))


@fault("text_garbled", Stage.PARSE, "The parser broke the answer's words apart, and no arm finds the chunk.")
def text_garbled(case: Case) -> Broken | None:
    """The words are there after normalisation only."""
    return _unreturned(case, edit_texts(case, _spaced, extracted=_spaced))


@fault(
    "span_dropped",
    Stage.CHUNK,
    "The chunker dropped the answer's words; the chunk is found and packed without them.",
    delivers=True,
)
def span_dropped(case: Case) -> Broken | None:
    """The words are in the extracted text and in no chunk."""
    return edit_texts(case, _cut)


@fault(
    "span_dropped_missed",
    Stage.CHUNK,
    "The chunker dropped the answer's words, and no arm finds the chunk without them.",
    hide=_no_chunk_text,
    hides="chunks.text",
)
def span_dropped_missed(case: Case) -> Broken | None:
    """As `span_dropped`, and the search misses."""
    broken = _unreturned(case, edit_texts(case, _cut))
    if broken is None:
        return None
    # The blind variant hides the texts of all chunks of the source, so all of them count as changed.
    rows = {i: row for i, row in rows_of(case, dict(_present(broken))).items() if i not in broken.chunks}
    return replace(broken, chunks={**rows, **broken.chunks})


def _present(broken: Broken) -> Iterator[tuple[str, Source]]:
    return ((i, source) for i, source in broken.sources.items() if source is not None)


@fault(
    "span_split",
    Stage.CHUNK,
    "A chunk boundary runs through the answer's words.",
    delivers=True,
)
def span_split(case: Case) -> Broken | None:
    """The gold holds the first half, a row behind it the second."""
    broken = edit_texts(case, _halved)
    if broken is None or any(len(re.sub(r"\s", "", f.row.gold.span or "")) < 8 for f in case.gold):
        return None
    tails: dict[str, Chunk | None] = {}
    sources = dict(broken.sources)
    for i, row in broken.chunks.items():
        before = case.store.inventory.chunk(i)
        if row is None or before is None:
            continue
        tail = (before.text or "")[len(row.text or "") :].strip()
        tails[f"{i}~2"] = _with_text(before, tail).model_copy(update={"chunk_id": f"{i}~2", "aliases": ()})
        source = sources.get(row.source_id or "")
        if source is not None:
            more = {arm: n + 1 for arm, n in (source.chunks_indexed or {}).items()} or None
            counts = {"chunks_expected": source.chunks_expected and source.chunks_expected + 1, "chunks_indexed": more}
            sources[source.source_id] = source.model_copy(update=counts)
    return replace(broken, sources=sources, chunks={**broken.chunks, **tails})
