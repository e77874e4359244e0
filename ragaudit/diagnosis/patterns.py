"""What the run shows as a whole: which kind of loss dominates, by the seed's diagnostic pairs."""

from collections.abc import Mapping

from ragaudit.model.diagnosis import STAGES, Stage
from ragaudit.model.result import Estimate, Pattern

LOW_RECALL = 0.8
"""Below this recall the search itself is the question. A convention for wording only; gates are the user's own."""

MIN_FOR_PATTERN = 5
"""Fewer queries than this show no pattern of the run: an interval over them says little. A convention for wording."""

_GAP = 0.1


def patterns(
    metrics: Mapping[str, Estimate], at: Mapping[str, Mapping[str, Estimate]], stages: Mapping[Stage, int]
) -> tuple[Pattern, ...]:
    """The patterns that hold, most basic first. A pattern needs a lower or upper interval bound, not just a mean.

    None where recall is defined for fewer queries than MIN_FOR_PATTERN; `one_stage` needs as many failing ones.
    """
    found = []
    recall, mrr = metrics.get("recall@k"), metrics.get("mrr@k")
    if recall is None or recall.mean is None or recall.high is None or recall.low is None:
        return ()
    if recall.n < MIN_FOR_PATTERN:
        return ()
    pools = [(name, values["recall@k"]) for name, values in at.items() if name != "final" and "recall@k" in values]
    best = max(((name, e) for name, e in pools if e.mean is not None), key=lambda item: item[1].mean or 0, default=None)
    if recall.high < LOW_RECALL:
        found.append(
            Pattern(
                pattern="recall_down",
                message=f"recall@k is {recall.mean:.2f}: evidence is missing from the context, so ranking metrics "
                "say little; look at chunking, embedding and the index first",
            )
        )
    if best is not None and best[1].low is not None and best[1].low > recall.high + _GAP:
        found.append(
            Pattern(
                pattern="lost_on_the_way",
                message=f"{best[0]} has recall {best[1].mean:.2f} within K, the final context {recall.mean:.2f}: the "
                "evidence is found and lost again between them",
            )
        )
    if recall.low >= LOW_RECALL and mrr is not None and mrr.high is not None and mrr.high < recall.low - 2 * _GAP:
        found.append(
            Pattern(
                pattern="mrr_down",
                message=f"recall@k is {recall.mean:.2f} and mrr@k {mrr.mean:.2f}: the evidence is there and stands "
                "low; look at ranking, fusion weights and reranking",
            )
        )
    total = sum(stages.get(stage, 0) for stage in STAGES)
    generate = stages.get(Stage.GENERATE, 0)
    if recall.low >= LOW_RECALL and total and generate * 2 > total:
        found.append(
            Pattern(
                pattern="answers_wrong",
                message=f"recall@k is {recall.mean:.2f}, and {generate} of {total} failing queries fail at Generate: "
                "not a retrieval problem; look at faithfulness and the prompt",
            )
        )
    top = max(STAGES, key=lambda stage: stages.get(stage, 0))
    if total >= MIN_FOR_PATTERN and stages.get(top, 0) * 2 > total:
        found.append(
            Pattern(pattern="one_stage", message=f"{stages[top]} of {total} failing queries are lost at {top.label}")
        )
    return tuple(found)
