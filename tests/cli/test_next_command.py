import json

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
        "predicted": {"recall@k": {"from": 0.5, "to": 0.7, "low": 0.625, "high": 0.75}},
        "excluded": 9,
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
        "excluded": 0,
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
  effect   keeps 29 of 41, loses 2 (replayed)
  why      41 failing queries: top n cut 41. Keep more of what the reranker
           returns.
  frozen   the ACL rule and every filter clause; K
  watch    MRR, latency
  how      LangChain: CrossEncoderReranker(top_n=16)
  queries  q-000 q-001 q-002 q-003 q-004 q-005 q-006 q-007 q-008 q-009 q-010
           q-011 ...
  Recall               0.500 -> 0.700  [0.625, 0.750]
  - 9 queries could not be replayed and are in none of these numbers

-- After that ------------------------------------------------------------------
    reingest_source      answers 4, needs a run; recall could reach 0.56 at m...
"""


def test_what_needs_a_run_has_no_number_and_says_what_it_needs():
    text = next_text((needs_a_run(),))
    assert "  > pipeline.index.sources\n" in text
    assert "answers 4, needs a run; recall could reach 0.56 at most" in text
    assert "needs    authorisation: index_write" in text
    assert "->" not in text


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
    assert first["predicted"]["recall@k"] == {"from": 0.5, "to": 0.7, "low": 0.625, "high": 0.75}
    assert (found["experiments"][1]["keeps"], found["experiments"][1]["predicted"]) == (None, {})


def test_what_the_journal_refuted_is_left_out(here, capsys):
    audit(here)
    journal(here, Outcome.REFUTED)
    said = told(["next", "run.audit", "--json"], capsys)
    assert [e["lever"] for e in json.loads(said.out)["experiments"]] == ["reingest_source"]
    assert said.err == "1 left out: experiments.jsonl says that they were tried and refuted.\n"


@pytest.mark.parametrize("outcome", [Outcome.CONFIRMED, Outcome.OPEN])
def test_what_was_confirmed_or_stays_open_is_still_shown(here, capsys, outcome):
    audit(here)
    journal(here, outcome)
    assert len(json.loads(told(["next", "run.audit", "--json"], capsys).out)["experiments"]) == 2


def test_another_value_of_a_refuted_variable_is_still_shown(here, capsys):
    audit(here)
    journal(here, Outcome.REFUTED, experiment(to=32))
    assert len(json.loads(told(["next", "run.audit", "--json"], capsys).out)["experiments"]) == 2


def test_another_journal_can_be_named(here, capsys):
    audit(here)
    journal(here, Outcome.REFUTED, name="ours.jsonl")
    assert "rerank_top_n" in told(["next", "run.audit", "--json"], capsys).out
    assert "rerank_top_n" not in told(["next", "run.audit", "--json", "--journal", "ours.jsonl"], capsys).out.replace(
        "rerank_top_n recovers", ""
    )


def test_quiet_keeps_the_note_back(here, capsys):
    audit(here)
    journal(here, Outcome.REFUTED)
    assert told(["next", "run.audit", "-q"], capsys).err == ""


def test_an_audit_that_is_not_there_and_a_broken_journal_end_with_3(here, capsys):
    assert "run.audit: no such file" in told(["next", "run.audit"], capsys, code=3).err
    audit(here)
    (here / "experiments.jsonl").write_text("no json\n")
    said = told(["next", "run.audit"], capsys, code=3)
    assert (said.out, "experiments.jsonl:1: not JSON" in said.err) == ("", True)
