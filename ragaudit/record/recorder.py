"""The recorder: hands out queries, and writes what they hold as the rows that `ragaudit audit` reads."""

import datetime
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragaudit.model.json_line import json_line
from ragaudit.record.files import LineFile
from ragaudit.record.guard import LOG, Faults, guarded, shielded
from ragaudit.record.plain import chunk_id, plain, words
from ragaudit.record.privacy import MODES, Redact, packed_texts, withheld
from ragaudit.record.prompt import in_prompt
from ragaudit.record.query import Query, conclude
from ragaudit.record.writer import Writer

MAX_QUEUE = 1_000
ROTATE_BYTES = 1 << 30


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


@dataclass(frozen=True)
class Stats:
    """What became of the queries so far. `errors` = problem -> how often."""

    written: int
    waiting: int
    dropped: int
    unsampled: int
    errors: Mapping[str, int]


class Recorder:
    """Records queries into a file. Made once for a process; never raises into the application.

    A wrong setting does not raise either: it is logged as an error, and nothing is recorded, so that a text which was
    meant to be hashed is not written.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        index_revision: str | None = None,
        embedding_model: str | None = None,
        k_final: int | None = None,
        sample: float = 1.0,
        text: str = "full",
        redact: Redact | None = None,
        max_queue: int = MAX_QUEUE,
        rotate_bytes: int | None = ROTATE_BYTES,
        clock: Callable[[], datetime.datetime] = _now,
    ) -> None:
        """What holds for every query.

        Args:
            path: `traces.jsonl` of a bundle. Made with mode 0600, appended to.
            index_revision: The revision of the index that is served; a query may say otherwise.
            embedding_model: The model of the query vectors; a query may say otherwise.
            k_final: How many chunks the prompt may hold; a query may say otherwise.
            sample: Share of the queries that is recorded, 0 to 1, chosen by the hash of the query id: the same query is
                recorded or left out in every process.
            text: `full`, `hash` (of chunks, the hash of the text; no other text) or `none`.
            redact: Called with every text that would be written, in the writer's thread; returns what may be.
            max_queue: Queries that may wait for the writer; more are dropped and counted.
            rotate_bytes: Size at which the file is renamed to `traces.<time>-<process>.jsonl`; None = never.
            clock: The time now, with its zone.
        """
        self.faults = Faults()
        self._common = {"index_revision": index_revision, "embedding_model": embedding_model, "k_final": k_final}
        self._sample = sample
        self._mode = text
        self._redact = redact
        self._clock = clock
        self._unsampled = 0
        self._traces: Writer | None = None
        self._feedback: Writer | None = None
        problem = _problem(path, sample, text, redact, max_queue, rotate_bytes, k_final)
        if problem is not None:
            self.faults.add("Recorder", problem)
            LOG.error("Recorder: %s. Nothing is recorded.", problem)
            return
        file = Path(path)
        self._traces = Writer(LineFile(file, rotate_bytes), self._line, self.faults, max_queue)
        beside = file.with_name("feedback.jsonl")
        self._feedback = Writer(LineFile(beside, rotate_bytes), json_line, self.faults, max_queue)

    def query(
        self,
        text: str,
        query_id: Any = None,
        *,
        user_acl: Sequence[str] | None = None,
        filters: Any = None,
        session_id: Any = None,
        **fields: Any,
    ) -> Query:
        """Begin a query: `with rec.query(question, user_acl=[...]) as q:`. It is written when the block ends.

        Inside the block, also in tasks and in threads that copy the context, `ragaudit.record.current()` is this query.

        Args:
            text: What the user asked.
            query_id: Unique in the file; without one, a random one.
            user_acl: The principals of who asked. They are written as they are.
            filters: The filter that was meant for this query; `{}` = none.
            session_id: Joins with feedback.
            **fields: As for `Query.set`.
        """
        query = Query(shielded(self.faults, "query", lambda: self._begin(text, query_id)), self._deliver, self.faults)
        given = {"user_acl": user_acl, "filters_applied": filters, "session_id": session_id, **fields}
        if given := {name: value for name, value in given.items() if value is not None}:
            query.set(**given)
        return query

    @guarded
    def feedback(
        self,
        *,
        session_id: Any = None,
        query_id: Any = None,
        chunk_ids: Sequence[Any] | None = None,
        rating: Any = None,
        implicit: Any = None,
    ) -> None:
        """What a user said (`rating`) or did (`implicit`: "copied", "asked again"): into `feedback.jsonl` beside it.

        Args:
            session_id: The session of the query that it is about.
            query_id: The query, where it is known.
            chunk_ids: The chunks that it is about.
            rating: Any number, truth value or word.
            implicit: What the user did.
        """
        if self._feedback is None:
            return
        row: dict[str, Any] = {"session_id": None if session_id is None else chunk_id(session_id)}
        row["query_id"] = None if query_id is None else chunk_id(query_id)
        row["chunk_ids"] = None if chunk_ids is None else words(chunk_ids)
        row |= {"rating": plain(rating), "implicit": plain(implicit), "ts": self._clock().isoformat()}
        self._feedback.put({key: value for key, value in row.items() if value is not None})

    @guarded
    def flush(self, seconds: float = 5.0) -> bool:
        """Wait until all finished queries are in the file; False when that took longer."""
        return all([writer.flush(seconds) for writer in (self._traces, self._feedback) if writer is not None])

    @guarded
    def close(self, seconds: float = 5.0) -> bool:
        """Write what is queued and end. Also done at exit. Says how many queries were dropped."""
        done = all([writer.close(seconds) for writer in (self._traces, self._feedback) if writer is not None])
        if dropped := self.stats().dropped:
            LOG.warning("%s records were dropped", dropped)
        return done

    def stats(self) -> Stats:
        """What became of the queries so far."""
        writers = [writer for writer in (self._traces, self._feedback) if writer is not None]
        return Stats(
            sum(writer.written for writer in writers),
            sum(writer.waiting for writer in writers),
            sum(writer.dropped for writer in writers),
            self._unsampled,
            self.faults.counts(),
        )

    def _begin(self, text: str, query_id: Any) -> dict[str, Any] | None:
        name = uuid.uuid4().hex if query_id is None else chunk_id(query_id)
        if self._traces is None or not sampled(name, self._sample):
            self._unsampled += self._traces is not None
            return None
        row: dict[str, Any] = {"query_id": name, "query_text": str(text), "timestamp": self._clock().isoformat()}
        return row | {key: value for key, value in self._common.items() if value is not None}

    def _deliver(self, row: dict[str, Any], prompt: str | None) -> None:
        if self._traces is not None:
            self._traces.put((row, prompt))

    def _line(self, finished: tuple[dict[str, Any], str | None]) -> str:
        row, prompt = finished
        if prompt is not None and row.get("final_context_ids"):
            found = in_prompt(packed_texts(row), row["final_context_ids"], prompt)
            conclude(row, {"prompt_ids": found}, "derived")
        return json_line(withheld(row, self._mode, self._redact, self.faults))


def sampled(query_id: str, share: float) -> bool:
    """Is this query among the share that is recorded. The same id always gives the same answer."""
    digest = hashlib.sha256(query_id.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def _problem(
    path: Any, sample: Any, text: Any, redact: Any, max_queue: Any, rotate_bytes: Any, k_final: Any
) -> str | None:
    checks = (
        (isinstance(path, str | Path) and bool(Path(path).name), "path: is no path"),
        (isinstance(sample, int | float) and 0 <= sample <= 1, "sample: is no share. Use 0 to 1"),
        (text in MODES, f"text: is no mode. Use one of {', '.join(MODES)}"),
        (redact is None or callable(redact), "redact: cannot be called. Pass a function from text to text"),
        (isinstance(max_queue, int) and max_queue > 0, "max_queue: is no number of queries. Use 1 or more"),
        (rotate_bytes is None or (isinstance(rotate_bytes, int) and rotate_bytes > 0), "rotate_bytes: is no size"),
        (k_final is None or (isinstance(k_final, int) and k_final > 0), "k_final: is no number of chunks"),
    )
    return next((problem for holds, problem in checks if not holds), None)
