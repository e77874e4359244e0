"""Fields that an importer assumed: a verdict that may rest on them says so, and so does preflight."""

from collections import Counter
from collections.abc import Iterable

from ragaudit.diagnosis.preflight_rules import noted
from ragaudit.model.diagnosis import Diagnosis, Outcome
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import Finding, Level
from ragaudit.model.trace import Provenance, Trace

_CONCLUDED = (Outcome.PASS, Outcome.FAIL, Outcome.UNDETERMINED)


def assumed_fields(trace: Trace, pipeline: Pipeline) -> tuple[str, ...]:
    """The fields of a trace that nobody logged, in its order. A K that the configuration states is none of them."""
    how = trace.provenance or {}
    stated = {"k_final"} if pipeline.k_final is not None else set()
    return tuple(name for name, way in how.items() if way is Provenance.ASSUMED and name not in stated)


def with_assumptions(result: Diagnosis, assumed: tuple[str, ...]) -> Diagnosis:
    """The verdict, with what it may rest on as the last line of its evidence."""
    if not assumed or result.outcome not in _CONCLUDED:
        return result
    line = f"rests on what was assumed and not logged: {', '.join(assumed)}"
    return result.model_copy(update={"evidence": (*result.evidence, line)})


def assumed_findings(assumed: Counter[str], n: int) -> Iterable[Finding]:
    """A finding for the fields that were assumed in some queries."""
    if not assumed:
        return
    named = ", ".join(f"{name} ({count} of {n} queries)" for name, count in assumed.items())
    yield noted(
        "assumed_fields",
        Level.WARN,
        f"assumed by the import, not logged: {named}. Verdicts that may rest on them say so",
        "Log them: docs/logging.md says how.",
    )
