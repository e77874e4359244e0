"""Every sample of LangChain, LangSmith, Langfuse and LlamaIndex imports, or is refused for the right reason."""

import json

import pytest
from import_helpers import DATA, SHARED
from run_builders import jsonl, run

from ragaudit.cli.main import execute

FOLDERS = ("langchain", "langsmith", "langfuse", "llamaindex")
READ = {
    "langchain/astream_events_v2.jsonl": ("langchain", {"traces": 1}),
    "langchain/callback_events.jsonl": ("langchain", {"traces": 2}),
    "langfuse/derived_blob_export_observations.jsonl": ("langfuse", {"traces": 3}),
    "langfuse/derived_v1_traces_full.json": ("langfuse", {"traces": 3, "feedback": 3}),
    "langfuse/derived_v2_observations.json": ("langfuse", {"traces": 3}),
    "langfuse/sdk_v5_otel_spans.otlp.json": ("spans", None),
    "langfuse/sdk_v5_otel_spans.sdk.jsonl": ("spans", None),
    "langsmith/run_tree_nested.json": ("langsmith", {"traces": 3}),
    "langsmith/runs_ingest_flat.jsonl": ("langsmith", {"traces": 3}),
    "langsmith/traceable_retriever_runs.jsonl": ("langsmith", {"traces": 1}),
    "llamaindex/embedding_qa_finetune_dataset.json": ("llamaindex", {"chunks": 12, "qrels": 5}),
    "llamaindex/instrumentation_events.jsonl": ("llamaindex", {"traces": 2}),
    "llamaindex/response_source_nodes.json": ("llamaindex", {"traces": 3}),
    "llamaindex/retrieval_eval_results.json": ("llamaindex", {"traces": 4}),
}
"""Sample -> the format that `auto` finds, and the rows; None = they are another importer's affair."""
REFUSED = {
    "langchain/documents_dumpd.json": "documents without a query are no trace",
    "langchain/documents_model_dump.json": "documents without a query are no trace",
    "llamaindex/rag_dataset.json": "an example without its prediction: pass the predictions as a further INPUT",
    "llamaindex/rag_predictions.json": "predictions do not hold their queries",
    "llamaindex/storage": "is a persisted index, no traces. Read it with: ragaudit inventory",
}
"""Sample -> words of the reason."""
needs_samples = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/formats is not here")


def samples():
    if not SHARED.is_dir():
        return [pytest.param(None, id="shared", marks=pytest.mark.skip(reason="../shared/formats is not here"))]
    files = [each for name in FOLDERS for each in sorted((SHARED / name).iterdir()) if each.name != "SOURCES.md"]
    return [pytest.param(each.relative_to(SHARED).as_posix()) for each in files]


@pytest.mark.parametrize("sample", samples())
def test_a_sample_imports_or_is_refused_with_the_right_reason(sample, tmp_path, capsys):
    assert (sample in READ) != (sample in REFUSED)
    code = execute(["import", "auto", str(SHARED / sample), "-o", str(tmp_path / "out"), "--json"])
    said = capsys.readouterr()
    if sample in REFUSED:
        assert (code, said.out) == (3, "")
        assert REFUSED[sample] in said.err
        assert not (tmp_path / "out").exists()
        return
    report = json.loads(said.out)
    form, rows = READ[sample]
    assert (code, report["format"], report["rows"] if rows else None, report["stops"]) == (0, form, rows, "")


@needs_samples
def test_a_data_set_and_its_predictions_are_two_inputs(tmp_path, capsys):
    chunks, out = str(tmp_path / "labels"), tmp_path / "out"
    folder = SHARED / "llamaindex"
    assert execute(["import", "auto", str(folder / "embedding_qa_finetune_dataset.json"), "-o", chunks]) == 0
    inputs = [str(folder / name) for name in ("rag_dataset.json", "rag_predictions.json")]
    code = execute(["import", "auto", *inputs, "--chunks", f"{chunks}/chunks.jsonl", "-o", str(out)])
    rows = [json.loads(line) for line in (out / "traces.jsonl").read_text().splitlines()]
    assert (code, rows[0]["final_context_ids"]) == (0, ["kb-001#0", "kb-001#1", "kb-007#0"])
    assert [row.get("gold_groups") for row in rows[:3]] == [[["kb-001#0"]], [["kb-002#0"]], [["kb-005#0"]]]
    capsys.readouterr()


