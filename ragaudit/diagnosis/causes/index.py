"""Causes in the vectors and their index: the gold is written, and the vector arm cannot find it."""

import re
from collections.abc import Mapping
from itertools import pairwise

from ragaudit.diagnosis.facts import ArmFacts, GoldFacts, moment, same_model
from ragaudit.diagnosis.registry import cause
from ragaudit.model.diagnosis import Stage

_COSINE = {"cosine", "cos"}
_DOT = {"dot", "ip", "inner_product", "innerproduct", "dotproduct", "dot_product", "max_inner_product"}
_L2 = {"l2", "euclid", "euclidean", "squared_l2", "l2sq"}


@cause(
    "row_model",
    Stage.EMBED,
    "index",
    summary="The gold's vector is of another model than the query's, and most rows of the index are not.",
    remedy="Re-embed the rows of the odd model with the model of the rest; the query model stays.",
)
def row_model(f: GoldFacts) -> str | None:
    stamp, counts = _odd_stamp(f), _rows_by_model(f)
    query = f.query_model
    if stamp is None or query is None or not counts:
        return None
    agreeing = sum(n for model, n in counts.items() if same_model(model, query))
    if agreeing * 2 <= sum(counts.values()):
        return None
    return f"{f.id} was embedded by {stamp}; {agreeing} of {sum(counts.values())} rows and the query by {query}"


@cause(
    "model_mismatch",
    Stage.EMBED,
    "index",
    summary="Query and corpus were embedded by different models.",
    remedy="Embed the query with the model that the index was built with; compare the gold's rank.",
)
def model_mismatch(f: GoldFacts) -> str | None:
    if not f.dense_missed or f.query_model is None or row_model(f) is not None:
        return None
    corpus = f.pipeline.embedding.corpus.model
    if corpus is not None and not same_model(corpus, f.query_model):
        return f"the query was embedded by {f.query_model}, the corpus by {corpus}"
    stamp = _odd_stamp(f)
    return None if stamp is None else f"the query was embedded by {f.query_model}, {f.id} by {stamp}"


def _odd_stamp(f: GoldFacts) -> str | None:
    """The model stamped on the gold's row, when it is not the query's."""
    stamp = f.row.chunk.embedding_model if f.row.chunk else None
    if not f.dense_missed or f.query_model is None or stamp is None or same_model(stamp, f.query_model):
        return None
    corpus = f.pipeline.embedding.corpus.model
    others = [model for model in f.run.stamps if not same_model(model, stamp)]
    indexed = [model for arm in f.dense_missed for model in ((arm.index.models if arm.index else None) or {})]
    # A store that stamps one word on every row, and a configuration that says otherwise: a mode, not a model.
    if corpus is not None and not others and not any(same_model(model, f.query_model) for model in indexed):
        return None
    return stamp


def _rows_by_model(f: GoldFacts) -> Mapping[str, int]:
    """Model -> rows: of the first arm whose index says so, else as stamped on the chunks."""
    return next((arm.index.models for arm in f.dense_missed if arm.index and arm.index.models), f.run.stamps)


@cause(
    "model_switch",
    Stage.EMBED,
    "index",
    summary="The embedding model was switched, and the gold still has its old vector.",
    remedy="Re-embed a labelled slice written before the switch with the current model; compare its ranks.",
)
def model_switch(f: GoldFacts) -> str | None:
    written = moment(f.row.chunk.indexed_at if f.row.chunk else None)
    if written is None:
        return None
    for arm in f.dense_missed:
        history = (arm.index.model_history if arm.index else None) or ()
        for entry in history[1:]:
            since = moment(entry["from"]) if isinstance(entry.get("from"), str) else None
            if since is not None and written < since:
                at = f.row.chunk.indexed_at if f.row.chunk else ""
                return (
                    f"{f.id} was embedded at {at}, before {arm.name} moved to {entry.get('model')} on {entry['from']}"
                )
    return None


