"""feedback.jsonl: what users did with an answer, one event a line."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragaudit.model.feedback import Feedback
from ragaudit.readers.fields import Odd, explained, finite, shown
from ragaudit.readers.lines import LineError, parse_json
from ragaudit.readers.objects import read_objects
from ragaudit.readers.parquet import is_parquet, parquet_rows
from ragaudit.readers.problems import Problems


def read_feedback(path: Path, name: str, problems: Problems) -> Iterator[Feedback]:
    """Stream the events; a line that cannot be read is set aside."""
    records: Iterable[tuple[int, Any]] = (
        parquet_rows(path, name) if is_parquet(path) else read_objects(path, name, problems)
    )
    for number, raw in records:
        try:
            value = parse_json(raw, name, number, problems) if isinstance(raw, bytes) else raw
            if not isinstance(value, dict):
                raise LineError(f"holds {shown(value)}, not an object. Write one JSON object a line.")
            event = _event(value, name, number, problems)
        except LineError as error:
            problems.set_aside(error.kind, name, number, str(error))
            continue
        problems.done(name, number)
        yield event
    problems.tally(name).complete = True


def _event(value: dict[str, Any], name: str, number: int, problems: Problems) -> Feedback:
    odd = Odd()
    cleaned = {key: finite(item, key, odd) for key, item in value.items()}
    try:
        event = Feedback.model_validate(cleaned)
    except ValidationError as error:
        raise LineError(explained(error, value)) from None
    if event.session_id is None and event.query_id is None and event.chunk_ids is None:
        raise LineError("session_id, chunk_ids: both missing. Log what the feedback is about.")
    odd.report(problems, name, number)
    return event
