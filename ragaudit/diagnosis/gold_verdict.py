"""The verdict on one gold id: the steps in order, first match wins. ARCHITECTURE.md numbers them."""

from ragaudit.diagnosis import causes as _causes  # noqa: F401  registers every cause
from ragaudit.diagnosis.exclusion import in_order, may_be_stale, not_excluded
from ragaudit.diagnosis.facts import ArmFacts, GoldFacts
from ragaudit.diagnosis.location import Loss, lost_between
from ragaudit.diagnosis.missing import what_to_log
from ragaudit.diagnosis.other_names import doubts
from ragaudit.diagnosis.registry import Fired, fired
from ragaudit.evidence.identity import Via
from ragaudit.evidence.journey import journey
from ragaudit.model.diagnosis import STAGES, Gap, GoldDiagnosis, Outcome, Stage
from ragaudit.model.record import said
from ragaudit.model.trace import Answer

_QUERY_CAUSES = {"literal_lost", "rewrite_drift", "followup_lost"}
_GAPS = {
    **dict.fromkeys(_QUERY_CAUSES, Gap.QUERY_UNDERSTANDING),
    "source_stale": Gap.STALE_VERSION,
    "stale_version_served": Gap.STALE_VERSION,
    "parent_map": Gap.GRANULARITY_REMAP,
}


def gold_verdict(f: GoldFacts) -> GoldDiagnosis:
    """Name the stage that lost this gold id, or say that it arrived, does not count, or cannot be decided."""
    label = _label_issue(f)
    if label is not None:
        gap, sentence = label
        return _verdict(f, Outcome.LABEL_ISSUE, evidence=(sentence,), gap=gap)
    if f.row.eligible is False:
        return _verdict(f, Outcome.NOT_APPLICABLE, evidence=(f"{f.id}: the user may not read it; not a miss",))
    if f.delivered:
        return _delivered(f)
    if f.delivered is None:
        wrong = (f.trace.answer or Answer()).correct is not True
        possible = not_excluded(f, STAGES if wrong else STAGES[: STAGES.index(Stage.GENERATE)])
        shown = (fault.stage for step in (*_COULD_IT_BE_FOUND, *_LOST_AFTER_SEARCH) for fault in _fired(f, step))
        could_be = in_order({*possible, *shown})
        return _undetermined(f, Outcome.UNDETERMINED, could_be, f"{f.id}: neither context nor prompt was logged")
    return _missed(f)


def _label_issue(f: GoldFacts) -> tuple[Gap, str] | None:
    """Step 1: is the label itself at fault?"""
    if f.row.gold.suspect is True:
        return Gap.WRONG_GOLD_LABEL, f"{f.id}: the label is marked as doubtful"
    by_itself = any(f.id in entry.ids for entry in f.merged) or any(
        arm.place and arm.place.hit_id == f.id for arm in f.arms
    )
    if not by_itself and f.index.id_overlap_with_gold == 0.0:
        return Gap.GOLD_ID_SPACE, f"{f.id}: no gold id is known to the index: labels and index are of different builds"
    span = f.row.span
    held = True in (span.extracted, span.chunk)
    if span.source in (False, "partial") and not held and not _stale(f):
        return Gap.WRONG_GOLD_LABEL, f"{f.id}: the label's span is not in its own source"
    if span.elsewhere is not None and span.chunk is False:
        return Gap.WRONG_GOLD_LABEL, f"{f.id} does not hold the label's span, {span.elsewhere} of the same source does"
    source = f.row.source
    if source is not None and source.in_source_of_truth is False:
        return Gap.WRONG_GOLD_LABEL, f"{f.id}: its source {source.source_id} was deleted at the source"
    return None


def _stale(f: GoldFacts) -> bool:
    return any(True for _ in _fired(f, "source") if _.name == "source_stale")


def _delivered(f: GoldFacts) -> GoldDiagnosis:
    """Step 2: it was in the prompt. Was it whole there?"""
    if (f.trace.answer or Answer()).correct is not True:
        for step in ("source", "parse", "chunk", "prompt_unsure"):
            found = list(_fired(f, step))
            if step == "source":
                found = [fault for fault in found if fault.name == "source_stale"]
            if found:
                return _words_lost(f, found) or _failed(f, found)
    how = f.evidence.delivered
    place = how[f.position] if how else None
    text = f"{f.id}: in the {'prompt' if f.evidence.prompted is not None else 'context'} at position "
    named = f" as {place.hit_id}" if place and place.via is not Via.ITSELF else ""
    gap = Gap.GRANULARITY_REMAP if place and place.via in (Via.PARENT, Via.SOURCE) else None
    return _verdict(f, Outcome.PASS, evidence=(f"{text}{place.rank if place else '?'}{named}",), gap=gap)


