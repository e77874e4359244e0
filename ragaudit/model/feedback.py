"""What users did with an answer: one event of `feedback.jsonl`."""

from typing import Any

from ragaudit.model.ids import Id
from ragaudit.model.record import Observed


class Feedback(Observed):
    """One event. `rating` is what the user said, `implicit` what the user did (copied, clicked, asked again)."""

    session_id: Id | None = None
    query_id: Id | None = None
    chunk_ids: tuple[Id, ...] | None = None
    rating: bool | int | float | str | None = None
    implicit: Any = None
    ts: int | float | str | None = None
