"""The decision procedure: one gold id at a time, first match wins; then the query. Steps as in ARCHITECTURE.md."""

from collections.abc import Sequence
from typing import Literal

from ragaudit.config import AclSettings
from ragaudit.diagnosis import causes as _causes  # noqa: F401  registers every cause
from ragaudit.diagnosis.facts import GoldFacts, QueryFacts, RunFacts
from ragaudit.diagnosis.location import Loss, lost_between
from ragaudit.diagnosis.missing import what_to_log
from ragaudit.diagnosis.registry import Fired, fired, fired_answer
from ragaudit.evidence.identity import Identities, Via
from ragaudit.evidence.journey import QueryEvidence, journey
from ragaudit.evidence.leaks import Foreign, foreign_hits
from ragaudit.model.diagnosis import STAGES, Diagnosis, Gap, GoldDiagnosis, Outcome, Severity, Stage
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Answer, GoldMode, Trace

Scope = Literal["answer", "retrieval"]

_QUERY_CAUSES = {"literal_lost", "rewrite_drift", "followup_lost"}
_GAPS = {
    **dict.fromkeys(_QUERY_CAUSES, Gap.QUERY_UNDERSTANDING),
    "source_stale": Gap.STALE_VERSION,
    "stale_version_served": Gap.STALE_VERSION,
    "foreign_hits": Gap.WRONG_TENANT_HITS,
    "parent_map": Gap.GRANULARITY_REMAP,
}


def diagnose(
    evidence: QueryEvidence,
    pipeline: Pipeline,
    identities: Identities,
    acl: AclSettings,
    run: RunFacts,
    *,
    scope: Scope = "answer",
) -> Diagnosis:
    """Name the stage that lost the evidence of one query, or say what is undetermined and what to log.

    Args:
        evidence: The trace joined with the inventory.
        pipeline: The configuration that this query ran under (its own departures included).
        identities: Look-up tables of the inventory.
        acl: How principals match ACLs.
        run: What the whole run shows.
        scope: "retrieval" counts delivered evidence as a pass even when nobody judged the answer.
    """
    trace = evidence.trace
    foreign = foreign_hits(trace, identities.inventory, pipeline, acl)
    query = QueryFacts(evidence, pipeline, identities, acl, run, foreign)
    facts = [
        GoldFacts(query, position) for position in range(len(evidence.gold)) if evidence.gold[position].gold.grade >= 1
    ]
    verdicts = [_gold(f, scope) for f in facts]
    result = _query(trace, facts, verdicts, scope)
    return _with_leaks(result, foreign) if foreign else result


# --- one gold id --------------------------------------------------------------------------------------------------


def _gold(f: GoldFacts, scope: Scope) -> GoldDiagnosis:
    label = _label_issue(f)
    if label is not None:
        gap, sentence = label
        return _verdict(f, Outcome.LABEL_ISSUE, evidence=(sentence,), gap=gap)
    if f.row.eligible is False:
        return _verdict(f, Outcome.NOT_APPLICABLE, evidence=(f"{f.id}: the user may not read it; not a miss",))
    if f.delivered:
        return _delivered(f)
    if f.delivered is None:
        possible = _not_excluded(f, STAGES[: STAGES.index(Stage.GENERATE)])
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
                return _failed(f, found)
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
            return _failed(f, found)
    served = list(_fired(f, "served"))
    if served:
        return _failed(f, served)
    loss = lost_between(f)
    if loss is not None and not _fusion_confirmed(f, loss):
        return _lost(f, loss)
    for step in () if f.unlogged_arms else _SEARCH:
        found = list(_fired(f, step))
        if found and (step != "search_last" or _embed_excluded(f)):
            return _failed(f, found)
    return _residue(f, confirmed=loss is not None)


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
    if Stage.FUSE in could_be and f.held_by_dense_only:
        could_be.add(Stage.EMBED)
    return _undetermined(f, Outcome.FAIL, _ordered(could_be), where)


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
    left = _not_excluded(f, possible)
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


