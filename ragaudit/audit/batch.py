"""One batch of traces to query results: evidence, verdict, metrics, and what the judge said laid over them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragaudit.audit.judging import Judged, complete, quadrant
from ragaudit.audit.measure import FINAL, measure_batch, undefined_reasons
from ragaudit.config import AclSettings, JudgeSettings, Settings
from ragaudit.diagnosis.procedure import diagnose
from ragaudit.diagnosis.query_facts import RunFacts
from ragaudit.evidence.feedback import UserFeedback
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import QueryEvidence, gather
from ragaudit.evidence.sources import lexical_only
from ragaudit.model.diagnosis import STAGES, Basis, Diagnosis, Outcome, Stage
from ragaudit.model.judgement import Judgement, JudgeState
from ragaudit.model.result import JUDGED, METRICS, QueryResult
from ragaudit.model.trace import Trace


@dataclass(frozen=True)
class Surroundings:
    """What every query of a run is looked at with."""

    settings: Settings
    identities: Identities
    acl: AclSettings
    run: RunFacts
    feedback: UserFeedback = field(default_factory=UserFeedback)


def diagnose_batch(
    batch: Sequence[Trace], around: Surroundings, judgements: Mapping[str, Judgement]
) -> list[QueryResult]:
    """Diagnose and measure a batch; the results come in its order."""
    judged = [_judged(trace, judgements.get(trace.query_id), around) for trace in batch]
    found = [_diagnosed(one, around) for one in judged]
    measured = measure_batch(found, gain=around.settings.audit.gain)
    return [
        _result(evidence, diagnosis, values, judgements.get(evidence.trace.query_id), around)
        for (evidence, diagnosis), values in zip(found, measured, strict=True)
    ]


def _judged(trace: Trace, judgement: Judgement | None, around: Surroundings) -> Judged:
    if judgement is None:
        return Judged(trace, by_judge=False)
    return complete(trace, judgement, around.settings.judge or JudgeSettings(), around.identities.inventory)


def _diagnosed(judged: Judged, around: Surroundings) -> tuple[QueryEvidence, Diagnosis]:
    settings = around.settings
    pipeline = settings.pipeline.with_overrides(judged.trace.config)
    evidence = gather(judged.trace, around.identities, around.acl)
    diagnosis = diagnose(evidence, pipeline, around.identities, around.acl, around.run, scope=settings.audit.scope)
    if judged.by_judge:
        diagnosis = _on_proxy_gold(diagnosis, judged.unfound)
    return evidence, diagnosis


_NOWHERE = (Stage.INGESTION, Stage.PARSE, Stage.CHUNK)
"""Where evidence can be that no chunk and no source text was seen to hold."""


def _on_proxy_gold(diagnosis: Diagnosis, unfound: tuple[str, ...]) -> Diagnosis:
    """The verdict rests on evidence that the judge found; claims without any keep the query from passing."""
    update: dict[str, object] = {"basis": Basis.JUDGE}
    if unfound:
        lines = tuple(f"no chunk that the user may read was seen to support: {claim!r}" for claim in unfound)
        update["evidence"] = (*diagnosis.evidence, *lines)
        update["delivered"] = False
        if diagnosis.outcome is not Outcome.FAIL or diagnosis.stage not in STAGES:
            update |= {
                "outcome": Outcome.FAIL,
                "stage": Stage.UNDETERMINED,
                "causes": (),
                "could_be": tuple(dict.fromkeys((*_NOWHERE, *diagnosis.could_be))),
                "log": tuple(dict.fromkeys((*diagnosis.log, "sources.jsonl: text, extracted_text", "gold_ids"))),
            }
    return diagnosis.model_copy(update=update)


def _result(
    evidence: QueryEvidence,
    diagnosis: Diagnosis,
    values: dict[str, dict[str, float]],
    judgement: Judgement | None,
    around: Surroundings,
) -> QueryResult:
    metrics: dict[str, float | None] = dict.fromkeys((*METRICS, *JUDGED), None)
    metrics |= values.get(FINAL, {})
    undefined = undefined_reasons(evidence, diagnosis, values)
    cuts = (around.settings.judge or JudgeSettings()).cuts
    if judgement is not None:
        metrics |= {name: judgement.metrics.get(name) for name in JUDGED}
        undefined |= {name: _why(judgement, name) for name in JUDGED}
        undefined = {name: reason for name, reason in undefined.items() if metrics[name] is None}
    return QueryResult(
        diagnosis=diagnosis,
        query_text=evidence.trace.query_text,
        k_final=evidence.trace.k_final,
        metrics=metrics,
        undefined=undefined,
        at=values,
        slices=_slices(evidence.trace, diagnosis, around),
        quadrant=None if judgement is None else quadrant(judgement, cuts),
    )


def _why(judgement: Judgement, metric: str) -> str:
    state = judgement.states.get(metric, JudgeState.UNMEASURED)
    reason = judgement.reasons.get(metric)
    return state.value if reason is None else f"{state.value}: {reason}"


def _slices(trace: Trace, diagnosis: Diagnosis, around: Surroundings) -> dict[str, str]:
    """The computed slices (COMPUTED in reopen.py), then what users said, then the log's own."""
    empty = trace.final_context_ids == () or (bool(trace.arms) and not any((trace.arms or {}).values()))
    found = {
        "zero_result": "yes" if empty else "no",
        "acl_excluded_gold": "yes" if any(g.outcome is Outcome.NOT_APPLICABLE for g in diagnosis.gold) else "no",
        "filter_excluded_gold": "yes" if any(g.stage is Stage.FILTER for g in diagnosis.gold) else "no",
    }
    share = lexical_only(trace)
    if share is not None:
        found["lexical_only_top_k"] = share
    said = around.feedback.about(trace)
    if said is not None:
        found["feedback"] = said
    wanted = around.settings.slices
    for name, value in (trace.slices or {}).items():
        if value is not None and (wanted is None or name in wanted):
            found[name] = str(value)
    return found
