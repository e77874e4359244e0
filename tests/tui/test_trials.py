"""The proposals and the journal without a screen: standing, planning, and the lines that show them."""

import json

import pytest

from ragaudit.errors import ConfigError
from ragaudit.experiments.conclusion import conclude
from ragaudit.experiments.journal import Journal, append
from ragaudit.model.comparison import Comparison, Difference, MetricChange, Paired, QueryChange, Side, Verdict
from ragaudit.model.diagnosis import Stage
from ragaudit.model.experiment import Basis, Experiment
from ragaudit.tui.experiments_view import detail_lines, journal_lines
from ragaudit.tui.lines import Role, as_text
from ragaudit.tui.overview_view import experiment_rows
from ragaudit.tui.session import Session
from ragaudit.tui.trials import Trials, standing
from tests.tui.builders import lost_at_pack, write
from tests.tui.compare_audits import info
from tests.tui.conftest import NOON

PIPELINE = {"rerank": {"top_n": 8}, "search": {"dense": {"fetch_k": 20}, "bm25": {"fetch_k": 10}}}

MOVED = {"recall@k": {"from": 0.5, "to": 0.8, "low": 0.6, "high": 0.9}}


def experiment(**over):
    given = {
        "lever": "rerank_top_n",
        "variable": "pipeline.rerank.top_n",
        "from": 8,
        "to": 16,
        "why": "2 failing queries: top n cut 2.",
        "stage": Stage.RERANK,
        "basis": Basis.REPLAYED,
        "queries": ("q1", "q3"),
        "keeps": 2,
        "of": 3,
        "loses": 1,
        "lost": ("q2",),
        "predicted": {"recall@k": {"from": 0.5, "to": 0.75, "low": 0.625, "high": 0.875}},
        "replay": {"queries": 9, "of": 10, "keeps": 2, "loses": 1, "unknown": {"no list": 1}, "changes": MOVED},
        "frozen": ("the ACL rule and every filter clause", "K"),
        "how": "LangChain: CrossEncoderReranker(top_n=16)",
        "watch": ("mrr@k", "latency"),
    }
    return Experiment.model_validate(given | over)


def needs_a_run(**over):
    given = {
        "lever": "arm_pool",
        "variable": "pipeline.search.*.fetch_k",
        "from": None,
        "to": None,
        "why": "1 failing query: weak match 1.",
        "basis": Basis.NEEDS_A_RUN,
        "queries": ("q3",),
        "keeps": None,
        "of": 1,
        "loses": None,
        "lost": (),
        "predicted": {},
        "replay": None,
        "ceiling": 0.56,
        "how": "",
        "lost_to": "recovers 1, rerank_top_n recovers 1",
    }
    return experiment(**(given | over))


REINGEST = {
    "lever": "reingest_source",
    "variable": "pipeline.index.sources",
    "authorisation": "index_write",
    "queries": (),
}
ALL = (experiment(), needs_a_run(), needs_a_run(**REINGEST))


def audit(folder, experiments=ALL, pipeline=PIPELINE):
    rows = [lost_at_pack("q1"), lost_at_pack("q2"), lost_at_pack("q3")]
    return write(folder / "run.audit", rows, run=info(pipeline, "run"), experiments=experiments)


@pytest.fixture
def trials(tmp_path):
    with Session.open(audit(tmp_path)) as session:
        yield Trials(session, tmp_path / "experiments.jsonl", clock=lambda: NOON)


def finish(path, difference, *, leaking=(), verdict=Verdict.BETTER):
    """Finish the last plan of a journal with this difference of recall."""
    plan = Journal.read(path).entries[-1].plan
    side = {"fingerprint": "b2:x", "ragaudit": "0", "queries": 40, "k_final": 8, "leaking": 0}
    paired = Paired(n=40, before=0.5, after=0.5 + difference, difference=difference, low=0.0, high=0.3, p=0.001)
    found = Comparison(
        base=Side(name="run", **side),
        candidate=Side(name="cand", **side),
        pairs=40,
        variables=(Difference(name=plan.variable, before=8, after=plan.after),),
        metrics=(MetricChange(metric="recall@k", paired=paired, p_holm=0.01, verdict=verdict),),
        newly_leaking=tuple(QueryChange(query_id=q, before="pass", after="filter", leaks=("c",)) for q in leaking),
    )
    append(path, conclude(plan, found, at="2026-01-03T00:00:00+00:00"))


