"""The journey of one gold id in a row of text, and what of it was not logged."""

from collections.abc import Sequence
from itertools import groupby

from ragaudit.model.diagnosis import Checkpoint, Outcome, Stage, State, Step
from ragaudit.report.clean import for_terminal

NAME_CELLS = 30


def standing(outcome: Outcome, stage: Stage) -> str:
    """`FAIL at Rerank/pack`, `FAIL, stage not decided`, `PASS`."""
    word = outcome.value.replace("_", " ").upper()
    if stage is Stage.NONE:
        return word
    return f"{word}, stage not decided" if stage is Stage.UNDETERMINED else f"{word} at {stage.label}"


def funnel(journey: Sequence[Step]) -> list[str]:
    """A journey in pieces: `arm:dense #3 ->`, `fused #2 ->`, `reranked #14 CUT ->`, `packed -`.

    What was not logged is left out. CUT marks the last rank before the id was gone.
    """
    groups = [list(steps) for _, steps in groupby(journey, key=lambda step: step.checkpoint)]
    seen = [[step for step in group if step.state is not State.UNOBSERVED] for group in groups]
    seen = [group for group in seen if group]
    pieces: list[str] = []
    for group, following in zip(seen, [*seen[1:], []], strict=False):
        gone = bool(following) and all(step.list and step.state is State.ABSENT for step in following)
        ranked = any(step.rank is not None for step in group)
        shown = [_step(step, alone=len(group) == 1) for step in group]
        pieces += [f"{text}," for text in shown[:-1]]
        pieces.append(shown[-1] + " CUT" * (gone and ranked) + " ->" * bool(following))
    return pieces


def ranks(journey: Sequence[Step]) -> list[str]:
    """The same, of the lists alone: no checkpoint before the search, none after the prompt."""
    return funnel([step for step in journey if step.list is not None])


def unlogged(journey: Sequence[Step]) -> list[str]:
    """Checkpoints of which nothing was observed."""
    observed = {step.checkpoint for step in journey if step.state is not State.UNOBSERVED}
    return list(dict.fromkeys(step.checkpoint.value for step in journey if step.checkpoint not in observed))


def _step(step: Step, *, alone: bool) -> str:
    if step.list is None:
        return f"{step.checkpoint.value} {'yes' if step.state is State.PRESENT else 'no'}"
    by_list = step.checkpoint is Checkpoint.RETRIEVED or not alone
    name = for_terminal(step.list, NAME_CELLS) if by_list else step.checkpoint.value
    if step.state is State.ABSENT:
        return f"{name} -"
    return f"{name} yes" if step.rank is None else f"{name} #{step.rank}"