def _embed_excluded(f: GoldFacts) -> bool:
    """No vector arm missed it, or an exact search misses it too although both sides use one model."""
    if not f.dense_missed:
        return True
    return f.models_agree is True


def _not_excluded(f: GoldFacts, possible: Sequence[Stage]) -> tuple[Stage, ...]:
    """The stages among these that no observation excludes."""
    span, out = f.row.span, set()
    if f.written:
        out.add(Stage.INGESTION)
    if span.extracted is True or span.chunk is True:
        out.add(Stage.PARSE)
    if span.chunk is True:
        out.add(Stage.CHUNK)
    ranked = all(arm.place or f.probe_rank("exact_rank", arm.name) for arm in f.dense_missed)
    if f.arms and _embed_excluded(f) and ranked:
        out.add(Stage.EMBED)
    if f.filter_cleared or (f.in_any_arm and f.filter_runs_first):
        out.add(Stage.FILTER)
    if f.arms and f.in_arm_within_k and not f.missed_arms:
        out |= {Stage.EMBED, Stage.RETRIEVE}
    return tuple(stage for stage in _ordered(possible) if stage not in out)


def _ordered(stages: Sequence[Stage] | set[Stage]) -> tuple[Stage, ...]:
    return tuple(stage for stage in STAGES if stage in stages)


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


# --- the query ----------------------------------------------------------------------------------------------------


def _query(trace: Trace, facts: list[GoldFacts], gold: list[GoldDiagnosis], scope: Scope) -> Diagnosis:
    base = Diagnosis(
        query_id=trace.query_id,
        outcome=Outcome.UNDETERMINED,
        gold=tuple(gold),
        final_context_ids=trace.final_context_ids,
    )
    live = [verdict for verdict in gold if verdict.outcome not in (Outcome.LABEL_ISSUE, Outcome.NOT_APPLICABLE)]
    if not live:
        return _without_gold(base, trace, gold)
    groups = _groups(trace, live)
    if len(groups) > trace.k_final:
        return base.model_copy(
            update={
                "outcome": Outcome.NOT_APPLICABLE,
                "gap": Gap.AGGREGATE_QUERY,
                "evidence": (
                    f"{len(groups)} gold needed, K is {trace.k_final}: recall can reach "
                    f"{trace.k_final / len(groups):.2f} at most",
                ),
            }
        )
    lost = [group for group in groups if all(verdict.outcome is not Outcome.PASS for verdict in group)]
    if lost:
        return _lost_query(base, trace, [verdict for group in lost for verdict in group])
    answered = _answered(base, trace, facts, scope)
    doubtful = next((verdict for verdict in gold if verdict.outcome is Outcome.LABEL_ISSUE), None)
    if doubtful is None or answered.outcome is Outcome.FAIL:
        return answered
    # The sound gold was delivered, and more is asked for than the label can prove: a person should look at it.
    return answered.model_copy(
        update={
            "outcome": Outcome.LABEL_ISSUE,
            "stage": Stage.NONE,
            "gap": doubtful.gap,
            "could_be": (),
            "log": (),
            "evidence": (*doubtful.evidence, *answered.evidence),
        }
    )


def _groups(trace: Trace, live: list[GoldDiagnosis]) -> list[list[GoldDiagnosis]]:
    """What is needed: one id of each group. `any` makes one group of all; otherwise each id is its own."""
    by_id = {verdict.id: verdict for verdict in live}
    if trace.gold_groups:
        named = [[by_id[i] for i in group if i in by_id] for group in trace.gold_groups]
        return [group for group in named if group]
    if trace.gold_mode is GoldMode.ANY:
        return [live]
    return [[verdict] for verdict in live]


