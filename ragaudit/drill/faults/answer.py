"""Faults in the answer: the evidence was in the prompt, whole."""

from dataclasses import replace
from typing import Any

from ragaudit.drill.case import Broken, Case
from ragaudit.drill.registry import fault
from ragaudit.model.diagnosis import Stage
from ragaudit.model.trace import Answer


def _answered(case: Case, **update: Any) -> Broken | None:
    """The answer judged anew; None where answers are not judged."""
    answer = case.trace.answer
    if answer is None or answer.correct is None:
        return None
    return Broken(case.trace.model_copy(update={"answer": answer.model_copy(update=update)}), case.pipeline)


def _nobody_judged(broken: Broken) -> Broken:
    said = broken.trace.answer or Answer()
    answer = Answer(text=said.text, finish_reason=None)
    return replace(broken, trace=broken.trace.model_copy(update={"answer": answer}))


_UNJUDGED: dict[str, Any] = {"hide": _nobody_judged, "hides": "the judgements of the answer"}


@fault("answer_cut_off", Stage.GENERATE, "The answer stopped at the output limit.", delivers=True, **_UNJUDGED)
def answer_cut_off(case: Case) -> Broken | None:
    """The finish reason was logged; half of the text is there."""
    text = (case.trace.answer.text if case.trace.answer else None) or ""
    return _answered(case, text=text[: len(text) // 2], correct=False, finish_reason="length")


@fault("answer_unsupported", Stage.GENERATE, "The answer says what no packed chunk supports.", delivers=True)
def answer_unsupported(case: Case) -> Broken | None:
    """Judged wrong and unsupported."""
    return _answered(case, text="Something else.", correct=False, supported=False, supported_by=())


@fault("context_ignored", Stage.GENERATE, "The answer abstains although the evidence is in the prompt.", delivers=True)
def context_ignored(case: Case) -> Broken | None:
    """Judged as abstaining."""
    return _answered(case, text="I do not know.", correct=False, supported=None, abstained=True, supported_by=None)


@fault("answer_misread", Stage.GENERATE, "The answer is drawn from the gold, and wrong.", delivers=True)
def answer_misread(case: Case) -> Broken | None:
    """Judged wrong and supported by the gold."""
    return _answered(case, text="The opposite.", correct=False, supported=True, supported_by=tuple(case.victims))
