"""Every preflight finding: a run that has it, and the same run with the one decisive value changed."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from diagnosis_builders import merged
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.config import AclSettings, Settings
from ragaudit.diagnosis import preflight as preflight_module
from ragaudit.diagnosis import preflight_gold, preflight_input, preflight_rules
from ragaudit.diagnosis.preflight import Preflight
from ragaudit.diagnosis.preflight_gold import form_of
from ragaudit.evidence.identity import Identities
from ragaudit.model.inventory import Chunk, Index, Inventory, Source
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.result import Finding, Level
from ragaudit.model.trace import Trace
from ragaudit.readers.problems import Problems
from ragaudit.readers.traces import TraceContext, traces_from_rows

HITS = [{"id": f"c{n}", "rank": n, "score": 1.0 - n / 10} for n in range(1, 5)]
TRACE: dict[str, Any] = {
    "query_text": "?",
    "k_final": 3,
    "user_acl": ["a"],
    "index_revision": "r1",
    "embedding_model": "m1",
    "filters_applied": {},
    "arms": {"dense": HITS},
    "final_context_ids": ["c1", "c2", "c3"],
    "prompt_ids": ["c1", "c2", "c3"],
    "gold_ids": ["c1"],
    "answer": {"correct": True},
    "timestamp": "2026-10-01T12:00:00Z",
}
SETTINGS: dict[str, Any] = {
    "pipeline": {"arms": ["dense"], "thresholds": []},
    "acl": {"rule": "any"},
    "gates": {"recall@k": 0.8},
    "experiment": {"index_write": "test"},
    "audit": {"min_queries": 3},
}
INDEX: dict[str, Any] = {"revision": "r1", "complete": True, "arms": {"dense": {"chunks": 10}}}


@dataclass(frozen=True)
class Run:
    """Six equal queries with changes laid over each, an inventory and settings."""

    trace: dict[str, Any] = field(default_factory=dict)
    index: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    drop: tuple[str, ...] = ()
    """Keys of the trace that are left out, or tables: "sources", "chunks", "index", "pipeline", "acl", ..."""
    n: int = 6
    problems: tuple[str, ...] = ()
    """Kinds of what a reader noted, each at a line of its own; "-" before it = the line was set aside."""
    each: Callable[[int], dict[str, Any]] = lambda n: {}


def findings(run: Run) -> dict[str, Finding]:
    problems = Problems()
    for line, kind in enumerate(run.problems, 1):
        if kind.startswith("-"):
            problems.set_aside(kind[1:], "traces.jsonl", line, "is wrong. Correct it.")
        else:
            problems.note(kind, "traces.jsonl", line, "is odd. Correct it.")
            problems.done("traces.jsonl", line)
    found = watched(run).findings(problems)
    assert len({finding.check for finding in found}) == len(found)
    return {finding.check: finding for finding in found}


def watched(run: Run) -> Preflight:
    rows = []
    for n in range(run.n):
        row = merged(merged({**TRACE, "query_id": f"q{n}"}, run.trace), run.each(n))
        rows.append({key: value for key, value in row.items() if key not in run.drop and value is not None})
    sources = None if "sources" in run.drop else {"s": Source(source_id="s")}
    rows_of = (
        Chunk(chunk_id="c1", source_id="s", aliases=("other name",), parent_id="parent"),
        Chunk(chunk_id="parent", kind="parent"),
    )
    chunks = None if "chunks" in run.drop else {row.chunk_id: row for row in rows_of}
    index = None if "index" in run.drop else Index.model_validate(merged(INDEX, run.index))
    said = {key: value for key, value in merged(SETTINGS, run.settings).items() if key not in run.drop}
    settings = Settings.model_validate({**said, "pipeline": Pipeline.model_validate(said.get("pipeline", {}))})
    preflight = Preflight(Identities.of(Inventory.of(sources, chunks, index)), settings)
    context = TraceContext("traces.jsonl", Problems())
    for trace in traces_from_rows(enumerate(rows, 1), context):
        preflight.watch(trace)
    return preflight


def hybrid(**over: Any) -> dict[str, Any]:
    bm25 = [{"id": f"b{n}", "rank": n, "score": 9.0 - n} for n in range(1, 4)]
    return {"arms": {"bm25": bm25}, "fused": HITS, **over}


TWO_ARMS = {"pipeline": {"arms": ["dense", "bm25"]}}
TIED = [{"id": f"c{n}", "score": 1.0} for n in range(1, 5)]
RERANKED = [{"id": f"c{n}"} for n in (1, 2, 3, 4)]
CASES: dict[str, tuple[Run, Run, str]] = {
    "gold_id_space": (
        Run({"gold_ids": ["x"]}, each=lambda n: {"gold_ids": [f"x{n}"]}),
        Run({"gold_ids": ["c1"]}),
        "none of the 6 gold ids of 6 queries is known to chunks.jsonl or any list (first: 'x0'): traces and gold are "
        "of different id spaces",
    ),
    "unknown_gold": (
        Run(each=lambda n: {"gold_ids": [f"x{n}" if n else "c1"]}),
        Run(),
        "no list and no inventory knows 5 gold ids (first: 'x1'): labels of another build, or chunks that were never "
        "stored",
    ),
    "dead_arm": (
        Run(hybrid(arms={"bm25": []}), settings=TWO_ARMS),
        Run(hybrid(), settings=TWO_ARMS),
        "arm bm25 returned nothing on 6 of 6 queries",
    ),
    "constant_scores": (
        Run({"arms": {"dense": TIED}}),
        Run({"arms": {"dense": HITS}}),
        "arm dense: every hit has the same score in 6 of 6 queries",
    ),
    "arm_errored": (
        Run({"arm_status": {"dense": {"status": "errored"}}}),
        Run({"arm_status": {"dense": {"status": "ran"}}}),
        "arm dense failed on 6 of 6 queries",
    ),
    "arm_not_logged": (Run(settings=TWO_ARMS), Run(), "arm bm25 is configured and stands in no trace"),
    "lexical_share_zero": (
        Run(hybrid(), settings=TWO_ARMS),
        Run(hybrid(final_context_ids=["c1", "b1"]), settings=TWO_ARMS),
        "no chunk in the top K of 6 queries came from bm25 alone",
    ),
    "reranker_noop": (
        Run({"after_rerank": RERANKED}),
        Run({"after_rerank": RERANKED[::-1]}),
        "the reranker changed no order on all 6 queries",
    ),
    "rows_set_aside": (
        Run(problems=("-not_json", "-cut", "-duplicate_id")),
        Run(problems=("-duplicate_id",)),
        "2 rows left out that could not be read",
    ),
    "rows_repeated": (
        Run(problems=("-duplicate_query_id", "-not_json")),
        Run(problems=("-not_json",)),
        "1 row left out that came before under the same id: the first counts",
    ),
    "invalid_utf8": (Run(problems=("invalid_utf8",)), Run(), "1 line held bytes that are not UTF-8, read as U+FFFD"),
    "lone_surrogate": (
        Run(problems=("lone_surrogate",) * 2),
        Run(),
        "2 lines held half of a surrogate pair, read as U+FFFD",
    ),
    "not_a_number": (Run(problems=("not_a_number",)), Run(), "1 value not finite (NaN, Infinity), read as null"),
    "rank_not_integer": (
        Run(problems=("rank_not_integer",) * 2),
        Run(),
        "2 ranks not a whole number, read as null; the position in the list is used",
    ),
    "field_dropped": (
        Run(problems=("field_dropped",) * 3),
        Run(),
        "3 fields could not be read and left out; the rows are used without",
    ),
    "gold_outside_groups": (
        Run(problems=("gold_outside_groups",)),
        Run(),
        "1 query with gold in no group of gold_groups, which is left out",
    ),
    "gold_differs_from_qrels": (
        Run(problems=("gold_differs_from_qrels",) * 2),
        Run(),
        "2 queries with other gold in the trace than in the qrels; the trace counts",
    ),
    "qrels_without_trace": (Run(problems=("qrels_without_trace",)), Run(), "1 query id of the qrels in no trace"),
    "field_misnamed": (
        Run(problems=("field_misnamed",)),
        Run(),
        "1 name of a field that is close to one ragaudit reads, and is not read",
    ),
    "qrels_empty": (Run(problems=("qrels_empty",)), Run(), "1 file of qrels without a judgement"),
    "qrels_not_judged": (
        Run(problems=("qrels_not_judged",)),
        Run(),
        "1 line of the qrels with a negative grade (not judged), left out",
    ),
    "id_from_nowhere": (
        Run({"after_rerank": [{"id": "c9"}, {"id": "c1"}, {"id": "c8"}]}, n=3),
        Run({"after_rerank": [{"id": "c4"}, {"id": "c1"}]}, n=3),
        "ids stand in a list and not in what it was made from (after_rerank: 3 queries, first 'c9' of 'q0'): a list "
        "was cut in the log, an arm is not logged, or ids differ",
    ),
    "few_queries": (Run(n=2), Run(n=3), "2 queries: intervals are wide, and small differences mean nothing"),
    "synthetic_only": (
        Run({"slices": {"origin": "Synthetic"}}),
        Run(each=lambda n: {"slices": {"origin": "synthetic" if n else "user"}}),
        "every query is synthetic",
    ),
    "answers_unjudged": (
        Run({"answer": None}),
        Run({"answer": None}, settings={"audit": {"scope": "retrieval"}}),
        "no answer was judged: a query whose evidence was delivered stays undetermined at Generate",
    ),
    "context_over_k": (
        Run({"k_final": 2}),
        Run({"k_final": 3}),
        "more chunks than k_final says were packed for 6 queries",
    ),
    "context_under_k": (
        Run({"k_final": 4}),
        Run(each=lambda n: {"k_final": 4 if n else 3}),
        "every query packed fewer chunks than k_final: a hidden top_n or budget may cut the context",
    ),
    "zero_based": (
        Run({"arms": {"dense": [{**hit, "rank": hit["rank"] - 1} for hit in HITS]}}),
        Run(),
        "ranks start at 0 in 6 lists (first: arm:dense of 'q0'); the position in the list is used",
    ),
    "rank_disorder": (
        Run({"arms": {"dense": [{"id": "c1", "rank": 2}, {"id": "c2", "rank": 1}]}}),
        Run(),
        "ranks repeat or go back in 6 lists (first: arm:dense of 'q0'); the position in the list is used",
    ),
    "rank_gaps": (
        Run({"arms": {"dense": [{"id": "c1", "rank": 1}, {"id": "c2", "rank": 3}]}}),
        Run(),
        "ranks have gaps in 6 lists (first: arm:dense of 'q0'); the position in the list is used",
    ),
    "not_in_score_order": (
        Run({"arms": {"dense": [{"id": f"c{n}", "score": s} for n, s in ((1, 0.5), (2, 0.9), (3, 0.7))]}}),
        Run({"arms": {"dense": [{"id": f"c{n}", "score": s} for n, s in ((1, 0.1), (2, 0.2), (3, 0.3))]}}),
        "scores neither fall nor rise in 6 lists (first: arm:dense of 'q0'); the order is kept as logged",
    ),
    "repeated_ids": (
        Run({"arms": {"dense": [{"id": "c1"}, {"id": "c1"}]}}),
        Run(),
        "an id stands twice in 6 lists (first: arm:dense of 'q0'); it counts once, at its first position",
    ),
    "missing_inventory": (
        Run(drop=("sources",)),
        Run(),
        "no sources.jsonl: cannot decide ingestion, parse and chunk",
    ),
    "incomplete_export": (
        Run(index={"complete": False}),
        Run(index={"complete": True}),
        "the index export is partial: no verdict rests on a row that is missing from it",
    ),
    "revision_mismatch": (
        Run(index={"revision": "r0"}),
        Run(index={"revision": "r1"}),
        "the inventory is of revision r0, the queries asked r1",
    ),
    "snapshot_older": (
        Run(index={"snapshot_at": "2026-10-01T11:00:00Z"}),
        Run(index={"snapshot_at": "2026-10-01T13:00:00Z"}),
        "the inventory of 2026-10-01T11:00:00Z is older than the last query at 2026-10-01T12:00:00Z",
    ),
    "mixed_models": (
        Run(index={"arms": {"dense": {"models": {"m1": 9, "m0": 1}}}}),
        Run(index={"arms": {"dense": {"models": {"m1": 10}}}}),
        "dense holds vectors of several models (m1: 9, m0: 1)",
    ),
    "mixed_dimensions": (
        Run(index={"arms": {"dense": {"dims": {"768": 9, "384": 1}}}}),
        Run(index={"arms": {"dense": {"dims": {"768": 10}}}}),
        "dense holds vectors of several dimensions (768: 9, 384: 1)",
    ),
    "empty_index": (
        Run(index={"arms": {"dense": {"chunks": 0}}}),
        Run(index={"arms": {"dense": {"chunks": 1}}}),
        "the index of dense holds 0 chunks",
    ),
    "model_mismatch": (
        Run(settings={"pipeline": {"embedding": {"query": {"model": "m2"}, "corpus": {"model": "m1"}}}}),
        Run(settings={"pipeline": {"embedding": {"query": {"model": "org/M1"}, "corpus": {"model": "m1"}}}}),
        "queries are embedded by m2, the corpus by m1",
    ),
    "sources_short": (
        Run(index={"sources_expected": 12, "sources_indexed": 9}),
        Run(index={"sources_expected": 12, "sources_indexed": 12}),
        "9 of 12 sources are indexed",
    ),
    "missing_pipeline": (
        Run(drop=("pipeline",)),
        Run(),
        "no [pipeline] in ragaudit.toml: thresholds, fusion, filter mode and budgets are unknown",
    ),
    "missing_acl_rule": (Run(drop=("acl",)), Run(), 'no [acl] rule: "any principal in common" is assumed'),
    "k_final_differs": (
        Run(settings={"pipeline": {"k_final": 20}}, each=lambda n: {"k_final": 4 if n == 5 else 3}),
        Run(settings={"pipeline": {"k_final": 3}}),
        "[pipeline] k_final is 20, 5 of 6 queries say 3: metrics are cut at what each query says",
    ),
    "missing_gates": (Run(drop=("gates",)), Run(), "no [gates]: `ragaudit gate` will stop"),
    "missing_index_write": (
        Run(drop=("experiment",)),
        Run(),
        "no [experiment] index_write: no index may be changed for an experiment",
    ),
    "missing_fused": (
        Run(hybrid(fused=None), settings=TWO_ARMS),
        Run({"fused": None}),
        "every query without fused: cannot decide fuse and rerank apart",
    ),
    "missing_after_rerank": (
        Run(settings={"pipeline": {"rerank": {"model": "ce"}}}),
        Run(),
        "every query without after_rerank: cannot decide a demotion by the reranker",
    ),
    "missing_gold": (
        Run(each=lambda n: {"gold_ids": ["c1"] if n else None}),
        Run(each=lambda n: {"gold_ids": ["c1"] if n else []}),
        "1 of 6 queries without gold: cannot decide whether the evidence was found at all",
    ),
    "missing_arms": (
        Run(drop=("arms",)),
        Run(),
        "every query without arms: cannot decide embed, retrieve, fuse and filter apart",
    ),
    "missing_final_context_ids": (
        Run(drop=("final_context_ids",)),
        Run(),
        "every query without final_context_ids: cannot decide whether the evidence reached the generator",
    ),
    "missing_prompt_ids": (
        Run(drop=("prompt_ids",)),
        Run({"prompt_tokens": 900}, drop=("prompt_ids",)),
        "every query without prompt_ids: cannot decide whether packed chunks were cut from the prompt",
    ),
    "missing_user_acl": (
        Run(drop=("user_acl",)),
        Run({"user_acl": []}),
        "every query without user_acl: cannot decide which gold the user may read, and leaks",
    ),
    "missing_filters_applied": (
        Run(drop=("filters_applied",)),
        Run({"filters_applied": {}}),
        "every query without filters_applied: cannot decide filter faults apart from others",
    ),
    "missing_embedding_model": (
        Run(drop=("embedding_model",)),
        Run(),
        "every query without embedding_model: cannot decide a model mismatch",
    ),
    "missing_index_revision": (
        Run(drop=("index_revision",)),
        Run(),
        "every query without index_revision: cannot decide whether the inventory is of the index that was asked",
    ),
}


def test_a_sound_run_has_no_finding() -> None:
    assert findings(Run()) == {}


@pytest.mark.parametrize("check", CASES)
def test_the_finding_fires_with_its_message_and_a_fix(check: str) -> None:
    finding = findings(CASES[check][0])[check]
    assert finding.message == CASES[check][2]
    assert finding.fix.endswith((".", ")."))


@pytest.mark.parametrize("check", CASES)
def test_the_finding_does_not_fire_when_the_one_value_is_right(check: str) -> None:
    assert check not in findings(CASES[check][1])


def test_every_check_in_the_source_has_a_case() -> None:
    """The names of findings are literals in the modules; a new one needs a case here."""
    modules = (preflight_module, preflight_gold, preflight_input, preflight_rules)
    text = "".join(Path(module.__file__).read_text(encoding="utf-8") for module in modules)
    named = set(re.findall(r'noted\(\s*"(\w+)"', text)) | set(
        re.findall(r'^            "(\w+)": \(', text, re.MULTILINE)
    )
    named |= set(preflight_input._REPAIRS)
    named |= {f"missing_{name}" for name in preflight_rules._FIELDS} | {"mixed_models", "mixed_dimensions"}
    assert named == set(CASES)


def test_only_gold_of_another_build_blocks() -> None:
    assert {check for check, (has, _, _) in CASES.items() if findings(has)[check].severity is Level.BLOCK} == {
        "gold_id_space"
    }


def test_blocking_findings_come_first_and_remarks_last() -> None:
    run = Run(each=lambda n: {"gold_ids": [f"x{n}"]}, n=6, drop=("gates", "acl"))
    levels = [finding.severity for finding in watched(run).findings()]
    assert levels == sorted(levels, key=list(Level).index)
    assert (levels[0], levels[-1]) == (Level.BLOCK, Level.INFO)


def test_gold_that_only_the_source_table_knows_is_known() -> None:
    assert "unknown_gold" not in findings(Run(each=lambda n: {"gold_ids": ["s"]}))
    mapped = Run({"gold_ids": ["elsewhere"], "id_map": {"c1": "elsewhere"}})
    assert {"unknown_gold", "gold_id_space"}.isdisjoint(findings(mapped))


# --- gold of another id space --------------------------------------------------------------------------------------


def of(pattern: str, n: int = 6, **run: Any) -> dict[str, Finding]:
    """A run whose query n has the gold `pattern` with n in the place of `#`."""
    return findings(Run(each=lambda i: {"gold_ids": [pattern.replace("#", str(i))]}, n=n, **run))


def test_misses_without_an_inventory_are_no_proof_of_another_id_space() -> None:
    """The gold looks like the listed ids: whoever audits only failing queries has such a run."""
    found = of("z#", drop=("sources", "chunks", "index"))
    assert "gold_id_space" not in found
    assert found["unknown_gold"].severity is Level.WARN
    assert found["unknown_gold"].message == (
        "no list holds 6 gold ids (first: 'z0'): these queries miss them, or the labels are of another build"
    )
    assert found["unknown_gold"].fix == (
        "Give a whole chunks.jsonl, which tells the two apart; map other ids with id_map."
    )


def test_without_an_inventory_gold_that_looks_like_no_listed_id_blocks() -> None:
    found = of("doc-#", drop=("sources", "chunks", "index"))
    assert found["gold_id_space"].message == (
        "none of the 6 gold ids of 6 queries is in any list, and no listed id looks like them (gold: 'doc-0', listed: "
        "'c1'): traces and gold are of different id spaces"
    )
    assert "unknown_gold" not in found


def test_names_in_words_may_all_look_different_and_be_of_one_id_space() -> None:
    names = ["refund-policy", "shipping times", "late_fees", "gift-cards-at-sea", "store"]
    listed = {"dense": [{"id": "how-to-return-goods"}, {"id": "our-terms-of-sale"}]}
    run = Run(
        {"arms": listed, "final_context_ids": ["our-terms-of-sale"], "prompt_ids": ["our-terms-of-sale"]},
        each=lambda n: {"gold_ids": [names[n % 5]]},
        drop=("sources", "chunks", "index"),
    )
    found = findings(run)
    assert "gold_id_space" not in found
    assert found["unknown_gold"].message == (
        "no list holds 5 gold ids (first: 'refund-policy'): these queries miss them, or the labels are of another build"
    )


@pytest.mark.parametrize("hit", [{"source_id": "doc-#"}, {"metadata": {"source_id": "doc-#"}}])
def test_a_document_that_a_hit_was_logged_with_is_known(hit: dict[str, Any]) -> None:
    def query(n: int) -> dict[str, Any]:
        said = json.loads(json.dumps(hit).replace("#", str(n)))
        return {"gold_ids": [f"doc-{n}"], "arms": {"dense": [{"id": "c1", **said}, {"id": "c2"}]}}

    found = findings(Run(each=query, drop=("sources", "chunks", "index")))
    assert {"unknown_gold", "gold_id_space"}.isdisjoint(found)


def test_four_gold_ids_prove_nothing() -> None:
    assert {"unknown_gold"} == {"unknown_gold", "gold_id_space"} & set(of("doc-#", n=4, drop=("chunks", "index")))
    assert {"gold_id_space"} == {"unknown_gold", "gold_id_space"} & set(of("doc-#", n=5, drop=("chunks", "index")))


def test_one_unknown_gold_id_of_many_queries_is_a_warning_and_one_id() -> None:
    found = of("z1", n=60)
    assert "gold_id_space" not in found
    assert found["unknown_gold"].message == (
        "no list and no inventory knows 1 gold id (first: 'z1'): labels of another build, or chunks that were never "
        "stored"
    )


def test_an_inventory_that_is_partial_proves_nothing() -> None:
    found = of("z#", index={"complete": False})
    assert "gold_id_space" not in found
    assert found["unknown_gold"].message.startswith("no list holds 6 gold ids")


def test_an_inventory_that_knows_no_listed_id_proves_nothing() -> None:
    """It may be the inventory that is of another build."""
    other = {"arms": {"dense": [{"id": "k1"}, {"id": "k2"}]}, "final_context_ids": ["k1"], "prompt_ids": ["k1"]}
    found = of("z#", trace=other)
    assert "gold_id_space" not in found
    assert "unknown_gold" in found


@pytest.mark.parametrize(
    ("each", "form"),
    [
        ("c12", "a9"),
        ("doc-12#p3", "a-9#a9"),
        ("4711", "9"),
        ("Größe_7", "a_9"),
        ("", ""),
        ("3f2a91c0-77be-4d01-9a55-0c1d2e3f4a5b", "x"),
        ("doc1p2", "x"),
        ("sha256:ab", "a9:a"),
    ],
)
def test_an_id_looks_like_its_runs_of_letters_and_digits_and_a_hash_like_any_other(each: str, form: str) -> None:
    assert form_of(each) == form


# --- lists that do not follow from each other ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "explained",
    [
        Run({"after_rerank": [{"id": "k9"}], "id_map": {"k9": "c1"}}),
        Run({"after_rerank": [{"id": "parent"}]}),
        Run({"after_rerank": [{"id": "other name"}]}),
        Run({"after_rerank": [{"id": "c9"}], "rerank_input": [{"id": "c9"}, {"id": "c1"}]}),
        Run({"final_context_ids": ["c1", "c9"]}),
        Run({"fused": [{"id": "c9"}]}, settings=TWO_ARMS),
        Run({"after_rerank": [{"id": "c9"}]}, drop=("arms",)),
    ],
)
def test_an_id_that_something_explains_is_no_finding(explained: Run) -> None:
    """A mapped id, a parent, an alias, the reranker's own input, packing, an arm or a list that is not logged."""
    assert "id_from_nowhere" not in findings(explained)


