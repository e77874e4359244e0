"""The panes as text, without a terminal."""

import pytest

from ragaudit.diagnosis import causes as registered  # noqa: F401
from ragaudit.diagnosis.registry import CAUSES
from ragaudit.model.diagnosis import Outcome, Stage
from ragaudit.model.judgement import Cell, Claim, Judgement, JudgeState, Side, Verdict
from ragaudit.model.result import Estimate
from ragaudit.model.review import Patch, ReviewVerdict
from ragaudit.store import AuditReader
from ragaudit.store.reader import Row
from ragaudit.tui.answer_view import answer_lines
from ragaudit.tui.chunk_view import chunk_lines
from ragaudit.tui.diagnosis_view import diagnosis_lines, standing_line
from ragaudit.tui.funnel_view import funnel_lines
from ragaudit.tui.hits_view import first_of_interest, hit_rows
from ragaudit.tui.lines import Role, as_text
from ragaudit.tui.overview_view import loss_rows, score_lines
from ragaudit.tui.queue_view import queue_row
from ragaudit.tui.session import Session
from tests.tui.builders import bare, inventory, lost_at_pack, passed, write

TEXTS = {"c9": "Refunds may be asked for within 30\n days of renewal.", "c1": "Renewal.", "c4": "Old policy."}


@pytest.fixture
def session(tmp_path):
    path = write(tmp_path / "r.audit", [lost_at_pack("q1"), passed("q2"), bare("q3")], inventory(TEXTS))
    with Session.open(path) as session:
        yield session


def test_the_funnel_follows_the_gold_id_to_the_cut(session):
    view = session.view_of("q1")
    assert as_text(funnel_lines(view, 60, gold="c9", list_name="packed")) == "\n".join(
        [
            "  stage           kept  c9",
            "  corpus                yes",
            "  arm dense       3     #3",
            "  fused           3     #2",
            "> packed          2     CUT !",
            "  answer right          ?",
        ]
    )


def test_a_funnel_without_gold_says_why_there_is_none(session):
    assert as_text(funnel_lines(session.view_of("q3"), 80, gold=None, list_name=None)) == (
        "No gold ids: nobody labelled this query, and no judge found evidence for it."
    )


def test_hits_show_rank_rank_before_gold_and_what_was_cut(session):
    rows = hit_rows(session.view_of("q1"), "packed", 80)
    shown = [as_text([row.text]) for row in rows]
    assert shown == [
        " rk  was  score    chunk",
        "  1    1  -        c1                       Renewal.",
        "  2    3  -        c4                       Old policy.",
        "-- cut: not in the packed 2 ------------------",
        "  -    2  -        c9                   G   Refunds may be asked for within 30 days of renewal.",
    ]
    assert [row.chunk_id for row in rows] == [None, "c1", "c4", None, "c9"]
    assert first_of_interest(rows, "c9") == 4 and first_of_interest(rows, "nowhere") == 1


def test_hits_of_a_list_that_was_not_logged_say_so(session):
    assert as_text([row.text for row in hit_rows(session.view_of("q3"), None, 80)]) == (
        "No list of hits was logged for this query."
    )


def test_a_chunk_marks_the_span_across_a_line_end_and_shows_what_took_its_place(session):
    assert as_text(chunk_lines(session.view_of("q1"), "c9", 50)) == "\n".join(
        [
            "c9   gold grade 1   not packed",
            "Refunds may be asked for within >>30",
            "days<< of renewal.",
            "",
            f"-- took its place: c4 {'-' * 28}",
            "Old policy.",
            "",
            "query words in it: none",
        ]
    )


def test_a_span_that_is_not_in_the_chunk_is_quoted_instead(tmp_path):
    path = write(tmp_path / "r.audit", [lost_at_pack("q1", span="forty days")], inventory(TEXTS))
    with Session.open(path) as session:
        text = as_text(chunk_lines(session.view_of("q1"), "c9", 80))
    assert "gold span, not found word for word here: forty days" in text and ">>" not in text


def test_marks_in_the_text_itself_are_no_span(tmp_path):
    path = write(tmp_path / "r.audit", [lost_at_pack("q1")], inventory({"c9": "a >>b<< c within 30 days"}))
    with Session.open(path) as session:
        lines = chunk_lines(session.view_of("q1"), "c9", 80)
    assert [piece.text for one in lines for piece in one if piece.role is Role.GOLD] == [">>", "30 days", "<<"]


