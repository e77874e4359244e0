"""What to log so that an undetermined verdict can be decided: the fields that each open stage still lacks."""

from collections.abc import Sequence

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.model.diagnosis import Stage
from ragaudit.model.trace import Answer


def what_to_log(f: GoldFacts, could_be: Sequence[Stage]) -> tuple[str, ...]:
    """The missing fields, by their names in DATA.md, that would decide between these stages."""
    return tuple(dict.fromkeys(field for stage in could_be for field in _FIELDS[stage](f)))


def _ingestion(f: GoldFacts) -> list[str]:
    found = []
    if not f.in_index and not f.written:
        found.append("chunks.jsonl: in")
    if f.row.source is None:
        held = "source_hash, indexed_hash" if f.written else "status, chunks_expected, chunks_indexed"
        found.append(f"sources.jsonl: {held}")
    return found or ["probe fetch_by_id"]


def _span(f: GoldFacts) -> list[str]:
    return ["gold.span"] if f.row.gold.span is None else []


def _parse(f: GoldFacts) -> list[str]:
    known = f.row.span.extracted is not None
    return [*_span(f), *([] if known else ["sources.jsonl: extracted_text (or gold.span_in.extracted)"])]


def _chunk(f: GoldFacts) -> list[str]:
    known = f.row.span.chunk is not None
    return [*_span(f), *([] if known else ["chunks.jsonl: text (or gold.span_in.chunk)"])]


def _embed(f: GoldFacts) -> list[str]:
    found = []
    if f.models_agree is None:
        found.append("[pipeline.embedding] query.model and corpus.model")
    if not any(True for _ in f.probes("exact_rank")):
        found.append("probe exact_rank")
    return found or ["index.json: arms.*.models, dims, metric"]


def _retrieve(f: GoldFacts) -> list[str]:
    if f.trace.arms is None or f.unlogged_arms:
        return [f"arms.{arm}" for arm in f.unlogged_arms] or ["arms"]
    return [] if any(True for _ in f.probes("exact_rank")) else ["probe exact_rank"]


def _fuse(f: GoldFacts) -> list[str]:
    found = []
    if f.listed("fused") is None and len(f.arms) != 1:
        found.append("fused")
    if f.listed("after_threshold") is None:
        found.append("after_threshold")
    if f.pipeline.fusion.method is None and len(f.arms) > 1:
        found.append("[pipeline.fusion] method, k")
    if not f.pipeline.floors_known:
        found.append("[pipeline] thresholds ([] when there is none)")
    return found


def _filter(f: GoldFacts) -> list[str]:
    found = [] if f.trace.filters_applied is not None else ["filters_applied"]
    if f.row.chunk is None or f.row.chunk.metadata is None:
        found.append("chunks.jsonl: metadata, acl")
    if f.listed("after_filter") is None and not f.filter_runs_first:
        found.append("after_filter (or [pipeline.filter] mode)")
    return found or ["probe filter_passes"]


def _rerank(f: GoldFacts) -> list[str]:
    found = [] if f.listed("after_rerank") is not None else ["after_rerank"]
    if f.delivered or (f.trace.prompt_ids is None and f.packed is not None):
        return ["prompt_ids"]
    if f.trace.final_context_ids is None:
        found.append("final_context_ids")
    if f.trace.rerank_input is None:
        return found or ["rerank_input"]
    return found or ["[pipeline.rerank] candidates, top_n", "probe rerank_rank"]


def _generate(f: GoldFacts) -> list[str]:
    answer = f.trace.answer or Answer()
    return [name for name in ("answer.correct", "answer.supported") if getattr(answer, name.split(".")[1]) is None]


_FIELDS = {
    Stage.INGESTION: _ingestion,
    Stage.PARSE: _parse,
    Stage.CHUNK: _chunk,
    Stage.EMBED: _embed,
    Stage.RETRIEVE: _retrieve,
    Stage.FUSE: _fuse,
    Stage.FILTER: _filter,
    Stage.RERANK: _rerank,
    Stage.GENERATE: _generate,
}