@needs_samples
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("langsmith/runs_ingest_flat.jsonl", "langsmith/run_tree_nested.json"),
        ("langfuse/derived_v1_traces_full.json", "langfuse/derived_v2_observations.json"),
        ("langfuse/derived_v1_traces_full.json", "langfuse/derived_blob_export_observations.jsonl"),
    ],
)
def test_one_run_gives_the_same_lists_whatever_shape_it_was_exported_in(one, other, tmp_path, capsys):
    found = []
    for name, sample in (("one", one), ("other", other)):
        execute(["import", "auto", str(SHARED / sample), "-o", str(tmp_path / f"{name}.jsonl")])
        rows = map(json.loads, (tmp_path / f"{name}.jsonl").read_text().splitlines())
        lists = ("query_id", "query_text", "arms", "fused", "after_rerank", "final_context_ids", "answer", "k_final")
        found.append([{name: row.get(name) for name in lists} for row in rows])
    capsys.readouterr()
    assert found[0] == found[1]


CHUNKS = [
    {"chunk_id": "kb-003#0", "source_id": "kb-003", "acl": ["tenant:acme"], "in": {}},
    {"chunk_id": "kb-004#0", "source_id": "kb-004", "acl": ["tenant:globex"], "in": {}},
    {"chunk_id": "kb-005#0", "source_id": "kb-005", "acl": ["tenant:acme"], "in": {}},
]


def audited(tmp_path, capsys, sample, gold, chunks=()):
    """Import a sample, label it, audit it: the audit as JSON."""
    bundle = tmp_path / "bundle"
    assert execute(["import", "auto", str(sample), "-o", str(bundle)]) == 0
    labels = "".join(f"{query}\t{chunk}\t1\n" for query, chunk in gold)
    (bundle / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{labels}")
    if chunks:
        (bundle / "chunks.jsonl").write_text("".join(json.dumps(each) + "\n" for each in chunks))
    capsys.readouterr()
    out = str(tmp_path / "x.audit")
    assert execute(["audit", str(bundle), "-o", out, "--judge", "off", "--scope", "retrieval", "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


def test_an_audit_of_langsmith_runs_names_the_reranker(tmp_path, capsys):
    audit = audited(tmp_path, capsys, DATA / "langsmith" / "runs_q3.jsonl", [("q-3", "kb-003#1")])
    (query,) = audit["queries"]
    assert (query["outcome"], query["stage"]) == ("fail", "rerank")
    assert query["evidence"] == ["kb-003#1: rank 3 before the reranker, not among its output (3 kept)"]
    assert {name: query["at"][name]["recall@k"] for name in ("arm:VectorStoreRetriever", "arm:BM25Retriever")} == {
        "arm:VectorStoreRetriever": 1.0,
        "arm:BM25Retriever": 0.0,
    }


def test_an_audit_of_langsmith_runs_shows_the_chunk_of_another_tenant_in_the_prompt(tmp_path, capsys):
    runs = tmp_path / "runs.jsonl"
    whole = (DATA / "langsmith" / "runs_q3.jsonl").read_text(encoding="utf-8")
    said = '"query_id": "q-3", "user_acl": ["tenant:acme"]'
    runs.write_text(whole.replace('"query_id": "q-3"', said), encoding="utf-8")
    audit = audited(tmp_path, capsys, runs, [("q-3", "kb-005#0")], CHUNKS)
    assert audit["acl"]["leaks"] == [{"query_id": "q-3", "chunk_id": "kb-004#0"}]


def test_an_audit_of_llamaindex_events_names_the_reranker(tmp_path, capsys):
    query_id = "41a2ccf8-902c-42d8-ad4d-dcd202f40826"
    audit = audited(tmp_path, capsys, DATA / "llamaindex" / "events_q2.jsonl", [(query_id, "kb-001#1")])
    (query,) = audit["queries"]
    assert (query["outcome"], query["stage"]) == ("fail", "rerank")
    assert query["evidence"] == ["kb-001#1: rank 4 before the reranker, not among its output (3 kept)"]


def test_names_out_of_a_log_reach_the_terminal_without_codes(tmp_path, capsys):
    evil = "\x1b[31m\u202errf<script>"
    runs = [
        run("chain", kind="chain"),
        run("dense", "chain", second=1, hits=["a"]),
        run(evil, "chain", kind="tool", second=2, hits=["a"]),
    ]
    path = jsonl(tmp_path / "runs.jsonl", runs)
    argv = ["import", "auto", str(path), "-o", str(tmp_path / "out"), "--k", "3", "--stage", f"{evil}x=fused"]
    assert execute(argv) == 0
    said = capsys.readouterr()
    assert "because its output is a list of hits: " in " ".join(said.out.split())
    assert not {"\x1b", "\u202e"} & set(said.out + said.err)
