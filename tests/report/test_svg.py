from xml.etree import ElementTree

import pytest
from hostile_run import BAD, JOURNEY
from report_builders import gold, steps

from ragaudit.model.diagnosis import Checkpoint, Outcome, Stage, State
from ragaudit.model.result import Estimate
from ragaudit.report.scores import ArmScores, Band
from ragaudit.report.svg.bands import bands_plot
from ragaudit.report.svg.draw import percent
from ragaudit.report.svg.intervals import intervals_plot
from ragaudit.report.svg.journey import journey_plot
from ragaudit.report.svg.losses import losses_plot
from ragaudit.report.svg.quadrants import quadrants_plot
from ragaudit.report.svg.way import way_plot

SVG = "{http://www.w3.org/2000/svg}"
ESTIMATES = {
    "recall@k": Estimate(mean=0.5, low=0.25, high=0.75, n=8),
    "mrr@k": Estimate(mean=1.0, low=None, high=None, n=1),
}


def read(plot):
    """The plot as a strict parser of XML reads it."""
    return ElementTree.fromstring(plot)


def said(plot):
    return [element.text for element in read(plot).iter(f"{SVG}text")]


def described(plot):
    return read(plot).find(f"{SVG}desc").text


def marks(plot, tag, *names):
    """Attributes of the marks, without those of the patterns."""
    return [tuple(element.get(name) for name in names) for element in read(plot) if element.tag == f"{SVG}{tag}"]


def test_losses_are_hatched_bars_as_long_as_their_share_of_the_worst():
    plot = losses_plot("x", [(Stage.PARSE, 4), (Stage.FUSE, 0), (Stage.RERANK, 8)], 2, 20)
    assert described(plot) == "Of 20 queries: Parse 4, Fuse/threshold 0, Rerank/pack 8; stage not decided 2."
    assert marks(plot, "rect", "width", "fill") == [
        ("21%", "url(#x-hatch)"),
        ("42%", "url(#x-hatch)"),
        ("10.5%", "none"),
    ]
    assert said(plot) == [
        *("Parse", "4 (20%)", "Fuse/threshold", "0", "Rerank/pack", "8 (40%)", "Not decided", "2 (10%)"),
    ]


def test_a_run_without_a_loss_has_no_bar():
    assert marks(losses_plot("x", [(Stage.PARSE, 0)], 0, 0), "rect", "width") == []


def test_the_funnel_shows_present_gone_and_not_logged():
    way = {
        Checkpoint.INDEXED: {State.PRESENT: 3, State.UNOBSERVED: 1},
        Checkpoint.PACKED: {State.PRESENT: 1, State.ABSENT: 3},
        Checkpoint.FILTERED: {State.UNOBSERVED: 4},
    }
    plot = way_plot("w", way, 4)
    assert described(plot) == "Of 4 gold ids: indexed 3 of 3, not logged 1; packed 1 of 4; filtered not logged."
    assert marks(plot, "rect", "x", "width", "fill") == [
        ("25%", "37.5%", "currentColor"),
        ("62.5%", "12.5%", "url(#w-dots)"),
        ("25%", "12.5%", "currentColor"),
        ("37.5%", "37.5%", "none"),
        ("25%", "50%", "url(#w-dots)"),
    ]


def test_a_large_funnel_has_shares_beside_its_bars_and_figures_in_its_description():
    plot = way_plot("w", {Checkpoint.PACKED: {State.PRESENT: 1_500, State.ABSENT: 500}}, 2_000)
    assert said(plot) == ["Packed", "75%"]
    assert described(plot) == "Of 2,000 gold ids: packed 1,500 of 2,000."


def test_intervals_stand_on_the_line_from_0_to_1():
    plot = intervals_plot("i", ["recall@k", "mrr@k", "ap@k"], ESTIMATES)
    assert described(plot) == "Recall 0.500 [0.250, 0.750]; MRR 1.000."
    assert marks(plot, "circle", "cx", "fill") == [("50%", "currentColor"), ("98%", "currentColor")]
    assert ("26%", "74%") in marks(plot, "line", "x1", "x2")


def test_before_is_hollow_and_dashed_and_after_is_filled():
    before = {"recall@k": Estimate(mean=0.25, low=0.0, high=0.5, n=8)}
    plot = intervals_plot("i", ["recall@k"], ESTIMATES, before)
    assert described(plot) == "Recall before 0.250 [0.000, 0.500], after 0.500 [0.250, 0.750]."
    assert marks(plot, "circle", "cx", "fill") == [("26%", "none"), ("50%", "currentColor")]
    dashed = [line for line in marks(plot, "line", "x1", "stroke-dasharray") if line[1]]
    assert dashed == [("2%", "4 3")]
    assert "before 0.250 [0.000, 0.500]" in said(plot) and "after 0.500 [0.250, 0.750]" in said(plot)