def test_the_answer_stands_with_its_claims_verdicts_and_states(session):
    view = session.view_of("q1")
    judgement = Judgement(
        query_id="q1",
        claims=(
            Claim(id="r1", side=Side.REFERENCE, text="Refunds run 30 days."),
            Claim(id="a1", side=Side.ANSWER, text="Refunds run 14 days."),
            Claim(id="a2", side=Side.ANSWER, text="They are paid."),
        ),
        cells=(
            Cell(claim_id="r1", chunk_id="c1", verdict=Verdict.MISSING),
            Cell(claim_id="a1", chunk_id="c1", verdict=Verdict.MISSING),
            Cell(claim_id="a1", chunk_id="c4", verdict=Verdict.SUPPORTED),
            Cell(claim_id="a2", chunk_id="c1", verdict=None, reason="timeout"),
        ),
        metrics={"context_recall": 0.0, "faithfulness": None},
        states={"context_recall": JudgeState.SCORED, "faithfulness": JudgeState.JUDGE_FAILED},
        reasons={"faithfulness": "1 of 2 claims has no verdict"},
    )
    shown = as_text(answer_lines(type(view)(view.result, view.texts, judgement), 70))
    assert shown.splitlines()[:4] == ["within 14 days", "nobody judged this answer", "", f"-- reference {'-' * 57}"]
    assert "- Refunds run 30 days. (missing)" in shown
    assert "+ Refunds run 14 days. (supported: c4)" in shown
    assert "? They are paid. (unscored)" in shown
    assert "Faithfulness - judge failed: 1 of 2 claims has no verdict" in " ".join(shown.split())


def test_the_standing_is_one_line_and_the_diagnosis_what_stands_behind_it(session):
    view = session.view_of("q1")
    assert as_text([standing_line(view, 90)]) == (
        "X FAIL at Rerank/pack: top n cut   c9: rank 2 in fused, not in the final 2"
    )
    lines = as_text(diagnosis_lines(view, CAUSES, 78)).splitlines()
    assert lines[0] == "  c9: rank 2 in fused, not in the final 2"
    assert lines[-1] == "yours: 1 [ ] agree 2 [ ] disagree 3 [ ] gold wrong 4 [ ] unsure"
    session.reviews.apply(["q1"], Patch(verdict=ReviewVerdict.DISAGREE, stage=Stage.NONE, tags=("x",), note="no"))
    assert as_text(diagnosis_lines(session.view_of("q1"), CAUSES, 78)).splitlines()[-4:] == [
        "yours: 1 [ ] agree 2 [x] disagree 3 [ ] gold wrong 4 [ ] unsure",
        "  stage: none, nothing was lost",
        "  tags: x",
        "  note: no",
    ]


def test_a_review_of_another_diagnosis_says_what_it_was_about(session, tmp_path):
    session.reviews.apply(["q1"], Patch(verdict=ReviewVerdict.AGREE))
    result, trace = lost_at_pack("q1")
    diagnosis = result.diagnosis.model_copy(update={"stage": Stage.FUSE})
    path = write(tmp_path / "r.audit", [(result.model_copy(update={"diagnosis": diagnosis}), trace)])
    with Session.open(path) as later:
        lines = as_text(diagnosis_lines(later.view_of("q1"), CAUSES, 78)).splitlines()
    assert lines[-1] == "  said of another diagnosis: FAIL at Rerank/pack"


def test_an_undecided_query_says_what_it_could_be(session):
    shown = as_text(diagnosis_lines(session.view_of("q3"), CAUSES, 78))
    assert "? could be Fuse/threshold or Rerank/pack" in shown


@pytest.mark.parametrize(
    ("width", "expected"),
    [(34, " X  q1       refund window?"), (78, " X  q1           rerank       top n cut            refund window?")],
)
def test_a_row_of_the_queue_has_what_there_is_room_for(session, width, expected):
    assert as_text([queue_row(session.row(0), width, ())]) == expected


def test_a_row_says_leak_mark_and_review_by_character():
    row = Row(
        seq=-1, query_id="q", outcome=Outcome.FAIL, stage=Stage.FUSE, gap=None, causes=(), n_gold=1, query_text="t"
    )
    assert as_text([queue_row(row, 34, {"q"})]) == "*!! q        t"
    reviewed = row.model_copy(update={"seq": 1, "verdict": ReviewVerdict.AGREE})
    assert as_text([queue_row(reviewed, 34, ())]) == " x  q        t"
    assert as_text([queue_row(None, 34, ())]) == "  ..."


def test_losses_lead_to_the_queries_they_count(session):
    summary = session.summary.model_copy(
        update={
            "stages": {"rerank": 3, "fuse": 1},
            "outcomes": {"fail": 4, "pass": 6},
            "undetermined": {"fuse|rerank": 2},
        }
    )
    rows = loss_rows(summary, 40)
    assert [row.filter for row in rows][5:9] == [
        "stage:fuse is:failing",
        "stage:filter is:failing",
        "stage:rerank is:failing",
        "stage:generate is:failing",
    ]
    assert as_text([rows[7].text]) == "Rerank/pack         3  30%  ############"
    assert as_text([rows[9].text]) == "not decided         2  20%  ########"
    assert rows[9].filter == "is:undetermined"


def test_scores_show_what_is_left_out_and_what_has_no_value(session):
    summary = session.summary.model_copy(
        update={
            "metrics": {
                "recall@k": Estimate(mean=0.5, low=0.25, high=0.75, n=8, undefined=2),
                "faithfulness": Estimate(mean=None, low=None, high=None, n=0, undefined=10, reasons={"judge_off": 10}),
            }
        }
    )
    assert as_text(score_lines(summary, 60)).splitlines()[:2] == [
        "Recall            0.500 [0.250, 0.750]   2 out",
        "no Faithfulness: judge off",
    ]


def test_the_reader_still_counts_what_the_session_shows(session):
    with AuditReader.open(session.reader.path) as reader:
        assert reader.count() == 3
    assert session.count == 1
