"""The texts that a judge may be shown for one query: the packed context, and where else the evidence could stand.

Access rules hold here: what the query's user may not read is never among them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ragaudit.config import AclSettings
from ragaudit.evidence.access import Access
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.lexical import LexicalIndex
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.model.inventory import ChunkKind, Inventory
from ragaudit.model.judgement import JudgeSample, SampleChunk
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Trace

MAX_DEEPER = 12
"""Hits of the run's own lists that are looked at beyond the context, best rank first."""

MAX_SEARCHED = 8
"""Chunks that a word search of the inventory adds."""


MAX_PASSAGES = 3
"""Passages of source documents that are looked at when no chunk may hold the evidence any more."""

PASSAGE = "source:"
"""How the id of a passage starts: it stands in no index, only in the source document."""

_PASSAGE_CHARS = 1_200


@dataclass(frozen=True)
class Searchable:
    """What a word search can reach: the chunks of the inventory, and passages of the source texts."""

    chunks: LexicalIndex
    passages: LexicalIndex
    passage_texts: Mapping[str, tuple[str, str]]
    """Passage id -> (source id, text)."""


def searchable(inventory: Inventory) -> Searchable:
    """Index the inventory, once for a run. Parents are served, not searched."""
    chunks = (inventory.chunks or {}).values()
    texts = {
        f"{PASSAGE}{source.source_id}#{number}": (source.source_id, passage)
        for source in (inventory.sources or {}).values()
        for number, passage in enumerate(_passages(source.text or ""))
    }
    return Searchable(
        LexicalIndex((c.chunk_id, c.text) for c in chunks if c.text and c.kind is not ChunkKind.PARENT),
        LexicalIndex((name, text) for name, (_, text) in texts.items()),
        texts,
    )


def _passages(text: str) -> Iterator[str]:
    """Paragraphs joined up to a page or so: long enough for an answer, short enough for a judge."""
    passage = ""
    for paragraph in text.split("\n\n"):
        if passage and len(passage) + len(paragraph) > _PASSAGE_CHARS:
            yield passage
            passage = ""
        passage = f"{passage}\n\n{paragraph}" if passage else paragraph
    if passage.strip():
        yield passage


def sample_of(
    trace: Trace, identities: Identities, acl: AclSettings, pipeline: Pipeline, search: Searchable
) -> JudgeSample:
    """One query as the judge sees it; `pipeline` is what it ran under.

    `chunks` is None when a packed text is unknown or may not be shown: half a context proves nothing.
    """
    texts, access = _texts(trace), Access(trace, identities, acl, pipeline)
    packed = trace.prompt_ids if trace.prompt_ids is not None else trace.final_context_ids
    chunks = None
    if packed is not None:
        shown = tuple(_shown(dict.fromkeys(packed), access, texts, {}))
        chunks = shown if len(shown) == len(set(packed)) else None
    answer = trace.answer
    return JudgeSample(
        query_id=trace.query_id,
        query=trace.query_text,
        answer=answer.text if answer else None,
        reference=trace.reference,
        chunks=chunks,
        candidates=tuple(_candidates(access, search, texts)) if trace.reference else (),
        answerable=trace.answerable,
        abstained=answer.abstained if answer else None,
    )


def _candidates(access: Access, search: Searchable, texts: Mapping[str, str]) -> Iterator[SampleChunk]:
    trace = access.trace
    packed = {*(trace.final_context_ids or ()), *(trace.prompt_ids or ())}
    where: dict[str, tuple[int, str]] = {}
    for name, hits in trace.lists().items():
        for rank, hit in enumerate(hits, start=1):
            if hit.id not in packed and (hit.id not in where or rank < where[hit.id][0]):
                where[hit.id] = (rank, f"{name} #{rank}")
    deeper = sorted(where, key=lambda chunk_id: where[chunk_id][0])[:MAX_DEEPER]
    words = f"{trace.query_text} {trace.reference or ''}"
    found = search.chunks.search(words, MAX_SEARCHED + len(packed) + len(deeper))
    searched = [chunk_id for chunk_id in found if chunk_id not in packed and chunk_id not in where][:MAX_SEARCHED]
    named = {**{i: where[i][1] for i in deeper}, **{i: "inventory" for i in searched}}
    ids = {chunk_id: None for chunk_id in (*deeper, *searched) if _within_filter(chunk_id, access)}
    yield from _shown(ids, access, texts, named)
    for name in search.passages.search(words, MAX_PASSAGES):
        source_id, text = search.passage_texts[name]
        if access.may_show_source(source_id):
            yield SampleChunk(id=name, text=text, where="source document")


def _shown(
    ids: Mapping[str, None], access: Access, texts: Mapping[str, str], where: Mapping[str, str]
) -> Iterator[SampleChunk]:
    for chunk_id in ids:
        text = _text(chunk_id, texts, access.identities.inventory)
        if text and access.may_show(chunk_id):
            yield SampleChunk(id=chunk_id, text=text, where=where.get(chunk_id))


def _text(chunk_id: str, texts: Mapping[str, str], inventory: Inventory) -> str | None:
    chunk = inventory.chunk(chunk_id)
    return texts.get(chunk_id) or (chunk.text if chunk else None)


def _within_filter(chunk_id: str, access: Access) -> bool:
    """Known to be readable; or of unknown access, and within the filter that the application set for this user."""
    if access.may_read(chunk_id) is True:
        return True
    sent, metadata = clauses(access.trace.filters_applied), access.metadata(chunk_id)
    return all(match(want, metadata, field) not in (Match.NO, Match.LOOSE) for field, want in sent)


def _texts(trace: Trace) -> dict[str, str]:
    """What the log itself holds: the texts as packed, else those of the hits."""
    found = {hit.id: hit.text for hits in trace.lists().values() for hit in hits if hit.text}
    return {**found, **(trace.context_texts or {})}
