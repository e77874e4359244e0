"""The verdict on one query, from those on its gold ids, its answer, and what came in against the rules."""

from typing import Literal

from ragaudit.diagnosis.exclusion import in_order, not_excluded
from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.missing import what_to_log
from ragaudit.diagnosis.registry import Fired, fired, fired_answer
from ragaudit.evidence.leaks import Foreign
from ragaudit.model.diagnosis import STAGES, Diagnosis, Gap, GoldDiagnosis, Outcome, Severity, Stage
from ragaudit.model.trace import Answer, GoldMode, Trace

Scope = Literal["answer", "retrieval"]


def query_verdict(trace: Trace, facts: list[GoldFacts], gold: list[GoldDiagnosis], scope: Scope) -> Diagnosis:
    """Primary stage, secondary stages, gap and evidence of one query."""
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
    stages = in_order({verdict.stage for verdict in lost if verdict.stage in STAGES})
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
            "could_be": () if stages else in_order({s for verdict in open_ for s in verdict.could_be}),
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
    if answer.correct is False and answer.supported is not False and not _from_gold_alone(answer, facts):
        served = next((fault for f in facts for fault in fired("served", f)), None)
        if served is not None:
            gap = Gap.STALE_VERSION if "deleted" in served.evidence else Gap.CONFLICTING_SOURCES
            return base.model_copy(update=_failure([served], gap, evidence))
    unread = [f for f in facts if f.delivered and f.row.gold.span is not None and f.row.span.chunk is None]
    if found and unread:
        could_be = in_order({s for f in unread for s in (*not_excluded(f, (Stage.PARSE, Stage.CHUNK)), found[0].stage)})
        log = tuple(dict.fromkeys(field for f in unread for field in what_to_log(f, could_be)))
        proof = (*(fault.evidence for fault in found), *evidence)
        undecided = {"outcome": Outcome.FAIL, "stage": Stage.UNDETERMINED, "could_be": could_be, "log": log}
        return base.model_copy(update={**undecided, "evidence": proof})
    if found and not _conflicting(trace, facts):
        return base.model_copy(update=_failure(found, remapped, (*evidence, *_on_the_label_s_word(facts))))
    if found:
        by = ", ".join(answer.supported_by or ())
        told = f"the answer follows {by}, which says otherwise than the gold beside it"
        return base.model_copy(
            update={"outcome": Outcome.FAIL, "gap": Gap.CONFLICTING_SOURCES, "evidence": (told, *evidence)}
        )
    if scope == "retrieval":
        return base.model_copy(update={"outcome": Outcome.PASS})
    could_be = in_order({s for f in facts if f.delivered for s in _after_delivery(f)})
    log = tuple(dict.fromkeys(field for f in facts if f.delivered for field in what_to_log(f, could_be)))
    return base.model_copy(update={"stage": Stage.UNDETERMINED, "could_be": could_be, "log": log})


def _on_the_label_s_word(facts: list[GoldFacts]) -> tuple[str, ...]:
    """Nobody saw that these chunks hold the answer: their labels name no span."""
    taken = [f.id for f in facts if f.delivered and f.row.gold.span is None and f.row.span.chunk is None]
    return (f"that {', '.join(taken)} holds the answer is taken from the label, which names no span",) if taken else ()


def _from_gold_alone(answer: Answer, facts: list[GoldFacts]) -> bool:
    """The answer says nothing of its own, or is known to rest on the gold and nothing else in the context."""
    named = answer.supported_by or ()
    return answer.abstained is True or (bool(named) and _gold_ids(facts).issuperset(named))


def _gold_ids(facts: list[GoldFacts]) -> set[str]:
    return {f.id for f in facts} | {place.hit_id for f in facts for place in (f.packed,) if place}


def _conflicting(trace: Trace, facts: list[GoldFacts]) -> bool:
    """The wrong answer is supported by packed chunks, none of them gold: two live sources disagree."""
    answer = trace.answer or Answer()
    if answer.supported is not True or not answer.supported_by:
        return False
    return _gold_ids(facts).isdisjoint(answer.supported_by)


def _after_delivery(f: GoldFacts) -> tuple[Stage, ...]:
    """What may still be wrong with evidence that was packed, before anybody judged the answer."""
    late = [Stage.GENERATE] if f.evidence.prompted is not None else [Stage.RERANK, Stage.GENERATE]
    return not_excluded(f, [Stage.INGESTION, Stage.PARSE, Stage.CHUNK, *late])


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


def with_foreign(result: Diagnosis, foreign: tuple[Foreign, ...]) -> Diagnosis:
    """What came in against the rules: a finding at the stage that let it in, even when the gold is present.

    It is a leak where the rule is about access; only a leak fails a query whose gold its user may not read. Without
    any search list nobody knows which stage let it in.
    """
    told = (*map(_told, foreign), *result.evidence)
    leaks = tuple(hit.id for hit in foreign if hit.is_leak)
    if result.outcome is Outcome.NOT_APPLICABLE and not leaks:
        return result.model_copy(update={"evidence": told})
    let_in = _let_in(foreign)
    failing = result.outcome is Outcome.FAIL
    decided = failing and result.stage in STAGES
    stages = in_order({*([let_in] if let_in else []), *result.secondary, *([result.stage] if decided else [])})
    stage = result.stage if decided and let_in is not Stage.FILTER else stages[0] if stages else Stage.UNDETERMINED
    is_open = stage is Stage.UNDETERMINED
    update: dict[str, object] = {
        "outcome": Outcome.FAIL,
        "stage": stage,
        "secondary": tuple(s for s in stages if s is not stage),
        "causes": tuple(dict.fromkeys((*result.causes, *(["foreign_hits"] if let_in is Stage.FILTER else [])))),
        "could_be": in_order({Stage.FILTER, Stage.RERANK, *(result.could_be if failing else ())}) if is_open else (),
        "log": tuple(dict.fromkeys(("arms", *(result.log if failing else ())))) if is_open else (),
        "evidence": told,
    }
    if leaks:
        update |= {"severity": Severity.LEAK, "leaks": leaks}
        if stage is let_in is Stage.FILTER:
            update["gap"] = Gap.WRONG_TENANT_HITS
    return result.model_copy(update=update)


def _let_in(foreign: tuple[Foreign, ...]) -> Stage | None:
    if any(hit.searched for hit in foreign):
        return Stage.FILTER
    return None if any(hit.searched is None for hit in foreign) else Stage.RERANK


def _told(hit: Foreign) -> str:
    if hit.field is None:
        return f"leak: {hit.id} is in the context, and the user may not read it"
    return f"{'leak: ' if hit.is_leak else ''}{hit.id} is in the context, and it violates the filter on {hit.field}"
