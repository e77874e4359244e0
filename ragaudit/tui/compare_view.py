"""Two runs beside each other as lines: the queries that changed, one query on both sides, the verdict on the change."""

from collections.abc import Sequence

from ragaudit.compare.changes import TELLING, Came, Way
from ragaudit.metrics.lists import kendall_tau, overlap_at
from ragaudit.model.comparison import MetricChange, QueryChange, Verdict
from ragaudit.report.clean import for_terminal
from ragaudit.report.compare_text import (
    details_text,
    difference_text,
    figures_text,
    state_label,
    undefined_sentences,
    verdict_sentence,
)
from ragaudit.report.figures import LABELS, in_order, number
from ragaudit.report.funnel import standing
from ragaudit.report.layout import cells, cut, pad
from ragaudit.tui.comparing import Compared, Shown
from ragaudit.tui.funnel_view import funnel_lines
from ragaudit.tui.lines import Line, Role, flowed, line
from ragaudit.tui.query_view import QueryView

MARKS = {Way.WORSE: "-", Way.BETTER: "+", Way.OTHER: "~", Way.SAME: " "}
ROLES = {Way.WORSE: Role.LOST, Way.BETTER: Role.KEPT, Way.OTHER: Role.UNSCORED, Way.SAME: Role.DIM}
VERDICT_ROLES = {Verdict.WORSE: Role.LOST, Verdict.BETTER: Role.KEPT, Verdict.SAME: Role.PLAIN}
LEGEND = "- worse in B  + better  ~ otherwise  !! newly leaks"
WIDE = 60
"""From this many cells on there is room for the states."""

ANSWER_CELLS = 400
RANK_CELLS, SCORE_CELLS, MARK_CELLS, MOVE_CELLS = 4, 8, 4, 5


def change_row(row: Came | None, text: str, width: int) -> Line:
    """One query of the list: mark, id, where it stood and stands, its text."""
    if row is None:
        return line(("  ...", Role.DIM))
    leak = bool(row.change.leaks)
    where = ""
    if width >= WIDE:
        where = pad(_states(row.change), 30) + " "
    return line(
        ("!!" if leak else f"{MARKS[row.way]} ", Role.LEAK if leak else ROLES[row.way]),
        f" {pad(for_terminal(row.change.query_id), 8 if width < WIDE else 12)} ",
        (where, ROLES[row.way]),
        for_terminal(text, 300),
    )


def change_line(row: Came, width: int) -> Line:
    """What became of the query, in one line that is in the same place for every query."""
    change = row.change
    if change.leaks:
        named = ", ".join(for_terminal(each, 30) for each in change.leaks)
        return line((cut(f"!! B NEWLY LEAKS   the user may not read {named}", width), Role.LEAK))
    word = {Way.SAME: "same outcome and metrics", Way.OTHER: "changed"}.get(row.way, f"{row.way.value} in B")
    first = cut(f"{MARKS[row.way]} {word}   {_states(change)}", width)
    return line((first, ROLES[row.way]), cut(f"   {_moved(change)}", max(width - cells(first), 0)))


def counts_text(found: Compared) -> str:
    """`16 worse  1 better  2 otherwise  71 same`."""
    words = {Way.OTHER: "otherwise"}
    return "  ".join(f"{found.counts[way]:,} {words.get(way, way.value)}" for way in Way)


def transition_lines(found: Compared, width: int) -> list[Line]:
    """From which stage or verdict to which other one, most frequent first."""
    lines = []
    for each in found.transitions:
        text = f"{state_label(each.before)} -> {state_label(each.after)}"
        lines.append(line(pad(for_terminal(text), max(width - 8, 8)), f"{each.n:>7,}"))
    if not lines:
        lines = flowed("Every query of both runs stayed where it was.", width)
    return lines


def _states(change: QueryChange) -> str:
    after = state_label(change.after)
    return after if change.before == change.after else f"{state_label(change.before)} -> {after}"


# --- one query --------------------------------------------------------------------------------------------------------


def side_title(letter: str, shown: Shown) -> str:
    """`A base   FAIL at Rerank/pack`."""
    name = f"{letter} {for_terminal(shown.name, 16)}"
    if shown.view is not None:
        return f"{name}   {standing(shown.view.diagnosis.outcome, shown.view.diagnosis.stage)}"
    return name if shown.frozen is None else f"{name}   {standing(shown.frozen.outcome, shown.frozen.stage)}"


