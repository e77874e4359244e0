"""Two audits beside each other without a screen: what changed, where one stands, and the lines that show it."""

import pytest

from ragaudit.errors import ConfigError, InputError
from ragaudit.tui.compare_view import (
    change_line,
    change_row,
    counts_text,
    difference_lines,
    first_difference,
    headline,
    likeness,
    list_names,
    side_lines,
    side_title,
    transition_lines,
    verdict_lines,
)
from ragaudit.tui.comparing import Comparing
from ragaudit.tui.lines import Role, as_text, width_of
from ragaudit.tui.session import Session
from tests.tui.builders import bare, write
from tests.tui.compare_audits import BAD, GOOD, TWICE, after, before, frozen, info, pair, reranked


@pytest.fixture
def comparing(tmp_path):
    a, b = pair(tmp_path)
    with Session.open(b) as session:
        opened = Comparing.open(session, str(a), folder=tmp_path / "baselines")
        work(opened)
        yield opened
        opened.close()


def work(comparing):
    said = []
    comparing.take(*comparing.work(swapped=comparing.swapped, told=said.append), swapped=comparing.swapped)
    return said


def opened(session, path, **options):
    comparing = Comparing.open(session, str(path), folder=path.parent / "baselines", **options)
    work(comparing)
    return comparing


def ids(comparing):
    return [comparing.row(n).change.query_id for n in range(comparing.count)]


# --- which queries, and where one stands -----------------------------------------------------------------------------


def test_changed_queries_stand_worst_first_and_the_rest_on_demand(comparing):
    assert ids(comparing) == ["q1", "q5", "q3"]
    assert comparing.toggle_changed() is False
    assert ids(comparing) == ["q1", "q5", "q3", "q2", "q4"]
    assert [comparing.text(n) for n in range(3)] == ["refund window?", "same outcome?", "who pays?"]


def test_moving_steps_over_changed_queries_only(comparing):
    assert [comparing.move(1), comparing.move(1), comparing.move(1)] == [True, True, False]
    assert comparing.here == "q3"
    comparing.show("q4")
    assert (comparing.here, comparing.only_changed) == ("q4", False), "an unchanged query is shown among all"
    comparing.move(1)
    assert comparing.here == "q1", "from an unchanged query the next one is the worst"
    comparing.show("q4")
    comparing.move(-1)
    assert comparing.here == "q3"


def test_listing_only_what_changed_leaves_one_on_a_query_that_is_listed(comparing):
    comparing.show("q4")
    comparing.toggle_changed()
    assert comparing.here == "q3"


def test_a_query_that_is_not_in_both_cannot_be_shown(comparing):
    assert comparing.show("nope") is False
    assert comparing.here == "q1"


def test_swapped_the_open_audit_is_the_baseline(comparing):
    comparing.swapped = True
    assert comparing.found is None
    said = work(comparing)
    assert said[0] == "pairing the queries", "both are read already"
    assert ids(comparing) == ["q3", "q1", "q5"]
    a, b = comparing.shown()
    assert (a.name, b.name) == ("cand", "base")
    assert comparing.found.found.change_of("mrr@k").paired.difference == 0.125


def test_the_work_says_how_far_it_is_and_ends_when_nobody_waits(tmp_path):
    a, b = pair(tmp_path)
    with Session.open(b) as session:
        comparing = Comparing.open(session, str(a))
        assert work(comparing) == [
            "reading A",
            "reading B",
            "pairing the queries",
            "comparing: 1 metrics and slices done",
            "comparing: 2 metrics and slices done",
        ]

        def stop(text):
            raise KeyError(text)

        comparing.forget()
        with pytest.raises(KeyError, match="reading A"):
            comparing.work(swapped=False, told=stop)
        assert comparing.found is None
        comparing.close()


def test_what_is_not_there_cannot_be_compared_with(tmp_path):
    _, b = pair(tmp_path)
    with Session.open(b) as session, pytest.raises(InputError, match="nope: no such audit file and no baseline"):
        Comparing.open(session, "nope", folder=tmp_path)


