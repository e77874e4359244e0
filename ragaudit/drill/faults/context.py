"""Faults between the candidates and the prompt: reranker, packer, prompt."""

from collections.abc import Sequence

from ragaudit.drill.case import Broken, Case
from ragaudit.drill.faults.corpus import gold_rows, wrong_answer
from ragaudit.drill.faults.merge import foreign_chunk
from ragaudit.drill.registry import fault, unlogged
from ragaudit.drill.relist import from_pool, from_ranked, lower_in_context, packing, with_reranked
from ragaudit.evidence.spans import find
from ragaudit.model.diagnosis import Stage
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Trace


def _broken(trace: Trace | None, pipeline: Pipeline) -> Broken | None:
    if trace is None:
        return None
    return Broken(wrong_answer(trace.model_copy(update={"probes": ()})), pipeline)


def _ranked(case: Case) -> list[str]:
    """The ids of the last list before the context."""
    last = case.trace.after_rerank or case.trace.fused or next(iter((case.trace.arms or {}).values()), ())
    return [hit.id for hit in last]


def _only_arms(broken: Broken) -> Broken:
    return unlogged("fused", "rerank_input", "after_rerank")(broken)


@fault(
    "reranker_reversed",
    Stage.RERANK,
    "The reranker's order is turned around: the worst candidates come first.",
    hide=_only_arms,
    hides="fused, rerank_input, after_rerank",
)
def reranker_reversed(case: Case) -> Broken | None:
    """All candidates were given and scored; the list came out upside down."""
    after, given = case.trace.after_rerank, case.trace.rerank_input
    if after is None:
        return None
    order = [hit.id for hit in after]
    order += [hit.id for hit in given or () if hit.id not in order]
    return _broken(with_reranked(case, case.trace, order[::-1][: len(after)]), case.pipeline)


@fault("reranker_cut", Stage.RERANK, "The reranker's top_n is set below the gold's rank.")
def reranker_cut(case: Case) -> Broken | None:
    """The gold stood last in the context; top_n now ends above it."""
    posed = lower_in_context(case)
    if posed is None:
        return None
    above = _above(posed, _ranked(posed))
    if not above:
        return None
    pipeline = posed.pipeline.with_overrides({"rerank": {"top_n": len(above)}})
    return _broken(with_reranked(posed, posed.trace, above, pipeline=pipeline), pipeline)


def _above(case: Case, ids: Sequence[str]) -> list[str]:
    """The ids above the first victim."""
    first = next((n for n, i in enumerate(ids) if i in case.names), 0)
    return list(ids[:first])


@fault("candidates_cut", Stage.RERANK, "The reranker is given fewer candidates than the gold's rank.")
def candidates_cut(case: Case) -> Broken | None:
    """The gold is in the fused list, below the number of candidates."""
    fused = case.trace.fused
    if fused is None or case.trace.after_rerank is None:
        return None
    above = _above(case, [hit.id for hit in fused])
    if not above:
        return None
    pipeline = case.pipeline.with_overrides({"rerank": {"candidates": len(above)}})
    return _broken(from_pool(case, case.trace, [hit.id for hit in fused], pipeline=pipeline), pipeline)


@fault("rerank_floor", Stage.RERANK, "A floor on the reranker's score is set above every score it gives.")
def rerank_floor(case: Case) -> Broken | None:
    """Configured; nothing comes out of the reranker."""
    scores = [hit.score for hit in case.trace.after_rerank or () if hit.score is not None]
    if not scores:
        return None
    floor = {"value": round(max(scores) + 0.01, 6), "on": "rerank", "kind": "floor"}
    floors = [threshold.model_dump(exclude_none=True) for threshold in case.pipeline.thresholds]
    pipeline = case.pipeline.with_overrides({"thresholds": [*floors, floor]})
    return _broken(with_reranked(case, case.trace, (), pipeline=pipeline), pipeline)


@fault("budget_cut", Stage.RERANK, "The token budget is spent before the gold's turn.")
def budget_cut(case: Case) -> Broken | None:
    """The gold stood last in the context; the budget now ends above it."""
    posed = lower_in_context(case)
    if posed is None:
        return None
    above = _above(posed, posed.trace.final_context_ids or ())
    sizes = [posed.store.table.tokens.get(i) for i in above]
    if not above or None in sizes:
        return None
    budget = sum(size for size in sizes if size is not None)
    pipeline = posed.pipeline.with_overrides({"pack": {"token_budget": budget, "on_overflow": "stop"}})
    return _broken(from_ranked(posed, posed.trace, _ranked(posed), pipeline=pipeline), pipeline)