@cause(
    "dim_mismatch",
    Stage.EMBED,
    "index",
    summary="The gold's vector has another width than the query's and is skipped or refused.",
    remedy="Re-embed the rows of the odd width with the model of the rest; nothing else.",
)
def dim_mismatch(f: GoldFacts) -> str | None:
    if not f.dense_missed:
        return None
    dim = f.row.chunk.dim if f.row.chunk else None
    query, corpus = f.pipeline.embedding.query.dim, f.pipeline.embedding.corpus.dim
    if dim is not None and query is not None and dim != query:
        return f"{f.id} has {dim} dimensions, the query {query}"
    if query is not None and corpus is not None and query != corpus:
        return f"the query has {query} dimensions, the corpus {corpus}"
    for arm in f.dense_missed:
        dims = (arm.index.dims if arm.index else None) or {}
        majority = max(dims, key=lambda d: dims[d], default=None)
        if dim is not None and majority is not None and len(dims) > 1 and str(dim) != majority:
            return f"{f.id} has {dim} dimensions, {dims[majority]} rows of {arm.name} have {majority}"
        if query is not None and len(dims) == 1 and str(query) not in dims:
            return f"the query has {query} dimensions, every row of {arm.name} has {majority}"
        error = (arm.status.error if arm.status else None) or ""
        if re.search(r"\bdim(ension)?s?\b", error, re.IGNORECASE):
            return f"{arm.name} failed on dimensions: {error}"
    return None


@cause(
    "prefix_missing",
    Stage.EMBED,
    "index",
    summary="The model is trained with query and document prefixes, and they were not used, or one for both.",
    remedy="Apply the model's prefix convention as one change, re-embed a labelled slice, compare rank and MRR.",
)
def prefix_missing(f: GoldFacts) -> str | None:
    query, corpus = f.pipeline.embedding.query, f.pipeline.embedding.corpus
    if not f.dense_missed or corpus.requires_prefix is not True:
        return None
    if query.prefix and query.prefix == corpus.prefix:
        return f"the model needs prefixes of two kinds; both sides have {query.prefix!r}"
    bare = [side for side, prefix in (("query", query.prefix), ("corpus", corpus.prefix)) if prefix == ""]
    return f"the model needs prefixes; the {' and the '.join(bare)} side has none" if bare else None


@cause(
    "metric_mismatch",
    Stage.EMBED,
    "index",
    summary="The index compares vectors with another metric than the model was trained for.",
    remedy="Create the index with the expected metric and add the same vectors; same thresholds.",
)
def metric_mismatch(f: GoldFacts) -> str | None:
    return next((found for arm in f.dense_missed if (found := wrong_metric(f, arm)) is not None), None)


def wrong_metric(f: GoldFacts, arm: ArmFacts) -> str | None:
    """The arm's metric is not the expected one, and its vectors are not known to be of unit length."""
    expected, used = f.pipeline.metric.expected, arm.index.metric if arm.index else None
    if expected is None or used is None or _family(expected) == _family(used) or _unit_length(arm):
        return None
    return f"{arm.name} compares by {used}, the model expects {expected}"


def _family(metric: str) -> str:
    bare = metric.casefold().replace("-", "_")
    for name, family in (("cosine", _COSINE), ("dot", _DOT), ("l2", _L2)):
        if bare in family:
            return name
    return bare


def _unit_length(arm: ArmFacts) -> bool:
    low, high = (arm.index.norm_p5, arm.index.norm_p95) if arm.index else (None, None)
    return low is not None and high is not None and low > 0.99 and high < 1.01


@cause(
    "empty_vector",
    Stage.EMBED,
    "index",
    summary="The gold's vector has length 0: the model made nothing of its text.",
    remedy="Embed that one row again and look at its vector; a text in a language the model does not read stays empty.",
)
def empty_vector(f: GoldFacts) -> str | None:
    chunk = f.row.chunk
    if not f.dense_missed or chunk is None or chunk.norm is None or chunk.norm >= 1e-6:
        return None
    return f"{f.id} has a vector of length {chunk.norm:g}{f.untrained_language}"


@cause(
    "unnormalised",
    Stage.EMBED,
    "index",
    summary="Vectors of unequal length are compared by a metric that length distorts.",
    remedy="Normalise the vectors on both sides, or compare by cosine; one of the two.",
)
def unnormalised(f: GoldFacts) -> str | None:
    query, corpus = f.pipeline.embedding.query, f.pipeline.embedding.corpus
    for arm in f.dense_missed:
        metric = _family((arm.index.metric if arm.index else None) or "")
        norm = f.row.chunk.norm if f.row.chunk else None
        if metric not in ("dot", "l2"):
            continue
        if None not in (query.normalised, corpus.normalised) and query.normalised != corpus.normalised:
            return (
                f"{arm.name} compares by {metric}; only the {'query' if query.normalised else 'corpus'} is normalised"
            )
        low, high = (arm.index.norm_p5, arm.index.norm_p95) if arm.index else (None, None)
        if low is not None and high is not None and high > low * 1.1:
            return f"{arm.name} compares by {metric}; vector lengths run from {low:g} (p5) to {high:g} (p95)"
        middle = arm.index.norm_p50 if arm.index else None
        if norm is not None and middle is not None and abs(norm - middle) > 0.1 * middle:
            return f"{arm.name} compares by {metric}; {f.id} has length {norm:g}, the median row {middle:g}"
    return None


