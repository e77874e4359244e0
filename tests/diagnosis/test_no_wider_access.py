"""Nothing that ragaudit says proposes wider access, and what a user may not read never counts as a miss."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from diagnosis_builders import SPAN, Bundle, bundle, diagnosed, identities_of, merged, seed_only, trace_of
from incident_rows import bundle_of, own, public
from test_causes import SAMPLES

from ragaudit.config import AclSettings, Settings, load_settings
from ragaudit.diagnosis.preflight import Preflight
from ragaudit.diagnosis.preflight_input import _REPAIRS
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.model.diagnosis import Diagnosis, Outcome, Severity
from ragaudit.model.pipeline import Pipeline
from ragaudit.readers.problems import Problems

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
RULES = r"(?:acls?|filters?|permissions?|access (?:control|rule|check)s?|authoriz\w+|tenant (?:check|clause|filter))"
OFF = r"(?:bypass\w*|disabl\w+|remov(?:e|ing)|skip\w*|ignor\w+|drop(?:ping)?|(?:turn|switch)\w* off|lift\w*|relax\w*)"
FORBIDDEN = [
    rf"\b{OFF}\W+(?:\w+\W+){{0,4}}?{RULES}\b",
    rf"\b{RULES}\W+(?:\w+\W+){{0,2}}?(?:off|disabled|bypassed|ignored|skipped)\b",
    rf"\b(?:widen|broaden|loosen|weaken|open up)\w*\W+(?:\w+\W+){{0,4}}?(?:{RULES}|access)\b",
    rf"\bwithout\W+(?:\w+\W+){{0,2}}?{RULES}\b",
    r"\b(?:as|like) (?:an? )?(?:admin\w*|root|super\W?user|service account)\b",
    r"\b(?:grant|give|allow|open)\w*\W+(?:\w+\W+){0,3}?(?:everyone|everybody|all users|anyone|any user|public)\b",
    r"\b(?:grant|give|allow)\w*\W+(?:\w+\W+){0,3}?access\b",
    r"\badd\W+(?:\w+\W+){0,2}?(?:user|everyone|principal)\w*\W+(?:\w+\W+){0,2}?to\W+(?:\w+\W+){0,2}?acl\b",
    # German
    r"\b(?:filter|acl|berechtigung\w*|zugriffs\w+|rechteprüfung)\W+(?:\w+\W+){0,2}?(?:abschalt|ausschalt|deaktivier|umgeh|"
    r"entfern|ignorier|übergeh|aufweich|erweiter)\w*",
    r"\bohne\W+(?:\w+\W+){0,1}?(?:filter|acl|zugriffs\w+|berechtigung\w*)",
    r"\bals (?:admin\w*|root)\b",
    r"\b(?:allen|jedem)\W+(?:\w+\W+){0,2}?(?:zugriff|zugang)\b",
    # French
    r"\b(?:désactiv|contourn|supprim|ignor|élargi|retir)\w*\W+(?:\w+\W+){0,2}?"
    r"(?:filtre|acl|permission|contrôle d.accès|droits)",
    r"\bsans\W+(?:\w+\W+){0,1}?(?:filtre|acl|contrôle d.accès|permission)",
    r"\ben tant qu.admin\w*",
    r"\baccès à tous\b",
    # Spanish
    r"\b(?:desactiv|desactív|elimin|elimín|ignor|omit|amplí|ampli|quit|salt)\w*\W+(?:\w+\W+){0,2}?"
    r"(?:filtro|acl|permiso|control de acceso)",
    r"\bsin\W+(?:\w+\W+){0,1}?(?:filtro|acl|control de acceso|permiso)",
    r"\bcomo administrador\b",
    r"\bacceso a todos\b",
    # Chinese
    r"(?:关闭|绕过|禁用|移除|删除|跳过|忽略|放宽|取消)[^。\uff0c]{0,6}(?:过滤|权限|访问控制|ACL)",
    r"不(?:使用|做|加)[^。\uff0c]{0,3}(?:过滤|权限|访问控制)",
    r"以管理员",
    r"所有人[^。\uff0c]{0,4}(?:访问|权限)",
]
PATTERN = re.compile("|".join(f"(?:{phrase})" for phrase in FORBIDDEN), re.IGNORECASE)

PROPOSALS = """
Bypass the ACL for this query | Disable the tenant filter | Remove the permission clause | Skip the access check
Ignore the ACL clause | Turn off the metadata filter | Turn the ACL off | Widen the filter | Broaden access for support
Run the search without the filter | Search without access control | Run it as admin | Query as a superuser
Grant everyone read access | Give the user access to the source | Open the source to everyone | Add the user to the ACL
Relax the ACL | Drop the tenant clause | Loosen permissions | Filter abschalten | die ACL umgehen | ohne Filter suchen
als Administrator suchen | allen Nutzern Zugriff geben | désactiver le filtre | contourner les permissions | sans filtre
en tant qu'administrateur | accès à tous | desactivar el filtro | sin control de acceso | como administrador
acceso a todos | 关闭过滤 | 绕过权限检查 | 不使用访问控制 | 以管理员身份运行 | 给所有人访问权限
"""


@pytest.mark.parametrize(
    "proposal", [part.strip() for line in PROPOSALS.strip().splitlines() for part in line.split("|")]
)
def test_the_guard_of_this_test_knows_a_proposal_when_it_sees_one(proposal: str) -> None:
    assert PATTERN.search(proposal)


@pytest.mark.parametrize("name", CAUSES)
def test_no_summary_or_remedy_proposes_wider_access(name: str) -> None:
    assert PATTERN.search(CAUSES[name].summary) is None
    assert PATTERN.search(CAUSES[name].remedy) is None


def test_no_stage_note_proposes_wider_access() -> None:
    assert [note for note in STAGE_NOTES.values() if PATTERN.search(note)] == []


def test_the_manuals_propose_no_wider_access() -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    for name in ("causes.md", "stages.md"):
        text = (docs / name).read_text(encoding="utf-8")
        assert [line for line in text.splitlines() if PATTERN.search(line) and "never" not in line.casefold()] == []


TWISTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "the user may not read the source": {"source": {"acl": ["role:hr"]}},
    "the stored ACL is empty": {"chunk": {"acl": []}},
    "the stored ACL is another": {"chunk": {"acl": ["role:hr"]}},
    "nobody may read it": {"source": {"acl": []}, "chunk": {"acl": []}},
    "the user is unknown": {"trace": {"user_acl": None}},
    "the user holds nothing": {"trace": {"user_acl": []}},
    "an ACL clause was sent": {"trace": {"filters_applied": {"acl": ["tenant:acme"], "tenant": "acme"}}},
    "the filter is false": {"trace": {"filters_applied": {"tenant": "other"}}},
    "every principal is needed": {"acl": AclSettings(rule="all")},
    "the label says eligible": {"trace": {"gold": [{"id": "g", "source_id": "s1", "span": SPAN, "eligible": True}]}},
    "a foreign chunk came": {"pipeline": {"filter": {"expected": {"tenant": "acme", "acl": ["tenant:acme"]}}}},
}


def twisted() -> Iterator[tuple[str, Bundle]]:
    """Every sample under every access case; samples without gold of their own are left as they are."""
    for name, sample in SAMPLES.items():
        for twist, over in TWISTS.items():
            yield f"{name}: {twist}", bundle(**merged(sample.has, over))


def demo() -> Iterator[tuple[str, Bundle]]:
    settings = load_settings(DEMO / "ragaudit.toml", env={}, flags={})
    tables = {
        name: [json.loads(line) for line in (DEMO / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]
        for name in ("traces", "sources", "chunks")
    }
    index = json.loads((DEMO / "index.json").read_text(encoding="utf-8"))
    pipeline = settings.pipeline.model_dump(by_alias=True, exclude_unset=True)
    for trace in tables["traces"]:
        yield trace["query_id"], Bundle(trace, tables["sources"], tables["chunks"], index, pipeline)


def incidents() -> Iterator[tuple[str, Bundle]]:
    for row in (*public(), *own()):
        parts = bundle_of(row)
        yield row["incident_id"], parts
        yield f"seed: {row['incident_id']}", seed_only(parts)
        shut = [{**source, "acl": ["role:nobody"]} for source in parts.sources or ()]
        yield f"shut: {row['incident_id']}", replace(parts, sources=shut)


def sentences(verdict: Diagnosis) -> list[str]:
    return [
        *verdict.evidence,
        *verdict.log,
        *(text for gold in verdict.gold for text in (*gold.evidence, *gold.log)),
        *(step.note or "" for gold in verdict.gold for step in gold.journey),
    ]


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Diagnosis]:
    every = [*twisted(), *incidents()]
    return {name: diagnosed(parts) for name, parts in every} | {name: diagnosed(parts) for name, parts in demo()}


def test_no_evidence_and_no_log_suggestion_proposes_wider_access(verdicts: dict[str, Diagnosis]) -> None:
    said = {text: name for name, verdict in verdicts.items() for text in sentences(verdict)}
    assert len(said) > 500
    assert {text: name for text, name in said.items() if PATTERN.search(text)} == {}


def test_no_preflight_finding_proposes_wider_access() -> None:
    said: set[str] = set()
    problems = Problems()
    for line, kind in enumerate((*_REPAIRS, "unknown"), 1):
        problems.note(kind, "traces.jsonl", line, "is odd. Correct it.")
    problems.set_aside("not_json", "traces.jsonl", 98, "is wrong. Correct it.")
    problems.set_aside("duplicate_query_id", "traces.jsonl", 99, "is wrong. Correct it.")
    for _, parts in (*twisted(), *incidents()):
        settings = Settings(pipeline=Pipeline.model_validate(parts.pipeline or {}))
        preflight = Preflight(identities_of(parts), settings)
        preflight.watch(trace_of(parts))
        said.update(text for found in preflight.findings(problems) for text in (found.message, found.fix))
    assert len(said) > 50
    assert [text for text in said if PATTERN.search(text)] == []


def test_gold_that_the_user_may_not_read_is_never_a_miss(verdicts: dict[str, Diagnosis]) -> None:
    hidden = [(name, gold) for name, v in verdicts.items() for gold in v.gold if gold.eligible is False]
    assert len(hidden) > 2 * len(SAMPLES)
    for name, gold in hidden:
        assert gold.outcome in (Outcome.NOT_APPLICABLE, Outcome.LABEL_ISSUE), name
        assert (gold.causes, gold.could_be, gold.log) == ((), (), ()), name


def test_a_query_whose_only_gold_is_out_of_reach_fails_only_for_a_leak(verdicts: dict[str, Diagnosis]) -> None:
    for name, verdict in verdicts.items():
        if verdict.gold and all(gold.eligible is False for gold in verdict.gold):
            assert verdict.outcome is not Outcome.FAIL or verdict.severity is Severity.LEAK, name
