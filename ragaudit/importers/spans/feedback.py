"""What users said about an answer, where spans hold it: annotations of people, and evaluation events that name them."""

import re
from collections.abc import Iterator
from typing import Any

from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans.context import Whole
from ragaudit.importers.spans.span import iso_time
from ragaudit.importers.spans.step import in_order, indexed

_BY_USERS = re.compile(r"feedback|thumb|rating|user|csat", re.IGNORECASE)


def feedback_of(
    whole: Whole, query_id: str, session: str | None, report: ImportReport, place: str
) -> Iterator[dict[str, Any]]:
    """Rows for feedback.jsonl. Verdicts of models and of code are no feedback: noted, and left out."""
    for span in whole.spans:
        notes, _ = in_order(indexed(span.attributes, "annotations"))
        for item in notes:
            rating = item.get("annotation.score", item.get("annotation.label"))
            if str(item.get("annotation.annotator_kind") or "HUMAN").upper() != "HUMAN":
                report.note("annotations by models or code: not read as feedback", place)
            elif rating is not None:
                yield row(query_id, session, item.get("annotation.name"), rating, iso_time(span.end))
        for event in span.events:
            if event.name != "gen_ai.evaluation.result":
                continue
            a = event.attributes
            name = str(a.get("gen_ai.evaluation.name") or "")
            rating = a.get("gen_ai.evaluation.score.value", a.get("gen_ai.evaluation.score.label"))
            if not _BY_USERS.search(name):
                report.note("evaluation results: not read as feedback, as nothing says that a user gave them", place)
            elif rating is not None:
                yield row(query_id, session, name, rating, iso_time(event.time or span.end))


def row(query_id: str | None, session: str | None, name: Any, rating: Any, time: str | None) -> dict[str, Any]:
    """One event of feedback.jsonl; `name` is what the tool calls it."""
    said = rating if rating is None or isinstance(rating, bool | int | float | str) else str(rating)
    found = {"session_id": session, "query_id": query_id, "rating": said, "ts": time, "name": name}
    return {key: value for key, value in found.items() if value is not None}