def _lost_query(base: Diagnosis, trace: Trace, lost: list[GoldDiagnosis]) -> Diagnosis:
    stages = _ordered({verdict.stage for verdict in lost if verdict.stage in STAGES})
    certain = any(verdict.outcome is Outcome.FAIL for verdict in lost)
    blamed = [verdict for verdict in lost if verdict.stage is (stages[0] if stages else Stage.UNDETERMINED)]
    open_ = [verdict for verdict in lost if verdict.stage is Stage.UNDETERMINED]
    evidence = [sentence for verdict in blamed for sentence in verdict.evidence]
    answer = trace.answer or Answer()
    gap = next((verdict.gap for verdict in blamed if verdict.gap), None)
    if answer.correct is True and gap is None:
        gap = Gap.CORRECT_WITHOUT_EVIDENCE
        evidence.append(
            "the answer is right all the same" + ("" if answer.supported else ", and no packed chunk supports it")
        )
    elif answer.correct is False and answer.supported is True:
        evidence.append("the answer is faithful to the wrong context: it reads well and is wrong")
    missing_entirely = base.final_context_ids is not None or trace.prompt_ids is not None
    return base.model_copy(
        update={
            "outcome": Outcome.FAIL if certain else Outcome.UNDETERMINED,
            "stage": stages[0] if stages else Stage.UNDETERMINED,
            "secondary": stages[1:],
            "causes": tuple(dict.fromkeys(name for verdict in blamed for name in verdict.causes)),
            "gap": gap,
            "evidence": tuple(dict.fromkeys(evidence)),
            "could_be": () if stages else _ordered({s for verdict in open_ for s in verdict.could_be}),
            "log": tuple(dict.fromkeys(field for verdict in open_ for field in verdict.log)),
            "delivered": False if missing_entirely else None,
        }
    )


def _answered(base: Diagnosis, trace: Trace, facts: list[GoldFacts], scope: Scope) -> Diagnosis:
    """The evidence was read: the answer decides."""
    answer = trace.answer or Answer()
    evidence = tuple(dict.fromkeys(s for v in base.gold if v.outcome is Outcome.PASS for s in v.evidence))
    remapped = next((verdict.gap for verdict in base.gold if verdict.outcome is Outcome.PASS and verdict.gap), None)
    base = base.model_copy(update={"delivered": True, "evidence": evidence, "gap": remapped})
    if answer.correct is True:
        return base.model_copy(update={"outcome": Outcome.PASS})
    found = list(fired_answer(trace))
    if answer.correct is False and answer.supported is not False:
        served = next((fault for f in facts for fault in fired("served", f)), None)
        if served is not None:
            gap = Gap.STALE_VERSION if "deleted" in served.evidence else Gap.CONFLICTING_SOURCES
            return base.model_copy(update=_failure([served], gap, evidence))
    if found and not _conflicting(trace, facts):
        return base.model_copy(update=_failure(found, remapped, evidence))
    if found:
        by = ", ".join(answer.supported_by or ())
        told = f"the answer follows {by}, which says otherwise than the gold beside it"
        return base.model_copy(
            update={"outcome": Outcome.FAIL, "gap": Gap.CONFLICTING_SOURCES, "evidence": (told, *evidence)}
        )
    if scope == "retrieval":
        return base.model_copy(update={"outcome": Outcome.PASS})
    could_be = _ordered({s for f in facts if f.delivered for s in _after_delivery(f)})
    log = tuple(dict.fromkeys(field for f in facts if f.delivered for field in what_to_log(f, could_be)))
    return base.model_copy(update={"stage": Stage.UNDETERMINED, "could_be": could_be, "log": log})


def _conflicting(trace: Trace, facts: list[GoldFacts]) -> bool:
    """The wrong answer is supported by packed chunks, none of them gold: two live sources disagree."""
    answer = trace.answer or Answer()
    if answer.supported is not True or not answer.supported_by:
        return False
    gold = {f.id for f in facts} | {place.hit_id for f in facts for place in (f.packed,) if place}
    return gold.isdisjoint(answer.supported_by)


