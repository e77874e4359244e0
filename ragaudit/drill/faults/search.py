"""Faults in the vectors, their index and the search: embed and retrieve."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ragaudit.drill.case import Broken, Case
from ragaudit.drill.faults.corpus import gold_rows, missed, wrong_answer
from ragaudit.drill.registry import fault, unlogged
from ragaudit.drill.relist import emptied, found_by_one, from_arms
from ragaudit.model.diagnosis import Stage
from ragaudit.model.inventory import Chunk, IndexArm
from ragaudit.model.trace import ArmState, Probe, Trace

_BEYOND = 7
"""How far behind the fetched rows an exact search ranks a gold that the arm truly does not match."""


def _vectors_only(case: Case) -> tuple[str, Case] | None:
    """The query as one that a vector arm answers and no lexical arm does."""
    return found_by_one(case, lexical=False)


def _words_only(case: Case) -> tuple[str, Case] | None:
    """The query as one that a lexical arm answers and no vector arm does, each of which ranks the gold far behind."""
    return found_by_one(case, lexical=True)


def _ranks(case: Case, arm: str, ranks: Sequence[int]) -> tuple[Probe, ...]:
    """What an exact search by this arm finds for each victim."""
    return tuple(
        Probe(probe="exact_rank", gold_id=f.id, arm=arm, value=rank) for f, rank in zip(case.gold, ranks, strict=True)
    )


def _own_ranks(case: Case, arm: str) -> list[int] | None:
    """Where the healthy arm had each victim; None when it did not have one."""
    places = [next((a.place for a in f.arms if a.name == arm), None) for f in case.gold]
    return [place.rank for place in places if place is not None] if None not in places else None


def _far_ranks(case: Case) -> tuple[Probe, ...]:
    """Exact ranks beyond what every vector arm that misses the gold fetched."""
    found: tuple[Probe, ...] = ()
    for arm in case.arms:
        if not arm.lexical and arm.place is None:
            deepest = max(len(arm.hits), case.trace.k_final) + _BEYOND
            found += _ranks(case, arm.name, [deepest + n for n in range(len(case.gold))])
    return found


# --- embed --------------------------------------------------------------------------------------------------------


def _unfound_by_vectors(case: Case) -> tuple[str, Case, Trace] | None:
    posed = _vectors_only(case)
    trace = None if posed is None else missed(posed[1], gone=False)
    return None if posed is None or trace is None else (*posed, trace)


def _index_arm(case: Case, arm: str, **update: Any) -> Any:
    """The index revision with one arm's description changed; None when no index was described."""
    index = case.store.inventory.index
    if index is None:
        return None
    arms = {**index.arms, arm: index.arms.get(arm, IndexArm()).model_copy(update=update)}
    return index.model_copy(update={"arms": arms})


def _recounted(case: Case, arm: str, counts: str, key: str, n: int) -> Any:
    """The index revision that counts n rows more under this key, and n fewer under its most frequent one."""
    index = case.store.inventory.index
    held = getattr(index.arms.get(arm), counts, None) if index is not None else None
    if not held:
        return index
    most = max(held, key=lambda name: held[name])
    return _index_arm(case, arm, **{counts: {**held, most: held[most] - n, key: held.get(key, 0) + n}})


@fault("other_model", Stage.EMBED, "The chunk was embedded by another model than the query.")
def other_model(case: Case) -> Broken | None:
    """The row's stamp names the model; its vector means nothing to the query's."""
    found, rows = _unfound_by_vectors(case), gold_rows(case)
    if found is None or rows is None or any(row.embedding_model is None for row in rows.values()):
        return None
    arm, posed, trace = found
    changed: dict[str, Chunk | None] = {
        i: row.model_copy(update={"embedding_model": "drill-other-model"}) for i, row in rows.items()
    }
    index = _recounted(posed, arm, "models", "drill-other-model", len(rows))
    return Broken(trace, posed.pipeline, {}, changed, index)


