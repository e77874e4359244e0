"""The review as a conversation in plain text: one query is printed, one line is read. For screen readers and pipes."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.errors import ConfigError, RagauditError
from ragaudit.model.diagnosis import Stage
from ragaudit.model.review import ReviewVerdict
from ragaudit.report.clean import for_terminal
from ragaudit.report.diagnosis_text import diagnosis_text
from ragaudit.report.layout import wrap
from ragaudit.report.next_text import proposal
from ragaudit.report.review_text import review_facts
from ragaudit.tui.query_view import QueryView
from ragaudit.tui.session import Session

VERDICTS = dict(zip("1234", ReviewVerdict, strict=True))

HELP = """\
1 agree, 2 disagree, 3 gold wrong, 4 unsure; then the next query
2 NOTE        the same with a note, for each of the four
n  p          next, previous query of the queue
g ID          go to a query
f FILTER      show only what matches, as f stage:rerank is:unreviewed; f alone shows all
u             take back what was said last
an empty line prints the query again
?             this help
q             end; so does the end of the input
"""

Say = Callable[[str], None]


class Left(Exception):
    """The person is done."""


@dataclass
class Conversation:
    """A session in plain text. `ended` = the last verdict was on the last query of the queue."""

    session: Session
    causes: Mapping[str, CauseInfo]
    stage_notes: Mapping[Stage, str]
    say: Say
    """Prints a text and its line end, and sees to it that it is out."""
    ended: bool = False

    def run(self, lines: Iterable[str], *, forgiving: bool) -> None:
        """Print the current query, then do what each line says, until `q` or the end.

        Args:
            lines: What is typed.
            forgiving: Go on after a line that cannot be done. Not in a pipe: what follows was written for the query
                that the line should have led to.

        Raises:
            RagauditError: A line could not be done, and `forgiving` is not set.
        """
        self.show()
        for line in lines:
            try:
                self._do(line.strip())
            except Left:
                break
            except RagauditError as error:
                if not forgiving:
                    raise
                self.say(for_terminal(str(error)))

    def show(self) -> None:
        """The current query in full."""
        view = self.session.view()
        if view is None:
            self.say("No query matches the filter. f FILTER changes it, f alone shows all.")
        else:
            self.say(query_text(self.session, view, self.causes, self.stage_notes))

    def _do(self, line: str) -> None:
        self.session.refresh()
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word in VERDICTS:
            self._verdict(VERDICTS[word], rest)
        elif word == "g" and rest:
            self._go_to(rest)
        elif word == "f":
            self.session.narrow(rest)
            self._arrived(f"{self.session.count:,} match")
        elif rest:
            raise ConfigError(f"{line!r} is not understood. ? lists what is.")
        elif word in ("n", "p"):
            self._move(1 if word == "n" else -1)
        elif word == "u":
            self._arrived(self.session.undo())
        elif word == "?":
            self.say(HELP)
        elif word == "q":
            raise Left
        elif word == "":
            self.show()
        else:
            raise ConfigError(f"{line!r} is not understood. ? lists what is.")

    def _verdict(self, verdict: ReviewVerdict, note: str) -> None:
        before = self.session.here
        if before is None:
            raise ConfigError("the queue is empty: there is nothing to give a verdict on. f alone shows all queries.")
        if self.ended:
            raise ConfigError("the queue is at its end: nothing was saved. p goes back, f changes the queue, q ends.")
        self.say(for_terminal(self.session.judge(verdict, note or None)))
        self.ended = self.session.here == before
        if self.ended:
            self.say("That was the last query of the queue.")
        else:
            self.show()

    def _go_to(self, query_id: str) -> None:
        if not self.session.show(query_id):
            raise ConfigError(f"no query {query_id!r} in this audit. f WORD looks for one.")
        self._arrived("")

    def _move(self, by: int) -> None:
        if not self.session.move(by):
            raise ConfigError(f"this is the {'last' if by > 0 else 'first'} query of the queue. f changes the queue.")
        self._arrived("")

    def _arrived(self, said: str) -> None:
        self.ended = False
        if said:
            self.say(for_terminal(said))
        self.show()


def query_text(
    session: Session, view: QueryView, causes: Mapping[str, CauseInfo], stage_notes: Mapping[Stage, str]
) -> str:
    """One query: where it stands in the queue, the diagnosis with the readable texts, the next change, the review."""
    where = f"{session.index + 1:,} of {session.count:,}, filter {session.filter.text or 'none'}"
    lines = [for_terminal(f"{where}, {session.reviewed:,} reviewed"), ""]
    lines.append(diagnosis_text(view.result, causes, stage_notes, texts=view.texts.chunk))
    if view.experiments:
        lines += wrap(for_terminal(proposal(view.experiments[0])), first="next experiment: ", rest="  ")
    if view.review is None:
        lines.append("your verdict: none")
    else:
        verdict = view.review.verdict
        lines.append(f"your verdict: {'none' if verdict is None else verdict.value.replace('_', ' ')}")
        for word, text in review_facts(view.review, view.diagnosis):
            lines += wrap(for_terminal(f"{word}: {text}"), first="  ", rest="    ")
    return "\n".join(lines)