# --- planning and standing -------------------------------------------------------------------------------------------


def test_a_plan_is_what_the_command_writes_and_says_how_to_take_it_back(trials):
    said = trials.plan(experiment())
    (line,) = trials.path.read_text("utf-8").splitlines()
    written = json.loads(line)
    assert said == f"planned rerank.top_n as {written['id']} in {trials.path}; to take it back, delete that line"
    assert {key: written[key] for key in ("event", "at", "run", "fingerprint", "lever", "variable", "from", "to")} == {
        "event": "plan",
        "at": "2026-01-02T12:00:00+00:00",
        "run": "run",
        "fingerprint": "b2:run",
        "lever": "rerank_top_n",
        "variable": "pipeline.rerank.top_n",
        "from": 8,
        "to": 16,
    }
    assert written["audit"] == str(trials.session.reader.path)
    assert trials.journal.entries[0].plan.moves == "recall@k"
    assert written["predicted"] == {"recall@k": {"from": 0.5, "to": 0.75, "low": 0.625, "high": 0.875}}
    assert trials.states() == ["planned", "", ""]


def test_what_is_planned_and_not_finished_is_not_planned_again(trials):
    trials.plan(experiment())
    with pytest.raises(ConfigError, match="the same change is planned already in"):
        trials.plan(experiment())
    entry = trials.journal.entries[0]
    Journal.read(trials.path).start(entry.plan.id, at="2026-01-02T13:00:00+00:00")
    trials.read()
    assert trials.states() == ["running", "", ""]
    with pytest.raises(ConfigError, match="the same change is started already in"):
        trials.plan(experiment())
    finish(trials.path, 0.2)
    trials.read()
    assert trials.states() == ["confirmed +0.200", "", ""]
    trials.plan(experiment())
    assert len(trials.journal.entries) == 2
    assert trials.states() == ["planned", "", ""]


def test_a_refutation_outlasts_later_plans(trials):
    trials.plan(experiment())
    finish(trials.path, -0.1, verdict=Verdict.WORSE)
    trials.plan(experiment())
    assert trials.states() == ["refuted -0.100", "", ""]


def test_what_a_run_does_not_tell_is_open(trials):
    trials.plan(experiment())
    finish(trials.path, 0.01, verdict=Verdict.SAME)
    trials.read()
    assert standing(trials.about(experiment())) == "open +0.010"


def test_a_lever_that_fits_several_keys_asks_for_one(trials):
    either = needs_a_run()
    assert trials.keys(either) == ["search.dense.fetch_k", "search.bm25.fetch_k"]
    assert trials.keys(experiment()) == []
    with pytest.raises(ConfigError, match="lever arm_pool: fits 2 keys"):
        trials.plan(either)
    assert not trials.path.exists()
    trials.plan(either, "search.bm25.fetch_k")
    (entry,) = trials.journal.entries
    assert (entry.plan.variable, entry.plan.before, entry.plan.predicted) == ("pipeline.search.bm25.fetch_k", 10, {})
    assert trials.states() == ["", "planned", ""]
    trials.plan(either, "search.dense.fetch_k")
    assert len(trials.journal.entries) == 2


def test_a_lever_whose_key_the_configuration_lacks_cannot_be_planned(tmp_path):
    with Session.open(audit(tmp_path, pipeline={})) as session:
        trials = Trials(session, tmp_path / "experiments.jsonl")
        assert trials.keys(needs_a_run()) == []
        with pytest.raises(ConfigError, match="fits no keys"):
            trials.plan(needs_a_run())


def test_a_damaged_journal_is_said_to_be_damaged_and_nothing_is_written(trials):
    trials.path.write_text("no json\n")
    trials.read()
    assert trials.trouble.startswith(f"{trials.path}:1: not JSON")
    assert (trials.states(), trials.journal.entries) == (["", "", ""], ())
    with pytest.raises(ConfigError, match="not JSON"):
        trials.plan(experiment())
    assert trials.path.read_text() == "no json\n"


# --- lines -----------------------------------------------------------------------------------------------------------


def test_rows_show_what_would_happen_and_what_the_journal_says():
    rows = experiment_rows(ALL, 78, ["refuted -0.100", "", "planned"])
    assert as_text(row.text for row in rows) == (
        " 1 rerank.top_n: 8 -... refuted -0.100 keeps 2 of 3, loses 1 (replayed on 9...\n"
        " 2 search.*.fetch_k                    answers 1, needs a run; recall could...\n"
        " 3 index.sources        planned        answers 1, needs a run; recall could..."
    )
    assert [row.text[1].role for row in rows] == [Role.LOST, Role.KEPT, Role.KEPT]
    assert [row.queries for row in rows] == [("q1", "q3"), ("q3",), ()]


