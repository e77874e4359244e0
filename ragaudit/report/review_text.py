"""What a person said about a query, and how far they agree with the diagnoses, in sentences."""

from ragaudit.model.counting import counted
from ragaudit.model.diagnosis import Diagnosis, Stage
from ragaudit.model.judgement import Statistic
from ragaudit.model.review import Review, ReviewAgreement
from ragaudit.report.figures import listed
from ragaudit.report.funnel import standing
from ragaudit.report.layout import WIDTH, heading, wrap


def review_facts(review: Review, diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """What was said beside the verdict, as pairs of a word and a text that is not cleaned."""
    said = []
    if review.stage is not None:
        said.append(("stage", "none, nothing was lost" if review.stage is Stage.NONE else review.stage.label))
    if review.gold is not None:
        said.append(("gold", " ".join(review.gold) or "(none)"))
    if review.tags:
        said.append(("tags", " ".join(review.tags)))
    if review.note:
        said.append(("note", review.note))
    if (review.about_outcome, review.about_stage) != (diagnosis.outcome, diagnosis.stage):
        said.append(("said of another diagnosis", standing(review.about_outcome, review.about_stage)))
    return said


def review_word(review: Review | None) -> str:
    """What was said of a query in a word or two: `agree`, `agree +note`, `noted`; empty = nothing yet."""
    if review is None:
        return ""
    more = any((review.note, review.tags, review.stage is not None, review.gold is not None))
    if review.verdict is None:
        return "noted" if more else ""
    return review.verdict.value.replace("_", " ") + (" +note" if more else "")


def agreement_sentence(found: ReviewAgreement) -> str:
    """One line: `you agree with 15 of 17 (0.88 [0.66, 0.97]), kappa 0.85 [0.60, 1.00] (n 16): small sample`."""
    n = found.agreed + found.disagreed
    if not n:
        return "no verdict of agree or disagree yet"
    kappa = "undefined" if found.kappa.value is None else f"{_short(found.kappa)} (n {found.kappa.n})"
    small = ": small sample" if found.small else ""
    return f"you agree with {found.agreed} of {n} ({_short(found.rate)}), kappa of the stage {kappa}{small}"


def agreement_text(found: ReviewAgreement, width: int = WIDTH) -> str:
    """What `ragaudit review --agreement` prints."""
    n = found.agreed + found.disagreed
    lines = [
        heading("The diagnosis and the person who reviewed it", width),
        f"  {'agree':<22}{_figure(found.rate)}   {found.agreed} of {n}",
        f"  {'kappa of the stage':<22}{_figure(found.kappa)}",
    ]
    for said in _notes(found):
        lines += wrap(said, width, first="  ", rest="    ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _notes(found: ReviewAgreement) -> list[str]:
    said = []
    out = [f"{n} {what}" for n, what in ((found.gold_wrong, "gold wrong"), (found.unsure, "unsure")) if n]
    if out:
        said.append(f"left out of both: {listed(out)}")
    if found.without_stage:
        said.append(
            f"{counted(found.without_stage, 'disagreement')} without the right stage: in the first figure, not in "
            "kappa, which is too high by that. The key a names the stage."
        )
    if found.outdated:
        said.append(f"{counted(found.outdated, 'verdict')} on another diagnosis than the audit holds now")
    if found.small:
        said.append("small sample: fewer than 30 verdicts. Nothing rests on these figures yet.")
    return said


def _short(figure: Statistic) -> str:
    return "undefined" if figure.value is None else f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"


def _figure(figure: Statistic) -> str:
    if figure.value is None:
        return f"     -  {figure.reason or 'undefined'}"
    return f"{figure.value:6.3f}  [{figure.low:.3f}, {figure.high:.3f}]   n {figure.n}"
