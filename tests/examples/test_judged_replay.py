"""The judged example on its recorded replies: offline, without a provider, the judge's errors in plain sight."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragaudit.audit.proposals import proposed_again
from ragaudit.cli.main import execute
from ragaudit.store import AuditReader

ROOT = Path(__file__).resolve().parents[2]
JUDGED = ROOT / "examples" / "judged"
PROBE = """
import sys
from ragaudit.cli.main import execute
assert execute(["audit", sys.argv[1], "--tape", "none", "-o", sys.argv[2], "--json"]) == 0
assert {"litellm", "openai", "httpx", "aiohttp"}.isdisjoint(sys.modules)
"""


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """The audit file, and what the audit says."""
    run = tmp_path_factory.mktemp("judged") / "judged.audit"
    done = subprocess.run([sys.executable, "-c", PROBE, str(JUDGED), str(run)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return run, json.loads(done.stdout)


@pytest.fixture
def summary(audited: tuple[Path, Any]) -> Any:
    return audited[1]


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


def test_experiments_are_replayed_on_evidence_that_the_judge_found(audited: tuple[Path, Any]) -> None:
    run, summary = audited
    (replayed,) = (each for each in summary["experiments"] if each["basis"] == "replayed")
    assert (replayed["lever"], replayed["keeps"], replayed["loses"]) == ("rerank_off", 1, 0)
    with AuditReader.open(run) as reader:
        assert proposed_again(reader) == reader.summary().experiments


def test_the_report_names_model_prompts_and_states_and_once_calibrated_the_agreement(
    audited: tuple[Path, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copy(audited[0], tmp_path / "copy.audit")

    def told(*arguments: str) -> str:
        assert execute(list(arguments)) == 0
        return " ".join(capsys.readouterr().out.replace("\\[", "[").replace("\\]", "]").split())

    judged_by = "25 queries judged by openai/qwen2.5-coder-1.5b (per claim mode; prompts claim v1, claims v1"
    before = told("report", str(run))
    assert judged_by in before and "- Not calibrated." in before
    assert "| Context recall | 20 | 5 | 0 | 0 | 0 |" in before
    assert "| Faithfulness | 19 | 0 | 3 | 3 | 0 |" in before
    told("judge", "calibrate", str(run), str(JUDGED / "labels.jsonl"), "--write")
    after = told("report", str(run))
    agreement = (
        "greement with people on 65 labels in labels.jsonl (balanced accuracy, kappa): "
        "Context recall 0.83 [0.62, 0.95], 0.74 [0.34, 1.00] (n 20); "
        "Faithfulness 0.85 [0.62, 0.95], 0.66 [0.30, 1.00] (n 17); "
        "Abstention 0.81 [0.55, 0.94], 0.61 [-0.07, 1.00] (n 21)"
    )
    assert judged_by in after and f"- A{agreement}." in after and "ot calibrated" not in after
    assert json.loads(told("report", str(run), "--json"))["judge"]["calibration"] == f"a{agreement}"
