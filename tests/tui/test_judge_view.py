"""Judging as text: plan and progress, at the widths of both sizes."""

import pytest

from ragaudit.audit.rejudge import Judged, Moment, Open
from ragaudit.judge.plan import Load, Plan
from ragaudit.judge.price import Price
from ragaudit.judge.progress import JudgeProgress
from ragaudit.tui.judge_view import plan_lines, progress_lines
from ragaudit.tui.judging import Judging, Planned, outcome
from ragaudit.tui.lines import as_text, width_of
from tests.store.test_audit_file import summary

EXPECTED, MOST = Load(64, 24, 33_597, 6_619), Load(116, 24, 82_056, 9_219)


def planned(expected=EXPECTED, most=MOST, price=None, api_base=None, **found):
    plan = Plan("gpt-4o-mini", "matrix", 30, 0, expected, most, price)
    return Planned(Open(frozenset(f"q{n}" for n in range(30)), **found), plan, api_base)


def test_the_plan_names_what_is_left_out_calls_tokens_price_and_where_it_goes():
    lines = plan_lines(
        planned(price=Price(1.5e-7, 6e-7), api_base="http://127.0.0.1:8091/v1", judged=10, nothing=1), 72
    )
    assert as_text(lines) == (
        "30 queries to judge\n"
        "10 queries judged before: not asked about again\n"
        "1 query with nothing for a judge to tell: labelled, or no reference and\n"
        "  no answer\n"
        "by gpt-4o-mini (matrix mode)\n"
        "\n"
        "                calls  on tape  to send      tokens       price\n"
        "as expected        64       24       40      40,216      <$0.01\n"
        "at most           116       24       92      91,275       $0.02\n"
        "\n"
        "What is not on the tape goes to http://127.0.0.1:8091/v1: question,\n"
        "answer, reference, and chunks that the query's user may read. Tokens are\n"
        "estimated.\n"
        "enter judges them, esc leaves it"
    )
    assert max(map(width_of, lines)) <= 72


def test_a_plan_that_is_on_the_tape_sends_nothing():
    load = Load(64, 64, 0, 0)
    text = as_text(plan_lines(planned(load, load), 72))
    assert "as expected        64       64        0           0          $0" in text
    assert "Every reply is on the tape: nothing is sent." in text


def test_a_place_from_a_settings_file_is_shown_as_text():
    text = as_text(plan_lines(planned(api_base="http://evil/\x1b[31m\u202e"), 72))
    assert "\x1b" not in text and "\u202e" not in text


MOMENT = Moment(
    total=1240,
    done=934,
    unscored=9,
    calls=JudgeProgress(samples=934, from_tape=611, replies=323, failed={"server": 4}, usd=1.92, in_flight=16),
    seconds=580.0,
)


def shown(moment, width, **how):
    return as_text(progress_lines(moment, width, **({"max_cost": 5.0, "is_on": True} | how)))


def test_progress_fits_two_lines_at_80_columns_and_four_at_120():
    assert shown(MOMENT, 77) == (
        "[###############.....] 934/1,240  tape 611  unscored 9  $1.92 of $5.00\n"
        "waiting for 16 replies   about 3m 10s left"
    )
    assert shown(MOMENT, 117) == (
        "[###############.....]  934 of 1,240 queries\n"
        "from tape 611   asked 323   calls without a reply 4   unscored 9\n"
        "spent $1.92 of $5.00   about 3m 10s left\n"
        "waiting for 16 replies"
    )


@pytest.mark.parametrize(
    ("change", "how", "said"),
    [
        ({"is_paused": True}, {}, "paused: space goes on"),
        ({}, {"is_stopping": True}, "stopping: 16 in flight are waited for; what is done is kept"),
        ({"is_summing": True}, {"is_stopping": True}, "the figures of the run are made anew"),
        ({}, {}, "waiting for 16 replies   about 3m 10s left"),
        ({}, {"is_on": False}, "ended; 306 left. J goes on."),
        ({"done": 1240}, {"is_on": False}, "ended"),
        (
            {"calls": JudgeProgress(waiting="2 calls wait 4 s: rate limit (429)")},
            {},
            "2 calls wait 4 s: rate limit (429)   about 3m 10s left",
        ),
        ({"calls": None}, {}, "under way   about 3m 10s left"),
    ],
)
def test_the_last_line_says_what_it_is_doing(change, how, said):
    moment = Moment(**({name: getattr(MOMENT, name) for name in MOMENT.__dataclass_fields__} | change))
    assert shown(moment, 77, **how).splitlines()[-1] == said


def test_a_price_that_is_not_known_is_not_guessed_and_no_time_is_foretold_from_one_query():
    moment = Moment(total=9, done=1, calls=JudgeProgress(replies=3, unpriced=3), seconds=2.0)
    assert shown(moment, 77, max_cost=None).splitlines()[0] == (
        "[##..................] 1/9  tape 0  unscored 0  3 calls at unknown price"
    )


def test_how_it_ended_in_words():
    def said(done, total, unscored=0, spent=False):
        return outcome(Judged(Moment(total, done, unscored), summary(), spent))

    assert said(1, 1) == "judged: 1 query. The figures are up to date."
    assert said(40, 40, 2) == "judged: 40 queries, 2 unscored. The figures are up to date."
    assert said(12, 40) == "stopped: 12 queries judged and kept, 28 left. J goes on."
    assert (
        said(12, 40, 1, spent=True)
        == "the budget is spent: 12 queries judged, 1 unscored and kept, 28 left. J goes on."
    )


def test_the_title_bar_says_it_shortly_where_it_is_narrow(tmp_path):
    judging = Judging(tmp_path / "run.audit", None)
    assert judging.words() == "judging"
    judging.moment = MOMENT
    assert (judging.words(), judging.words(short=True)) == ("judging 934/1,240", "judging 75%")
