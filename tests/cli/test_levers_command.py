import json

import pytest

from ragaudit.cli.main import execute
from ragaudit.experiments.levers import LEVERS, STEPS


def printed(arguments, capsys, code=0):
    assert execute(["levers", *arguments]) == code
    return capsys.readouterr()


def test_levers_prints_every_lever_under_its_step_in_order(capsys):
    out = printed([], capsys).out
    lines = out.splitlines()
    assert [line[3:].rstrip(" -") for line in lines if line.startswith("-- ")] == [
        f"{number} {title}" for number, title in enumerate(STEPS, start=1)
    ]
    shown = [line.split()[0] for line in lines if line[:2] == "  " and line[2:3] not in (" ", "")]
    assert shown == [lever.name for lever in LEVERS]
    assert max(map(len, lines)) <= 80


def test_levers_says_key_value_causes_and_permission(capsys):
    out = printed(["--stage", "filter"], capsys).out
    assert "  acl_data             pipeline.index.acl\n" in out
    assert "      answers  acl_data, filter_fails_gold\n" in out
    assert "      moves    recall@k; watch leaks\n" in out
    assert "      needs    index_write\n" in out
    assert "      takes    pre or scan\n" in out
    assert "      where    filter_dropped only with filter behind the search\n" in out


def test_levers_of_one_stage_leaves_the_other_levers_and_empty_steps_out(capsys):
    out = printed(["--stage", "chunk"], capsys).out
    assert out.startswith("-- 2 Chunk boundaries, overlap, headers ")
    assert "chunk_overlap" in out
    assert "rerank" not in out
    assert out.count("-- ") == 1


def test_levers_as_json_holds_everything_with_how_to_do_it(capsys):
    document = json.loads(printed(["--json"], capsys).out)
    assert document["schema"] == "ragaudit.levers/1"
    assert [row["name"] for row in document["levers"]] == [lever.name for lever in LEVERS]
    row = next(row for row in document["levers"] if row["name"] == "pre_filter")
    assert row["variable"] == "filter.mode"
    assert row["takes"] == "pre or scan"
    assert row["step"] == "Pre-filter in place of post-filter"
    assert row["retrieval"] is True
    assert "hnsw.iterative_scan" in row["how"]["pgvector"]
    assert next(row["name"] for row in document["levers"] if not row["retrieval"]) == "output_limit"


def test_levers_as_json_of_one_stage(capsys):
    document = json.loads(printed(["--stage", "generate", "--json"], capsys).out)
    assert [row["name"] for row in document["levers"]] == ["output_limit", "prompt", "synthesis", "abstention"]


@pytest.mark.parametrize("stage", ["none", "undetermined", "acl"])
def test_levers_of_no_stage_is_a_usage_error(stage, capsys):
    assert "Invalid value for '--stage'" in printed(["--stage", stage], capsys, code=2).err
