"""`ragaudit judge run RUN.audit`: queries of a finished audit are judged into it."""

import json

import pytest
from judged_bundle import Literal, budget, judged_bundle, use

from ragaudit.cli.main import execute
from ragaudit.model.review import Patch, ReviewVerdict
from ragaudit.store import AuditReader, AuditUpdater, Reviews


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def model(monkeypatch):
    return use(monkeypatch, Literal())


@pytest.fixture
def audited(here, model, capsys):
    """Three queries that nobody judged, in run.audit."""
    judged_bundle(here / "b")
    told(["audit", "b", "--judge", "off", "-o", "run.audit", "-q"], capsys)
    return here / "run.audit"


def told(arguments, capsys, code=0):
    capsys.readouterr()
    assert execute([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


def faithfulness(path):
    with AuditReader.open(path) as reader:
        return {r.diagnosis.query_id: r.metrics["faithfulness"] for r in reader.iter_results()}


def test_the_queries_are_judged_into_the_file_and_the_summary_is_shown(audited, capsys):
    said = told(["judge", "run", audited], capsys)
    assert faithfulness(audited) == {"q1": 1.0, "q2": 0.0, "q3": 1.0}
    assert "3 queries judged by test/literal" in said.out
    assert said.err.endswith("3 of 3 queries judged, 0 of them unscored.\n")
    again = told(["judge", "run", audited, "--tape", "none"], capsys)
    assert again.err.endswith("0 of 0 queries judged, 0 of them unscored.\n")


def test_the_report_agrees_with_the_summary_after_each_of_two_parts(audited, capsys):
    for query, states in (
        ("q1", "| Faithfulness | 1 | 0 | 0 | 0 | 0 |"),
        ("q3", "| Faithfulness | 2 | 0 | 0 | 0 | 0 |"),
    ):
        told(["judge", "run", audited, "--filter", query, "-q"], capsys)
        said = told(["report", audited], capsys).out
        assert states in said
        with AuditReader.open(audited) as reader:
            summary = reader.summary()
        outcomes = [row.outcome for row in AuditReader.open(audited).page()]
        assert {name: n for name, n in summary.outcomes.items() if n} == {o: outcomes.count(o) for o in outcomes}
        assert f"{summary.judge.samples} {'query' if summary.judge.samples == 1 else 'queries'} judged" in said


def test_a_filter_says_which_and_json_gives_the_whole_audit(audited, capsys):
    said = told(["judge", "run", audited, "--filter", "q3 is:unjudged", "--json"], capsys)
    document = json.loads(said.out)
    assert document["judge"]["samples"] == 1
    assert faithfulness(audited) == {"q1": None, "q2": None, "q3": 1.0}
    assert (
        "filter: 'nosuch' is not a key" in told(["judge", "run", audited, "--filter", "nosuch:1"], capsys, code=2).err
    )


def test_reviews_stay(audited, capsys):
    with Reviews.open(audited) as reviews:
        reviews.apply(["q2"], Patch(verdict=ReviewVerdict.DISAGREE, note="see the reference"))
    told(["judge", "run", audited, "-q"], capsys)
    with Reviews.open(audited) as reviews:
        assert (reviews.of("q2").note, reviews.count()) == ("see the reference", 1)


def test_the_bundle_is_found_beside_the_audit_or_named(audited, here, capsys):
    (here / "b").rename(here / "elsewhere")
    said = told(["judge", "run", audited], capsys, code=2)
    assert f"it is not at {here / 'b'} or {here / 'run'}. Name it with --bundle DIR." in said.err
    told(["judge", "run", audited, "--bundle", "elsewhere", "-q"], capsys)
    assert faithfulness(audited)["q2"] == 0.0


def test_another_bundle_is_refused_and_nothing_is_asked(audited, here, model, capsys):
    other = judged_bundle(here / "other")
    (other / "traces.jsonl").write_text((other / "traces.jsonl").read_text().replace("90 days", "91 days"))
    said = told(["judge", "run", audited, "--bundle", other], capsys, code=3)
    assert "traces.jsonl is not the file that was audited" in said.err
    assert model.asked == []


def test_without_a_model_it_says_where_to_name_one(audited, here, capsys):
    (here / "b" / "ragaudit.toml").write_text("")
    said = told(["judge", "run", audited], capsys, code=2)
    assert said.err.startswith("ragaudit: judge.model: no model is set. Name it in the [judge] table")
    told(["judge", "run", audited, "--judge", "test/other", "-q"], capsys)
    with AuditReader.open(audited) as reader:
        assert reader.summary().judge.model == "test/other"


def test_a_spent_budget_exits_with_4_and_says_what_is_left(audited, monkeypatch, capsys):
    use(monkeypatch, Literal(failing=budget()))
    said = told(["judge", "run", audited, "--bundle", "b"], capsys, code=4)
    assert "judge: the budget did not reach 3 queries." in said.err


def test_options_of_a_bundle_do_not_go_with_an_audit_nor_the_other_way_round(audited, capsys):
    assert "takes only --bundle" in told(["judge", "run", audited, "--limit", "2"], capsys, code=2).err
    assert "go with an audit file" in told(["judge", "run", "b", "--filter", "is:unjudged"], capsys, code=2).err


def test_a_run_name_from_a_file_never_leads_out_of_the_folder(audited, here, capsys):
    with AuditUpdater.open(audited) as updater:
        summary = updater.summary()
        run = summary.run.model_copy(update={"name": "../../b"})
        updater.finish(summary.model_copy(update={"run": run}), updater.replaced())
    said = told(["judge", "run", audited], capsys, code=2)
    assert f"it is not at {here / 'run'}. Name" in said.err


def test_an_audit_whose_judging_was_cut_off_says_so_is_not_compared_and_is_brought_up_to_date(audited, here, capsys):
    told(["judge", "run", "b", "-o", "other.audit", "-q"], capsys)
    with AuditUpdater.open(audited) as killed, AuditReader.open(here / "other.audit") as source:
        killed.replace([(source.query("q2"), source.judgement("q2"))], source.summary().judge)
    sentence = "These figures are older than 1 judged query: judging"
    assert sentence in told(["report", audited], capsys).out.replace("\n", " ")
    assert "older than its queries" in told(["compare", audited, "other.audit"], capsys, code=3).err
    said = told(["judge", "run", audited, "--filter", "q2"], capsys)
    assert sentence not in said.out.replace("\n", " ")
    assert "1 query judged by test/literal" in said.out.replace("\n", " ")
