"""Gold that its user may perhaps not read: what is known of it is no proof that a stage lost it."""

from ragaudit.diagnosis.facts import GoldFacts
from ragaudit.model.diagnosis import Gap, GoldDiagnosis, Outcome, Stage

_ELIGIBLE = ("gold.eligible", "sources.jsonl: acl")
"""What to log so that it is known whether the user may read a gold id."""


def with_access_doubt(f: GoldFacts, verdict: GoldDiagnosis) -> GoldDiagnosis:
    """The verdict, as far as it holds while access to the gold is in doubt; and the gap of a leak beside it.

    Gold that violates an access clause, by any of its names, is another's unless a label or an ACL says otherwise:
    that it was missed is then no fault of the filter, nor of any stage. Where a label says that the user may read it
    and the ACL that decides does not, the two disagree, and an open verdict says so.
    """
    if "foreign_hits" in verdict.causes and any(hit.is_leak for hit in f.foreign):
        verdict = verdict.model_copy(update={"gap": Gap.WRONG_TENANT_HITS})
    if f.delivered is not False or verdict.outcome not in (Outcome.FAIL, Outcome.UNDETERMINED):
        return verdict
    access = f.query.access
    field = access.broken_by(f.row.gold) if f.row.eligible is None else None
    if field is not None:
        said = f"{f.id}: its {field} is another than the filter asks for; whether the user may read it is not known"
        update: dict[str, object] = {"evidence": (said,), "could_be": (Stage.FILTER,), "log": _ELIGIBLE}
        update |= {"outcome": Outcome.UNDETERMINED, "stage": Stage.UNDETERMINED, "causes": (), "gap": None}
        return verdict.model_copy(update=update)
    if Stage.FILTER in verdict.could_be and access.label_disagrees(f.row.gold):
        said = f"{f.id}: its label says that the user may read it, the ACL of its source does not admit the user"
        update = {"evidence": (*verdict.evidence, said), "log": (*_ELIGIBLE, *verdict.log)}
        return verdict.model_copy(update=update)
    return verdict
