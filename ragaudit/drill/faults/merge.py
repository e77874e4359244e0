"""Faults between the arms and the candidates: fusion, floors, filters and access."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragaudit.drill.case import Broken, Case
from ragaudit.drill.faults.corpus import gold_rows, missed, wrong_answer
from ragaudit.drill.registry import fault, unlogged, unset
from ragaudit.drill.relist import emptied, found_by_one, from_arms, from_pool
from ragaudit.evidence.predicate import clauses
from ragaudit.evidence.principals import admits
from ragaudit.model.diagnosis import Stage
from ragaudit.model.inventory import Chunk
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import ArmStatus, Hit, Ranking


def _with_floor(pipeline: Pipeline, **floor: Any) -> Pipeline:
    floors = [threshold.model_dump(exclude_none=True) for threshold in pipeline.thresholds]
    return pipeline.with_overrides({"thresholds": [*floors, floor]})


def _floors_unknown(broken: Broken) -> Broken:
    trace = broken.trace.model_copy(update={"after_threshold": None})
    return replace(broken, trace=trace, pipeline=unset(broken.pipeline, "thresholds"))


# --- fuse ---------------------------------------------------------------------------------------------------------


@fault(
    "floor_of_another_scale",
    Stage.FUSE,
    "A floor tuned for cosine cuts the fused list, whose scores are sums of reciprocal ranks: nothing is left.",
    hide=_floors_unknown,
    hides="after_threshold, [pipeline] thresholds",
)
def floor_of_another_scale(case: Case) -> Broken | None:
    """Configured and logged: the list behind the floor is empty."""
    fused = case.trace.fused
    if not fused or any(hit.value is None or hit.value >= 0.3 for hit in fused):
        return None
    trace = from_pool(case, case.trace.model_copy(update={"after_threshold": (), "probes": ()}), ())
    if trace is None:
        return None
    return Broken(wrong_answer(trace), _with_floor(case.pipeline, value=0.3, on="fused", score="rrf", kind="floor"))


@fault(
    "floor_on_absent_score",
    Stage.FUSE,
    "A cosine floor on the fused list drops every hit that only the lexical arm found.",
    hide=_floors_unknown,
    hides="after_threshold, [pipeline] thresholds",
)
def floor_on_absent_score(case: Case) -> Broken | None:
    """Hits of the vector arm pass; the gold has no vector score."""
    posed = found_by_one(case, lexical=True)
    if posed is None or case.trace.fused is None:
        return None
    alone = posed[1]
    vector = next((arm for arm in alone.arms if not arm.lexical), None)
    if vector is None or any(hit.score is None for hit in vector.hits) or not vector.hits:
        return None
    lowest = min(hit.score for hit in vector.hits if hit.score is not None)
    scored = {hit.id for hit in vector.hits}
    kept = tuple(hit for hit in alone.trace.fused or () if hit.id in scored)
    logged = alone.trace.model_copy(update={"after_threshold": kept, "probes": ()})
    trace = from_pool(alone, logged, [hit.id for hit in kept])
    pipeline = _with_floor(alone.pipeline, value=lowest, on="fused", score=vector.name, kind="floor")
    return None if trace is None else Broken(wrong_answer(trace), pipeline)


@fault("floor_on_arm", Stage.FUSE, "A floor on the vector arm, which alone finds the gold, is set above its score.")
def floor_on_arm(case: Case) -> Broken | None:
    """The arm's list after the floor was logged."""
    posed = found_by_one(case, lexical=False)
    if posed is None:
        return None
    name, alone = posed
    hits = (alone.trace.arms or {})[name]
    best = max((hit.score for hit in hits if hit.id in alone.names and hit.score is not None), default=None)
    if best is None or _distance(alone, name):
        return None
    floor = round(best + 0.05, 4)
    kept = tuple(hit for hit in hits if hit.score is not None and hit.score >= floor)
    after = {**(alone.trace.arms or {}), name: kept}
    trace = from_arms(alone, after, probes=(), after_threshold={name: kept})
    if trace is None:
        return None
    trace = trace.model_copy(update={"arms": alone.trace.arms})
    return Broken(wrong_answer(trace), _with_floor(alone.pipeline, value=floor, on=name, score="cosine", kind="floor"))


def _distance(case: Case, name: str) -> bool:
    return any(arm.name == name and arm.lower_is_better for arm in case.arms)


