"""The decision procedure: each gold id of a query, then the query."""

from ragaudit.config import AclSettings
from ragaudit.diagnosis.access_doubt import with_access_doubt
from ragaudit.diagnosis.assumed import assumed_fields, with_assumptions
from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.diagnosis.gold_verdict import gold_verdict
from ragaudit.diagnosis.query_facts import QueryFacts, RunFacts
from ragaudit.diagnosis.query_verdict import Scope, query_verdict, with_foreign
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.journey import QueryEvidence
from ragaudit.model.diagnosis import Diagnosis
from ragaudit.model.pipeline import Pipeline


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
    query = QueryFacts(evidence, pipeline, identities, acl, run)
    facts = [
        GoldFacts(query, position) for position in range(len(evidence.gold)) if evidence.gold[position].gold.grade >= 1
    ]
    verdicts = [with_access_doubt(f, gold_verdict(f)) for f in facts]
    result = query_verdict(trace, facts, verdicts, scope)
    result = with_foreign(result, query.foreign) if query.foreign else result
    return with_assumptions(result, assumed_fields(trace, pipeline))
