"""`ragaudit drill`: text, JSON, exit codes."""

import json
from pathlib import Path

import pytest
from drill_builders import MISNAMED, report, result

from ragaudit.cli.commands import drill as command
from ragaudit.cli.drill_text import drill_text, list_text
from ragaudit.cli.main import execute
from ragaudit.drill.registry import FAULTS


def test_one_fault_on_the_demo_is_named_and_ends_with_0(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = execute(["drill", str(repository / "examples" / "demo"), "--fault", "prompt_cut", "--limit", "3", "-q"])
    shown = capsys.readouterr()
    assert code == 0
    said = "3 of 90 queries were broken on purpose, 2 times in all (seed 0). No diagnosis was wrong."
    assert said in " ".join(shown.out.split())
    assert "prompt_cut              rerank           2      2      0      0  recall fail" in shown.out
    assert shown.err == ""


def test_as_json_it_is_the_whole_report(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--fault", "ann_miss", "--limit", "2", "--seed", "3", "--json"]
    assert execute(["drill", str(repository / "examples" / "demo"), *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["holds"], document["seed"]) == ("ragaudit.drill/1", True, 3)
    assert [(row["fault"], row["hides"]) for row in document["results"]] == [
        ("ann_miss", ""),
        ("ann_miss", "probe exact_rank"),
    ]
    assert (document["table"], document["blind"]) == (
        {"embed": {"embed": document["results"][0]["applied"]}},
        {"embed": {"undetermined": document["results"][1]["applied"]}},
    )


def test_a_wrong_diagnosis_ends_with_1(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "run", lambda *_, **__: report(result(named=1, misnamed=(MISNAMED,))))
    assert execute(["drill", str(repository / "examples" / "demo")]) == 1
    assert "1 diagnosis was wrong: it excludes the truth." in " ".join(capsys.readouterr().out.split())


def test_an_open_verdict_is_no_alarm_and_says_what_to_log() -> None:
    shown = report(result(named=0, open=2, log=("probe exact_rank",)))
    assert shown.holds
    assert "poor_rank: 2 of 2 open. To log: probe exact_rank" in drill_text(shown)


def test_a_wrong_diagnosis_is_shown_with_one_example_and_no_control_character() -> None:
    text = drill_text(report(result(named=1, misnamed=(MISNAMED,), hides="fused")))
    assert "poor_rank (retrieve, fused not logged): 1 of 2\n  q<U+001B>[31m-1: embed. g: exact rank 1" in text
    assert text.isascii()


def test_a_fault_that_no_query_can_have_is_said_to_be_idle() -> None:
    text = drill_text(report(result(applied=0, named=0)))
    assert "No query of this run can have" in text
    assert text.endswith("poor_rank\n")


def test_the_text_fits_80_columns() -> None:
    wide = result(hides="a field of some length, and another one, and " * 4, misnamed=(MISNAMED,), log=("x" * 90,))
    shown = report(wide, result(open=1, log=("sources.jsonl: status, chunks_expected, chunks_indexed",) * 3))
    shown = shown.model_copy(update={"table": {"retrieve": {"retrieve": 9_999, "none": 1}}})
    assert max(map(len, drill_text(shown).splitlines())) <= 80
    assert max(map(len, list_text(FAULTS.values()).splitlines())) <= 80


def test_the_list_names_every_fault_and_needs_no_bundle(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["drill", "--list"]) == 0
    text = capsys.readouterr().out
    assert [name for name in FAULTS if f"  {name}\n" not in text] == []
    assert execute(["drill", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["faults"]
    assert [row["fault"] for row in rows] == list(FAULTS)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "Name a BUNDLE folder"),
        (["nowhere"], 3, "nowhere: no such folder"),
        (["{demo}", "--fault", "nope"], 2, "--fault nope: there is no such fault. `ragaudit drill --list` names them."),
        (["{demo}", "--limit", "0"], 2, "--limit"),
    ],
)
def test_wrong_usage_has_its_exit_code(
    repository: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    demo = str(repository / "examples" / "demo")
    assert execute(["drill", *(argument.format(demo=demo) for argument in arguments)]) == code
    assert said in capsys.readouterr().err
