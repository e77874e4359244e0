"""The judged example on its recorded replies: offline, without a provider, the judge's errors in plain sight."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
JUDGED = ROOT / "examples" / "judged"
PROBE = """
import sys
from ragaudit.cli.main import execute
assert execute(["audit", sys.argv[1], "--tape", "none", "-o", sys.argv[2], "--json"]) == 0
assert {"litellm", "openai", "httpx", "aiohttp"}.isdisjoint(sys.modules)
"""


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the audit says; its exit code is that of a run with failing queries."""
    run = tmp_path_factory.mktemp("judged") / "judged.audit"
    done = subprocess.run([sys.executable, "-c", PROBE, str(JUDGED), str(run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_all_judgements_come_from_the_recorded_model_and_none_of_them_is_lost(summary: Any) -> None:
    judge = summary["judge"]
    assert (judge["model"], judge["mode"], judge["samples"]) == ("openai/qwen2.5-coder-1.5b", "per_claim", 25)
    assert judge["states"]["faithfulness"] == {"scored": 19, "abstained": 3, "judge_failed": 3}
    assert judge["calibration"] == "not calibrated"


def test_all_four_quadrants_occur(summary: Any) -> None:
    assert summary["judge"]["quadrants"] == {
        "good context, faithful": 2,
        "good context, unfaithful": 1,
        "poor context, faithful (dangerous)": 4,
        "poor context, unfaithful": 9,
    }


def test_stages_are_named_on_evidence_that_the_judge_found(summary: Any) -> None:
    truth = {row["query_id"]: row for row in map(json.loads, (JUDGED / "truth.jsonl").read_text("utf-8").splitlines())}
    named = {
        row["query_id"]: row["stage"]
        for row in summary["queries"]
        if row["outcome"] == "fail" and row["stage"] != "undetermined" and row["basis"] == "judge"
    }
    right = {key: stage for key, stage in named.items() if stage in truth[key]["acceptable_stages"]}
    assert right == {
        "j-05": "ingestion",
        "j-06": "ingestion",
        "j-08": "ingestion",
        "j-10": "chunk",
        "j-11": "embed",
        "j-14": "fuse",
        "j-16": "filter",
        "j-19": "rerank",
        "j-24": "generate",
    }
    # A judge of 1.5 billion parameters errs, here on Japanese; where it found nothing, nothing is named.
    assert {key: stage for key, stage in named.items() if key not in right} == {"j-03": "generate"}