def side_lines(shown: Shown, width: int, *, gold: str | None, list_name: str | None) -> list[Line]:
    """The funnel of one side; of a frozen baseline the figures that it has."""
    if shown.view is not None:
        mine = gold if gold in shown.view.gold_ids else None
        return funnel_lines(shown.view, width, gold=mine, list_name=list_name)
    lines = flowed(f"Not shown: {shown.why}.", width, Role.UNSCORED)
    if shown.frozen is not None:
        lines += [line(f"{pad(LABELS.get(m, m), 20)} {number(shown.frozen.metrics[m])}") for m in _metrics_of(shown)]
    return lines


def list_names(a: QueryView | None, b: QueryView | None) -> list[str]:
    """The lists of both, in order; what only B has stands after what it follows there."""
    names = list(a.lists) if a is not None else []
    place = 0
    for name in b.lists if b is not None else ():
        if name in names:
            place = names.index(name) + 1
        else:
            names.insert(place, name)
            place += 1
    return names


def first_difference(a: QueryView | None, b: QueryView | None) -> str | None:
    """The first list that is not the same on both sides, or that only one of them has; None when all are the same."""
    if a is None or b is None:
        return None
    return next((name for name in list_names(a, b) if _ids(a, name) != _ids(b, name)), None)


def likeness(a: QueryView | None, b: QueryView | None, list_name: str | None) -> str:
    """`overlap@5 0.60   tau 0.41`: ids in common among the first K, and how far those of both stand in one order."""
    one, other = _ids(a, list_name), _ids(b, list_name)
    if a is None or b is None or one is None or other is None:
        return ""
    k = min(a.result.k_final, b.result.k_final)
    overlap, tau = overlap_at(one, other, k), kendall_tau(one, other)
    return f"overlap@{k} {_two(overlap)}   tau {_two(tau)}"


def difference_lines(a: Shown, b: Shown, list_name: str | None, width: int) -> list[Line]:
    """Both answers, then the chosen list of both sides, rank by rank."""
    lines = [_answer("A", a, width), _answer("B", b, width)]
    one, other = (None if side.view is None else side.view.lists.get(list_name or "") for side in (a, b))
    if list_name is None:
        said = "Every list that was logged is the same on both sides."
        return [*lines, *flowed(said if a.view and b.view else "There are no two lists to lay side by side.", width)]
    half = (width - RANK_CELLS) // 2
    heads = [pad(_head(letter, side, hits), half) for letter, side, hits in (("A", a, one), ("B", b, other))]
    lines.append(line((" " * RANK_CELLS + "".join(heads), Role.DIM)))
    ranks_a, ranks_b = ({hit.id: n for n, hit in enumerate(hits or (), 1)} for hits in (one, other))
    for n in range(max(len(one or ()), len(other or ()))):
        left = _hit(a.view, one[n].id, one[n].value, "", half) if one and n < len(one) else line(" " * half)
        right: Line = ()
        if one and n < len(one) and other is not None and one[n].id not in ranks_b:
            left = _hit(a.view, one[n].id, one[n].value, "gone", half)
        if other and n < len(other):
            move = "" if one is None else _move(ranks_a.get(other[n].id), n + 1)
            right = _hit(b.view, other[n].id, other[n].value, move, half)
        lines.append((*line((f"{n + 1:>3} ", Role.DIM)), *left, *right))
    return lines


def _head(letter: str, side: Shown, hits: Sequence[object] | None) -> str:
    if hits is None:
        return f"{letter} {'not logged' if side.view is not None else 'not kept'}"
    return f"{letter} {len(hits):,} hits" if hits else f"{letter} returned nothing"


def _hit(view: QueryView | None, chunk_id: str, score: float | None, move: str, width: int) -> Line:
    gold = view.gold(chunk_id) if view is not None else None
    leaked = view is not None and chunk_id in view.diagnosis.leaks
    mark = "!!" if leaked else (f"G{gold.grade:g}" if gold is not None and gold.grade != 1 else "G" if gold else "")
    role = Role.LEAK if leaked else Role.GOLD if gold is not None else Role.PLAIN
    name = pad(for_terminal(chunk_id), max(width - SCORE_CELLS - MARK_CELLS - MOVE_CELLS - 1, 6))
    shown = "" if score is None else f"{score:.4g}"
    moved = {"^": Role.KEPT, "v": Role.LOST, "g": Role.LOST, "n": Role.STRONG}.get(move[:1], Role.PLAIN)
    return line(
        (f"{name} ", role), pad(shown, SCORE_CELLS), (pad(mark, MARK_CELLS), role), (pad(move, MOVE_CELLS), moved)
    )