_COULD_IT_BE_FOUND = ("source", "parse", "parse_missed", "chunk", "chunk_missed")
_LOST_AFTER_SEARCH = ("floor", "fusion", "filter", "rerank", "pack")
_SEARCH = ("query", "index", "pool", "search", "index_last", "search_last")
_OUTRANK = {"pool": (Stage.PARSE, Stage.CHUNK), "search_last": (Stage.PARSE, Stage.CHUNK, Stage.EMBED)}
"""Step -> the stages that an observation must exclude before a mere rank names a stage."""


def _missed(f: GoldFacts) -> GoldDiagnosis:
    """Steps 3 to 9: the miss is certain; which stage lost it?"""
    for step in ("prompt", *_COULD_IT_BE_FOUND, *_LOST_AFTER_SEARCH):
        found = list(_fired(f, step))
        if found and not _content_unknown(f, found):
            return _words_lost(f, found) or _failed(f, found)
    served = list(_fired(f, "served"))
    if served:
        return _failed(f, served)
    loss = lost_between(f)
    if loss is not None and not _fusion_confirmed(f, loss) and not _low_and_unread(f, loss):
        return _lost(f, loss)
    for step in () if f.unlogged_arms else _SEARCH:
        found = list(_fired(f, step))
        if found and not not_excluded(f, _OUTRANK.get(step, ())):
            return _failed(f, found)
    return _residue(f, confirmed=loss is not None)


def _words_lost(f: GoldFacts, found: list[Fired]) -> GoldDiagnosis | None:
    """No chunk holds the words whole, and nobody saw what the parser made of the source: either may have lost them."""
    if found[0].name not in ("span_in_no_chunk", "span_split") or f.row.span.extracted is not None:
        return None
    source = f.row.source
    if source is not None and source.source_chars and (source.extracted_chars or 0) >= source.source_chars:
        return None  # every character was extracted
    stale = (Stage.INGESTION,) if may_be_stale(f) else ()
    return _undetermined(f, Outcome.FAIL, (*stale, Stage.PARSE, Stage.CHUNK), found[0].evidence)


def _content_unknown(f: GoldFacts, found: list[Fired]) -> bool:
    """To leave low what was low proves nothing about the reranker or its pool while nobody saw the chunk's text."""
    return {fault.name for fault in found} <= {"reranker_demotion", "candidate_cut"} and _low_and_unseen(f)


def _low_and_unread(f: GoldFacts, loss: Loss) -> bool:
    """The reranker left it beyond K, where the arms had it, and nobody looked at the chunk's text."""
    return loss.before == "after_rerank" and loss.place.rank > f.k and _low_and_unseen(f)


def _low_and_unseen(f: GoldFacts) -> bool:
    return not f.in_arm_within_k and f.row.span.chunk is None


def _fusion_confirmed(f: GoldFacts, loss: Loss) -> bool:
    """Fusion did as configured with the arms it was given: then the arm that lost the gold is the question."""
    if loss.after != "fused" and loss.before != "fused":
        return False
    if loss.before == "fused" and loss.place.rank <= f.fused_cut:
        return False  # the log has it where it is handed on, whatever the recomputation makes of ties
    if any(arm.name in f.query.silent_arms for arm in f.arms if arm.place):
        return False
    again = f.recomputed_rank
    return again is not None and again > f.fused_cut and bool(f.missed_arms)


def _lost(f: GoldFacts, loss: Loss) -> GoldDiagnosis:
    """Steps 6 and 7: lost between two lists that were logged."""
    where = f"{f.id}: rank {loss.place.rank} in {_list_name(f, loss)}, gone in {loss.after}"
    only = loss.could_be[0] if len(loss.could_be) == 1 else None
    if only is Stage.RERANK:
        return _failed(f, [*_fired(f, "residue_pack")] or [Fired("pack_loss", Stage.RERANK, where)])
    # Where only vector arms have it, a floor may have read scores that the index got wrong.
    configured = f.pipeline.fusion.method is not None or f.pipeline.floors_known
    if only is Stage.FUSE and (configured or not f.held_by_dense_only):
        return _failed(f, [*_fired(f, "residue_fuse")] or [Fired("fusion_loss", Stage.FUSE, where)])
    could_be = set(loss.could_be)
    if Stage.FUSE in could_be and f.held_by_dense_only and not f.pipeline.floors_known:
        could_be.add(Stage.EMBED)
    if Stage.FUSE in could_be and f.listed("fused") is None and f.missed_arms:
        could_be.update(not_excluded(f, (Stage.EMBED, Stage.RETRIEVE)))  # what one arm lost, fusion may have cut
    return _undetermined(f, Outcome.FAIL, in_order(could_be), where)


def _list_name(f: GoldFacts, loss: Loss) -> str:
    if loss.before != "arms":
        return loss.before
    return next((arm.name for arm in f.arms if arm.place is loss.place), "an arm")


