"""The demo, broken in every known way: the diagnosis names what was broken, or says what it cannot see."""

import json
from pathlib import Path

import pytest
from drill_builders import Row, opened, rewritten, without

from ragaudit.cli.drill_text import drill_text
from ragaudit.drill.outcome import DrillReport
from ragaudit.drill.registry import FAULTS
from ragaudit.drill.run import run
from ragaudit.model.diagnosis import STAGES


@pytest.fixture(scope="module")
def demo() -> DrillReport:
    return run(opened(Path(__file__).parents[2] / "examples" / "demo"))


def test_no_diagnosis_excludes_the_truth(demo: DrillReport) -> None:
    assert [(result.fault, result.hides, result.misnamed[0]) for result in demo.misnamed] == []
    assert demo.holds


def test_with_everything_logged_every_injected_fault_is_named(demo: DrillReport) -> None:
    full = [result for result in demo.results if not result.hides]
    assert [(result.fault, result.applied - result.named) for result in full if result.open] == []
    assert all(set(row) == {stage} for stage, row in demo.table.items())


def test_the_cause_that_is_named_first_fits_the_fault(demo: DrillReport) -> None:
    found = {
        result.fault: max(result.causes, key=lambda name: result.causes[name])
        for result in demo.results
        if not result.hides
    }
    assert found == _CAUSES


_CAUSES = {
    "source_not_registered": "source_missing",
    "source_failed": "source_missing",
    "half_written": "half_written",
    "not_yet_visible": "not_yet_visible",
    "other_namespace": "wrong_namespace",
    "old_version_indexed": "source_stale",
    "text_lost": "text_lost",
    "text_lost_missed": "text_lost",
    "text_garbled": "text_garbled",
    "span_dropped": "span_in_no_chunk",
    "span_dropped_missed": "span_in_no_chunk",
    "span_split": "span_split",
    "other_model": "row_model",
    "other_width": "dim_mismatch",
    "vector_unwritten": "vector_missing",
    "other_metric": "metric_mismatch",
    "ann_miss": "ann_miss",
    "poor_rank": "weak_match",
    "lexical_arm_down": "dead_arm",
    "vector_arm_off": "dead_arm",
    "no_query_terms": "lexical_no_terms",
    "literal_rewritten": "literal_lost",
    "rewrite_drifted": "rewrite_drift",
    "floor_of_another_scale": "fused_floor",
    "floor_on_absent_score": "fused_floor",
    "floor_on_arm": "arm_floor",
    "arm_not_fused": "single_arm_rule",
    "fusion_shuffled": "fusion_formula",
    "post_filter_starved": "post_filter_underfill",
    "stored_acl_wiped": "acl_data",
    "clause_of_other_type": "predicate_type",
    "clause_of_other_case": "predicate_case",
    "metadata_wrong": "filter_fails_gold",
    "foreign_chunk": "foreign_hits",
    "reranker_reversed": "reranker_demotion",
    "reranker_cut": "top_n_cut",
    "candidates_cut": "candidate_cut",
    "rerank_floor": "rerank_floor",
    "budget_cut": "token_budget",
    "packer_cut": "pack_loss",
    "dedupe_by_source": "duplicate_collapse",
    "one_per_source": "max_per_source",
    "prompt_cut": "prompt_truncation",
    "prompt_too_long": "prompt_window",
    "text_of_another": "packed_text",
    "foreign_in_context": "leak",
    "answer_cut_off": "cut_off_answer",
    "answer_unsupported": "unsupported_answer",
    "context_ignored": "ignored_context",
    "answer_misread": "wrong_answer",
}


def test_an_open_verdict_says_what_to_log(demo: DrillReport) -> None:
    assert [result.fault for result in demo.results if result.open and not result.log] == []


def test_every_fault_strikes_at_least_one_query_of_the_demo(demo: DrillReport) -> None:
    assert [result.fault for result in demo.results if not result.applied] == []


def test_every_stage_has_several_faults_and_one_that_can_be_hidden() -> None:
    assert {stage: sum(fault.stage is stage for fault in FAULTS.values()) >= 3 for stage in STAGES} == dict.fromkeys(
        STAGES, True
    )
    assert {fault.stage for fault in FAULTS.values() if fault.hide} == set(STAGES)


def test_faults_stand_in_the_order_of_the_stages() -> None:
    order = [STAGES.index(fault.stage) for fault in FAULTS.values()]
    assert order == sorted(order)


