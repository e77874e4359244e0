import json
from pathlib import Path

import pytest
from cli_builders import result, summary

from ragaudit.cli.main import execute
from ragaudit.experiments.events import Finished, Outcome
from ragaudit.experiments.journal import Journal, append
from ragaudit.model.diagnosis import Stage
from ragaudit.model.experiment import Basis, Experiment
from ragaudit.model.trace import Trace
from ragaudit.report.layout import cells
from ragaudit.report.next_text import SHOWN, next_text
from ragaudit.store import AuditWriter

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
AT = "2026-10-01T12:00:00+00:00"


def experiment(**over):
    given = {
        "lever": "rerank_top_n",
        "variable": "pipeline.rerank.top_n",
        "from": 8,
        "to": 16,
        "why": "41 failing queries: top n cut 41. Keep more of what the reranker returns.",
        "stage": Stage.RERANK,
        "basis": Basis.REPLAYED,
        "queries": tuple(f"q-{n:03}" for n in range(29)),
        "keeps": 29,
        "of": 41,
        "loses": 2,
        "lost": ("q-201", "q-202"),
        "predicted": {"recall@k": {"from": 0.5, "to": 0.7, "low": 0.625, "high": 0.75, "n": 140}},
        "replay": {
            "queries": 131,
            "of": 140,
            "keeps": 29,
            "loses": 2,
            "unknown": {"arms are not logged": 7, "the prompt left out part of the context": 2},
            "changes": {"recall@k": {"from": 0.5, "to": 0.71, "low": 0.64, "high": 0.74, "n": 131}},
        },
        "frozen": ("the ACL rule and every filter clause", "K"),
        "how": "LangChain: CrossEncoderReranker(top_n=16)",
        "watch": ("mrr@k", "latency"),
    }
    return Experiment.model_validate(given | over)


def needs_a_run(**over):
    given = {
        "lever": "reingest_source",
        "variable": "pipeline.index.sources",
        "from": None,
        "to": None,
        "stage": Stage.INGESTION,
        "basis": Basis.NEEDS_A_RUN,
        "queries": ("q-301",),
        "keeps": None,
        "of": 4,
        "loses": None,
        "lost": (),
        "predicted": {},
        "replay": None,
        "ceiling": 0.56,
        "authorisation": "index_write",
        "lost_to": "recovers 4, rerank_top_n recovers 27",
    }
    return experiment(**(given | over))


BOTH = (experiment(), needs_a_run())


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audit(folder, experiments=BOTH):
    row = result("q1")
    with AuditWriter(folder / "run.audit", key="k") as writer:
        writer.add([(row, Trace(query_id="q1", query_text="?", k_final=2))])
        writer.finish(summary(1).model_copy(update={"experiments": experiments}))