@fault(
    "packer_cut",
    Stage.RERANK,
    "The packer takes fewer chunks than K, for no reason that is configured.",
    hide=_only_arms,
    hides="fused, rerank_input, after_rerank",
)
def packer_cut(case: Case) -> Broken | None:
    """The gold stood last in the context; the context now ends above it."""
    posed = lower_in_context(case)
    if posed is None:
        return None
    above = _above(posed, posed.trace.final_context_ids or ())
    return _broken(packing(posed, posed.trace, above), posed.pipeline) if above else None


@fault("dedupe_by_source", Stage.RERANK, "Duplicates are removed by source: a neighbour takes the gold's place.")
def dedupe_by_source(case: Case) -> Broken | None:
    """A chunk of the same source stands above the gold."""
    posed = lower_in_context(case)
    if posed is None:
        return None
    pipeline = posed.pipeline.with_overrides({"pack": {"dedupe_by": "source"}})
    return _broken(from_ranked(posed, posed.trace, _ranked(posed), pipeline=pipeline), pipeline)


@fault("one_per_source", Stage.RERANK, "The packer takes one chunk a source, and the gold is the second.")
def one_per_source(case: Case) -> Broken | None:
    """A chunk of the same source stands above the gold."""
    posed = lower_in_context(case)
    if posed is None:
        return None
    pipeline = posed.pipeline.with_overrides({"pack": {"max_per_source": 1}})
    return _broken(from_ranked(posed, posed.trace, _ranked(posed), pipeline=pipeline), pipeline)


@fault("prompt_cut", Stage.RERANK, "The context was packed whole and cut when the prompt was rendered.")
def prompt_cut(case: Case) -> Broken | None:
    """The ids of the rendered prompt were logged."""
    if case.trace.prompt_ids is None:
        return None
    posed = lower_in_context(case)
    if posed is None:
        return None
    packed = posed.trace.final_context_ids or ()
    above = _above(posed, packed)
    return _broken(packing(posed, posed.trace, packed, above), posed.pipeline) if above else None


@fault("prompt_too_long", Stage.RERANK, "The prompt is longer than the model's window.", delivers=True)
def prompt_too_long(case: Case) -> Broken | None:
    """The tokens of the rendered prompt were logged."""
    window, tokens = case.pipeline.generator.context_window, case.trace.prompt_tokens
    if window is None or tokens is None:
        return None
    return _broken(case.trace.model_copy(update={"prompt_tokens": window + max(tokens, 1)}), case.pipeline)


@fault("text_of_another", Stage.RERANK, "Under the gold's id another chunk's text was packed.", delivers=True)
def text_of_another(case: Case) -> Broken | None:
    """The packed texts were logged."""
    rows, packed = gold_rows(case), case.trace.final_context_ids or ()
    mine = [i for i in packed if i in case.packed_names]
    spans = [f.row.gold.span or "" for f in case.gold if f.row.span.chunk is True]
    if rows is None or not set(mine) <= set(rows) or len(spans) != len(case.gold):
        return None
    others = [i for i in packed if i not in case.packed_names]
    texts = [chunk.text for i in others if (chunk := case.store.inventory.chunk(i)) and chunk.text]
    other = next((text for text in texts if all(find(span, text) is False for span in spans)), None)
    if other is None:
        return None
    return _broken(
        case.trace.model_copy(
            update={"context_texts": {**(case.trace.context_texts or {}), **dict.fromkeys(mine, other)}}
        ),
        case.pipeline,
    )


@fault(
    "foreign_in_context",
    Stage.RERANK,
    "While the context was assembled, a chunk that no search returned and the user may not read came in.",
    delivers=True,
)
def foreign_in_context(case: Case) -> Broken | None:
    """It is in no list, and in the context in place of the last chunk."""
    leaked = foreign_chunk(case)
    packed = list(case.trace.final_context_ids or ())
    places = [n for n, i in enumerate(packed) if i not in case.packed_names]
    if leaked is None or leaked in _everywhere(case) or not places:
        return None
    packed[places[-1]] = leaked
    return Broken(packing(case, case.trace, packed).model_copy(update={"probes": ()}), case.pipeline)


def _everywhere(case: Case) -> set[str]:
    return {hit.id for hits in case.trace.lists().values() for hit in hits}
