"""The journey of one gold id: its rank in each list, one row a list, from the search down to the prompt."""

from collections.abc import Iterator, Sequence

from ragaudit.model.diagnosis import Checkpoint, GoldDiagnosis, State, Step
from ragaudit.report.clean import Html
from ragaudit.report.funnel import ranks, standing
from ragaudit.report.svg.draw import bar, dot, line, percent, picture, text, unknown

ROW = 27
START, ROOM, GONE = 0.36, 0.34, 0.78
"""Where rank 1 stands, the room for ranks, and where an absent id stands."""


def journey_plot(name: str, query_id: str, gold: GoldDiagnosis, k: int) -> Html:
    """A path through the lists. A filled dot is in the first K, a hollow one below K, a cross is absent.

    Args:
        name: For ids.
        query_id: Whose gold it is.
        gold: The gold id with its journey.
        k: How many chunks reached the generator.
    """
    steps = [step for step in gold.journey if step.list is not None]
    said = " ".join(ranks(gold.journey)) or "no list was logged"
    title = f"Journey of {gold.id}, gold of {query_id}"
    desc = f"{standing(gold.outcome, gold.stage)}. {said}. K = {k}."
    return picture(name, title, desc, ROW * max(len(steps), 1) + 22, _marks(name, steps, k))


def _marks(name: str, steps: Sequence[Step], k: int) -> Iterator[Html]:
    if not steps:
        yield text(0, 18, "no list was logged", css="faint")
        return
    deepest = max([k + 1, *(step.rank for step in steps if step.rank is not None)])
    bottom = ROW * len(steps)
    cut = percent(_x(k + 0.5, deepest))
    yield line(cut, 0, cut, bottom + 4, css="axis", dashed=True)
    yield text(percent(START), bottom + 17, "rank 1", css="faint small", anchor="middle")
    yield text(cut, bottom + 17, f"K = {k}", css="faint small", anchor="middle")
    places = [_place(step, deepest) for step in steps]
    for row, x in enumerate(places):
        after = _following(steps, row)
        if after is not None and x is not None and (there := places[after]) is not None:
            yield line(percent(x), _y(row), percent(there), _y(after), css="path", width=2)
    for row, (step, x) in enumerate(zip(steps, places, strict=True)):
        yield text(0, _y(row) + 4, _name(step), most=17)
        yield text("100%", _y(row) + 4, _state(step), css="figures small", anchor="end")
        if x is None:
            yield bar(percent(START), _y(row) - 4, percent(GONE - START), 8, unknown(name), "open")
        elif step.state is State.ABSENT:
            yield text(percent(x), _y(row) + 6, "×", css="cross lost", anchor="middle")
        else:
            below = step.rank is not None and step.rank > k
            yield dot(percent(x), _y(row), hollow=below, css="lost paper" if below else "kept")


def _y(row: int) -> float:
    return ROW * row + 14


def _name(step: Step) -> str:
    """The list, or the checkpoint where it has one list only."""
    alone = step.checkpoint in (Checkpoint.PACKED, Checkpoint.PROMPTED)
    return step.checkpoint.value if alone else step.list or ""


def _following(steps: Sequence[Step], number: int) -> int | None:
    """The row that a row leads to: arms run beside each other, so that each leads to the next kind of list."""
    kind, _, arm = (steps[number].list or "").partition(":")
    names = [(step.list or "").partition(":") for step in steps]
    later = [place for place in range(number + 1, len(steps)) if names[place][0] != kind]
    if not later:
        return None
    beside = [place for place in later if names[place][0] == names[later[0]][0]]
    return next((place for place in beside if arm and names[place][2] == arm), later[0])


def _place(step: Step, deepest: int) -> float | None:
    if step.state is State.UNOBSERVED:
        return None
    return GONE if step.state is State.ABSENT else _x(step.rank or 1, deepest)


def _x(rank: float, deepest: int) -> float:
    return START + ROOM * (rank - 1) / max(deepest - 1, 1)


def _state(step: Step) -> str:
    if step.state is State.UNOBSERVED:
        return "not logged"
    if step.state is State.ABSENT:
        return "absent"
    return "present" if step.rank is None else f"rank {step.rank}"