@cause(
    "direction_mismatch",
    Stage.EMBED,
    "index",
    summary="The arm returns its worst matches first: a distance is read as a similarity, or the reverse.",
    remedy="Sort that arm in its score's own direction; nothing else.",
)
def direction_mismatch(f: GoldFacts) -> str | None:
    for arm in f.dense_missed:
        scores = [hit.value for hit in arm.hits if hit.value is not None]
        declared = arm.index.score.direction if arm.index and arm.index.score else None
        if declared is None or len(scores) < 3 or len(set(scores)) == 1 or arm.search.type == "mmr":
            continue
        rising = all(a <= b for a, b in pairwise(scores))
        falling = all(a >= b for a, b in pairwise(scores))
        if (declared == "higher" and rising) or (declared == "lower" and falling):
            return f"{arm.name}: {declared} is better, and the list runs from {scores[0]:g} to {scores[-1]:g}"
    return None


@cause(
    "constant_scores",
    Stage.EMBED,
    "index",
    summary="Every hit of a vector arm has the same score: the query vector or the rows carry no information.",
    remedy="Embed the query again and look at its vector; then one row of the index.",
)
def constant_scores(f: GoldFacts) -> str | None:
    for arm in f.dense_missed:
        if arm.constant_score is not None and arm.known_vector:
            return f"{arm.name}: all {len(arm.hits)} hits have the score {arm.constant_score:g}"
    return None


@cause(
    "embedder_truncation",
    Stage.EMBED,
    "index",
    summary="The embedder cut the chunk before the answer: those words are not in its vector.",
    remedy="Raise the embedder's input limit for the chunks over it and re-embed only those.",
)
def embedder_truncation(f: GoldFacts) -> str | None:
    limit, chunk = f.pipeline.embedding.corpus.max_tokens, f.row.chunk
    if not f.dense_missed or limit is None or chunk is None:
        return None
    offset = chunk.answer_token_offset
    if offset is not None and offset >= limit:
        return f"{f.id}: the answer starts at token {offset}, the embedder reads {limit}"
    if offset is None and chunk.tokens is not None and chunk.tokens > limit:
        return f"{f.id}: {chunk.tokens} tokens, the embedder reads {limit}"
    return None


@cause(
    "vector_missing",
    Stage.EMBED,
    "index",
    summary="The chunk is in the store and in another arm, and has no row in the vector index.",
    remedy="Embed and write that one chunk to the vector index.",
)
def vector_missing(f: GoldFacts) -> str | None:
    for arm in f.dense_missed:
        if arm.place is None and f.in_index.get(arm.name) is False and any(f.in_index.values()):
            return f"{f.id}: not in the index of {arm.name}, though in that of another arm"
    return None


@cause(
    "tombstones",
    Stage.EMBED,
    "index",
    summary="Deleted rows still take part in the graph search and crowd live neighbours out.",
    remedy="Compact or rebuild the vector index; same vectors, same query.",
)
def tombstones(f: GoldFacts) -> str | None:
    for arm in f.dense_missed:
        dead = arm.index.tombstones if arm.index else None
        rank = f.probe_rank("exact_rank", arm.name)
        if dead and rank is not None and rank <= f.reach(arm) and not arm.did_not_run:
            return f"{f.id}: exact rank {rank} in {arm.name}, which lost it among {dead} deleted rows"
    return None


