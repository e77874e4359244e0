"""What a query's pipeline is known to have: a lever that tunes a part is no answer where that part is not there."""

from collections.abc import Callable, Iterable
from enum import StrEnum

from ragaudit.evidence.sources import named_lexical
from ragaudit.experiments.pool import RRF, on_fused
from ragaudit.experiments.recorded import Recorded
from ragaudit.experiments.replay import OFF
from ragaudit.model.experiment import Lever
from ragaudit.model.pipeline import Pipeline


class Part(StrEnum):
    """What `given` and `unless` of a lever may name."""

    DEDUPE = "duplicate removal"
    BUDGET = "token budget"
    STOPS = "packer that stops"
    """It ends at the first chunk over its token budget."""
    PER_SOURCE = "limit per source"
    RERANKER = "reranker"
    LEXICAL = "lexical arm"
    ARMS = "several arms"
    RRF = "reciprocal rank fusion"
    FUSED_FLOOR = "floor on the fused list"
    POST_FILTER = "filter behind the search"
    PARTITIONS = "partitioned index"
    OUT_OF_REACH = "gold out of reach"
    """No arm could bring the gold into the pool by fetching more."""
    UNTRAINED = "text the model does not read"


def answers(known: Lever, cause: str, pipeline: Pipeline, row: Recorded | None) -> bool:
    """Does the lever answer this cause in this query's pipeline?

    Most causes prove the part that their lever changes. For the others the lever names the part: it must be known
    to be there (`given`), or must not be (`unless`). What nobody wrote down is not known.

    Args:
        known: The lever.
        cause: What was found.
        pipeline: What the query ran under.
        row: The query's lists, when they are at hand.
    """
    wanted, barred = known.given.get(cause), known.unless.get(cause)
    if wanted is not None and not has(Part(wanted), pipeline, row):
        return False
    return barred is None or not has(Part(barred), pipeline, row)


def has(part: Part, pipeline: Pipeline, row: Recorded | None = None) -> bool:
    """Is the part known to be there, by the configuration or by the lists?"""
    return _KNOWN[part](pipeline, row)


def _dedupe(pipeline: Pipeline, row: Recorded | None) -> bool:
    rule = (pipeline.pack.dedupe_by or "").casefold()
    return bool(rule) and "chunk" not in rule and rule not in ("id", "none")


def _reranker(pipeline: Pipeline, row: Recorded | None) -> bool:
    if pipeline.rerank.model in OFF:
        return False
    return pipeline.rerank.model is not None or (row is not None and row.trace.after_rerank is not None)


def _arms(pipeline: Pipeline, row: Recorded | None) -> set[str]:
    logged: Iterable[str] = (row.trace.arms or ()) if row is not None else ()
    return {*(pipeline.arms or logged)}


def _lexical(pipeline: Pipeline, row: Recorded | None) -> bool:
    def matches_words(arm: str) -> bool:
        search = pipeline.search.get(arm)
        return named_lexical(arm) or (search is not None and (search.operator or search.tokenizer) is not None)

    return any(map(matches_words, _arms(pipeline, row)))


def _post_filter(pipeline: Pipeline, row: Recorded | None) -> bool:
    if pipeline.filter.mode is not None:
        return pipeline.filter.mode == "post"
    return row is not None and row.trace.after_filter is not None


def _partitions(pipeline: Pipeline, row: Recorded | None) -> bool:
    return any(
        search.ef_search is None and (search.nprobe is not None or search.lists is not None)
        for search in pipeline.search.values()
    )


_KNOWN: dict[Part, Callable[[Pipeline, Recorded | None], bool]] = {
    Part.DEDUPE: _dedupe,
    Part.BUDGET: lambda pipeline, row: bool(pipeline.pack.token_budget),
    Part.STOPS: lambda pipeline, row: bool(pipeline.pack.token_budget) and pipeline.pack.on_overflow == "stop",
    Part.PER_SOURCE: lambda pipeline, row: bool(pipeline.pack.max_per_source),
    Part.RERANKER: _reranker,
    Part.LEXICAL: _lexical,
    Part.ARMS: lambda pipeline, row: len(_arms(pipeline, row)) > 1,
    Part.RRF: lambda pipeline, row: (pipeline.fusion.method or "").casefold() in RRF,
    Part.FUSED_FLOOR: lambda pipeline, row: any(map(on_fused, pipeline.thresholds)),
    Part.POST_FILTER: _post_filter,
    Part.PARTITIONS: _partitions,
    Part.OUT_OF_REACH: lambda pipeline, row: row is not None and row.out_of_reach,
    Part.UNTRAINED: lambda pipeline, row: row is not None and row.is_untrained,
}