def test_b_is_kept_as_a_baseline_under_a_name(comparing, tmp_path):
    assert comparing.baseline_name() == "cand"
    said = comparing.freeze("main")
    assert said == f"wrote {tmp_path}/baselines/main.json: compare with it by --against main"
    with pytest.raises(ConfigError, match="Pass --replace"):
        comparing.freeze("main")
    comparing.freeze("main", replace=True)
    with Session.open(comparing.session.reader.path) as session:
        again = Comparing.open(session, "main", folder=tmp_path / "baselines")
        work(again)
        assert (again.found.base.name, again.n_changed) == ("main", 0)


# --- lines -----------------------------------------------------------------------------------------------------------


def test_a_row_shows_its_mark_and_where_there_is_room_its_states(comparing):
    assert as_text([change_row(comparing.row(0), "refund window?", 34)]) == "-  q1       refund window?"
    wide = "-  q1           pass -> Rerank/pack            refund window?"
    assert as_text([change_row(comparing.row(0), "refund window?", 78)]) == wide
    same = "-  q5           pass                           same outcome?"
    assert as_text([change_row(comparing.row(1), "same outcome?", 78)]) == same
    assert as_text([change_row(comparing.row(2), "who pays?", 34)]) == "+  q3       who pays?"
    assert as_text([change_row(None, "", 34)]) == "  ..."


def test_the_change_of_a_query_in_one_line(comparing):
    comparing.toggle_changed()
    assert [as_text([change_line(comparing.row(n), 78)]) for n in range(4)] == [
        "- worse in B   pass -> Rerank/pack   Recall -1.000  MRR -1.000",
        "- worse in B   pass   MRR -0.500",
        "+ better in B   Rerank/pack -> pass   Recall +1.000  MRR +1.000",
        "  same outcome and metrics   pass",
    ]
    assert width_of(change_line(comparing.row(0), 30)) == 30


def test_counts_and_transitions(comparing):
    assert counts_text(comparing.found) == "2 worse  1 better  0 otherwise  2 same"
    assert as_text(transition_lines(comparing.found, 32)) == (
        "pass -> Rerank/pack           1\nRerank/pack -> pass           1"
    )


def test_both_sides_of_a_query(comparing):
    a, b = comparing.shown()
    assert (side_title("A", a), side_title("B", b)) == ("A base   PASS", "B cand   FAIL at Rerank/pack")
    assert as_text(side_lines(b, 40, gold="c9", list_name="after_rerank")) == (
        "  stage           kept  c9\n"
        "  corpus                yes\n"
        "  arm dense       4     #3\n"
        "> after rerank    4     #4 v\n"
        "  packed          2     CUT !\n"
        "  answer right          ?"
    )


def test_the_first_list_that_differs_rank_by_rank(comparing):
    a, b = comparing.shown()
    assert list_names(a.view, b.view) == ["arm:dense", "after_rerank", "packed"]
    assert first_difference(a.view, b.view) == "after_rerank"
    assert likeness(a.view, b.view, "after_rerank") == "overlap@2 0.50   tau -0.33"
    assert likeness(a.view, b.view, "arm:dense") == "overlap@2 1.00   tau 1.00"
    assert as_text(difference_lines(a, b, "after_rerank", 76)) == (
        "A [correct] within 30 days\n"
        "B [not correct] within 14 days\n"
        "    A 4 hits                            B 4 hits\n"
        "  1 c9                 1       G        c4                 1           ^2\n"
        "  2 c1                 0.9              c1                 0.9\n"
        "  3 c4                 0.8              c7                 0.8         ^1\n"
        "  4 c7                 0.7              c9                 0.7     G   v3"
    )
    assert as_text(difference_lines(a, b, "packed", 76).copy()[3:]) == (
        "  1 c9                         G   gone c4                             new\n"
        "  2 c1                                  c1"
    )


