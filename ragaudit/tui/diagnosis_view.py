"""The diagnosis of a query in a few lines: stage, proof, what is undecided, the next experiment, the person's word."""

from collections.abc import Mapping

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.diagnosis import Diagnosis, Outcome, Severity
from ragaudit.model.experiment import Experiment
from ragaudit.model.review import Review, ReviewVerdict
from ragaudit.report.clean import for_terminal
from ragaudit.report.diagnosis_text import MARKS
from ragaudit.report.figures import stages_named
from ragaudit.report.funnel import standing
from ragaudit.report.layout import cut
from ragaudit.report.next_text import change_of, effect
from ragaudit.report.review_text import review_facts
from ragaudit.tui.lines import Line, Role, flowed, line
from ragaudit.tui.query_view import QueryView

VERDICT_KEYS = {
    ReviewVerdict.AGREE: "1 agree",
    ReviewVerdict.DISAGREE: "2 disagree",
    ReviewVerdict.GOLD_WRONG: "3 gold wrong",
    ReviewVerdict.UNSURE: "4 unsure",
}
ROLES = {
    Outcome.PASS: Role.KEPT,
    Outcome.FAIL: Role.LOST,
    Outcome.UNDETERMINED: Role.UNSCORED,
    Outcome.LABEL_ISSUE: Role.UNSCORED,
    Outcome.NOT_APPLICABLE: Role.DIM,
}


def standing_line(view: QueryView, width: int) -> Line:
    """Where the evidence was lost, in one line that is in the same place for every query."""
    diagnosis = view.diagnosis
    if diagnosis.severity is Severity.LEAK:
        named = ", ".join(for_terminal(leak, 30) for leak in diagnosis.leaks) or "see the evidence"
        text = f"!! LEAK   the user may not read {named}   {standing(diagnosis.outcome, diagnosis.stage)}"
        return line((cut(text, width), Role.LEAK))
    text = f"{MARKS[diagnosis.outcome]} {standing(diagnosis.outcome, diagnosis.stage)}"
    if diagnosis.causes:
        text += f": {diagnosis.causes[0].replace('_', ' ')}"
    rest = f"   {for_terminal(diagnosis.evidence[0])}" if diagnosis.evidence else ""
    first = cut(text, width)
    return line((first, ROLES[diagnosis.outcome]), cut(rest, max(width - len(first), 0)))


def diagnosis_lines(view: QueryView, causes: Mapping[str, CauseInfo], width: int) -> list[Line]:
    """What stands behind the standing line: proof, what is undecided, the change to try, the person's word."""
    diagnosis = view.diagnosis
    lines: list[Line] = []
    if diagnosis.secondary:
        lines += flowed(f"also lost at {', '.join(s.label for s in diagnosis.secondary)}", width, Role.LOST)
    if diagnosis.gap is not None:
        lines += flowed(f"beside the stage: {diagnosis.gap.value.replace('_', ' ')}", width, Role.UNSCORED)
    for sentence in diagnosis.evidence:
        lines += flowed(sentence, width, first="  ")
    if diagnosis.could_be:
        lines += flowed(f"could be {stages_named([s.value for s in diagnosis.could_be])}", width, first="? ")
    for name in diagnosis.log:
        lines += flowed(f"log {name}", width, Role.UNSCORED, first="> ")
    lines += _change(view, causes, width)
    lines += review_lines(view.review, diagnosis, width)
    return lines


def _change(view: QueryView, causes: Mapping[str, CauseInfo], width: int) -> list[Line]:
    lines: list[Line] = []
    for name in view.diagnosis.causes[:2]:
        known = causes.get(name)
        if known is not None:
            lines += flowed(f"{name.replace('_', ' ')}: {known.summary}", width, first="  ")
            lines += flowed(known.remedy, width, Role.STRONG, first="> ")
    if view.experiments:
        lines += next_lines(view.experiments[0], width)
    return lines


def next_lines(experiment: Experiment, width: int) -> list[Line]:
    """The next experiment in a line or two."""
    text = f"NEXT {change_of(experiment)}   {effect(experiment)}"
    return flowed(text, width, Role.STRONG, first="> ")


def review_lines(review: Review | None, diagnosis: Diagnosis, width: int) -> list[Line]:
    """What the person said, or the keys with which to say it."""
    given = review.verdict if review is not None else None
    boxes = "   ".join(
        f"{key[:1]} [{'x' if verdict is given else ' '}] {key[2:]}" for verdict, key in VERDICT_KEYS.items()
    )
    lines = flowed(f"yours: {boxes}", width, Role.STRONG)
    if review is None:
        return lines
    facts = review_facts(review, diagnosis)
    return lines + [one for word, text in facts for one in flowed(f"{word}: {text}", width, first="  ")]
