"""What the report says about the judge: who judged, how far it is trusted, what it left out, where labels differ."""

from ragaudit.model.counting import counted, queries
from ragaudit.model.judgement import JudgeState
from ragaudit.model.result import JudgeNote, Summary
from ragaudit.report.figures import LABELS

DANGEROUS = "poor context, faithful (dangerous)"


def judge_sentences(summary: Summary) -> list[str]:
    """The sentences about the judge, most important first; none when nobody judged."""
    note = summary.judge
    if note is None:
        return []
    prompts = ", ".join(f"{name} v{version}" for name, version in note.prompts.items())
    said = [
        f"{queries(note.samples)} judged by {note.model} ({note.mode.replace('_', ' ')} mode"
        f"{f'; prompts {prompts}' if prompts else ''}).",
        f"{note.calibration[:1].upper()}{note.calibration[1:]}.",
    ]
    dangerous = note.quadrants.get(DANGEROUS, 0)
    if dangerous:
        said.append(
            f"{queries(dangerous)} with a poor context and an answer that is faithful to it: "
            "these read well and are wrong. They are the dangerous ones."
        )
    return [*said, *_failures(note)]


def cost_sentence(summary: Summary) -> str | None:
    """What judging took; None when nobody judged."""
    if summary.judge is None:
        return None
    cost = summary.cost
    price = f"${cost.usd:.4f}" if not cost.unpriced else f"${cost.usd:.4f} and {cost.unpriced} calls of unknown price"
    return (
        f"{counted(cost.judge_calls, 'call')}, {cost.from_tape:,} of them from the tape; "
        f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out; {price}."
    )


def _failures(note: JudgeNote) -> list[str]:
    if not note.failures:
        return []
    kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(note.failures.items(), key=lambda item: -item[1]))
    return [
        f"Calls whose reply could not be used: {kinds}. They were asked again, or in pieces, where that may help; what "
        "is still open is unscored, never a verdict."
    ]


def state_rows(note: JudgeNote) -> list[tuple[str, dict[str, int]]]:
    """(metric for people, state -> queries) for each judged metric; every state has a count."""
    none = dict.fromkeys(map(str, JudgeState), 0)
    return [(LABELS.get(metric, metric), none | states) for metric, states in note.states.items()]
