"""Judging as text: the plan before it, and how far it is. Pure."""

from ragaudit.audit.rejudge import Moment
from ragaudit.judge.plan import Load, Plan
from ragaudit.judge.progress import JudgeProgress
from ragaudit.model.counting import counted, queries
from ragaudit.report.clean import for_terminal
from ragaudit.report.plan_text import price
from ragaudit.tui.judging import Planned
from ragaudit.tui.lines import BLANK, Line, Role, flowed, line

BAR = 20
ROOMY = 90
"""Cells from which each figure stands on a line of its own kind."""


def plan_lines(planned: Planned, width: int) -> list[Line]:
    """How many queries are asked about and why not the others, calls, tokens, price, and where it is sent."""
    todo, plan = planned.open, planned.plan
    lines = [line((f"{queries(len(todo.ids))} to judge", Role.STRONG))]
    if todo.judged:
        lines += flowed(f"{queries(todo.judged)} judged before: not asked about again", width, rest="  ")
    if todo.nothing:
        text = f"{queries(todo.nothing)} with nothing for a judge to tell: labelled, or no reference and no answer"
        lines += flowed(text, width, rest="  ")
    if not todo.ids:
        return [*lines, BLANK, line(("There is nothing to do here. esc leaves.", Role.DIM))]
    lines += flowed(f"by {plan.model} ({plan.mode.replace('_', ' ')} mode)", width, rest="  ")
    lines += [BLANK, line((f"{'':<13}{'calls':>8}{'on tape':>9}{'to send':>9}{'tokens':>12}{'price':>12}", Role.HEAD))]
    lines += [_row("as expected", plan.expected, plan.usd), _row("at most", plan.most, plan.most_usd), BLANK]
    lines += _where(plan, planned.api_base, width)
    return [*lines, line(("enter judges them, esc leaves it", Role.DIM))]


def _row(name: str, load: Load, usd: float | None) -> Line:
    tokens = load.input_tokens + load.output_tokens
    sent = load.calls - load.on_tape
    cost = price(usd) if sent else "$0"
    return line(f"{name:<13}{load.calls:>8,}{load.on_tape:>9,}{sent:>9,}{tokens:>12,}{cost:>12}")


def _where(plan: Plan, api_base: str | None, width: int) -> list[Line]:
    if plan.most.calls == plan.most.on_tape and plan.expected.calls == plan.expected.on_tape:
        return flowed("Every reply is on the tape: nothing is sent.", width)
    place = for_terminal(api_base, 60) if api_base else "the model's provider"
    return flowed(
        f"What is not on the tape goes to {place}: question, answer, reference, and chunks that the query's user may "
        "read. Tokens are estimated.",
        width,
    )


def progress_lines(
    moment: Moment, width: int, *, max_cost: float | None, is_on: bool, is_stopping: bool = False
) -> list[Line]:
    """A bar, the counts, the money, and what it waits for: two lines, or four where there is room."""
    filled = BAR if not moment.total else BAR * moment.done // moment.total
    bar = f"[{'#' * filled}{'.' * (BAR - filled)}]"
    calls = moment.calls or JudgeProgress()
    unscored = (f"unscored {moment.unscored:,}", Role.UNSCORED if moment.unscored else Role.PLAIN)
    left = _left(moment) if is_on and not (is_stopping or moment.is_paused or moment.is_summing) else ""
    spent = _spent(calls, max_cost)
    state = _state(moment, calls, is_on=is_on, is_stopping=is_stopping)
    if width < ROOMY:
        head = f"{bar} {moment.done:,}/{moment.total:,}  tape {calls.from_tape:,}  "
        return [line(head, unscored, f"  {spent}"), (*state, *line(f"   about {left}" if left else ""))]
    failed = sum(calls.failed.values())
    return [
        line(f"{bar}  {moment.done:,} of {queries(moment.total)}"),
        line(
            f"from tape {calls.from_tape:,}   asked {calls.replies:,}   calls without a reply {failed:,}   ", unscored
        ),
        line(f"spent {spent}{f'   about {left}' if left else ''}"),
        state,
    ]


def _state(moment: Moment, calls: JudgeProgress, *, is_on: bool, is_stopping: bool) -> Line:
    if not is_on:
        left = moment.total - moment.done
        return line((f"ended; {left:,} left. J goes on." if left else "ended", Role.DIM))
    if moment.is_summing:
        return line("the figures of the run are made anew")
    if is_stopping:
        in_flight = f": {calls.in_flight} in flight are waited for" if calls.in_flight else ""
        return line((f"stopping{in_flight}; what is done is kept", Role.STRONG))
    if moment.is_paused:
        return line(("paused: space goes on", Role.STRONG))
    if calls.waiting:
        return line((for_terminal(calls.waiting, 60), Role.UNSCORED))
    if calls.in_flight:
        return line((f"waiting for {calls.in_flight} {'reply' if calls.in_flight == 1 else 'replies'}", Role.DIM))
    return line(("under way", Role.DIM))


def _spent(calls: JudgeProgress, max_cost: float | None) -> str:
    if calls.unpriced:
        known = f"${calls.usd:,.2f} and " if calls.usd else ""
        return f"{known}{counted(calls.unpriced, 'call')} at unknown price"
    of = f" of ${max_cost:,.2f}" if max_cost is not None else ""
    return f"${calls.usd:,.2f}{of}"


def _left(moment: Moment) -> str:
    """How long it may still take, from the pace so far; empty while that says nothing."""
    if moment.done < 2 or moment.done >= moment.total or not moment.seconds:
        return ""
    minutes, seconds = divmod(round(moment.seconds / moment.done * (moment.total - moment.done)), 60)
    hours, minutes = divmod(minutes, 60)
    time = f"{hours}h {minutes:02}m" if hours else f"{minutes}m {seconds:02}s" if minutes else f"{seconds}s"
    return f"{time} left"
