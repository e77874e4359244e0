"""OpenTelemetry: a span processor that writes the spans of a trace as JSON lines, for `ragaudit import spans`.

Works with whatever makes the spans: OpenInference, OpenLLMetry, the GenAI conventions, Haystack, MLflow, Langfuse.
"""

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from ragaudit.model.json_line import json_line
from ragaudit.record.files import LineFile
from ragaudit.record.guard import Faults, guarded
from ragaudit.record.writer import Writer

MAX_TRACES = 1_000
MAX_SPANS = 1_000
TIMEOUT_SECONDS = 120.0
MAX_QUEUE = 10_000
ROTATE_BYTES = 1 << 30
_RAG = (
    *("openinference.", "gen_ai.", "traceloop.", "langfuse.", "haystack.", "mlflow.", "ai.observability."),
    *("retrieval.", "llm.", "db.vector", "db.query.result", "db.chroma", "ragaudit."),
)
_DROPPED = "the SDK dropped attributes: set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000, or lists lose their ranks"


def is_rag(span: ReadableSpan) -> bool:
    """The span carries an attribute of one of the conventions that `ragaudit import spans` reads."""
    return any(str(name).startswith(_RAG) for name in span.attributes or ())


@dataclass
class _Buffered:
    """The spans of one trace that have ended, and how many have not."""

    since: float
    spans: dict[int, ReadableSpan] = field(default_factory=dict)
    running: int = 0


class RagAuditSpanProcessor(SpanProcessor):
    """`provider.add_span_processor(RagAuditSpanProcessor("spans.jsonl"))`.

    The spans of a trace are kept until none of them runs any more (or for `timeout` seconds), and written together.
    A trace without a single span that `wanted` accepts is not written. Spans that end later are written alone; the same
    span is written once. Every span is written as the SDK's own JSON, with `dropped_attributes` where the SDK dropped
    some: such a span cannot be used for ranks, and a warning says which limit to raise.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        wanted: Callable[[ReadableSpan], bool] = is_rag,
        timeout: float = TIMEOUT_SECONDS,
        max_traces: int = MAX_TRACES,
        max_queue: int = MAX_QUEUE,
        rotate_bytes: int | None = ROTATE_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin to listen.

        Args:
            path: JSON lines, mode 0600, appended to.
            wanted: Does a span make its trace worth keeping.
            timeout: Seconds after which a trace is written although spans of it still run.
            max_traces: Traces kept at once; then the oldest is written as it is.
            max_queue: Spans that may wait for the writer; more are dropped and counted.
            rotate_bytes: Size at which the file is renamed; None = never.
            clock: Seconds that only go up.
        """
        self.faults = Faults()
        self._wanted = wanted
        self._timeout = timeout
        self._max_traces = max_traces
        self._clock = clock
        self._traces: OrderedDict[int, _Buffered] = OrderedDict()
        self._written: OrderedDict[int, set[int]] = OrderedDict()
        self._lock = threading.RLock()
        self._writer = Writer(LineFile(Path(path), rotate_bytes), span_line, self.faults, max_queue)

    @guarded
    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """A span begins."""
        with self._lock:
            self._buffered(span.get_span_context().trace_id).running += 1
            self._overdue()

    @guarded
    def on_end(self, span: ReadableSpan) -> None:
        """A span ended: kept, and written with its trace when it was the last that ran."""
        if span.dropped_attributes:
            self.faults.add("spans", _DROPPED)
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            buffered = self._buffered(context.trace_id)
            buffered.running -= 1
            if context.span_id not in self._written.get(context.trace_id, ()):
                buffered.spans.setdefault(context.span_id, span)
            if buffered.running <= 0 or len(buffered.spans) >= MAX_SPANS:
                self._write(context.trace_id)

    @guarded
    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Write what has ended so far, also of traces that still run."""
        with self._lock:
            for trace_id in list(self._traces):
                self._write(trace_id)
        return self._writer.flush(timeout_millis / 1_000)

    @guarded
    def shutdown(self) -> None:
        """Write what is kept and end; the provider calls it at exit."""
        self.force_flush()
        self._writer.close()

    def _buffered(self, trace_id: int) -> _Buffered:
        if trace_id not in self._traces:
            self._traces[trace_id] = _Buffered(self._clock())
            if len(self._traces) > self._max_traces:
                self.faults.add("spans", f"more than {self._max_traces} traces at once: the oldest is written")
                self._write(next(iter(self._traces)))
        return self._traces[trace_id]

    def _overdue(self) -> None:
        while self._traces:
            trace_id, oldest = next(iter(self._traces.items()))
            if self._clock() - oldest.since < self._timeout:
                return
            self.faults.add("spans", f"a trace ran for more than {self._timeout:g} s: written as it is")
            self._write(trace_id)

    def _write(self, trace_id: int) -> None:
        buffered = self._traces.pop(trace_id)
        before = self._written.get(trace_id)
        if before is None and not any(self._wanted(span) for span in buffered.spans.values()):
            return
        written = self._written.setdefault(trace_id, set())
        self._written.move_to_end(trace_id)
        while len(self._written) > self._max_traces:
            self._written.popitem(last=False)
        for span_id, span in buffered.spans.items():
            written.add(span_id)
            self._writer.put(span)


def span_line(span: ReadableSpan) -> str:
    """One span as the SDK writes it, with what it dropped."""
    row: dict[str, Any] = json.loads(span.to_json(indent=None))
    if span.dropped_attributes:
        row["dropped_attributes"] = span.dropped_attributes
    if span.dropped_events:
        row["dropped_events"] = span.dropped_events
    return json_line(row)
