import json
import re

import pytest

from ragaudit.cli.main import execute
from ragaudit.model.diagnosis import Diagnosis, Outcome, Severity, Stage
from ragaudit.model.experiment import Basis, Experiment
from ragaudit.model.result import AclNote, Canary, Estimate, QueryResult, RunInfo, Summary
from ragaudit.model.trace import Gold, Trace
from ragaudit.store import AuditWriter

BASE = {"rerank": {"top_n": 8}, "fusion": {"k": 60}}
MORE = {"rerank": {"top_n": 16}, "fusion": {"k": 60}}
TWO = {"rerank": {"top_n": 16}, "fusion": {"k": 30}}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(arguments, capsys, code=0):
    assert execute([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


def audit(path, values=(1.0,) * 12, *, pipeline=BASE, name="run", leaking=(), ids="q{:02}", experiments=()):
    """An audit file with one query a recall value; below 1 it fails at rerank."""
    rows = []
    for n, value in enumerate(values):
        query_id = ids.format(n)
        leaks = ("hr#1",) if query_id in leaking else ()
        failed = value < 1 or leaks
        diagnosis = Diagnosis(
            query_id=query_id,
            outcome=Outcome.FAIL if failed else Outcome.PASS,
            stage=Stage.FILTER if leaks else Stage.RERANK if failed else Stage.NONE,
            severity=Severity.LEAK if leaks else Severity.NORMAL,
            leaks=leaks,
        )
        result = QueryResult(
            diagnosis=diagnosis, query_text="secret words", k_final=8, metrics={"recall@k": value, "mrr@k": value}
        )
        rows.append((result, Trace(query_id=query_id, query_text="secret words", k_final=8, gold=(Gold(id="c9"),))))
    mean = sum(values) / len(values)
    found = Estimate(mean=mean, low=max(0.0, mean - 0.1), high=min(1.0, mean + 0.1), n=len(values))
    run = RunInfo(
        name=name,
        traces=len(values),
        k_final=8,
        fingerprint=f"b2:{pipeline['rerank']['top_n']}-{pipeline['fusion']['k']}",
        pipeline=pipeline,
        inputs={},
        ragaudit="0.1.0",
        resamples=500,
    )
    summary = Summary(
        run=run,
        preflight=(),
        metrics={"recall@k": found, "mrr@k": found},
        at={},
        slices=(),
        outcomes={},
        stages={},
        undetermined={},
        delivered_unjudged=0,
        patterns=(),
        acl=AclNote(),
        not_retrieval=(),
        canary=Canary(),
        experiments=experiments,
    )
    with AuditWriter(path, key="k") as writer:
        writer.add(rows)
        writer.finish(summary)
    return path


def gates(folder, text):
    (folder / "ragaudit.toml").write_text(f"[gates]\n{text}\n")


# --- baseline --------------------------------------------------------------------------------------------------------


def test_baseline_freeze_list_and_show(here, capsys):
    audit(here / "run.audit", name="support kb")
    said = told(["baseline", "freeze", "run.audit"], capsys)
    assert said.out == ""
    assert said.err == (
        "Wrote .ragaudit/baselines/support-kb.json. Next: ragaudit compare support-kb CANDIDATE.audit\n"
    )
    listed = told(["baseline", "list"], capsys).out
    assert "support-kb" in listed and "12 queries" in listed and "recall@k 1.000" in listed
    shown = told(["baseline", "show", "support-kb"], capsys).out
    assert "recall@k             1.000  [0.900, 1.000]" in shown
    assert "rerank.top_n = 8" in shown
    assert "secret" not in (here / ".ragaudit/baselines/support-kb.json").read_text()


def test_baseline_commands_as_json(here, capsys):
    audit(here / "run.audit")
    frozen = json.loads(told(["baseline", "freeze", "run.audit", "--name", "b", "--json"], capsys).out)
    assert (frozen["schema"], frozen["path"]) == ("ragaudit.baseline_file/1", ".ragaudit/baselines/b.json")
    listed = json.loads(told(["baseline", "list", "--json"], capsys).out)
    assert [row["name"] for row in listed["baselines"]] == ["b"]
    shown = json.loads(told(["baseline", "show", "b", "--json"], capsys).out)
    assert shown["schema"] == "ragaudit.baseline/1"
    assert len(shown["queries"]) == 12


def test_baseline_freeze_to_a_file_and_over_it(here, capsys):
    audit(here / "run.audit")
    told(["baseline", "freeze", "run.audit", "-o", "b.json"], capsys)
    assert "Pass --replace" in told(["baseline", "freeze", "run.audit", "-o", "b.json"], capsys, code=2).err
    told(["baseline", "freeze", "run.audit", "-o", "b.json", "--replace"], capsys)


def test_baseline_list_of_an_empty_folder_says_how_to_begin(here, capsys):
    said = told(["baseline", "list"], capsys)
    assert (said.out, "baseline freeze RUN.audit" in said.err) == ("", True)


# --- compare ---------------------------------------------------------------------------------------------------------


def test_compare_prints_what_changed_and_what_came_of_it(here, capsys):
    audit(here / "base.audit", name="before")
    audit(here / "cand.audit", (1.0,) * 2 + (0.0,) * 10, pipeline=MORE, name="after")
    said = told(["compare", "base.audit", "cand.audit"], capsys)
    assert said.err == ""
    assert "Changed: pipeline.rerank.top_n 8 -> 16\n" in said.out
    assert "the test set is too small: 12 paired queries, fewer than 30" in said.out
    assert "Recall                1.000 -> 0.167  -0.833" in said.out and "WORSE" in said.out
    assert "      10  pass -> Rerank/pack\n" in said.out
    assert "  q02                   pass -> Rerank/pack   recall@k -1.000, mrr@k -1.000\n" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_compare_with_a_frozen_baseline_is_the_same_as_with_its_audit(here, capsys):
    audit(here / "base.audit", name="before")
    audit(here / "cand.audit", (0.5,) * 12, pipeline=MORE)
    told(["baseline", "freeze", "base.audit"], capsys)
    direct = json.loads(told(["compare", "base.audit", "cand.audit", "--json"], capsys).out)
    frozen = json.loads(told(["compare", "before", "cand.audit", "--json"], capsys).out)
    assert frozen["base"].pop("frozen") is True and direct["base"].pop("frozen") is False
    assert frozen == direct


def test_compare_refuses_two_variables_with_exit_code_3(here, capsys):
    audit(here / "base.audit", name="before")
    audit(here / "cand.audit", pipeline=TWO, name="after")
    said = told(["compare", "base.audit", "cand.audit"], capsys, code=3)
    assert said.out == ""
    assert "ragaudit: before and after: cannot be compared.\n  - 2 pipeline variables changed" in said.err
    allowed = told(["compare", "base.audit", "cand.audit", "--allow", "fusion.k", "--allow", "fusio"], capsys)
    assert "Changed: pipeline.fusion.k 60 -> 30 (allowed by --allow)\n" in allowed.out
    assert allowed.err == "--allow fusio: nothing of that name differs.\n"


def test_compare_gate_exits_with_1_and_the_reason(here, capsys):
    audit(here / "base.audit")
    audit(here / "cand.audit", (0.0,) * 12, pipeline=MORE, leaking=("q03",))
    said = told(["compare", "base.audit", "cand.audit", "--gate"], capsys, code=1)
    assert "ragaudit: gate: 1 queries newly leak\n" in said.err
    assert "ragaudit: gate: recall@k is worse by 1.000" in said.err
    assert "!! LEAK: 1 query shows a chunk that the user may not read" in said.out
    found = json.loads(told(["compare", "base.audit", "cand.audit", "--gate", "--json"], capsys, code=1).out)
    assert found["gate"]["fired"] is True
    assert [change["query_id"] for change in found["newly_leaking"]] == ["q03"]


def test_compare_without_a_regression_passes_its_gate(here, capsys):
    audit(here / "base.audit")
    audit(here / "cand.audit", pipeline=MORE)
    assert told(["compare", "base.audit", "cand.audit", "--gate"], capsys).err == ""


def test_compare_of_hostile_ids_is_inert(here, capsys):
    hostile = "\x1b[2J\u202e{:02}"
    audit(here / "base.audit", ids=hostile)
    audit(here / "cand.audit", (0.0,) * 12, pipeline=MORE, ids=hostile)
    out = told(["compare", "base.audit", "cand.audit"], capsys).out
    assert "\x1b" not in out and "\u202e" not in out
    assert "<U+001B>[2J" in out


@pytest.mark.parametrize("name", ["nope", "nope.audit"])
def test_compare_with_a_base_that_is_not_there(here, name, capsys):
    audit(here / "cand.audit")
    assert f"{name}: no such audit file and no baseline" in told(["compare", name, "cand.audit"], capsys, code=3).err


# --- gate ------------------------------------------------------------------------------------------------------------


def test_gates_that_hold_exit_with_0(here, capsys):
    audit(here / "run.audit")
    gates(here, '"recall@k" = 0.8\nleaks = 0')
    said = told(["gate", "run.audit"], capsys)
    assert said.out.startswith("run: all 2 gates hold\n")
    assert said.err == "Gates from ragaudit.toml.\n"


def test_a_gate_that_fires_exits_with_1_and_names_the_queries(here, capsys):
    audit(here / "run.audit", (1.0,) * 5 + (0.0,) * 7)
    gates(here, '"recall@k" = 0.8\n"mrr@k" = 0.1')
    said = told(["gate", "run.audit"], capsys, code=1)
    assert "run: 1 of 2 gates fired" in said.out
    assert "X FIRED  recall@k.min: mean at least 0.8; it is 0.417 (12 queries)" in said.out
    assert "queries: q05, q06, q07" in said.out
    found = json.loads(told(["gate", "run.audit", "--json"], capsys, code=1).out)
    assert (found["schema"], found["passed"]) == ("ragaudit.gate/1", False)
    assert found["gates"][0]["queries"] == [f"q{n:02}" for n in range(5, 12)]


def test_a_relative_gate_needs_a_baseline(here, capsys):
    audit(here / "base.audit", name="main")
    audit(here / "run.audit", (1.0,) * 5 + (0.0,) * 7, pipeline=TWO)
    gates(here, '"recall@k" = { max_drop = 0.1 }')
    assert "gates.recall@k.max_drop: is measured against a baseline" in told(["gate", "run.audit"], capsys, code=2).err
    told(["baseline", "freeze", "base.audit"], capsys)
    said = told(["gate", "run.audit", "--baseline", "main"], capsys, code=1)
    assert "it is -0.583 (1.000 -> 0.417, 12 pairs)" in " ".join(said.out.split())
    assert told(["gate", "base.audit", "--baseline", "main"], capsys).out.startswith("main against main: all 1 gates")


def test_gate_without_gates_stops_and_says_how_to_choose_them(here, capsys):
    audit(here / "run.audit", name="my run")
    said = told(["gate", "run.audit"], capsys, code=2)
    assert said.out == ""
    assert "ragaudit.toml: no [gates]. Thresholds are yours to choose; choose them from a baseline:" in said.err
    assert "ragaudit baseline freeze run.audit" in said.err
    assert "ragaudit baseline show my-run" in said.err
    assert "recall@k             1.000  [0.900, 1.000]" in said.err
    (here / "ragaudit.toml").write_text("[gates]\n")
    assert "no [gates]" in told(["gate", "run.audit"], capsys, code=2).err


def test_gates_stand_here_or_beside_the_audit_or_where_config_says(here, capsys):
    (here / "bundle").mkdir()
    audit(here / "bundle" / "run.audit", (0.5,) * 3)
    gates(here / "bundle", '"recall@k" = 0.9')
    told(["gate", "bundle/run.audit"], capsys, code=1)
    gates(here, '"recall@k" = 0.1')
    told(["gate", "bundle/run.audit"], capsys)
    told(["gate", "bundle/run.audit", "--config", "bundle/ragaudit.toml"], capsys, code=1)


def test_a_misspelt_gate_names_the_nearest_metric(here, capsys):
    audit(here / "run.audit")
    gates(here, '"recal@k" = 0.8')
    said = told(["gate", "run.audit"], capsys, code=2)
    assert said.err == "ragaudit: ragaudit.toml: gates.recal@k: is no metric. Did you mean 'recall@k'?\n"


# --- experiment ------------------------------------------------------------------------------------------------------


def an_experiment(here, capsys, *options, code=0):
    audit(here / "base.audit", (0.0,) * 12, name="before")
    said = told(["experiment", "plan", "base.audit", "rerank_top_n", "--to", "16", *options], capsys, code=code)
    return said


def the_id(here):
    return json.loads((here / "experiments.jsonl").read_text().splitlines()[0])["id"]


def test_an_experiment_is_planned_started_and_finished(here, capsys):
    said = an_experiment(here, capsys, "--hypothesis", "the reranker drops what it should keep")
    assert "pipeline.rerank.top_n: 8 -> 16" in said.out
    assert "the reranker drops what it should keep" in said.out
    told(["experiment", "start", the_id(here)], capsys)
    audit(here / "cand.audit", pipeline=MORE, name="after")
    finished = told(["experiment", "finish", the_id(here), "cand.audit"], capsys)
    assert "Changed: pipeline.rerank.top_n 8 -> 16\n" in finished.out
    assert "confirmed  rerank_top_n" in finished.out
    assert "measured: recall@k +1.000" in finished.out
    listed = json.loads(told(["experiment", "list", "--json"], capsys).out)
    assert [(row["status"], row["finished"]["outcome"]) for row in listed["experiments"]] == [("finished", "confirmed")]
    assert [json.loads(line)["event"] for line in (here / "experiments.jsonl").read_text().splitlines()] == [
        "plan",
        "start",
        "finish",
    ]


def test_a_plan_takes_the_prediction_of_the_audit(here, capsys):
    proposed = Experiment.model_validate(
        {
            "lever": "rerank_top_n",
            "variable": "pipeline.rerank.top_n",
            "from": 8,
            "to": 16,
            "why": "9 failing queries: top n cut 9.",
            "stage": Stage.RERANK,
            "basis": Basis.REPLAYED,
            "predicted": {"recall@k": {"from": 0.0, "to": 0.75, "low": 0.6, "high": 0.9}},
        }
    )
    audit(here / "base.audit", (0.0,) * 12, experiments=(proposed,))
    said = told(["experiment", "plan", "base.audit", "rerank_top_n"], capsys).out
    assert "pipeline.rerank.top_n: 8 -> 16" in said
    assert "expected: recall@k 0.000 -> 0.750 [0.600, 0.900]" in said
    audit(here / "cand.audit", pipeline=MORE)
    finished = told(["experiment", "finish", the_id(here), "cand.audit"], capsys).out
    assert "prediction off by +0.250, outside its interval" in " ".join(finished.split())
    other = told(["experiment", "plan", "base.audit", "rerank_top_n", "--to", "32"], capsys).out
    assert "8 -> 32" in other and "needs a run" in other


def test_a_candidate_that_changed_more_does_not_finish_it(here, capsys):
    an_experiment(here, capsys)
    audit(here / "cand.audit", pipeline=TWO, name="after")
    said = told(["experiment", "finish", the_id(here), "cand.audit"], capsys, code=3)
    assert "changes pipeline.fusion.k, but" in said.err
    allowed = ["experiment", "finish", the_id(here), "cand.audit", "--allow", "fusion.k"]
    assert "allowed by hand: pipeline.fusion.k" in told(allowed, capsys).out


def test_another_base_than_the_one_planned_on_is_refused(here, capsys):
    an_experiment(here, capsys)
    audit(here / "other.audit", pipeline=TWO)
    said = told(["experiment", "finish", the_id(here), "other.audit", "--base", "other.audit"], capsys, code=3)
    assert "is not the run that" in said.err
    (here / "base.audit").unlink()
    assert "with --base" in told(["experiment", "finish", the_id(here), "other.audit"], capsys, code=3).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no_such_lever"], "lever 'no_such_lever': is not known"),
        (["rerank_top_n", "--to", "all"], "--to all: lever rerank_top_n cannot be set to that"),
        (["filter_enforced", "--to", "none"], "--to none: lever filter_enforced cannot be set to that"),
        (["rerank_top_n", "--variable", "filter.expected"], "--variable filter.expected: lever rerank_top_n changes"),
        (["lexical_operator", "--to", "or"], "lever lexical_operator: fits no keys. Pass --variable"),
    ],
)
def test_a_plan_outside_the_catalogue_is_refused_and_not_written(here, arguments, message, capsys):
    audit(here / "base.audit")
    assert message in told(["experiment", "plan", "base.audit", *arguments], capsys, code=2).err
    assert not (here / "experiments.jsonl").exists()