def test_a_list_that_one_side_did_not_log_is_a_difference_and_is_said_to_be_missing(tmp_path):
    result, trace = reranked("q1", GOOD)
    bare_trace = trace.model_copy(update={"after_rerank": None})
    a, b = pair(tmp_path, a=[(result, bare_trace)], b=[(result, trace)])
    with Session.open(b) as session:
        comparing = opened(session, a)
        comparing.show("q1")
        one, other = comparing.shown()
        assert list_names(one.view, other.view) == ["arm:dense", "after_rerank", "packed"]
        assert first_difference(one.view, other.view) == "after_rerank"
        lines = as_text(difference_lines(one, other, "after_rerank", 76)).splitlines()
        assert lines[2] == "    A not logged                        B 4 hits"
        assert lines[3] == "  1" + " " * 37 + "c9                 1       G", "nothing is called new"
        assert likeness(one.view, other.view, "after_rerank") == ""
        comparing.close()


def test_when_no_list_differs_that_is_said(comparing):
    comparing.show("q2")
    a, b = comparing.shown()
    assert first_difference(a.view, b.view) is None
    assert as_text(difference_lines(a, b, None, 76)) == (
        "A no answer was logged\nB no answer was logged\nEvery list that was logged is the same on both sides."
    )
    comparing.show("q4")
    assert "No gold ids" in as_text(side_lines(comparing.shown()[0], 76, gold=None, list_name=None))


def test_the_verdict_names_the_change_the_warnings_and_every_metric(comparing):
    assert as_text([headline(comparing.found, 78)]) == "NOT DISTINGUISHABLE from no change in any of 2 metrics"
    assert as_text(verdict_lines(comparing.found, 78)) == (
        "changed  pipeline.rerank.model r1 -> r2\n"
        "queries  5 in both: 1 newly failing, 1 newly passing, 3 where they were\n"
        "- the test set is too small: 5 paired queries, fewer than 30; intervals this\n"
        "  wide settle little\n"
        "Recall                0.750 -> 0.750  +0.000 [-0.750, +0.750] NOT DISTINGUISHABLE\n"
        "    p 1.000, adjusted 1.000; 4 queries: 1 better, 1 worse, 2 same; 80% power\n"
        "    from 1.697; only 2 changed: no adjusted p under 1 was possible\n"
        "MRR                   0.750 -> 0.625  -0.125 [-0.750, +0.750] NOT DISTINGUISHABLE\n"
        "    p 1.000, adjusted 1.000; 4 queries: 1 better, 2 worse, 1 same; 80% power\n"
        "    from 1.775; only 3 changed: no adjusted p under 0.5 was possible\n"
        "- Recall, MRR: undefined in both for 1 (not measured)"
    )


def test_a_change_for_the_worse_leads_with_recall(tmp_path):
    many = [f"q{n:02}" for n in range(12)]
    a, b = pair(tmp_path, a=[reranked(q, GOOD) for q in many], b=[reranked(q, BAD) for q in many])
    with Session.open(b) as session:
        comparing = opened(session, a)
        line = headline(comparing.found, 78)
        assert as_text([line]) == "WORSE: Recall -1.000 [-1.000, -1.000] and 1 more"
        assert line[0].role is Role.LOST
        comparing.close()


def test_a_new_leak_comes_before_everything(tmp_path):
    leaking = [reranked("q1", GOOD), reranked("q2", GOOD, leaks=("c1",))]
    a, b = pair(tmp_path, a=[reranked("q1", BAD), reranked("q2", GOOD)], b=leaking)
    with Session.open(b) as session:
        comparing = opened(session, a)
        assert as_text([headline(comparing.found, 78)]).startswith("LEAK: 1 query newly leaks; NOT DISTINGUISHABLE")
        assert (comparing.here, headline(comparing.found, 78)[0].role) == ("q2", Role.LOST)
        assert as_text([change_row(comparing.row(0), "?", 34)]) == "!! q2       ?"
        assert as_text([change_line(comparing.row(0), 78)]) == "!! B NEWLY LEAKS   the user may not read c1"
        assert "  2 c1                 0.9              c1                 0.9     !!" in as_text(
            difference_lines(*comparing.shown(), "after_rerank", 76)
        )
        comparing.close()


# --- what cannot be compared, or shown -------------------------------------------------------------------------------