def _residue(f: GoldFacts, *, confirmed: bool) -> GoldDiagnosis:
    """Steps 8 and 9: retrieve is what is left when every other stage is excluded by an observation."""
    before_fusion = STAGES[: STAGES.index(Stage.RETRIEVE) + 1]
    possible = [*before_fusion, Stage.FILTER] if f.arms else list(STAGES[:-1])
    if f.in_any_arm and _may_have_reranked(f):
        possible.append(Stage.RERANK)
    if f.unlogged_arms:
        possible += [Stage.FUSE, Stage.RERANK]
    meant = f.recomputed_rank if f.pipeline.fusion.method is not None else None
    lifts = meant is None or meant <= f.fused_cut
    if f.in_any_arm and f.listed("fused") is not None and len(f.arms) > 1 and lifts:
        possible.append(Stage.FUSE)  # fused as it was meant to be, it may rank higher
    if f.listed("fused") is None and sum(arm.place is not None for arm in f.arms) > 1:
        possible.append(Stage.FUSE)  # two low ranks make a high one in a fused list that nobody logged
    if any(arm.place is not None and arm.constant_score is not None and not _own_rank_known(f, arm) for arm in f.arms):
        possible.append(Stage.FUSE)  # equal scores have no order that fusion could go by
    open_ = doubts(f)
    left = in_order({*not_excluded(f, possible), *(stage for doubt in open_ for stage in doubt.stages)})
    left = left or in_order(possible)
    if left == (Stage.RETRIEVE,):
        return _failed(f, list(_fired(f, "residue")))
    if left == (Stage.FUSE,) and (found := list(_fired(f, "residue_fuse"))):
        return _failed(f, found)
    if f.best_rank is not None:
        where = f"{f.id}: best rank {f.best_rank} in an arm, K is {f.k}"
        if confirmed:
            where += f"; fusion is as {'the arms give' if f.pipeline.fusion.method is None else 'configured'}"
    elif f.arms:
        where = f"{f.id}: in no arm ({', '.join(arm.name for arm in f.arms)})"
        if f.unlogged_arms:
            where += f"; the list of {', '.join(f.unlogged_arms)} was not logged"
        later = next((entry for entry in f.merged if entry.place is not None), None)
        if later is not None and later.place is not None:
            where += f"; {later.name} has it at rank {later.place.rank}, K is {f.k}"
    else:
        where = f"{f.id}: not in the context; no arm was logged"
    where = "; ".join((where, *(doubt.shows for doubt in open_)))
    return _undetermined(f, Outcome.FAIL, left, where, log=tuple(doubt.log for doubt in open_))


def _own_rank_known(f: GoldFacts, arm: ArmFacts) -> bool:
    return f.probe_rank("lexical_rank" if arm.lexical else "exact_rank", arm.name) is not None


def _may_have_reranked(f: GoldFacts) -> bool:
    """A reranker is configured, or seen, or nothing at all is known of the configuration."""
    seen = f.listed("after_rerank") is not None or f.listed("rerank_input") is not None
    return seen or f.pipeline.rerank.model is not None or not said(f.pipeline)


def _fired(f: GoldFacts, step: str) -> list[Fired]:
    return list(fired(step, f))


def _failed(f: GoldFacts, found: list[Fired]) -> GoldDiagnosis:
    """The first cause names the stage; further causes of the same stage stand beside it."""
    stage = found[0].stage
    same = [fault for fault in found if fault.stage is stage]
    gap = next((_GAPS[fault.name] for fault in same if fault.name in _GAPS), None)
    if same[0].name == "query_incomplete" and f.trace.query_rewrite is not None:
        gap = Gap.QUERY_UNDERSTANDING
    if same[0].name == "literal_lost" and f.trace.query_rewrite is None:
        gap = None  # lost by a tokenizer or a cut, not by a rewrite
    return _verdict(
        f,
        Outcome.FAIL,
        stage,
        causes=tuple(fault.name for fault in same),
        evidence=tuple(fault.evidence for fault in same),
        gap=gap,
    )


def _undetermined(
    f: GoldFacts, outcome: Outcome, could_be: tuple[Stage, ...], sentence: str, log: tuple[str, ...] = ()
) -> GoldDiagnosis:
    return _verdict(
        f,
        outcome,
        Stage.UNDETERMINED,
        evidence=(sentence,),
        could_be=could_be,
        log=tuple(dict.fromkeys((*log, *what_to_log(f, could_be)))),
    )


def _verdict(
    f: GoldFacts,
    outcome: Outcome,
    stage: Stage = Stage.NONE,
    *,
    causes: tuple[str, ...] = (),
    evidence: tuple[str, ...] = (),
    could_be: tuple[Stage, ...] = (),
    log: tuple[str, ...] = (),
    gap: Gap | None = None,
) -> GoldDiagnosis:
    return GoldDiagnosis(
        id=f.id,
        grade=f.row.gold.grade,
        eligible=f.row.eligible,
        outcome=outcome,
        stage=stage,
        causes=causes,
        evidence=evidence,
        could_be=could_be,
        log=log,
        gap=gap,
        journey=journey(f.evidence, f.position),
    )
