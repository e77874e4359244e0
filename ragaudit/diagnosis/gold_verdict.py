"""The verdict on one gold id: the steps in order, first match wins. ARCHITECTURE.md numbers them."""

from ragaudit.diagnosis import causes as _causes  # noqa: F401  registers every cause
from ragaudit.diagnosis.exclusion import embed_excluded, in_order, not_excluded
from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.location import Loss, lost_between
from ragaudit.diagnosis.missing import what_to_log
from ragaudit.diagnosis.registry import Fired, fired
from ragaudit.evidence.identity import Via
from ragaudit.evidence.journey import journey
from ragaudit.model.diagnosis import STAGES, Gap, GoldDiagnosis, Outcome, Stage
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
        possible = not_excluded(f, STAGES[: STAGES.index(Stage.GENERATE)])
        return _undetermined(f, Outcome.UNDETERMINED, possible, f"{f.id}: neither context nor prompt was logged")
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
    if loss is not None and not _fusion_confirmed(f, loss):
        return _lost(f, loss)
    for step in () if f.unlogged_arms else _SEARCH:
        found = list(_fired(f, step))
        if found and (step != "search_last" or embed_excluded(f)):
            return _failed(f, found)
    return _residue(f, confirmed=loss is not None)


def _words_lost(f: GoldFacts, found: list[Fired]) -> GoldDiagnosis | None:
    """No chunk holds the words whole, and nobody saw what the parser made of the source: either may have lost them."""
    if found[0].name not in ("span_in_no_chunk", "span_split") or f.row.span.extracted is not None:
        return None
    source = f.row.source
    if source is not None and source.source_chars and (source.extracted_chars or 0) >= source.source_chars:
        return None  # every character was extracted
    return _undetermined(f, Outcome.FAIL, (Stage.PARSE, Stage.CHUNK), found[0].evidence)


def _content_unknown(f: GoldFacts, found: list[Fired]) -> bool:
    """A reranker that leaves low what was low proves nothing about itself while nobody looked at the chunk's text."""
    plain = {fault.name for fault in found} == {"reranker_demotion"}
    return plain and not f.in_arm_within_k and f.row.span.chunk is None


def _fusion_confirmed(f: GoldFacts, loss: Loss) -> bool:
    """Fusion did as configured with the arms it was given: then the arm that lost the gold is the question."""
    if loss.after != "fused" and loss.before != "fused":
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
        return _failed(f, list(_fired(f, "residue_fuse")))
    could_be = set(loss.could_be)
    if Stage.FUSE in could_be and f.held_by_dense_only and not f.pipeline.floors_known:
        could_be.add(Stage.EMBED)
    return _undetermined(f, Outcome.FAIL, in_order(could_be), where)


def _list_name(f: GoldFacts, loss: Loss) -> str:
    if loss.before != "arms":
        return loss.before
    return next((arm.name for arm in f.arms if arm.place is loss.place), "an arm")


def _residue(f: GoldFacts, *, confirmed: bool) -> GoldDiagnosis:
    """Steps 8 and 9: retrieve is what is left when every other stage is excluded by an observation."""
    before_fusion = STAGES[: STAGES.index(Stage.RETRIEVE) + 1]
    possible = [*before_fusion, Stage.FILTER] if f.trace.arms is not None else list(STAGES[:-1])
    if f.in_any_arm and (f.listed("after_rerank") is not None or f.pipeline.rerank.model is not None):
        possible.append(Stage.RERANK)
    if f.unlogged_arms:
        possible += [Stage.FUSE, Stage.RERANK]
    if f.in_any_arm and f.listed("fused") is not None and f.recomputed_rank is None and len(f.arms) > 1:
        possible.append(Stage.FUSE)
    if f.listed("fused") is None and sum(arm.place is not None for arm in f.arms) > 1:
        possible.append(Stage.FUSE)  # two low ranks make a high one in a fused list that nobody logged
    left = not_excluded(f, possible)
    if left == (Stage.RETRIEVE,):
        return _failed(f, list(_fired(f, "residue")))
    if f.best_rank is not None:
        where = f"{f.id}: best rank {f.best_rank} in an arm, K is {f.k}"
        if confirmed:
            where += "; fusion is as configured"
    elif f.arms:
        where = f"{f.id}: in no arm ({', '.join(arm.name for arm in f.arms)})"
        if f.unlogged_arms:
            where += f"; {', '.join(f.unlogged_arms)} is configured and was not logged"
    else:
        where = f"{f.id}: not in the context; no arm was logged"
    return _undetermined(f, Outcome.FAIL, left, where)


def _fired(f: GoldFacts, step: str) -> list[Fired]:
    return list(fired(step, f))


def _failed(f: GoldFacts, found: list[Fired]) -> GoldDiagnosis:
    """The first cause names the stage; further causes of the same stage stand beside it."""
    stage = found[0].stage
    same = [fault for fault in found if fault.stage is stage]
    gap = next((_GAPS[fault.name] for fault in same if fault.name in _GAPS), None)
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


def _undetermined(f: GoldFacts, outcome: Outcome, could_be: tuple[Stage, ...], sentence: str) -> GoldDiagnosis:
    return _verdict(
        f,
        outcome,
        Stage.UNDETERMINED,
        evidence=(sentence,),
        could_be=could_be,
        log=what_to_log(f, could_be),
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