def test_the_dangerous_quadrant_is_hatched_and_marked_in_words():
    plot = quadrants_plot("q", {"good context, faithful": 2, "poor context, faithful (dangerous)": 1_400})
    assert said(plot)[6:9] == ["1,400", "poor context", "faithful!"]
    assert [fill for (fill,) in marks(plot, "rect", "fill")].count("url(#q-hatch)") == 1
    assert "poor context, faithful (dangerous): 1,400 queries" in described(plot)
    assert "poor context, unfaithful: 0 queries" in described(plot)


def test_score_bands_have_a_scale_of_their_own():
    plot = bands_plot("b", ArmScores("dense", "", Band(5, 0.5, 0.6, 0.7, 0.8, 1.0), Band(9, 0.0, 0.1, 0.2, 0.3, 0.4)))
    assert read(plot).find(f"{SVG}title").text == "Scores of dense"
    assert described(plot) == (
        "Gold: 5 scores, median 0.7, middle half 0.6 to 0.8, 5 to 95% 0.5 to 1. "
        "Not gold: 9 scores, median 0.2, middle half 0.1 to 0.3, 5 to 95% 0 to 0.4."
    )
    assert said(plot) == ["gold: 5, median 0.7", "not gold: 9, median 0.2", "0", "1"]
    assert marks(plot, "rect", "x", "fill") == [("59.6%", "currentColor"), ("11.6%", "url(#b-hatch)")]


def test_an_arm_that_scored_no_gold_says_so():
    plot = bands_plot("b", ArmScores("dense", "m1", None, Band(1, 0.5, 0.5, 0.5, 0.5, 0.5)))
    assert read(plot).find(f"{SVG}title").text == "Scores of dense, m1"
    assert said(plot)[0] == "gold: 0"
    assert marks(plot, "rect", "x", "width") == [("50%", "0.4%")]


def test_a_journey_says_rank_and_absence_in_words_and_shape():
    known = gold(journey="retrieved:arm:dense=3 retrieved:arm:bm25=- fused:fused=? packed:final_context_ids=2")
    plot = journey_plot("j", "q1", known, 2)
    assert read(plot).find(f"{SVG}title").text == "Journey of c9, gold of q1"
    assert described(plot) == "FAIL at Rerank/pack. arm:dense #3, arm:bm25 - -> packed #2. K = 2."
    assert said(plot) == [
        *("rank 1", "K = 2"),
        *("arm:dense", "rank 3", "arm:bm25", "absent", "×", "fused", "not logged", "packed", "rank 2"),
    ]
    assert marks(plot, "circle", "cx", "fill") == [("70%", "none"), ("53%", "currentColor")]
    assert marks(plot, "rect", "fill") == [("url(#j-dots)",)]


def test_arms_run_beside_each_other_and_lead_to_the_same_list():
    known = gold(journey="retrieved:arm:dense=1 retrieved:arm:bm25=2 fused:fused=1 packed:final_context_ids=1")
    path = [
        line[1:] for line in marks(journey_plot("j", "q1", known, 3), "line", "class", "y1", "y2") if line[0] == "path"
    ]
    assert path == [("14", "68"), ("41", "68"), ("68", "95")]


def test_filters_of_an_arm_follow_that_arm():
    known = gold(journey="retrieved:arm:a=1 retrieved:arm:b=1 filtered:after_filter:a=1 filtered:after_filter:b=1")
    path = [
        line[1:] for line in marks(journey_plot("j", "q1", known, 3), "line", "class", "y1", "y2") if line[0] == "path"
    ]
    assert path == [("14", "68"), ("41", "95")]


def test_a_journey_without_lists_says_so():
    plot = journey_plot("j", "q1", gold(journey="indexed=yes"), 3)
    assert said(plot) == ["no list was logged"]


@pytest.mark.parametrize(
    "plot",
    [
        journey_plot("j", BAD, gold(BAD).model_copy(update={"journey": JOURNEY}), 3),
        bands_plot("b", ArmScores(BAD, BAD, Band(1, 0.5, 0.5, 0.5, 0.5, 0.5), None)),
        intervals_plot("i", [BAD], {BAD: ESTIMATES["recall@k"]}),
    ],
    ids=["journey", "bands", "intervals"],
)
def test_hostile_names_are_text_in_a_plot(plot):
    known = {"svg", "title", "desc", "defs", "pattern", "line", "circle", "rect", "text"}
    assert {element.tag.removeprefix(SVG) for element in read(plot).iter()} <= known
    assert not [name for element in read(plot).iter() for name in element.attrib if name.startswith("on")]
    assert "<U+001B>[2J" in "".join(read(plot).itertext())


@pytest.mark.parametrize(("share", "shown"), [(0, "0%"), (0.125, "12.5%"), (1 / 3, "33.33%"), (2, "100%"), (-1, "0%")])
def test_shares_stay_inside(share, shown):
    assert percent(share) == shown


def test_steps_that_are_no_list_are_no_row():
    known = gold(outcome=Outcome.PASS, stage=Stage.NONE).model_copy(
        update={"journey": steps("indexed=yes fused:fused=1")}
    )
    assert said(journey_plot("j", "q1", known, 3)) == ["rank 1", "K = 3", "fused", "rank 1"]
