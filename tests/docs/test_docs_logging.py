"""docs/logging.md: the snippets log fields that exist, and run where the framework they show is installed."""

import ast
import json
import subprocess
import sys
from collections import Counter
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from ragaudit.config import load_settings
from ragaudit.diagnosis.preflight_rules import missing_field_findings
from ragaudit.model.trace import Trace
from ragaudit.readers.bundle import locate, open_bundle, read_traces
from tests.conftest import ROOT
from tests.docs.docs_console import blocks

PAGE = (ROOT / "docs" / "logging.md").read_text(encoding="utf-8")
SNIPPETS = {block.file: block.text for block in blocks(PAGE) if block.file}
NEEDS = {"log_langchain.py": "langchain_classic", "log_llamaindex.py": "llama_index", "log_haystack.py": "haystack"}


def test_there_is_a_snippet_for_plain_python_and_each_framework():
    assert set(SNIPPETS) == {"log_plain.py", "chunks_langchain.py", *NEEDS}


@pytest.mark.parametrize("name", ["log_plain.py", *NEEDS])
def test_a_snippet_logs_fields_that_a_trace_has(name):
    written = [
        {key.value for key in node.keys if isinstance(key, ast.Constant)}
        for node in ast.walk(ast.parse(SNIPPETS[name]))
        if isinstance(node, ast.Dict)
    ]
    (trace,) = [keys for keys in written if "query_id" in keys]
    assert {"arms", "fused", "final_context_ids", "prompt_ids", "filters_applied", "user_acl"} <= trace
    assert trace <= set(Trace.model_fields)


@pytest.mark.parametrize("name", NEEDS)
def test_a_snippet_runs_and_its_trace_is_read(name, tmp_path):
    if find_spec(NEEDS[name]) is None:
        pytest.skip(f"{NEEDS[name]} is no dependency of ragaudit; docs/logging.md names the version it was run with")
    (tmp_path / name).write_text(SNIPPETS[name], encoding="utf-8")
    subprocess.run([sys.executable, name], cwd=tmp_path, check=True, timeout=120)
    paths = locate(tmp_path)
    (trace,) = read_traces(open_bundle(paths, load_settings(None, env={}, flags={})))
    assert (trace.query_id, trace.k_final) == ("q-1", 2)
    assert trace.prompt_ids == trace.final_context_ids
    assert set(trace.arms or {}) == {"dense", "bm25"}


def test_the_rows_of_chunks_are_written_from_documents(tmp_path):
    document = SimpleNamespace(
        page_content="Refunds take 14 days.", metadata={"chunk_id": "c1", "source": "refunds.md"}
    )
    space: dict = {}
    exec(compile(SNIPPETS["chunks_langchain.py"], "chunks_langchain.py", "exec"), space)
    space["log_chunks"]([document], tmp_path / "chunks.jsonl", "m")
    (row,) = map(json.loads, (tmp_path / "chunks.jsonl").read_text().splitlines())
    assert (row["chunk_id"], row["source_id"], row["text"]) == ("c1", "refunds.md", "Refunds take 14 days.")


def test_the_page_says_where_to_find_every_field_that_check_may_ask_for():
    asked = {finding.check for finding in missing_field_findings(Counter(dict.fromkeys(Trace.model_fields, 1)), 1)}
    fields = {check.removeprefix("missing_") for check in asked}
    table = PAGE.split("## Where each field is")[1].split("\n## ")[0]
    assert len(fields) >= 9
    assert {field for field in fields if f"`{field}`" not in table} == set()