def _move(was: int | None, rank: int) -> str:
    if was is None:
        return "new"
    return "" if was == rank else f"^{was - rank}" if was > rank else f"v{rank - was}"


def _answer(letter: str, shown: Shown, width: int) -> Line:
    if shown.view is None:
        return line((cut(f"{letter} answer not kept", width), Role.UNSCORED))
    answer = shown.view.trace.answer
    if answer is None or answer.text is None:
        return line((f"{letter} no answer was logged", Role.UNSCORED))
    if not shown.view.texts.shows_answer:
        return line((cut(f"{letter} answer not shown: a leak stood in the prompt", width), Role.UNSCORED))
    judged = {True: "correct", False: "not correct", None: "not judged"}[answer.correct]
    start = f"{letter} [{judged}] "
    return line(
        (start, Role.STRONG), cut(for_terminal(answer.text, ANSWER_CELLS) or "(empty)", max(width - len(start), 8))
    )


def _ids(view: QueryView | None, list_name: str | None) -> list[str] | None:
    hits = None if view is None or list_name is None else view.lists.get(list_name)
    return None if hits is None else [hit.id for hit in hits]


def _metrics_of(shown: Shown) -> list[str]:
    return in_order(shown.frozen.metrics) if shown.frozen is not None else []


def _moved(change: QueryChange) -> str:
    """What moved, the telling metrics alone where there are any."""
    telling = [metric for metric in TELLING if metric in change.differences]
    return "  ".join(
        f"{for_terminal(LABELS.get(metric, metric))} {change.differences[metric]:+.3f}"
        for metric in telling or in_order(change.differences)
    )


def _two(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.2f}"


# --- the verdict ------------------------------------------------------------------------------------------------------


def headline(found: Compared, width: int) -> Line:
    """The verdict in one line."""
    if found.found is None:
        said = found.refusal.split("\n")
        reasons = [text.removeprefix("  - ") for text in said if text.startswith("  - ")] or said
        more = f" (1 of {len(reasons)} reasons)" if len(reasons) > 1 else ""
        return line((cut(f"NOT COMPARED{more}: {for_terminal(reasons[0])}", width), Role.UNSCORED))
    verdicts = {change.verdict for change in found.found.metrics}
    bad = bool(found.found.newly_leaking) or Verdict.WORSE in verdicts
    role = Role.LOST if bad else Role.KEPT if Verdict.BETTER in verdicts else Role.STRONG
    return line((cut(verdict_sentence(found.found), width), role))


def verdict_lines(found: Compared, width: int) -> list[Line]:
    """What changed, what is worth knowing, every metric with its interval; or each reason of the refusal."""
    if found.found is None:
        refused = flowed(
            "These two runs are not compared as wholes. Each query can still be looked at.", width, Role.STRONG
        )
        for reason in found.refusal.split("\n"):
            refused += flowed(reason, width, Role.UNSCORED, first="  " if reason.startswith("  ") else "", rest="    ")
        return refused
    result = found.found
    lines: list[Line] = []
    for each in result.variables:
        lines += flowed(difference_text(each), width, Role.STRONG, first="changed  ")
    for each in result.exceptions:
        lines += flowed(difference_text(each), width, Role.UNSCORED, first="differs  ")
    if not result.variables and not result.exceptions:
        lines += flowed("no key of [pipeline]", width, Role.UNSCORED, first="changed  ")
    lines += flowed(
        f"{result.pairs:,} in both: {len(result.newly_failing):,} newly failing, {len(result.newly_passing):,} newly "
        f"passing, {result.unchanged:,} where they were",
        width,
        first="queries  ",
    )
    for warning in result.warnings:
        lines += flowed(warning, width, Role.UNSCORED, first="- ")
    for change in result.metrics:
        lines += _metric(change, width)
    for sentence in undefined_sentences(result.metrics):
        lines += flowed(sentence, width, Role.DIM, first="- ")
    return lines


def _metric(change: MetricChange, width: int) -> list[Line]:
    label = pad(for_terminal(LABELS.get(change.metric, change.metric)), 21)
    if change.paired.difference is None:
        return flowed(f"{label} undefined: {change.paired.reason or 'no reason given'}", width, Role.UNSCORED)
    first = f"{label} {figures_text(change.paired)} "
    verdict = change.verdict.value.upper()
    return [
        line(first, (verdict, VERDICT_ROLES[change.verdict])),
        *flowed(details_text(change), width, Role.DIM, first="    "),
    ]