@fault("other_width", Stage.EMBED, "The chunk's vector has another width than the query's and is skipped.")
def other_width(case: Case) -> Broken | None:
    """The row's `dim` is half of what it was."""
    found, rows = _unfound_by_vectors(case), gold_rows(case)
    if found is None or rows is None or any(not row.dim for row in rows.values()):
        return None
    arm, posed, trace = found
    changed: dict[str, Chunk | None] = {
        i: row.model_copy(update={"dim": (row.dim or 0) // 2}) for i, row in rows.items()
    }
    width = str(next(row.dim or 0 for row in rows.values()) // 2)
    return Broken(trace, posed.pipeline, {}, changed, _recounted(posed, arm, "dims", width, len(rows)))


@fault("vector_unwritten", Stage.EMBED, "The chunk has no row in the vector index, and one in another.")
def vector_unwritten(case: Case) -> Broken | None:
    """`in` says so; the lexical index holds it."""
    posed, rows = _vectors_only(case), gold_rows(case)
    if posed is None or rows is None:
        return None
    arm, alone = posed
    if any(not any(held for name, held in (row.present_in or {}).items() if name != arm) for row in rows.values()):
        return None
    trace = missed(alone, gone=True)
    changed = {
        i: row.model_copy(update={"present_in": {**(row.present_in or {}), arm: False}}) for i, row in rows.items()
    }
    return None if trace is None else Broken(trace, alone.pipeline, {}, changed)


@fault("other_metric", Stage.EMBED, "The index compares vectors of unequal length by another metric than configured.")
def other_metric(case: Case) -> Broken | None:
    """The whole arm is built with the wrong metric; this query's gold is what it costs."""
    found, index = _unfound_by_vectors(case), case.store.inventory.index
    if found is None or index is None or case.pipeline.metric.expected is None:
        return None
    arm, posed, trace = found
    other = "l2" if case.pipeline.metric.expected != "l2" else "dot"
    lengths = {"norm_p5": 0.4, "norm_p50": 1.0, "norm_p95": 2.5}
    return Broken(trace, posed.pipeline, index=_index_arm(posed, arm, metric=other, **lengths))


@fault(
    "ann_miss",
    Stage.EMBED,
    "The approximate index misses what an exact search finds.",
    hide=unlogged("probes"),
    hides="probe exact_rank",
)
def ann_miss(case: Case) -> Broken | None:
    """An exact search was run, and ranks it where the healthy arm had it."""
    found = _unfound_by_vectors(case)
    ranks = None if found is None else _own_ranks(found[1], found[0])
    if found is None or ranks is None or max(ranks) > case.trace.k_final:
        return None
    arm, posed, trace = found
    return Broken(trace.model_copy(update={"probes": _ranks(posed, arm, ranks)}), posed.pipeline)


# --- retrieve -----------------------------------------------------------------------------------------------------


@fault(
    "poor_rank",
    Stage.RETRIEVE,
    "The question and the text are too far apart: no arm matches them, and an exact search does not either.",
    hide=unlogged("probes"),
    hides="probe exact_rank",
)
def poor_rank(case: Case) -> Broken | None:
    """An exact search was run, and ranks it beyond what the arm fetches."""
    trace = missed(case, gone=False)
    if trace is None or all(arm.lexical for arm in case.arms):
        return None
    return Broken(trace.model_copy(update={"probes": _far_ranks(case.became(trace))}), case.pipeline)


def _arm_lost(case: Case, posed: tuple[str, Case] | None, **status: Any) -> tuple[Case, Trace] | None:
    """An arm that alone had the gold returns nothing; the others truly do not match it."""
    if posed is None or len(case.arms) < 2:
        return None
    arm, alone = posed
    lists, statuses = emptied(alone, [arm], **status)
    trace = from_arms(alone, lists, arm_status=statuses, probes=())
    if trace is None:
        return None
    return alone, wrong_answer(trace)


def _arm_unlogged(broken: Broken) -> Broken:
    trace = broken.trace
    down = [name for name, s in (trace.arm_status or {}).items() if s.status in (ArmState.ERRORED, ArmState.OFF)]
    arms = {name: hits for name, hits in (trace.arms or {}).items() if name not in down}
    status = {name: s for name, s in (trace.arm_status or {}).items() if name not in down}
    return replace(broken, trace=trace.model_copy(update={"arms": arms, "arm_status": status}))


@fault(
    "lexical_arm_down",
    Stage.RETRIEVE,
    "The lexical arm, which alone finds this gold, failed.",
    hide=_arm_unlogged,
    hides="arms.*, arm_status.* of that arm",
)
def lexical_arm_down(case: Case) -> Broken | None:
    """Its status says so; an exact search by the vector arm ranks the gold far behind."""
    lost = _arm_lost(case, _words_only(case), status=ArmState.ERRORED, error="connection refused")
    if lost is None:
        return None
    alone, trace = lost
    return Broken(trace.model_copy(update={"probes": _far_ranks(alone)}), alone.pipeline)


@fault("vector_arm_off", Stage.RETRIEVE, "The vector arm, which alone finds this gold, was switched off.")
def vector_arm_off(case: Case) -> Broken | None:
    """Configured, and off for this query."""
    posed = _vectors_only(case)
    if posed is None or posed[0] not in (case.pipeline.arms or ()):
        return None
    lost = _arm_lost(case, posed, status=ArmState.OFF)
    return None if lost is None else Broken(lost[1], lost[0].pipeline)


@fault("no_query_terms", Stage.RETRIEVE, "The lexical arm's tokenizer makes nothing of the query's words.")
def no_query_terms(case: Case) -> Broken | None:
    """It ran, no row holds a term, and the vocabulary holds none of the query's."""
    posed = _words_only(case)
    matching = {"matching": 0} if case.trace.arm_status else {}
    lost = _arm_lost(case, posed, **matching)
    if lost is None or posed is None:
        return None
    alone, trace = lost
    terms = Probe(probe="query_terms_in_vocabulary", arm=posed[0], value=0)
    return Broken(trace.model_copy(update={"probes": (terms, *_far_ranks(alone))}), alone.pipeline)


_LITERAL = re.compile(r"\b(?=\w*\d)\w[\w./:-]*\w\b")


def _rewritten(case: Case, rewrite: str) -> Trace | None:
    status = None
    if case.trace.arm_status is not None:
        status = {
            name: s.model_copy(update={"query_text": rewrite if s.query_text is not None else None})
            for name, s in case.trace.arm_status.items()
        }
    asked = case.became(case.trace.model_copy(update={"arm_status": status}))
    return missed(asked, gone=False, query_rewrite=rewrite)


@fault(
    "literal_rewritten",
    Stage.RETRIEVE,
    "The rewrite dropped a code or a number that the text holds.",
    hide=unlogged("query_rewrite", "arm_status"),
    hides="query_rewrite, arm_status",
)
def literal_rewritten(case: Case) -> Broken | None:
    """The rewritten query was logged; a literal of the original, which the gold holds, is not in it."""
    rows, query = gold_rows(case), case.trace.query_text
    if rows is None:
        return None
    lost = [
        word
        for word in dict.fromkeys(_LITERAL.findall(query))
        if all(word.casefold() in (row.text or "").casefold() for row in rows.values())
    ]
    rewrite = " ".join(re.sub("|".join(map(re.escape, lost)), " ", query).split()) if lost else ""
    if not rewrite or any(word.casefold() in rewrite.casefold() for word in lost):
        return None
    trace = _rewritten(case, rewrite)
    return None if trace is None else Broken(trace, case.pipeline)


@fault(
    "rewrite_drifted",
    Stage.RETRIEVE,
    "The rewritten query asks something else; the original finds the gold.",
    hide=unlogged("probes"),
    hides="probe rank_original_query",
)
def rewrite_drifted(case: Case) -> Broken | None:
    """The search was run again with the original query."""
    best = [f.best_rank for f in case.gold]
    trace = _rewritten(case, "general information about this subject")
    if trace is None or None in best or case.trace.query_rewrite is not None:
        return None
    probes = tuple(
        Probe(probe="rank_original_query", gold_id=f.id, value=rank) for f, rank in zip(case.gold, best, strict=True)
    )
    if any(rank is None or rank > case.trace.k_final for rank in best):
        return None
    return Broken(trace.model_copy(update={"probes": probes}), case.pipeline)
