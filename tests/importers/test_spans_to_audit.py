"""From span files to findings: import, then audit, as a user does."""

import json

import pytest
from span_builders import DATA

from ragaudit.cli.main import execute


def audited(tmp_path, capsys, data, toml, qrels):
    """The audit of a file of spans as JSON, with labels and a configuration beside it."""
    bundle = tmp_path / "bundle"
    assert execute(["import", "auto", str(DATA / data), "-o", str(bundle), "--quiet"]) == 0
    (bundle / "ragaudit.toml").write_text(toml)
    (bundle / "qrels.tsv").write_text("".join(f"{query}\t0\t{chunk}\t1\n" for query, chunk in qrels.items()))
    capsys.readouterr()
    out = str(tmp_path / "out.audit")
    assert execute(["audit", str(bundle), "-o", out, "--scope", "retrieval", "--judge", "off", "--json", "-q"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_chunk_of_another_tenant_that_an_unfiltered_arm_found_is_a_leak(tmp_path, capsys):
    toml = '[pipeline.filter]\nexpected = {tenant = "acme"}\n'
    found = audited(
        tmp_path,
        capsys,
        "openinference_langchain.jsonl",
        toml,
        {"q-1": "kb-001#0", "q-2": "kb-002#0", "q-3": "kb-005#0"},
    )
    assert found["run"]["k_final"] == 3
    assert sorted(found["at"]) == ["after_rerank", "arm:BM25Retriever", "arm:VectorStoreRetriever", "final", "fused"]
    assert found["acl"]["leaks"] == [{"query_id": "q-3", "chunk_id": "kb-004#0"}]
    outcomes = {query["query_id"]: (query["outcome"], query["stage"]) for query in found["queries"]}
    assert outcomes == {"q-3": ("fail", "filter"), "q-1": ("pass", "none"), "q-2": ("pass", "none")}
    (leak,) = (query for query in found["queries"] if query["query_id"] == "q-3")
    assert leak["evidence"][0] == "leak: kb-004#0 is in the context, and it violates the filter on tenant"


@pytest.mark.parametrize(
    ("gold", "outcome", "stage", "evidence"),
    [
        ("kb-005#0", "pass", "none", "kb-005#0: in the prompt at position 1"),
        ("kb-003#1", "fail", "rerank", "kb-003#1: rank 5 before the reranker, not among its output (3 kept)"),
        ("kb-006#1", "fail", "undetermined", "kb-006#1: in no arm (dense, bm25)"),
    ],
)
def test_the_stage_that_lost_the_gold_is_named_from_spans_alone(tmp_path, capsys, gold, outcome, stage, evidence):
    found = audited(tmp_path, capsys, "openinference_manual.jsonl", "", {"q-3": gold})
    (query,) = found["queries"]
    assert (query["outcome"], query["stage"], query["evidence"]) == (outcome, stage, [evidence])


def test_one_list_of_unknown_stage_blames_no_stage(tmp_path, capsys):
    trace = json.loads((DATA / "genai_langchain.jsonl").read_text().splitlines()[0])["context"]["trace_id"]
    found = audited(tmp_path, capsys, "genai_langchain.jsonl", "", {trace.removeprefix("0x"): "kb-009#0"})
    (query,) = found["queries"]
    assert (query["stage"], query["causes"]) == ("undetermined", [])
    assert {"retrieve", "fuse", "rerank"} <= set(query["could_be"])
