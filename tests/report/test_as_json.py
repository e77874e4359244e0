import io
import json

from report_builders import HOSTILE, RESULTS, failing, leaking, quiet_summary, summary, undecided

from ragaudit.model.result import JUDGED, METRICS, QueryResult
from ragaudit.report.as_json import document, query_row, write

TOP_LEVEL = [
    "schema",
    "run",
    "preflight",
    "metrics",
    "at",
    "slices",
    "outcomes",
    "stages",
    "patterns",
    "acl",
    "not_retrieval",
    "queries",
    "experiments",
    "canary",
    "cost",
    "undetermined",
    "delivered_unjudged",
    "judge",
    "set_aside",
]


def streamed(run, results, **options):
    out = io.StringIO()
    write(out, run, iter(results), **options)
    return out.getvalue()


def test_the_top_level_is_the_promised_one_in_order():
    assert list(json.loads(streamed(summary(), RESULTS))) == TOP_LEVEL


def test_streaming_gives_the_document():
    assert json.loads(streamed(summary(), RESULTS)) == document(summary(), RESULTS)
    assert json.loads(streamed(quiet_summary(), [])) == document(quiet_summary(), [])


def test_each_query_stands_on_its_own_line():
    lines = streamed(summary(), RESULTS).splitlines()
    assert sum(('"query_id"' in line and '"journey"' in line) or '"quadrant"' in line for line in lines) == len(RESULTS)


def test_the_run_names_its_inputs_by_digest():
    run = document(summary(), [])["run"]
    assert run["inputs"] == {"traces.jsonl": "sha256:ab12"}
    assert run["rows"] == {"traces.jsonl": {"read": 7, "set_aside": 1}}
    assert (run["name"], run["traces"], run["k_final"], run["ragaudit"], run["judge"]) == (
        "support-kb",
        6,
        8,
        "0.1.0",
        None,
    )


def test_every_outcome_and_stage_is_counted():
    doc = document(quiet_summary(), [])
    assert doc["outcomes"] == {"pass": 6, "fail": 0, "not_applicable": 0, "label_issue": 0, "undetermined": 0}
    assert list(doc["stages"]) == [
        "ingestion",
        "parse",
        "chunk",
        "embed",
        "retrieve",
        "fuse",
        "filter",
        "rerank",
        "generate",
    ]


def test_a_failing_query_has_the_promised_fields():
    row = query_row(failing())
    assert row["query_id"] == "q1"
    assert (row["outcome"], row["stage"], row["causes"], row["basis"], row["severity"]) == (
        "fail",
        "rerank",
        ["top_n_cut"],
        "gold",
        "normal",
    )
    assert set(row["metrics"]) == {*METRICS, *JUDGED}
    assert row["metrics"]["faithfulness"] is None
    assert row["undefined"]["faithfulness"] == "judge off"
    assert row["delivered"] is False
    assert "query_text" not in row
    assert row["gold"][0]["journey"][3] == {
        "checkpoint": "retrieved",
        "state": "present",
        "rank": 3,
        "list": "arm:dense",
    }
    assert row["gold"][0]["journey"][1] == {"checkpoint": "parsed", "state": "unobserved"}


def test_stage_is_always_a_string():
    stages = [query_row(result)["stage"] for result in RESULTS]
    assert stages == ["filter", "rerank", "undetermined", "none"]
    assert query_row(undecided())["could_be"] == ["fuse", "filter"]


def test_a_context_that_was_not_logged_is_null_and_an_empty_one_is_empty():
    assert query_row(failing(final_context_ids=None))["final_context_ids"] is None
    assert query_row(failing(final_context_ids=()))["final_context_ids"] == []


def test_query_text_comes_only_when_asked_for():
    assert "refund" not in streamed(summary(), [failing()])
    assert query_row(failing(), with_text=True)["query_text"] == "refund window?"


def test_a_metric_that_a_result_lacks_is_null():
    bare = QueryResult(diagnosis=failing().diagnosis, query_text="", k_final=8, metrics={})
    assert query_row(bare)["metrics"] == dict.fromkeys((*METRICS, *JUDGED))


def test_hostile_text_is_escaped():
    text = streamed(summary(), [leaking(HOSTILE, HOSTILE, text=HOSTILE)], with_text=True)
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["queries"][0]["query_text"] == HOSTILE
