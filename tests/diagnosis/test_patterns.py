"""What the run shows as a whole: each pattern with an interval that carries it, and with one that does not."""

import pytest

from ragaudit.diagnosis.patterns import MIN_FOR_PATTERN, patterns
from ragaudit.model.diagnosis import Stage
from ragaudit.model.result import Estimate


def est(mean: float | None, spread: float = 0.02) -> Estimate:
    if mean is None:
        return Estimate(mean=None, low=None, high=None, n=0)
    return Estimate(mean=mean, low=mean - spread, high=mean + spread, n=100)


def found(
    recall: Estimate,
    mrr: Estimate | None = None,
    stages: dict[Stage, int] | None = None,
    at: dict[str, float] | None = None,
) -> list[str]:
    lists = {name: {"recall@k": est(mean)} for name, mean in (at or {}).items()}
    metrics = {"recall@k": recall, "mrr@k": mrr or est(0.9)}
    return [one.pattern for one in patterns(metrics, lists, stages or {})]


def test_recall_down_needs_the_whole_interval_below_the_line() -> None:
    assert found(est(0.6)) == ["recall_down"]
    assert found(est(0.79, spread=0.05)) == []


def test_lost_on_the_way_needs_an_arm_clearly_above_the_context() -> None:
    assert found(est(0.85), at={"arm:dense": 1.0}) == ["lost_on_the_way"]
    assert found(est(0.85), at={"arm:dense": 0.95}) == []
    assert found(est(0.85), at={"final": 1.0}) == []


def test_mrr_down_needs_recall_up() -> None:
    assert found(est(0.95), mrr=est(0.5)) == ["mrr_down"]
    assert found(est(0.95), mrr=est(0.8)) == []
    assert found(est(0.6), mrr=est(0.2)) == ["recall_down"]


def test_answers_wrong_needs_recall_up_and_most_failures_at_generate() -> None:
    assert found(est(0.95), stages={Stage.GENERATE: 3, Stage.PARSE: 1}) == ["answers_wrong"]
    assert found(est(0.95), stages={Stage.GENERATE: 2, Stage.PARSE: 2}) == []


@pytest.mark.parametrize(("n", "expected"), [(5, ["one_stage"]), (4, [])])
def test_one_stage_needs_five_failures(n: int, expected: list[str]) -> None:
    assert found(est(0.9), stages={Stage.FUSE: n}) == expected


def test_one_stage_needs_more_than_half() -> None:
    assert found(est(0.9), stages={Stage.FUSE: 3, Stage.PARSE: 3}) == []


@pytest.mark.parametrize(("n", "expected"), [(MIN_FOR_PATTERN, ["recall_down", "lost_on_the_way"]), (4, [])])
def test_a_handful_of_queries_shows_no_pattern(n: int, expected: list[str]) -> None:
    assert MIN_FOR_PATTERN == 5
    few = est(0.2).model_copy(update={"n": n})
    assert found(few, at={"arm:dense": 1.0}) == expected


def test_without_any_defined_recall_nothing_is_said() -> None:
    assert found(est(None), stages={Stage.FUSE: 9}) == []


def test_the_message_names_the_numbers() -> None:
    (one,) = patterns({"recall@k": est(0.85)}, {"arm:dense": {"recall@k": est(1.0)}}, {})
    assert one.message == (
        "arm:dense has recall 1.00 within K, the final context 0.85: the evidence is found and lost again between them"
    )