def test_a_refused_comparison_gives_every_reason_and_each_query_all_the_same(tmp_path):
    a, b = pair(tmp_path, pipeline=TWICE)
    with Session.open(b) as session:
        comparing = opened(session, a)
        assert comparing.found.found is None
        assert ids(comparing) == ["q1", "q5", "q3"]
        assert as_text([headline(comparing.found, 78)]) == (
            "NOT COMPARED: 2 pipeline variables changed, so that no effect belongs to on..."
        )
        assert as_text(verdict_lines(comparing.found, 78)) == (
            "These two runs are not compared as wholes. Each query can still be looked at.\n"
            "base and cand: cannot be compared.\n"
            "  - 2 pipeline variables changed, so that no effect belongs to one of them:\n"
            "    pipeline.rerank.model r1 -> r2; pipeline.rerank.top_n 3 -> 9\n"
            "Audit a candidate that differs in one variable, or name the exception: --allow\n"
            "    pipeline.rerank.top_n."
        )
        assert first_difference(*(side.view for side in comparing.shown())) == "after_rerank"
        comparing.close()
        allowed = opened(session, a, allow=("rerank.top_n",))
        assert "changed  pipeline.rerank.top_n 3 -> 9 (allowed by --allow)" in as_text(verdict_lines(allowed.found, 78))
        allowed.close()


def test_where_a_condition_differs_too_all_reasons_are_counted_and_outcomes_alone_compared(tmp_path):
    a, b = pair(tmp_path, b=[reranked("q1", BAD), *before()[1:3], bare("q4"), after()[4]], pipeline=TWICE)
    write(a, before(), run=info(scope="retrieval"))
    with Session.open(b) as session:
        comparing = opened(session, a)
        assert as_text([headline(comparing.found, 60)]).startswith("NOT COMPARED (1 of 2 reasons): ")
        assert ids(comparing) == ["q1"], "q5 has another MRR, but MRR does not compare"
        comparing.close()


def test_two_runs_of_other_queries_have_nothing_to_show(tmp_path):
    a, b = pair(tmp_path, b=[reranked("other", GOOD)])
    with Session.open(b) as session:
        comparing = opened(session, a)
        assert (comparing.count, comparing.here, comparing.shown(), comparing.move(1)) == (0, None, None, False)
        assert as_text([headline(comparing.found, 78)]) == (
            "NOT COMPARED: base and cand: no query id is in both. Audit the same test se..."
        )
        comparing.close()


def test_a_frozen_baseline_shows_its_figures_and_says_what_it_does_not_hold(tmp_path):
    a, b = pair(tmp_path)
    with Session.open(b) as session:
        comparing = opened(session, frozen(a, tmp_path))
        assert ids(comparing) == ["q1", "q5", "q3"]
        assert comparing.found.found.base.frozen is True
        one, other = comparing.shown()
        assert side_title("A", one) == "A base   PASS"
        assert as_text(side_lines(one, 44, gold="c9", list_name="packed")) == (
            "Not shown: a frozen baseline holds no lists,\n"
            "answers or texts: to see them, start with\n"
            "--against its audit file.\n"
            "Recall               1.000\n"
            "MRR                  1.000"
        )
        assert first_difference(one.view, other.view) is None
        assert as_text(difference_lines(one, other, "packed", 76)) == (
            "A answer not kept\n"
            "B [not correct] within 14 days\n"
            "    A not kept                          B 2 hits\n"
            "  1                                     c4\n"
            "  2                                     c1"
        )
        assert "There are no two lists" in as_text(difference_lines(one, other, None, 76))
        comparing.close()


def test_two_equal_runs_have_no_changed_query(tmp_path):
    a, b = pair(tmp_path, b=before())
    with Session.open(b) as session:
        comparing = opened(session, a)
        assert (comparing.count, comparing.move(1)) == (0, False)
        assert as_text(transition_lines(comparing.found, 50)) == "Every query of both runs stayed where it was."
        assert comparing.toggle_changed() is False and comparing.count == 5
        comparing.close()