def test_every_detail_of_a_replayed_experiment():
    assert as_text(detail_lines(experiment(), (), 70)) == (
        "> pipeline.rerank.top_n: 8 -> 16\n"
        "effect    keeps 2 of 3, loses 1 (replayed on 9 of 10 queries)\n"
        "predicted\n"
        "  over the 9 of 10 queries whose lists tell what it does\n"
        "    Recall               0.500 -> 0.800  [0.600, 0.900]\n"
        "  over the whole run, whatever the other 1 do (to: they stay as they are)\n"
        "    Recall               0.500 -> 0.750  [0.625, 0.875]\n"
        "  - 1 not replayed: no list\n"
        "why       2 failing queries: top n cut 2.\n"
        "behind    nothing: it is ranked first\n"
        "frozen    the ACL rule and every filter clause; K\n"
        "watch     MRR, latency\n"
        "how       LangChain: CrossEncoderReranker(top_n=16)\n"
        "answers   2: q1 q3\n"
        "loses     1: q2\n"
        "lever     rerank_top_n"
    )


def test_what_needs_a_run_gets_no_number_and_says_what_it_needs():
    text = as_text(detail_lines(needs_a_run(**REINGEST), (), 78))
    assert text == (
        "> pipeline.index.sources\n"
        "effect    answers 1, needs a run; recall could reach 0.56 at most\n"
        "predicted no number: the recorded lists cannot tell, a run must\n"
        "why       1 failing query: weak match 1.\n"
        "behind    recovers 1, rerank_top_n recovers 1\n"
        "frozen    the ACL rule and every filter clause; K\n"
        "watch     MRR, latency\n"
        "needs     authorisation index_write: ask before anything is written to an\n"
        "          index\n"
        "answers   0:\n"
        "lever     reingest_source"
    )


def test_a_long_text_is_cut_and_the_rest_counted():
    text = as_text(detail_lines(experiment(why="x" * 40_000), (), 78))
    assert text.count("x") == 2_000
    assert "(38,000 more characters)" in text


def test_what_was_refuted_says_so_first_and_shows_its_entries(trials):
    trials.plan(experiment())
    finish(trials.path, 0.2, leaking=("q1",))
    trials.read()
    entries = trials.about(experiment())
    lines = detail_lines(experiment(), entries, 78)
    assert as_text(lines[1:3]) == (
        "x the journal says that this was tried and refuted: `ragaudit next` leaves it\n  out"
    )
    assert lines[1][0].role is Role.LOST
    plan = entries[0].plan
    assert as_text(lines[-7:]) == (
        f"-- in the journal {'-' * 60}\n"
        f"{plan.id}  refuted    rerank_top_n   2026-01-02\n"
        "        pipeline.rerank.top_n: 8 -> 16\n"
        "        Keep more of what the reranker returns; same candidates and order.\n"
        "        expected: recall@k 0.500 -> 0.750 [0.625, 0.875]\n"
        "        measured: 1 queries newly leak: no gain makes up for that; prediction\n"
        "          off by -0.050, inside its interval"
    )


def test_the_journal_shows_the_last_plan_first_and_counts_what_came_out(trials):
    trials.plan(experiment())
    finish(trials.path, -0.1, verdict=Verdict.WORSE)
    trials.plan(needs_a_run(**REINGEST))
    lines = journal_lines(trials.journal, "", 78)
    ids = [entry.plan.id for entry in trials.journal.entries]
    assert as_text(lines).split("\n")[:3] == [
        "2 planned and 1 refuted",
        f"{ids[1]}  planned    reingest_source   2026-01-02",
        "        pipeline.index.sources: (not said) -> (not said)",
    ]
    refuted = next(line for line in lines if line[0].text.startswith(ids[0]))
    assert refuted[0].role is Role.LOST


def test_an_empty_and_a_damaged_journal(trials):
    assert as_text(journal_lines(Journal(trials.path), "", 200)) == (
        f"{trials.path}: nothing planned yet. t plans the experiment under the cursor."
    )
    assert as_text(journal_lines(Journal(trials.path), "x:1: not JSON.", 70)) == "x:1: not JSON."
