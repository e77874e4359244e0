"""The funnel: each gold id at each stage, from the corpus to the answer, with the place where it was lost."""

from collections.abc import Sequence

from ragaudit.model.diagnosis import Checkpoint, State, Step
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import pad
from ragaudit.tui.lines import Line, Role, flowed, line
from ragaudit.tui.query_view import QueryView

STAGE_CELLS = 16
KEPT_CELLS = 6
GOLD_CELLS = 15
SHARP = 10
"""A fall by this many ranks is marked."""

CORPUS = (Checkpoint.REGISTERED, Checkpoint.PARSED, Checkpoint.CHUNKED, Checkpoint.INDEXED)


def funnel_lines(view: QueryView, width: int, *, gold: str | None, list_name: str | None) -> list[Line]:
    """The table, with the chosen gold id first and the chosen list pointed at."""
    golds = _window(view.gold_ids, gold, max(1, (width - STAGE_CELLS - KEPT_CELLS - 4) // GOLD_CELLS))
    if not golds:
        return flowed("No gold ids: nobody labelled this query, and no judge found evidence for it.", width)
    lines = [_header(view, golds, gold)]
    lines += [_corpus(view, golds)]
    falls: dict[str, int | None] = dict.fromkeys(golds)
    for name in view.lists:
        lines.append(_row(view, golds, name, falls, pointed=name == list_name))
    lines.append(_answered(view, golds))
    more = len(view.gold_ids) - len(golds)
    if more > 0:
        lines += flowed(f"{more} more gold ids: ) and ( step through them", width, Role.DIM)
    for note in _notes(view, golds):
        lines += flowed(note, width, Role.DIM, first="  ")
    return lines


def list_label(name: str) -> str:
    """A list's name as the stage column shows it: `arm dense`, `after rerank`."""
    return for_terminal(name.replace(":", " ").replace("_", " "), STAGE_CELLS)


def _window(ids: Sequence[str], chosen: str | None, room: int) -> list[str]:
    start = ids.index(chosen) if chosen in ids else 0
    start = max(0, min(start, len(ids) - room))
    return list(ids[start : start + room])


def _header(view: QueryView, golds: Sequence[str], chosen: str | None) -> Line:
    pieces: list[tuple[str, Role]] = [(pad("  stage", STAGE_CELLS + 2) + pad("kept", KEPT_CELLS), Role.DIM)]
    for gold_id in golds:
        diagnosed = view.gold(gold_id)
        grade = f"={diagnosed.grade:g}" if diagnosed is not None and diagnosed.grade != 1 else ""
        name = for_terminal(gold_id)
        tail = name[-(GOLD_CELLS - 2 - len(grade)) :] if len(name) + len(grade) > GOLD_CELLS - 1 else name
        shown = pad(f"{tail}{grade}", GOLD_CELLS - 1) + " "
        pieces.append((shown, Role.GOLD if gold_id == chosen else Role.STRONG))
    return line(*pieces)


def _corpus(view: QueryView, golds: Sequence[str]) -> Line:
    cells = []
    for gold_id in golds:
        gold = view.gold(gold_id)
        steps = {step.checkpoint: step.state for step in (gold.journey if gold else ())}
        if gold is not None and gold.eligible is False:
            cells.append(("not read", Role.DIM))
            continue
        states = [steps.get(checkpoint, State.UNOBSERVED) for checkpoint in CORPUS]
        absent = [c.value for c, state in zip(CORPUS, states, strict=True) if state is State.ABSENT]
        if absent:
            cells.append((f"not {absent[0]}", Role.LOST))
        else:
            cells.append(("yes", Role.PLAIN) if State.PRESENT in states else ("?", Role.UNSCORED))
    return _cells("corpus", "", cells, pointed=False)


def _row(view: QueryView, golds: Sequence[str], name: str, falls: dict[str, int | None], *, pointed: bool) -> Line:
    cells = []
    for gold_id in golds:
        state, rank = view.place(gold_id, name)
        before = falls[gold_id]
        if state is State.UNOBSERVED:
            cells.append(("?", Role.UNSCORED))
        elif state is State.ABSENT:
            gone = before is not None and not name.startswith("arm:")
            cells.append(("CUT !" if gone else "-", Role.LOST if gone else Role.DIM))
            if gone:
                falls[gold_id] = None
        else:
            fell = 0 if rank is None or before is None or name.startswith("arm:") else rank - before
            mark = " v!" if fell >= SHARP else " v" if fell > 0 else ""
            cells.append(
                ((f"#{rank}" if rank is not None else "yes") + mark, Role.LOST if fell >= SHARP else Role.KEPT)
            )
            falls[gold_id] = rank if before is None or not name.startswith("arm:") else min(before, rank or before)
    return _cells(list_label(name), f"{len(view.lists[name]):,}", cells, pointed=pointed)


def _answered(view: QueryView, golds: Sequence[str]) -> Line:
    cells = []
    for gold_id in golds:
        gold = view.gold(gold_id)
        state = next(
            (s.state for s in (gold.journey if gold else ()) if s.checkpoint is Checkpoint.ANSWERED), State.UNOBSERVED
        )
        word = {State.PRESENT: "yes", State.ABSENT: "no", State.UNOBSERVED: "?"}[state]
        role = {State.PRESENT: Role.KEPT, State.ABSENT: Role.LOST, State.UNOBSERVED: Role.UNSCORED}[state]
        cells.append((word, role))
    return _cells("answer right", "", cells, pointed=False)


def _cells(stage: str, kept: str, cells: Sequence[tuple[str, Role]], *, pointed: bool) -> Line:
    start = ("> " if pointed else "  ") + pad(stage, STAGE_CELLS) + pad(kept, KEPT_CELLS)
    return line((start, Role.STRONG if pointed else Role.PLAIN), *((pad(t, GOLD_CELLS), role) for t, role in cells))


def _notes(view: QueryView, golds: Sequence[str]) -> list[str]:
    notes = []
    for gold_id in golds:
        gold = view.gold(gold_id)
        for step in gold.journey if gold is not None else ():
            if step.note:
                notes.append(f"{_checkpoint(step)}: {step.note}")
    return list(dict.fromkeys(notes))


def _checkpoint(step: Step) -> str:
    return step.list or step.checkpoint.value
