"""Every sample of another tool imports, or is refused for the right reason."""

import json

import pytest
from import_helpers import SHARED

from ragaudit.cli.main import execute

FOLDERS = (
    "autorag",
    "continuous_eval",
    "deepeval",
    "msmarco",
    "mteb",
    "native",
    "open_rag_eval",
    "promptfoo",
    "ragas",
    "ragchecker",
    "trec",
)
READ = {
    "autorag/corpus_data_sample.parquet": ("autorag", {"chunks": 30}),
    "autorag/gen_corpus.parquet": ("autorag", {"chunks": 55}),
    "autorag/result_hybrid_retrieval_best.parquet": ("autorag", {"traces": 10}),
    "autorag/result_passage_reranker_best.parquet": ("autorag", {"traces": 10}),
    "autorag/result_semantic_best.parquet": ("autorag", {"traces": 10}),
    "beir": ("beir", {"chunks": 12, "qrels": 6}),
    "continuous_eval/retrieval_sm.jsonl": ("continuous-eval", {"traces": 10}),
    "deepeval/goldens.csv": ("deepeval", {"traces": 5}),
    "deepeval/goldens.json": ("deepeval", {"traces": 5}),
    "deepeval/goldens.jsonl": ("deepeval", {"traces": 5}),
    "deepeval/llm_test_case_by_alias.json": ("deepeval", {"traces": 1}),
    "deepeval/test_run_sample.json": ("deepeval", {"traces": 1}),
    "msmarco/collection.tsv": ("msmarco", {"chunks": 12}),
    "msmarco/qrels.dev.tsv": ("trec", {"qrels": 4}),
    "msmarco/run.dev.tsv": ("msmarco", {"traces": 5}),
    "mteb/HelpDeskRetrieval_predictions.json": ("mteb", {"traces": 5}),
    "open_rag_eval/test_csv_connector.csv": ("open-rag-eval", {"traces": 7}),
    "promptfoo/eval_output.csv": ("promptfoo", {"traces": 1}),
    "promptfoo/eval_output.json": ("promptfoo", {"traces": 2}),
    "promptfoo/eval_output.jsonl": ("promptfoo", {"traces": 2}),
    "ragas/evaluation_dataset.csv": ("ragas", {"traces": 5}),
    "ragas/evaluation_dataset.jsonl": ("ragas", {"traces": 5}),
    "ragas/evaluation_dataset.parquet": ("ragas", {"traces": 5}),
    "ragchecker/checking_inputs.json": ("ragchecker", {"traces": 2}),
    "ragchecker/checking_outputs.json": ("ragchecker", {"traces": 2}),
    "trec/demo.bm25.run": ("trec", {"traces": 5}),
    "trec/demo.dense.run": ("trec", {"traces": 5}),
    "trec/demo.qrels": ("trec", {"qrels": 5}),
    "trec/demo.rerank.run": ("trec", {"traces": 5}),
    "trec/demo.rrf.run": ("trec", {"traces": 5}),
    "trec/ir_measures_compat.qrels": ("trec", {"qrels": 311}),
    "trec/ir_measures_compat.run": ("trec", {"traces": 2}),
    "trec/ir_measures_cwl.qrels": ("trec", {"qrels": 23}),
    "trec/ir_measures_cwl.run": ("trec", {"traces": 3}),
    "trec/ranx_qrels.json": ("trec", {"qrels": 5}),
    "trec/ranx_qrels.parquet": ("trec", {"qrels": 5}),
    "trec/ranx_qrels.trec": ("trec", {"qrels": 5}),
    "trec/ranx_qrels.trec.gz": ("trec", {"qrels": 5}),
    "trec/ranx_run.json": ("trec", {"traces": 2}),
    "trec/ranx_run.parquet": ("trec", {"traces": 2}),
    "trec/ranx_run.trec": ("trec", {"traces": 2}),
}
"""Sample -> the format that `auto` finds, and the rows."""
REFUSED = {
    "autorag/gen_qa.parquet": (3, "labels without results: pass the result of a node too"),
    "autorag/qa_data_sample.parquet": (3, "labels without results: pass the result of a node too"),
    "continuous_eval/correctness_sm.jsonl": (3, "no list of hits and no context"),
    "msmarco/queries.dev.tsv": (3, "queries alone: pass a run, qrels or a corpus as a further INPUT"),
    "msmarco/top1000.dev.tsv": (3, "candidates in no order (top1000) are no ranking"),
    "native/traces.jsonl": (2, "is in our own format already and needs no import"),
    "ragas/annotated_data.json": (3, "no known format fits (records with helpfulness)"),
    "ragas/hf_doc_qa_eval.csv": (3, "no known format fits (records with question, expected_answer)"),
    "trec/ranx_run.lz4": (3, "is compressed CBOR of ranx"),
}
"""Sample -> exit code, and words of the reason."""


def samples():
    if not SHARED.is_dir():
        return [pytest.param(None, id="shared", marks=pytest.mark.skip(reason="../shared/formats is not here"))]
    files = [each for name in FOLDERS for each in sorted((SHARED / name).iterdir()) if each.name != "SOURCES.md"]
    return [pytest.param(each.relative_to(SHARED).as_posix()) for each in (*files, SHARED / "beir")]


@pytest.mark.parametrize("sample", samples())
def test_a_sample_imports_or_is_refused_with_the_right_reason(sample, tmp_path, capsys):
    assert (sample in READ) != (sample in REFUSED)
    code = execute(["import", "auto", str(SHARED / sample), "-o", str(tmp_path / "out"), "--k", "3", "--json"])
    said = capsys.readouterr()
    if sample in REFUSED:
        assert (code, said.out) == (REFUSED[sample][0], "")
        assert REFUSED[sample][1] in said.err
        assert not (tmp_path / "out").exists()
        return
    report = json.loads(said.out)
    assert (code, report["format"], report["rows"], report["stops"]) == (0, *READ[sample], "")
