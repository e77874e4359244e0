"""The span processor: spans of the real SDK, by trace, as the lines that `ragaudit import spans` reads."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, Tracer, set_span_in_context
from record_corpus import CHUNKS, GOLD, QUESTION, USER, K, audited, lexical, rerank, text_of, write_inventory

from ragaudit.cli.main import execute
from ragaudit.record.otel import RagAuditSpanProcessor

KIND = "openinference.span.kind"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spans.jsonl"


def tracing(path: Path, *, limit: int = 10_000, **settings: Any) -> tuple[Tracer, RagAuditSpanProcessor]:
    provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=limit), shutdown_on_exit=False)
    processor = RagAuditSpanProcessor(path, **settings)
    provider.add_span_processor(processor)
    return provider.get_tracer("test"), processor


def names(path: Path) -> list[str]:
    return [row["name"] for row in rows(path)]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_the_spans_of_a_trace_are_written_together_when_the_last_has_ended(path: Path) -> None:
    tracer, processor = tracing(path)
    with tracer.start_as_current_span("query", attributes={KIND: "CHAIN"}):
        with tracer.start_as_current_span("dense", attributes={KIND: "RETRIEVER", "input.value": "refunds?"}):
            pass
        assert processor._writer.flush()
        assert names(path) == []
    processor.shutdown()
    dense, query = rows(path)
    assert (dense["name"], query["name"], query["parent_id"]) == ("dense", "query", None)
    assert dense["parent_id"] == query["context"]["span_id"]
    assert dense["context"]["trace_id"] == query["context"]["trace_id"]
    assert dense["attributes"] == {KIND: "RETRIEVER", "input.value": "refunds?"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_child_that_ends_after_its_root_is_written_with_it(path: Path) -> None:
    tracer, processor = tracing(path)
    root = tracer.start_span("query", attributes={KIND: "CHAIN"})
    child = tracer.start_span("late", context=set_span_in_context(root))
    root.end()
    child.end()
    processor.shutdown()
    assert names(path) == ["query", "late"]


def test_the_local_root_of_a_distributed_trace_is_enough(path: Path) -> None:
    tracer, processor = tracing(path)
    remote = SpanContext(trace_id=7, span_id=9, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    tracer.start_span("query", set_span_in_context(NonRecordingSpan(remote)), attributes={KIND: "CHAIN"}).end()
    processor.shutdown()
    assert [row["parent_id"] for row in rows(path)] == ["0x0000000000000009"]


def test_a_trace_without_any_retrieval_convention_is_not_written(path: Path) -> None:
    tracer, processor = tracing(path)
    with tracer.start_as_current_span("GET /health", attributes={"http.route": "/health"}):
        pass
    processor.shutdown()
    assert names(path) == []


def test_which_traces_are_wanted_can_be_said(path: Path) -> None:
    tracer, processor = tracing(path, wanted=lambda span: span.name == "mine")
    for name in ("mine", "other"):
        tracer.start_span(name).end()
    processor.shutdown()
    assert names(path) == ["mine"]


def test_dropped_attributes_are_kept_as_a_number_and_warned_of(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tracer, processor = tracing(path, limit=128)
    span = tracer.start_span("R", attributes={KIND: "RETRIEVER"})
    for n in range(100):
        span.set_attribute(f"retrieval.documents.{n}.document.id", f"c{n}")
        span.set_attribute(f"retrieval.documents.{n}.document.score", 1.0 / (n + 1))
    span.end()
    processor.shutdown()
    (row,) = rows(path)
    assert row["dropped_attributes"] == 73
    assert len(row["attributes"]) == 128
    assert "set OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT=10000" in caplog.text


def test_a_span_that_is_reported_twice_is_written_once(path: Path) -> None:
    tracer, processor = tracing(path)
    root = tracer.start_span("query", attributes={KIND: "CHAIN"})
    root.end()
    assert isinstance(root, ReadableSpan)
    processor.on_end(root)
    processor.shutdown()
    assert names(path) == ["query"]


def test_a_trace_that_never_ends_is_written_after_the_timeout_and_its_rest_later(path: Path) -> None:
    clock = Clock()
    tracer, processor = tracing(path, timeout=60, clock=clock)
    root = tracer.start_span("query", attributes={KIND: "CHAIN"})
    tracer.start_span("dense", context=set_span_in_context(root), attributes={KIND: "RETRIEVER"}).end()
    clock.now = 61
    tracer.start_span("another").end()
    processor._writer.flush()
    assert names(path) == ["dense"]
    root.end()
    processor.shutdown()
    assert names(path) == ["dense", "query"]
    assert processor.faults.counts() == {"spans: a trace ran for more than 60 s: written as it is": 1}


def test_of_too_many_traces_at_once_the_oldest_is_written_as_it_is(path: Path) -> None:
    tracer, processor = tracing(path, max_traces=2)
    roots = [tracer.start_span(f"r{n}") for n in range(3)]
    for n, root in enumerate(roots):
        tracer.start_span(f"c{n}", context=set_span_in_context(root), attributes={KIND: "RETRIEVER"}).end()
    processor.shutdown()
    assert sorted(names(path)) == ["c0", "c1", "c2"]
    assert processor.faults.counts() == {"spans: more than 2 traces at once: the oldest is written": 2}


def test_a_flush_writes_what_has_ended(path: Path) -> None:
    tracer, processor = tracing(path)
    root = tracer.start_span("query")
    tracer.start_span("dense", context=set_span_in_context(root), attributes={KIND: "RETRIEVER"}).end()
    assert processor.force_flush()
    assert names(path) == ["dense"]
    root.end()
    processor.shutdown()
    assert names(path) == ["dense", "query"]


def test_a_span_of_another_kind_of_object_raises_nothing(path: Path) -> None:
    _, processor = tracing(path)
    processor.on_start(object())  # type: ignore[arg-type]
    processor.on_end(object())  # type: ignore[arg-type]
    processor.shutdown()
    assert processor.faults.counts() == {"on_start: AttributeError": 1, "on_end: AttributeError": 1}


def documents(prefix: str, names_: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for n, name in enumerate(names_):
        found |= {f"{prefix}.{n}.document.id": name, f"{prefix}.{n}.document.content": text_of(name)}
    return found


@pytest.mark.parametrize(
    ("top_n", "verdict"), [(20, ("pass", "none")), (2, ("fail", "rerank"))], ids=["healthy", "reranker keeps too few"]
)
def test_spans_that_were_recorded_are_imported_and_audited_as_they_are(
    top_n: int, verdict: tuple[str, str], path: Path, tmp_path: Path
) -> None:
    tracer, processor = tracing(path)
    mine = {name: text for name, (tenant, text) in CHUNKS.items() if tenant == "acme"}
    found = [name for name, _ in lexical(QUESTION, mine, 6)]
    best = [name for name, _ in rerank(found)][-top_n:]
    said = {"query_id": "q1", "user_acl": USER, "filters": {"tenant": "acme"}, "k_final": K}
    with tracer.start_as_current_span(
        "rag", attributes={KIND: "CHAIN", "input.value": QUESTION, "metadata": json.dumps(said)}
    ):
        with tracer.start_as_current_span("bm25", attributes={KIND: "RETRIEVER", "input.value": QUESTION}) as span:
            span.set_attributes(documents("retrieval.documents", found))
        with tracer.start_as_current_span("reranker", attributes={KIND: "RERANKER"}) as span:
            span.set_attributes(documents("reranker.input_documents", found))
            span.set_attributes(documents("reranker.output_documents", best))
        with tracer.start_as_current_span("llm", attributes={KIND: "LLM"}) as span:
            span.set_attribute("llm.input_messages.0.message.content", "\n".join(text_of(name) for name in best[:K]))
    processor.shutdown()
    bundle = tmp_path / "bundle"
    assert execute(["import", "spans", str(path), "-o", str(bundle), "-q"]) == 0
    write_inventory(bundle)
    (bundle / "qrels.tsv").write_text(f"q1\t0\t{GOLD}\t1\n")
    assert audited(bundle) == {"q1": verdict}
