"""Every span sample beside the repository is read, or refused with the reason. Skipped where the samples are not."""

from pathlib import Path

import pytest

from ragaudit.errors import InputError
from ragaudit.importers.formats import Options
from ragaudit.importers.registry import guess
from ragaudit.importers.report import ImportReport

FORMATS = Path(__file__).resolve().parents[3] / "shared" / "formats"

LIMIT = "its first ranks are missing. The SDK drops the oldest attributes beyond 128"
NO_IDS = "keeps no id and no span name"
ALL_JOINED = "joins the documents of all retriever spans"
AS_PYTHON = "as Python prints them, which cannot be read back for sure"
NO_QUESTION = "no question in the trace"
NO_HITS = "qdrant's instrumentation records no hits"
SPAN_ONLY = "an annotation names a span only"
NO_RETRIEVAL = "no retrieval in the trace"
COLUMNS = "has the columns that its author chose"

SAMPLES: dict[str, tuple[str, dict[str, int] | str]] = {
    "openinference/haystack_hybrid_rerank.otlp.json": ("spans", {"traces": 3}),
    "openinference/haystack_hybrid_rerank.sdk.jsonl": ("spans", {"traces": 3}),
    "openinference/langchain_hybrid_rerank.otlp.json": ("spans", {"traces": 3}),
    "openinference/langchain_hybrid_rerank.sdk.jsonl": ("spans", {"traces": 3}),
    "openinference/llamaindex_hybrid_rerank.otlp.json": ("spans", {"traces": 3}),
    "openinference/llamaindex_hybrid_rerank.sdk.jsonl": ("spans", {"traces": 3}),
    "openinference/manual_hybrid_rerank.otlp.json": ("spans", {"traces": 5}),
    "openinference/manual_hybrid_rerank.sdk.jsonl": ("spans", {"traces": 5}),
    "openinference/overflow_k100_default_sdk_limit.otlp.json": ("spans", LIMIT),
    "openinference/overflow_k100_default_sdk_limit.sdk.jsonl": ("spans", LIMIT),
    "otel_genai/langchain.otlp.json": ("spans", {"traces": 3}),
    "otel_genai/langchain.sdk.jsonl": ("spans", {"traces": 3}),
    "otel_genai/llamaindex.otlp.json": ("spans", {"traces": 3}),
    "otel_genai/llamaindex.sdk.jsonl": ("spans", {"traces": 3}),
    "otel_genai/util.otlp.json": ("spans", {"traces": 3}),
    "otel_genai/util.sdk.jsonl": ("spans", {"traces": 3}),
    "openllmetry/chroma.otlp.json": ("spans", NO_QUESTION),
    "openllmetry/chroma.sdk.jsonl": ("spans", NO_QUESTION),
    "openllmetry/langchain.otlp.json": ("spans", {"traces": 2}),
    "openllmetry/langchain.sdk.jsonl": ("spans", {"traces": 2}),
    "openllmetry/llamaindex.otlp.json": ("spans", {"traces": 2}),
    "openllmetry/llamaindex.sdk.jsonl": ("spans", {"traces": 2}),
    "openllmetry/qdrant.otlp.json": ("spans", NO_HITS),
    "openllmetry/qdrant.sdk.jsonl": ("spans", NO_HITS),
    "phoenix/haystack-hybrid-rerank.input_output_context.csv": ("phoenix", ALL_JOINED),
    "phoenix/langchain-hybrid-rerank.input_output_context.csv": ("phoenix", ALL_JOINED),
    "phoenix/llamaindex-hybrid-rerank.input_output_context.csv": ("phoenix", ALL_JOINED),
    "phoenix/haystack-hybrid-rerank.retrieved_documents.csv": ("phoenix", NO_IDS),
    "phoenix/langchain-hybrid-rerank.retrieved_documents.csv": ("phoenix", NO_IDS),
    "phoenix/llamaindex-hybrid-rerank.retrieved_documents.csv": ("phoenix", NO_IDS),
    "phoenix/haystack-hybrid-rerank.spans.head.csv": ("phoenix", AS_PYTHON),
    "phoenix/langchain-hybrid-rerank.spans.head.csv": ("phoenix", AS_PYTHON),
    "phoenix/llamaindex-hybrid-rerank.spans.head.csv": ("phoenix", AS_PYTHON),
    "phoenix/haystack-hybrid-rerank.spans.parquet": ("phoenix", {"traces": 3}),
    "phoenix/langchain-hybrid-rerank.spans.parquet": ("phoenix", {"traces": 3}),
    "phoenix/llamaindex-hybrid-rerank.spans.parquet": ("phoenix", {"traces": 3}),
    # One page of the REST interface: the newest spans, of which the last trace is cut.
    "phoenix/haystack-hybrid-rerank.rest_spans.json": ("phoenix", {"traces": 2}),
    "phoenix/langchain-hybrid-rerank.rest_spans.json": ("phoenix", {"traces": 1}),
    "phoenix/llamaindex-hybrid-rerank.rest_spans.json": ("phoenix", {"traces": 1}),
    "phoenix/haystack-hybrid-rerank.rest_spans_otlpv1.json": ("spans", {"traces": 2}),
    "phoenix/langchain-hybrid-rerank.rest_spans_otlpv1.json": ("spans", {"traces": 1}),
    "phoenix/llamaindex-hybrid-rerank.rest_spans_otlpv1.json": ("spans", {"traces": 1}),
    "phoenix/rest_span_annotations.json": ("phoenix", SPAN_ONLY),
    "phoenix/span_annotations.csv": ("phoenix", SPAN_ONLY),
    "phoenix": ("phoenix", {"traces": 9, "feedback": 3}),
    "mlflow/traces_to_json.json": ("mlflow", {"traces": 3, "feedback": 1}),
    "mlflow/search_traces.csv": ("mlflow", {"traces": 3, "feedback": 1}),
    "trulens/retrieval_span.json": ("trulens", {"traces": 1}),
    "trulens/generation_span.json": ("trulens", NO_RETRIEVAL),
    "trulens/record_root_span.json": ("trulens", NO_RETRIEVAL),
    "trulens/eval_span_1.json": ("trulens", "a span of an evaluation, not of a query"),
    "trulens/test_otel_tru_llama__test_smoke.csv": ("trulens", {"traces": 1}),
    "trulens/benchmark_corpus.jsonl": ("", "no known format fits"),
    "haystack/native_otel.otlp.json": ("haystack", {"traces": 3}),
    "haystack/native_otel.sdk.jsonl": ("haystack", {"traces": 3}),
    "haystack/pipeline_outputs_include_outputs_from.json": ("haystack", {"traces": 3}),
    "haystack/in_memory_store.json": ("haystack", {"chunks": 12}),
    "haystack/evaluation_run_detailed.csv": ("haystack", COLUMNS),
    "haystack/evaluation_run_detailed.json": ("haystack", COLUMNS),
}
FOLDERS = ("openinference", "otel_genai", "openllmetry", "phoenix", "mlflow", "trulens", "haystack")