def told(arguments, capsys, code=0):
    assert execute([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


def journal(folder, outcome, proposed=BOTH[0], name="experiments.jsonl"):
    path = folder / name
    plan = Journal.read(path).plan(proposed, moves="recall@k", run="base", fingerprint="b2:1", at=AT)
    append(
        path,
        Finished(id=plan.id, at=AT, candidate="c", fingerprint="b2:2", outcome=outcome, why="as measured", pairs=30),
    )


def test_the_first_experiment_in_full_and_a_line_for_each_after_it(here, capsys):
    audit(here)
    said = told(["next", "run.audit"], capsys)
    assert said.err == ""
    assert said.out == TEXT


TEXT = """\
-- Next experiment: change one variable ----------------------------------------
  > pipeline.rerank.top_n: 8 -> 16
  effect   keeps 29 of 41, loses 2 (replayed on 131 of 140 queries)
  why      41 failing queries: top n cut 41. Keep more of what the reranker
           returns.
  frozen   the ACL rule and every filter clause; K
  watch    MRR, latency
  how      LangChain: CrossEncoderReranker(top_n=16)
  queries  q-000 q-001 q-002 q-003 q-004 q-005 q-006 q-007 q-008 q-009 q-010
           q-011 ...
  over the 131 of 140 queries whose lists tell what it does
    Recall               0.500 -> 0.710  [0.640, 0.740]
  over the whole run, whatever the other 9 do (to: they stay as they are)
    Recall               0.500 -> 0.700  [0.625, 0.750]
  - 7 not replayed: arms are not logged
  - 2 not replayed: the prompt left out part of the context

-- After that ------------------------------------------------------------------
    reingest_source      answers 4, needs a run; recall could reach 0.56 at m...
"""


def test_what_needs_a_run_has_no_number_and_says_what_it_needs():
    text = next_text((needs_a_run(),))
    assert "  > pipeline.index.sources\n" in text
    assert "answers 4, needs a run; recall could reach 0.56 at most" in text
    assert "needs    authorisation: index_write" in text
    assert "->" not in text


def test_a_change_that_too_few_queries_tell_of_says_how_many_and_gives_no_number_of_the_run():
    few = {"queries": 56, "of": 84, "keeps": 3, "loses": 1, "unknown": {"the reranker never scored some": 28}}
    few["changes"] = {"recall@k": {"from": 0.49, "to": 0.52, "low": 0.47, "high": 0.55, "n": 56}}
    change = {"from": 60, "to": 10, "variable": "pipeline.fusion.k"}
    given = needs_a_run(lever="fusion_constant", replay=few, **change)
    text = next_text((given,))
    assert "answers 4, needs a run: 56 of 84 replayed, of those keeps 3, loses 1; recall" in " ".join(text.split())
    assert "  over the 56 of 84 queries whose lists tell what it does\n    Recall " in text
    assert "  over the whole run: needs a run, too few queries can be replayed\n" in text
    assert text.count("[") == 1


def test_where_every_query_was_replayed_the_run_is_the_same_queries():
    whole = experiment().replay.model_copy(update={"queries": 140, "unknown": {}})
    text = next_text((experiment(replay=whole),))
    assert "keeps 29 of 41, loses 2 (replayed)\n" in text
    assert "over the whole run" not in text
    assert "  over the 140 of 140 queries" in text


def test_a_change_in_queries_that_depart_says_which_and_from_what():
    given = experiment(**{"from": [20, 60], "to": 900}, variable="pipeline.pack.token_budget", departing=("q-1", "q-2"))
    text = next_text((given,))
    assert "  > pipeline.pack.token_budget: 20, 60 -> 900\n" in text
    assert "  where    only in queries that depart from the run's value: q-1 q-2\n" in text


def test_a_list_of_arms_is_one_value():
    given = experiment(**{"from": ["dense", "bm25"], "to": ["dense"]}, variable="pipeline.arms")
    assert "pipeline.arms: ['dense', 'bm25'] -> ['dense']" in next_text((given,))


def test_a_floor_that_is_taken_off_is_shown_as_off():
    assert "pipeline.thresholds.0.value: 0.3 -> off" in next_text(
        (experiment(variable="pipeline.thresholds.0.value", **{"from": 0.3, "to": None}),)
    )


def test_no_line_is_wider_than_80_cells_and_nothing_hostile_is_shown():
    bad = "\x1b[31m\u202e" + "長い説明" * 60
    found = (experiment(why=bad, how=bad, queries=(bad,)), *[needs_a_run(lost_to=bad)] * 20)
    text = next_text(found)
    assert max(map(cells, text.splitlines())) <= 80
    assert "\x1b" not in text and "\u202e" not in text
    assert f"and {20 - SHOWN} more: --json lists all of them" in text


def test_nothing_to_propose_is_said(here, capsys):
    audit(here, ())
    assert told(["next", "run.audit"], capsys).out == (
        "No experiment to propose: no failing query has a cause that a lever answers.\n"
    )


def test_json_has_every_experiment_in_full(here, capsys):
    audit(here)
    found = json.loads(told(["next", "run.audit", "--json"], capsys).out)
    assert found["schema"] == "ragaudit.next/1"
    assert tuple(map(Experiment.model_validate, found["experiments"])) == BOTH
    first = found["experiments"][0]
    assert (first["from"], first["to"], first["keeps"], first["basis"]) == (8, 16, 29, "replayed")
    assert first["predicted"]["recall@k"] == {"from": 0.5, "to": 0.7, "low": 0.625, "high": 0.75, "n": 140}
    assert (first["replay"]["queries"], first["replay"]["of"]) == (131, 140)
    assert (found["experiments"][1]["keeps"], found["experiments"][1]["predicted"]) == (None, {})
    assert found["gates"] is None


# --- on the demo: the journal, a filter, the gates ----------------------------------------------------------------


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    path = tmp_path_factory.mktemp("demo") / "demo.audit"
    assert execute(["audit", str(DEMO), "-o", str(path), "-q"]) == 0
    return path


def listed(path, capsys, *more):
    capsys.readouterr()
    said = told(["next", path, "--json", *more], capsys)
    return [Experiment.model_validate(row) for row in json.loads(said.out)["experiments"]], said.err


def by_lever(found, name):
    return next((each for each in found if each.lever == name), None)


def test_what_the_journal_refuted_is_left_out_and_the_rest_is_ranked_anew(here, demo, capsys):
    before, _ = listed(demo, capsys)
    assert by_lever(before, "reingest_source").lost_to == "filter_enforced closes a leak: that comes first"
    journal(here, Outcome.REFUTED, before[0])
    after, err = listed(demo, capsys)
    assert err == "1 left out: experiments.jsonl says that they were tried and refuted.\n"
    assert [each.lever for each in after] == [each.lever for each in before if each.lever != "filter_enforced"]
    assert (after[0].lever, after[0].lost_to) == ("reingest_source", None)
    assert by_lever(after, "parser").lost_to == "as many as reingest_source, a later lever"


def test_another_value_is_tried_where_the_proposed_one_was_refuted(here, demo, capsys):
    before, _ = listed(demo, capsys)
    budget = by_lever(before, "token_budget")
    assert (budget.before, budget.after, budget.keeps) == ([20, 60], 900, 2)
    journal(here, Outcome.REFUTED, budget)
    again = by_lever(listed(demo, capsys)[0], "token_budget")
    assert (again.before, again.after, again.departing, again.keeps) == (20, 30, ("q-006",), 1)


@pytest.mark.parametrize("outcome", [Outcome.CONFIRMED, Outcome.OPEN])
def test_what_was_confirmed_or_stays_open_is_still_shown(here, demo, capsys, outcome):
    before, _ = listed(demo, capsys)
    journal(here, outcome, before[0])
    assert listed(demo, capsys) == (before, "")


def test_another_journal_can_be_named(here, demo, capsys):
    before, _ = listed(demo, capsys)
    journal(here, Outcome.REFUTED, before[0], name="ours.jsonl")
    assert listed(demo, capsys)[0] == before
    assert listed(demo, capsys, "--journal", "ours.jsonl")[0][0].lever == before[1].lever


def test_quiet_keeps_the_note_back(here, demo, capsys):
    journal(here, Outcome.REFUTED, listed(demo, capsys)[0][0])
    assert listed(demo, capsys, "-q")[1] == ""


@pytest.mark.parametrize(
    ("wanted", "lever", "queries"),
    [
        ("stage:rerank", "token_budget", {"q-006", "q-052"}),
        ("stage:embed", "reembed_rows", {"q-007", "q-033", "q-058"}),
        ("slice:family=contract", "filter_enforced", {"q-013", "q-056"}),
        ("slice:family=contract -is:leak", "post_filter_pool", {"q-059", "q-073"}),
        ("cause:reranker_demotion stage:rerank q-085", "rerank_off", {"q-085"}),
    ],
)
def test_a_filter_asks_for_the_levers_that_these_queries_need(here, demo, capsys, wanted, lever, queries):
    found, _ = listed(demo, capsys, "--filter", wanted)
    assert (found[0].lever, {*found[0].queries}) == (lever, queries)


def test_what_a_change_does_is_counted_over_the_whole_run_under_a_filter_too(here, demo, capsys):
    whole = by_lever(listed(demo, capsys)[0], "token_budget")
    (only,) = listed(demo, capsys, "--filter", "q-006")[0]
    assert only.model_copy(update={"why": whole.why, "lost_to": whole.lost_to}) == whole


def test_a_filter_that_no_failing_query_meets_proposes_nothing(here, demo, capsys):
    assert listed(demo, capsys, "--filter", "is:passing -is:leak")[0] == []
    assert "filter: 'stages' is not a key" in told(["next", demo, "--filter", "stages:x"], capsys, code=2).err


def test_show_names_the_experiment_that_answers_the_query(here, demo, capsys):
    capsys.readouterr()
    said = told(["show", demo, "q-006"], capsys).out
    assert (
        "-- Next experiment that answers it, over the whole run -------------------------\n"
        "  > pipeline.pack.token_budget: 20, 60 -> 900 keeps 2 of 48, loses 0 (replayed)\n"
    ) in said
    row = json.loads(told(["show", demo, "q-006", "--json"], capsys).out)
    mine = [each for each in listed(demo, capsys)[0] if "q-006" in each.queries]
    assert [Experiment.model_validate(each) for each in row["experiments"]] == mine
    assert "Next experiment" not in told(["show", demo, "q-011"], capsys).out


def test_the_report_says_the_same_experiments_first(here, demo, capsys):
    found, _ = listed(demo, capsys)
    said = told(["report", demo], capsys).out
    part = said.split("## What to do next\n")[1].split("\n## ")[0]
    assert f"\nChange one variable, `{found[0].variable}`: answers 2, needs a run" in part
    assert [line.split("|")[1].strip() for line in part.splitlines() if line.startswith("| ")][2:] == [
        each.lever for each in found[1:5]
    ]
    assert f"and {len(found) - 5} more: `ragaudit next RUN.audit --json`." in part


GATED = '[gates]\n"recall@k" = {}\n'


def test_gates_that_hold_do_not_say_stop_while_a_query_leaks(here, demo, capsys):
    (here / "ragaudit.toml").write_text(GATED.format(0.4))
    said = told(["next", demo], capsys).out
    assert said.startswith("-- Next experiment: change one variable")
    found = json.loads(told(["next", demo, "--json"], capsys).out)["gates"]
    assert (found["met"], found["held"], found["leaking_queries"]) == (False, ["recall@k.min"], 2)


def test_gates_that_all_hold_say_stop(here, capsys):
    audit(here, (experiment(),))
    (here / "ragaudit.toml").write_text("[gates]\nleaks = 0\n")
    said = told(["next", "run.audit"], capsys).out
    assert said.startswith("Every gate holds (leaks) and no query leaks: by your own thresholds, stop here.\n\n")
    assert "-- What would come next: change one variable ---" in said
    audit(here, ())
    assert told(["next", "run.audit"], capsys).out.endswith(
        "No experiment to propose: no failing query has a cause that a lever answers.\n"
    )


@pytest.mark.parametrize(
    ("gates", "part"),
    [
        (GATED.format(0.9), {"fired": ["recall@k.min"], "held": [], "unchecked": []}),
        ('[gates]\nleaks = 0\n"recall@k" = {max_drop = 0.1}\n', {"unchecked": ["recall@k.max_drop"]}),
    ],
)
def test_a_gate_that_fires_or_needs_a_baseline_is_no_reason_to_stop(here, gates, part, capsys):
    audit(here)
    (here / "ragaudit.toml").write_text(gates)
    assert "stop here" not in told(["next", "run.audit"], capsys).out
    found = json.loads(told(["next", "run.audit", "--json"], capsys).out)["gates"]
    assert found["met"] is False
    assert {name: found[name] for name in part} == part


def test_an_audit_that_is_not_there_and_a_broken_journal_end_with_3(here, capsys):
    assert "run.audit: no such file" in told(["next", "run.audit"], capsys, code=3).err
    audit(here)
    (here / "experiments.jsonl").write_text("no json\n")
    said = told(["next", "run.audit"], capsys, code=3)
    assert (said.out, "experiments.jsonl:1: not JSON" in said.err) == ("", True)