@fault("arm_not_fused", Stage.FUSE, "Fusion leaves out the arm that alone found the gold.")
def arm_not_fused(case: Case) -> Broken | None:
    """The fused scores hold no share of that arm."""
    if case.trace.fused is None or len(case.arms) < 2:
        return None
    for arm in case.arms:
        posed = found_by_one(case, lexical=arm.lexical)
        if posed is None:
            continue
        name, alone = posed
        others = [other.name for other in alone.arms if other.name != name]
        if not any((alone.trace.arms or {})[other] for other in others):
            continue
        trace = from_arms(alone, alone.trace.arms or {}, fusing=others, probes=())
        if trace is not None:
            return Broken(wrong_answer(trace), alone.pipeline)
    return None


@fault(
    "fusion_shuffled",
    Stage.FUSE,
    "The fused list comes out in another order than its scores: the gold lands behind the cut.",
    hide=unlogged("fused"),
    hides="fused",
)
def fusion_shuffled(case: Case) -> Broken | None:
    """Shuffled by the seed; the scores stay with their ids."""
    fused = case.trace.fused
    if fused is None:
        return None
    rest = [hit for hit in fused if hit.id not in case.names]
    case.rng.shuffle(rest)
    order = [*rest, *(hit for hit in fused if hit.id in case.names)]
    cut = max(case.trace.k_final, len(case.trace.rerank_input or ()), case.pipeline.rerank.candidates or 0)
    if len(rest) < cut:
        return None
    listed = tuple(_ranked(order))
    trace = from_pool(case, case.trace.model_copy(update={"fused": listed, "probes": ()}), [hit.id for hit in listed])
    return None if trace is None else Broken(wrong_answer(trace), case.pipeline)


def _ranked(hits: list[Hit]) -> Ranking:
    return tuple(
        Hit(hit.id, rank=rank, score=hit.score, rrf=hit.rrf, sources=hit.sources) for rank, hit in enumerate(hits, 1)
    )


# --- filter -------------------------------------------------------------------------------------------------------


def _limits_unlogged(broken: Broken) -> Broken:
    status = {
        name: s.model_copy(update={"limit": None, "matching": None})
        for name, s in (broken.trace.arm_status or {}).items()
    }
    trace = broken.trace.model_copy(update={"arm_status": status})
    return replace(broken, trace=trace, pipeline=unset(broken.pipeline, "filter"))


@fault(
    "post_filter_starved",
    Stage.FILTER,
    "The filter runs behind a search that fetches too little: few of the matching rows are left.",
    hide=_limits_unlogged,
    hides="arm_status.*.limit and matching, [pipeline.filter]",
)
def post_filter_starved(case: Case) -> Broken | None:
    """Each arm returns a handful of rows, though more were asked for and match."""
    if not case.trace.filters_applied or not case.trace.arm_status:
        return None
    lists: dict[str, Ranking] = {}
    status: dict[str, ArmStatus] = {}
    for arm in case.arms:
        kept = tuple(_ranked([hit for hit in arm.hits if hit.id not in case.names][: case.trace.k_final - 1]))
        said = arm.status
        if said is None or said.limit is None or said.matching is None:
            return None
        if arm.place is not None and min(said.limit, said.matching) <= len(kept):
            return None
        lists[arm.name] = kept
        status[arm.name] = said.model_copy(update={"returned": len(kept)})
    trace = from_arms(case, lists, arm_status=status, probes=())
    pipeline = case.pipeline.with_overrides({"filter": {"mode": "post"}})
    return None if trace is None else Broken(wrong_answer(trace), pipeline)


def _no_stored_acl(broken: Broken) -> Broken:
    return replace(broken, chunks={i: c and c.model_copy(update={"acl": None}) for i, c in broken.chunks.items()})


@fault(
    "stored_acl_wiped",
    Stage.FILTER,
    "The chunk's ACL in the index is empty; its source admits the user.",
    hide=_no_stored_acl,
    hides="chunks.acl",
)
def stored_acl_wiped(case: Case) -> Broken | None:
    """The filter is as it should be, and drops the row."""
    rows = gold_rows(case)
    if rows is None or "acl" not in (case.trace.filters_applied or {}):
        return None
    user = case.trace.user_acl
    if any(f.row.source is None or admits(f.row.source.acl, user, case.store.acl) is not True for f in case.gold):
        return None
    trace = missed(case, gone=True)
    changed: dict[str, Chunk | None] = {i: row.model_copy(update={"acl": ()}) for i, row in rows.items()}
    return None if trace is None else Broken(trace, case.pipeline, {}, changed)