def test_a_gate_fires_on_every_fault_that_is_logged_in_full(demo: DrillReport) -> None:
    assert [result.fault for result in demo.results if not result.hides and not result.gates] == []


def test_recall_alone_does_not_see_what_is_lost_in_the_text_or_the_answer(demo: DrillReport) -> None:
    kept = [result for result in demo.results if FAULTS[result.fault].delivers]
    assert {result.recall for result in kept} == {1.0}
    assert all("recall@k.max_drop" not in result.gates for result in kept)
    lost = [result for result in demo.results if not FAULTS[result.fault].delivers]
    assert all("recall@k.max_drop" in result.gates for result in lost)


def test_a_leak_fires_the_gate_on_leaks(demo: DrillReport) -> None:
    assert {result.fault for result in demo.results if "leaks" in result.gates} == {
        "foreign_chunk",
        "foreign_in_context",
    }


def test_the_manual_shows_what_the_command_prints(demo: DrillReport, repository: Path) -> None:
    manual = (repository / "docs" / "drill.md").read_text("utf-8")
    assert f"```text\n{drill_text(demo)}```\n" in manual


@pytest.mark.parametrize("seed", [0, 1, 7])
def test_the_same_seed_gives_the_same_drill_and_any_seed_holds(repository: Path, seed: int) -> None:
    names = ("fusion_shuffled", "foreign_chunk", "ann_miss")
    bundle = opened(repository / "examples" / "demo")
    first = run(bundle, names=names, seed=seed, limit=4)
    assert first == run(bundle, names=names, seed=seed, limit=4)
    assert first.holds


def _arms_reversed(row: Row) -> Row:
    for name in ("arms", "arm_status"):
        if row.get(name):
            row[name] = dict(reversed(row[name].items()))
    return row


def _no_counts(row: Row) -> Row:
    for status in (row.get("arm_status") or {}).values():
        status.pop("matching", None)
    return row


def _ids_only(row: Row) -> Row:
    row["gold"] = [{"id": gold["id"]} for gold in row.get("gold") or ()]
    return row


def _vectors_only(row: Row) -> Row:
    for name in ("arms", "arm_status"):
        row[name] = {arm: value for arm, value in (row.get(name) or {}).items() if arm == "dense"}
    return {**row, "fused": None}


_LESS_LOGGED = {
    "arms in another order": _arms_reversed,
    "gold as bare ids": _ids_only,
    "one arm of two logged": _vectors_only,
    "no matching counts": _no_counts,
    "no rerank_input": without("rerank_input"),
    "no reranker lists": without("rerank_input", "after_rerank"),
    "no fused list": without("fused"),
    "no arm_status": without("arm_status"),
    "no prompt": without("prompt_ids", "prompt_tokens"),
}


@pytest.mark.parametrize("name", _LESS_LOGGED)
def test_with_less_logged_it_is_right_or_undetermined(repository: Path, tmp_path: Path, name: str) -> None:
    report = run(opened(rewritten(repository, tmp_path, edit=_LESS_LOGGED[name])), limit=4)
    assert [(result.fault, result.hides, result.misnamed[0]) for result in report.misnamed] == []
    assert sum(result.named for result in report.results) > 0


@pytest.mark.parametrize("lacking", ["sources.jsonl", "chunks.jsonl", "index.json", "ragaudit.toml"])
def test_without_one_of_the_tables_it_is_right_or_undetermined(repository: Path, tmp_path: Path, lacking: str) -> None:
    tables = tuple(name for name in ("sources.jsonl", "chunks.jsonl", "index.json", "ragaudit.toml") if name != lacking)
    report = run(opened(rewritten(repository, tmp_path, tables=tables)), limit=4)
    assert [(result.fault, result.hides, result.misnamed[0]) for result in report.misnamed] == []


def test_unjudged_answers_are_drilled_for_retrieval(repository: Path, tmp_path: Path) -> None:
    folder = rewritten(repository, tmp_path, edit=without("answer"))
    report = run(opened(folder, scope="retrieval"), limit=4)
    assert report.holds
    assert "generate" not in report.table
    assert report.table["rerank"]["rerank"] > 0


def test_the_report_is_plain_data(demo: DrillReport) -> None:
    assert DrillReport.model_validate(json.loads(demo.model_dump_json())) == demo