def test_fused_ids_that_no_arm_returned_are_named() -> None:
    found = findings(Run({"fused": [{"id": "c1"}, {"id": "c9"}]}))["id_from_nowhere"]
    assert "(fused: 6 queries, first 'c9' of 'q0')" in found.message


# --- only values are evidence --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "settings"),
    [
        ("missing_pipeline", {"pipeline": {"embedding": {"query": {}}, "search": {"dense": {}}, "thresholds": [{}]}}),
        ("missing_acl_rule", {"acl": {}}),
        ("missing_gates", {"gates": {}}),
        ("missing_index_write", {"experiment": {}}),
    ],
)
def test_an_empty_table_says_nothing(check: str, settings: dict[str, Any]) -> None:
    table = next(iter(settings))
    given = Settings.model_validate({**SETTINGS, **settings})
    assert check in {finding.check for finding in Preflight(Identities.of(Inventory()), given).findings()}, table


@pytest.mark.parametrize("pipeline", [{"thresholds": []}, {"embedding": {"query": {"prefix": ""}}}, {"own": {"a": 0}}])
def test_any_value_says_something(pipeline: dict[str, Any]) -> None:
    given = Settings.model_validate({**SETTINGS, "pipeline": pipeline})
    checks = {finding.check for finding in Preflight(Identities.of(Inventory()), given).findings()}
    assert "missing_pipeline" not in checks