@cause(
    "ann_miss",
    Stage.EMBED,
    "index",
    summary="The gold is near enough, by an exact or a wider search; the approximate index does not return it.",
    remedy="Raise the search breadth (ef_search or nprobe) alone; compare with the exact rank.",
)
def ann_miss(f: GoldFacts) -> str | None:
    for arm in f.dense_missed:
        if arm.search.type == "mmr" or arm.did_not_run:
            continue
        rank = f.probe_rank("exact_rank", arm.name)
        if rank is not None and rank <= f.reach(arm):
            limit = f" (searched with ef {arm.search.ef_search})" if arm.search.ef_search is not None else ""
            return f"{f.id}: exact rank {rank} in {arm.name}, and the index missed it{limit}"
        if arm.place is None and f.probe_missed("self_query_rank", arm.name):
            return f"{f.id}: searched with its own vector, {arm.name} does not return it"
        wider = lost_within_reach(f, arm)
        if wider is not None:
            return f"{f.id}: rank {wider} in {arm.name} with another limit, and missed with the limit that was sent"
        own = f.probe_rank("self_query_rank", arm.name)
        if arm.place is None and own is not None and own > f.k:
            return f"{f.id}: searched with its own vector, it comes back at rank {own} in {arm.name}"
    return None


def lost_within_reach(f: GoldFacts, arm: ArmFacts) -> int | None:
    """The rank with another limit, where it is one that this limit reached too: no limit cut it, the search lost it.

    None where an exact search says more, and where hits are grouped (by parent or source) before they are counted:
    there a limit cuts at any rank.
    """
    wider, pack = f.probe_rank("rank_other_limit", arm.name), f.pipeline.pack
    is_told = f.probe_rank("exact_rank", arm.name) is not None or bool(pack.parent_expansion or pack.dedupe_by)
    if wider is None or arm.place is not None or not arm.hits or is_told or wider > f.reach(arm):
        return None
    return wider


@cause(
    "untrained_index",
    Stage.EMBED,
    "index",
    summary="The vector index was built on far fewer rows than it now holds; its partitions do not fit them.",
    remedy="Rebuild the vector index on the rows it holds now; same vectors.",
)
def untrained_index(f: GoldFacts) -> str | None:
    for arm in f.dense_missed:
        index = arm.index
        if index is None or index.rows_at_build is None or not index.chunks:
            continue
        partitioned = "ivf" in (index.ann or "").casefold() or arm.search.lists is not None
        if partitioned and index.rows_at_build < index.chunks * 0.5 and arm.place is None:
            return f"{arm.name}: built on {index.rows_at_build} rows, holds {index.chunks}"
    return None


@cause(
    "narrow_search",
    Stage.EMBED,
    "index",
    summary="The approximate search was too narrow to fill the limit that was asked for.",
    remedy="Raise the search breadth (ef_search or nprobe) alone.",
)
def narrow_search(f: GoldFacts) -> str | None:
    return next((found for arm in f.dense_missed if (found := breadth_starved(arm)) is not None), None)


def breadth_starved(arm: ArmFacts) -> str | None:
    """The arm returned fewer rows than asked and than match, and its search breadth explains the shortfall."""
    status = arm.status
    if status is None or status.limit is None or arm.place is not None or arm.did_not_run:
        return None
    returned = status.returned if status.returned is not None else len(arm.hits)
    wanted = status.limit if status.matching is None else min(status.limit, status.matching)
    if returned >= wanted:
        return None
    search, rows = arm.search, arm.index.chunks if arm.index else None
    if search.ef_search is not None and search.ef_search < wanted and returned <= search.ef_search:
        return f"{arm.name}: {returned} of {wanted} rows returned with ef_search {search.ef_search}"
    if search.nprobe is not None and search.lists and search.nprobe < search.lists:
        visible = status.matching if status.matching is not None else rows
        if visible is None or visible * search.nprobe // search.lists < wanted:
            return (
                f"{arm.name}: {returned} of {wanted} rows returned with nprobe {search.nprobe} of {search.lists} lists"
            )
    return None


@cause(
    "oversized_chunk",
    Stage.CHUNK,
    "index_last",
    summary="The chunk is far larger than its target, and its vector is an average of many subjects.",
    remedy="Split that one document at the target size; re-index it alone.",
)
def oversized_chunk(f: GoldFacts) -> str | None:
    target, chunk = f.pipeline.chunker.get("target_tokens"), f.row.chunk
    if not f.dense_missed or not isinstance(target, int) or chunk is None or chunk.tokens is None:
        return None
    if chunk.tokens <= 2 * target:
        return None
    return f"{f.id}: {chunk.tokens} tokens, the chunker's target is {target}"