def _common(case: Case) -> Mapping[str, Any]:
    """Metadata that the victims share: what a clause of the filter could be about."""
    rows = list((gold_rows(case) or {}).values())
    first = (rows[0].metadata or {}) if rows else {}
    return {k: v for k, v in first.items() if all((row.metadata or {}).get(k) == v for row in rows)}


def _matches_nothing(case: Case, name: str, value: Any) -> Broken | None:
    """The filter with this clause: no row matches, every arm comes back empty."""
    sent = {**(case.trace.filters_applied or {}), name: value}
    names = [arm.name for arm in case.arms]
    matching = {"matching": 0} if case.trace.arm_status else {}
    lists, status = emptied(case, names, **matching)
    asked = {
        arm: s.model_copy(update={"filter": {**s.filter, name: value} if s.filter is not None else None})
        for arm, s in status.items()
    }
    update: dict[str, Any] = {
        "arm_status": asked if case.trace.arm_status else None,
        "filters_applied": sent,
        "probes": (),
    }
    trace = from_arms(case, lists, **update)
    return None if trace is None else Broken(wrong_answer(trace), case.pipeline)


def _a_field(case: Case, kind: type) -> tuple[str, Any] | None:
    """A field of this type to filter on: one that is filtered on already, else the first."""
    found = [(k, v) for k, v in _common(case).items() if isinstance(v, kind) and not isinstance(v, bool)]
    sent = dict(clauses(case.trace.filters_applied))
    return next((pair for pair in found if pair[0] in sent), found[0] if found else None)


@fault("clause_of_other_type", Stage.FILTER, "A clause of the filter sends a number as text: it never equals.")
def clause_of_other_type(case: Case) -> Broken | None:
    """The stored value is a number."""
    chosen = _a_field(case, int)
    return None if chosen is None else _matches_nothing(case, chosen[0], str(chosen[1]))


@fault("clause_of_other_case", Stage.FILTER, "A clause of the filter is spelt in capitals; the stored value is not.")
def clause_of_other_case(case: Case) -> Broken | None:
    """The values differ in case only."""
    chosen = _a_field(case, str)
    if chosen is None or chosen[1].upper() == chosen[1] or chosen[1].upper().casefold() != chosen[1].casefold():
        return None
    return _matches_nothing(case, chosen[0], chosen[1].upper())


@fault("metadata_wrong", Stage.FILTER, "The chunk's metadata is wrong, so the filter, which is right, drops it.")
def metadata_wrong(case: Case) -> Broken | None:
    """The field that the filter reads holds another value."""
    sent, rows = dict(clauses(case.trace.filters_applied)), gold_rows(case)
    chosen = next((name for name in sent if name in _common(case)), None)
    if rows is None or chosen is None:
        return None
    trace = missed(case, gone=True)
    other = 0 if isinstance(_common(case)[chosen], int) else "unknown"
    changed: dict[str, Chunk | None] = {
        i: row.model_copy(update={"metadata": {**(row.metadata or {}), chosen: other}}) for i, row in rows.items()
    }
    return None if trace is None else Broken(trace, case.pipeline, {}, changed)


def foreign_chunk(case: Case) -> str | None:
    """A chunk that the user may not read by its source's ACL, chosen by the seed."""
    ids = [i for i in case.store.chunk_ids if case.access.may_read(i) is False]
    return case.rng.choice(ids) if ids else None


@fault(
    "foreign_chunk",
    Stage.FILTER,
    "The access filter was lost: a chunk that the user may not read is packed.",
    delivers=True,
)
def leaked_from_search(case: Case) -> Broken | None:
    """It stands on top of an arm and of everything behind it."""
    leaked = foreign_chunk(case)
    arms = case.trace.arms
    if leaked is None or not arms:
        return None
    name = next((arm.name for arm in case.arms if arm.hits), None)
    if name is None:
        return None
    top = Hit(leaked, score=arms[name][0].score)
    lists = {**arms, name: _ranked([top, *arms[name]][: max(len(arms[name]), 2)])}
    trace = from_arms(case, lists, first=(leaked,), probes=())
    if trace is None or leaked not in (trace.final_context_ids or ()):
        return None
    # The answer stays as it was: a leak is a finding whatever the answer says.
    return Broken(trace, case.pipeline)