pytestmark = pytest.mark.skipif(not FORMATS.exists(), reason="../shared/formats is not here")


@pytest.mark.parametrize("name", SAMPLES)
def test_the_sample_is_read_or_refused_with_the_reason(name: str) -> None:
    path = FORMATS / name
    if path.suffix == ".parquet" or name == "phoenix":
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    form, wanted = SAMPLES[name]
    report = ImportReport()
    try:
        found = guess(path)
        rows = list(found.format.read(path, Options(), report))
    except InputError as error:
        assert isinstance(wanted, str)
        assert wanted in str(error)
        return
    assert found.format.name == form
    counts: dict[str, int] = {}
    for table, row in rows:
        counts[table.value] = counts.get(table.value, 0) + 1
        assert table != "traces" or row["query_text"]
    if isinstance(wanted, str):
        assert rows == []
        assert any(wanted in why for why in report.skipped), list(report.skipped)
    else:
        assert counts == wanted


def test_no_sample_is_left_out() -> None:
    here = {f"{folder}/{path.name}" for folder in FOLDERS for path in (FORMATS / folder).iterdir()}
    assert {name for name in here if not name.endswith("SOURCES.md")} == set(SAMPLES) - {"phoenix"}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("openinference/langchain_hybrid_rerank.otlp.json", "openinference/langchain_hybrid_rerank.sdk.jsonl"),
        ("openinference/llamaindex_hybrid_rerank.otlp.json", "openinference/llamaindex_hybrid_rerank.sdk.jsonl"),
        ("openinference/haystack_hybrid_rerank.otlp.json", "openinference/haystack_hybrid_rerank.sdk.jsonl"),
        ("openinference/manual_hybrid_rerank.otlp.json", "openinference/manual_hybrid_rerank.sdk.jsonl"),
        ("openllmetry/llamaindex.otlp.json", "openllmetry/llamaindex.sdk.jsonl"),
        ("otel_genai/util.otlp.json", "otel_genai/util.sdk.jsonl"),
        ("haystack/native_otel.otlp.json", "haystack/native_otel.sdk.jsonl"),
        ("mlflow/traces_to_json.json", "mlflow/search_traces.csv"),
    ],
)
def test_two_files_of_the_same_spans_give_the_same_rows(one: str, other: str) -> None:
    def rows(name: str) -> list[dict[str, object]]:
        path = FORMATS / name
        found = guess(path).format.read(path, Options(), ImportReport())
        return [{key: value for key, value in row.items() if key != "timestamp"} for _, row in found]

    assert rows(one) == rows(other)