def _after_delivery(f: GoldFacts) -> tuple[Stage, ...]:
    """What may still be wrong with evidence that was packed, before anybody judged the answer."""
    late = [Stage.GENERATE] if f.evidence.prompted is not None else [Stage.RERANK, Stage.GENERATE]
    return _not_excluded(f, [Stage.PARSE, Stage.CHUNK, *late])


def _failure(found: list[Fired], gap: Gap | None, evidence: tuple[str, ...]) -> dict[str, object]:
    stage = found[0].stage
    same = [fault for fault in found if fault.stage is stage]
    return {
        "outcome": Outcome.FAIL,
        "stage": stage,
        "causes": tuple(fault.name for fault in same),
        "gap": gap,
        "evidence": (*(fault.evidence for fault in same), *evidence),
    }


def _without_gold(base: Diagnosis, trace: Trace, gold: list[GoldDiagnosis]) -> Diagnosis:
    """No gold that counts: unanswerable, not the user's to read, wrongly labelled, or not labelled at all."""
    evidence = tuple(sentence for verdict in gold for sentence in verdict.evidence)
    issue = next((verdict for verdict in gold if verdict.outcome is Outcome.LABEL_ISSUE), None)
    if issue is not None:
        return base.model_copy(update={"outcome": Outcome.LABEL_ISSUE, "gap": issue.gap, "evidence": evidence})
    if gold:
        return base.model_copy(update={"outcome": Outcome.NOT_APPLICABLE, "evidence": evidence})
    if trace.answerable is False:
        return _unanswerable(base, trace)
    label = "gold_ids" if not trace.gold_labelled else "answerable"
    why = "nobody labelled this query" if not trace.gold_labelled else "the gold is empty: unanswerable, or unlabelled"
    return base.model_copy(
        update={"stage": Stage.UNDETERMINED, "could_be": STAGES, "log": (label,), "evidence": (why,)}
    )


def _unanswerable(base: Diagnosis, trace: Trace) -> Diagnosis:
    answer = trace.answer or Answer()
    base = base.model_copy(update={"gap": Gap.UNANSWERABLE})
    found = list(fired_answer(trace))
    if answer.abstained is True or answer.correct is True:
        return base.model_copy(
            update={"outcome": Outcome.PASS, "evidence": ("the corpus holds no answer, and the system abstained",)}
        )
    if found:
        return base.model_copy(update=_failure(found, Gap.UNANSWERABLE, ()))
    return base.model_copy(
        update={"stage": Stage.UNDETERMINED, "could_be": (Stage.GENERATE,), "log": ("answer.abstained",)}
    )


def _with_leaks(result: Diagnosis, foreign: tuple[Foreign, ...]) -> Diagnosis:
    """Hits the user may not read: a finding at the stage that let them in, even when the gold is present."""
    stage = Stage.FILTER if any(hit.searched for hit in foreign) else Stage.RERANK
    lines = tuple(
        f"leak: {hit.id} is in the context, and "
        + ("the user may not read it" if hit.field is None else f"it violates the filter on {hit.field}")
        for hit in foreign
    )
    failing = result.outcome is Outcome.FAIL and result.stage in STAGES
    stages = _ordered({stage, *result.secondary, *([result.stage] if failing else [])})
    primary = stages[0] if not failing or Stage.RERANK is not stage else result.stage
    return result.model_copy(
        update={
            "outcome": Outcome.FAIL,
            "stage": primary,
            "secondary": tuple(s for s in stages if s is not primary),
            "severity": Severity.LEAK,
            "gap": Gap.WRONG_TENANT_HITS if primary is stage and stage is Stage.FILTER else result.gap,
            "causes": tuple(dict.fromkeys((*result.causes, *(["foreign_hits"] if stage is Stage.FILTER else [])))),
            "could_be": (),
            "evidence": (*lines, *result.evidence),
            "leaks": tuple(hit.id for hit in foreign),
        }
    )