def test_the_arm_of_a_lever_is_taken_from_the_configuration(here, capsys):
    pipeline = {**BASE, "search": {"dense": {"fetch_k": 20}, "bm25": {"operator": "and"}}}
    audit(here / "base.audit", pipeline=pipeline)
    said = told(["experiment", "plan", "base.audit", "lexical_operator", "--to", "or"], capsys, code=2)
    assert "fits 2 keys. Pass --variable with one of search.dense.operator, search.bm25.operator" in said.err
    arguments = ["lexical_operator", "--to", "or", "--variable", "search.bm25.operator"]
    assert "search.bm25.operator: and -> or" in told(["experiment", "plan", "base.audit", *arguments], capsys).out


def test_a_change_that_was_planned_before_is_said(here, capsys):
    an_experiment(here, capsys)
    assert f"The same change stands there as {the_id(here)} (planned)." in an_experiment(here, capsys).err


def test_an_empty_journal_says_how_to_begin(here, capsys):
    assert "Plan one: ragaudit experiment plan RUN.audit LEVER" in told(["experiment", "list"], capsys).out


def test_a_hypothesis_cannot_steer_a_terminal_or_a_review(here, capsys):
    said = an_experiment(here, capsys, "--hypothesis", "\x1b[2J\u202eok")
    assert "\x1b" not in said.out and "\u202e" not in said.out
    assert "\u202e" not in (here / "experiments.jsonl").read_text()


# --- the manual ------------------------------------------------------------------------------------------------------


def test_the_gates_of_the_manual_are_read(here, repository, capsys):
    (block,) = re.findall(r"```toml\n(.*?)```", (repository / "docs" / "compare.md").read_text("utf-8"), re.DOTALL)
    (here / "ragaudit.toml").write_text(block)
    audit(here / "run.audit")
    out = told(["gate", "run.audit", "--baseline", "run.audit"], capsys, code=1).out
    assert "run against run: 5 of 10 gates fired" in out
    assert "hallucination.max: mean at most 0.1; it is undefined" in " ".join(out.split())
