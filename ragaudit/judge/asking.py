"""Rounds of questions: what to do with a reply that failed, was refused, was cut off, or cannot be read."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from ragaudit.judge.fence import one_line
from ragaudit.judge.score import NOT_ASKED
from ragaudit.model.judgement import TOO_LONG, Failure, JudgeCall, Reply, Request

Asking: TypeAlias = Generator[list[Request], list[Reply | Failure], None]
"""Yields requests that may run at the same time; is sent what came back, one for each, in order."""

REFUSED = "refused"
_CUT_OFF = frozenset({"length", "max_tokens"})
_REFUSED = frozenset({"content_filter", "refusal"})
BUDGET_SPENT = f"{NOT_ASKED}: the budget was spent"
STOPPED = f"{NOT_ASKED}: the run was stopped"
_NEVER_SENT = {"budget": BUDGET_SPENT, "cancelled": STOPPED}
"""Kind of failure -> how a call that was never sent is noted."""
_RAW_CHARS = 20_000


@dataclass(frozen=True)
class Heard:
    """What a task made of a reply: what is wrong with it (asked once more), or what to ask next."""

    problem: str | None = None
    ignored: int = 0
    """Verdicts about nothing that was asked."""
    more: Sequence["Task"] = ()


@runtime_checkable
class Task(Protocol):
    """One request, and what becomes of its reply."""

    @property
    def request(self) -> Request:
        """What is sent."""

    def hear(self, reply: Reply) -> Heard:
        """Take the verdicts out of a complete reply."""

    def smaller(self, reply: Reply) -> Sequence["Task"]:
        """The same in pieces, where the reply or the request did not fit; empty = there are none."""

    def repair(self, reply: Reply, problem: str) -> "Task | None":
        """The one more try; None = it has been had."""

    def fail(self, reason: str) -> None:
        """Note why there is no verdict for whatever this task has not heard."""


def unusable(reply: Reply) -> str | None:
    """Why no verdict may be read from this reply, whatever it says; None = one may."""
    if reply.refused or reply.finish_reason in _REFUSED:
        return REFUSED
    if reply.finish_reason in _CUT_OFF:
        return "the reply was cut off"
    if reply.finish_reason == TOO_LONG:
        return "the request is too long for the model"
    return None


def ask(tasks: Sequence[Task], calls: list[JudgeCall]) -> Asking:
    """Ask all tasks, and whatever follows from them, until nothing is left; each call is added to `calls`."""
    open_tasks = list(tasks)
    while open_tasks:
        came_back = yield [task.request for task in open_tasks]
        following: list[Task] = []
        for task, came in zip(open_tasks, came_back, strict=True):
            call, more = _heard(task, came)
            calls.append(call)
            following.extend(more)
        open_tasks = following


def _heard(task: Task, came: Reply | Failure) -> tuple[JudgeCall, Sequence[Task]]:
    if isinstance(came, Failure):
        reason = _reason(came)
        task.fail(reason)
        return _call(task.request, came, error=reason, raw=came.raw), ()
    if (problem := unusable(came)) is not None:
        pieces = () if problem == REFUSED else task.smaller(came)
        if not pieces:
            task.fail(problem)
        return _call(task.request, came, error=problem, raw=came.text), pieces
    heard = task.hear(came)
    if heard.problem is None:
        return _call(task.request, came, ignored=heard.ignored), heard.more
    once_more = task.repair(came, heard.problem)
    if once_more is None:
        task.fail(f"the reply cannot be used: {heard.problem}")
    call = _call(task.request, came, error=heard.problem, raw=came.text, ignored=heard.ignored)
    return call, () if once_more is None else (once_more,)


def _reason(failure: Failure) -> str:
    if failure.kind in _NEVER_SENT:
        return _NEVER_SENT[failure.kind]
    return f"{failure.kind}: {one_line(failure.message)[:200]}"


def _call(
    asked: Request, came: Reply | Failure, *, error: str | None = None, raw: str | None = None, ignored: int = 0
) -> JudgeCall:
    reply = came if isinstance(came, Reply) else None
    return JudgeCall(
        purpose=asked.purpose,
        prompt=f"{asked.prompt}@{asked.version}",
        input_tokens=reply.input_tokens if reply else 0,
        output_tokens=reply.output_tokens if reply else 0,
        usd=reply.usd if reply else 0.0,
        finish_reason=reply.finish_reason if reply else None,
        error=error,
        raw=raw[:_RAW_CHARS] if raw else None,
        ignored=ignored,
    )
