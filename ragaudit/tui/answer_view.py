"""The answer: what it says, what the reference says, and what the judge made of each claim."""

from ragaudit.model.judgement import ANSWER_COLUMN, Cell, Claim, Judgement, JudgeState, Side, Verdict
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS, number
from ragaudit.tui.lines import BLANK, Line, Role, flowed, head, line
from ragaudit.tui.query_view import QueryView

MAX_CHARACTERS = 8_000
MARKS = {Verdict.SUPPORTED: "+", Verdict.CONTRADICTED: "x", Verdict.MISSING: "-", None: "?"}
ROLES = {
    Verdict.SUPPORTED: Role.KEPT,
    Verdict.CONTRADICTED: Role.LOST,
    Verdict.MISSING: Role.LOST,
    None: Role.UNSCORED,
}


def answer_lines(view: QueryView, width: int) -> list[Line]:
    """Answer, reference, human judgements, claims with verdicts, judged metrics with their states."""
    trace = view.trace
    answer = trace.answer
    lines: list[Line] = []
    if answer is None or answer.text is None:
        lines += flowed("No answer was logged: log `answer.text` to judge generation.", width, Role.UNSCORED)
    elif not view.texts.shows_answer:
        why = "(answer not shown: a leak stood in the prompt, and the answer may repeat it)"
        lines += flowed(why, width, Role.UNSCORED)
    else:
        lines += _long(answer.text or "(empty)", width)
    if answer is not None:
        said = [
            f"{name} {'yes' if value else 'no'}"
            for name, value in (
                ("correct", answer.correct),
                ("supported", answer.supported),
                ("abstained", answer.abstained),
            )
            if value is not None
        ]
        if answer.finish_reason:
            said.append(f"finish reason {for_terminal(answer.finish_reason, 20)}")
        lines += flowed("   ".join(said) or "nobody judged this answer", width, Role.STRONG)
    readable = view.texts.shows_reference
    if trace.reference and readable:
        lines += [BLANK, head("reference", width), *_long(trace.reference, width)]
    elif trace.reference:
        lines += [
            BLANK,
            *flowed("(reference not shown: the query's user may not read its evidence)", width, Role.UNSCORED),
        ]
    if view.judgement is not None:
        sides = (Side.REFERENCE,) * readable + (Side.ANSWER,) * view.texts.shows_answer
        lines += [BLANK, *_judged(view.judgement, sides, width)]
    return lines


def _judged(judgement: Judgement, sides: tuple[Side, ...], width: int) -> list[Line]:
    lines: list[Line] = []
    for side in sides:
        title = f"claims of the {side.value}"
        claims = [claim for claim in judgement.claims if claim.side is side]
        if claims:
            lines.append(head(f"{title}: + supported  x contradicted  - missing  ? unscored", width))
        for claim in claims:
            lines += _claim(claim, judgement, width)
    if judgement.abstained:
        lines += flowed("The judge reads the answer as an abstention.", width)
    lines.append(head("judged metrics", width))
    for name, state in judgement.states.items():
        value = judgement.metrics.get(name)
        why = judgement.reasons.get(name)
        text = f"{LABELS.get(name, name):<18} {number(value):>6}  {state.value.replace('_', ' ')}"
        role = Role.PLAIN if state is JudgeState.SCORED else Role.UNSCORED
        lines += flowed(text + (f": {why}" if why else ""), width, role, rest=" " * 4)
    errors = [call for call in judgement.calls if call.error]
    for call in errors:
        lines += flowed(f"call {call.purpose} failed: {call.error}", width, Role.UNSCORED, rest="  ")
    return lines


def _claim(claim: Claim, judgement: Judgement, width: int) -> list[Line]:
    cells = [cell for cell in judgement.cells if cell.claim_id == claim.id and cell.chunk_id != ANSWER_COLUMN]
    verdict = _best(cells)
    word = "unscored" if verdict is None else verdict.value
    if verdict in (Verdict.SUPPORTED, Verdict.CONTRADICTED):
        word += ": " + ", ".join([for_terminal(cell.chunk_id, 24) for cell in cells if cell.verdict is verdict][:4])
    return flowed(f"{claim.text}  ({word})", width, ROLES[verdict], first=f"{MARKS[verdict]} ")


def _best(cells: list[Cell]) -> Verdict | None:
    verdicts = {cell.verdict for cell in cells}
    return next((v for v in (Verdict.SUPPORTED, Verdict.CONTRADICTED, None, Verdict.MISSING) if v in verdicts), None)


def _long(text: str, width: int) -> list[Line]:
    lines = flowed(text[:MAX_CHARACTERS], width)
    rest = len(text) - MAX_CHARACTERS
    return [*lines, line((f"({rest:,} more characters)", Role.DIM))] if rest > 0 else lines
