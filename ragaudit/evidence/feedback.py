"""Joins what users said about an answer to the query it was said of: by query id, else by session id."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ragaudit.model.feedback import Feedback
from ragaudit.model.trace import Trace

GOOD = frozenset(
    ["up", "good", "positive", "like", "liked", "thumbs_up", "thumbsup", "yes", "true", "correct", "1", "+1"]
)
BAD = frozenset(
    ["down", "bad", "negative", "dislike", "disliked", "thumbs_down", "thumbsdown", "no", "false", "wrong", "0", "-1"]
)


def liked(rating: bool | int | float | str | None) -> bool | None:
    """Whether a rating is good: true, 1 or `up`; false, 0, -1 or `down` is bad. None = it does not say.

    Other numbers have a scale that nobody wrote down (is 3 good?), and say nothing.
    """
    if isinstance(rating, str):
        word = rating.strip().lower().replace(" ", "_")
        return True if word in GOOD else False if word in BAD else None
    if rating is None or rating not in (-1, 0, 1):
        return None
    return rating > 0


@dataclass
class UserFeedback:
    """The explicit ratings of a run. What users only did (`implicit`) is no rating, and is left out."""

    _by_query: dict[str, list[Feedback]] = field(default_factory=lambda: defaultdict(list))
    _by_session: dict[str, list[Feedback]] = field(default_factory=lambda: defaultdict(list))

    @classmethod
    def of(cls, events: Iterable[Feedback]) -> "UserFeedback":
        """From the events of feedback.jsonl."""
        found = cls()
        for event in events:
            if liked(event.rating) is None:
                continue
            if event.query_id is not None:
                found._by_query[event.query_id].append(event)
            elif event.session_id is not None:
                found._by_session[event.session_id].append(event)
        return found

    def about(self, trace: Trace) -> str | None:
        """`positive`, `negative` or `mixed`; None = nobody rated this query.

        An event of the session that names chunks is about those of its queries whose final context holds one of them;
        an event that names neither query nor chunks is about every query of the session.
        """
        said = list(self._by_query.get(trace.query_id, ()))
        packed = {*(trace.final_context_ids or ()), *(trace.prompt_ids or ())}
        if trace.session_id is not None:
            for event in self._by_session.get(trace.session_id, ()):
                if event.chunk_ids is None or packed.intersection(event.chunk_ids):
                    said.append(event)
        good = {liked(event.rating) for event in said}
        return None if not good else "mixed" if len(good) > 1 else "positive" if True in good else "negative"
