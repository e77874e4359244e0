"""Causes in the answer: the evidence was read, and the answer is wrong all the same. Not a retrieval problem."""

from ragaudit.diagnosis.registry import answer_cause
from ragaudit.model.diagnosis import Stage
from ragaudit.model.trace import Answer, Trace

_CUT_OFF = {"length", "max_tokens", "max_output_tokens"}


def _answer(trace: Trace) -> Answer:
    return trace.answer or Answer()


@answer_cause(
    "unanswerable_answered",
    Stage.GENERATE,
    summary="The corpus holds no answer, and the system gave one instead of abstaining.",
    remedy="Tell the model to abstain when the context holds no answer; retrieval stays frozen.",
)
def unanswerable_answered(trace: Trace) -> str | None:
    answer = _answer(trace)
    if trace.answerable is not False or answer.abstained is True or answer.correct is True:
        return None
    if answer.abstained is False or answer.correct is False:
        return "the corpus holds no answer, and the answer did not abstain"
    return None


@answer_cause(
    "cut_off_answer",
    Stage.GENERATE,
    summary="The answer stopped at the output limit.",
    remedy="Raise the output limit alone, with the context frozen.",
)
def cut_off_answer(trace: Trace) -> str | None:
    answer = _answer(trace)
    if (answer.finish_reason or "").casefold() not in _CUT_OFF or answer.correct is True:
        return None
    return f"the evidence was in the prompt; the answer ended with finish_reason {answer.finish_reason!r}"


@answer_cause(
    "ignored_context",
    Stage.GENERATE,
    summary="The evidence was in the prompt, and the answer abstained.",
    remedy="Change the prompt (where the context stands, how it is introduced) with the context frozen.",
)
def ignored_context(trace: Trace) -> str | None:
    answer = _answer(trace)
    if trace.answerable is False or answer.abstained is not True or answer.correct is True:
        return None
    return "the evidence was in the prompt, and the answer abstained"


@answer_cause(
    "unsupported_answer",
    Stage.GENERATE,
    summary="The evidence was in the prompt, and the answer says what no packed chunk supports.",
    remedy="Change the prompt or the synthesis mode with the context frozen; mark context as data.",
)
def unsupported_answer(trace: Trace) -> str | None:
    answer = _answer(trace)
    if answer.supported is not False or answer.correct is True:
        return None
    return "the evidence was in the prompt; the answer is not supported by it"


@answer_cause(
    "wrong_answer",
    Stage.GENERATE,
    summary="The evidence was in the prompt, and the answer is wrong or incomplete.",
    remedy="Change the synthesis mode or the prompt with the context frozen.",
)
def wrong_answer(trace: Trace) -> str | None:
    answer = _answer(trace)
    if answer.correct is not False:
        return None
    return "the evidence was in the prompt; the answer is " + (
        "drawn from the context, and wrong or incomplete" if answer.supported else "wrong"
    )