def test_a_kind_of_remark_that_preflight_does_not_know_is_counted_all_the_same() -> None:
    found = findings(Run(problems=("some_new_repair",) * 2))["some_new_repair"]
    assert (found.severity, found.message) == (Level.INFO, "2 remarks on the input: some new repair")


def test_one_of_a_thing_is_not_said_in_the_plural() -> None:
    found = findings(Run(hybrid(arms={"bm25": []}), settings=TWO_ARMS, n=1))
    assert found["few_queries"].message == "1 query: intervals are wide, and small differences mean nothing"
    assert found["dead_arm"].message == "arm bm25 returned nothing on 1 of 1 query"


def test_the_one_k_of_the_run_is_none_when_queries_differ() -> None:
    assert watched(Run()).k_final == 3
    assert watched(Run(each=lambda n: {"k_final": 3 + n % 2})).k_final is None


def test_the_canary_shares_the_top_k_by_arm() -> None:
    shares = watched(Run(hybrid(final_context_ids=["c1", "c2", "b1"]))).canary().source_share
    assert shares == pytest.approx({"bm25": 1 / 3, "dense": 2 / 3})
    assert watched(Run(drop=("arms",))).canary().source_share == {}


def test_stamps_count_the_models_of_the_chunk_table() -> None:
    chunks = {name: Chunk(chunk_id=name, embedding_model=model) for name, model in (("a", "m1"), ("b", None))}
    preflight = Preflight(Identities.of(Inventory.of(None, chunks, None)), Settings(acl=AclSettings()))
    assert preflight.facts().stamps == {"m1": 1}


@given(st.permutations(range(6)))
def test_the_findings_do_not_depend_on_the_order_of_the_queries(order: list[int]) -> None:
    def query(n: int) -> dict[str, Any]:
        return {"gold_ids": ["c1"] if n else None, "k_final": 4 if n > 2 else 3, "timestamp": f"2026-10-0{n + 1}"}

    assert findings(Run(each=lambda n: query(order[n]))) == findings(Run(each=query))


def test_watching_keeps_no_trace() -> None:
    preflight = watched(Run(n=40))
    held = [value for value in vars(preflight).values() if isinstance(value, Trace | tuple | list)]
    assert held == []
