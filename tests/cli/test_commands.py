import json
import tomllib

import pytest
from cli_builders import BLOCK, WARNING, bundle, result, stand_in, write_audit

from ragaudit.cli.main import execute
from ragaudit.errors import InputError
from ragaudit.model.diagnosis import STAGES
from ragaudit.store import AuditReader

HOSTILE = "\x1b[2J<script>|`x`\u202e[a](b)"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def told(arguments, capsys, code=0):
    assert execute([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- audit ---------------------------------------------------------------------------------------------------------


def test_audit_writes_a_file_called_after_the_bundle_and_prints_the_summary(here, monkeypatch, capsys):
    stand_in(monkeypatch)
    said = told(["audit", bundle(here / "support-kb")], capsys)
    assert said.out.startswith("support-kb ")
    assert "2 of 2 queries fail (100%); Rerank/pack loses most (2)." in said.out
    assert said.err.endswith("Wrote support-kb.audit. Next: ragaudit report support-kb.audit\n")
    with AuditReader.open(here / "support-kb.audit") as reader:
        assert [row.query_id for row in reader.page()] == ["q1", "q2"]


def test_audit_of_single_files_is_called_after_their_folder(here, monkeypatch, capsys):
    calls = stand_in(monkeypatch)
    told(["audit", "--traces", bundle(here / "b") / "traces.jsonl", "--limit", "1", "-q"], capsys)
    assert names(here) == ["b", "b.audit"]
    assert calls[0]["limit"] == 1


def test_audit_as_json_prints_the_document_alone(here, monkeypatch, capsys):
    stand_in(monkeypatch)
    said = told(["audit", bundle(here / "b"), "-o", "x.audit", "--json"], capsys)
    document = json.loads(said.out)
    assert document["schema"] == "ragaudit.audit/1"
    assert [row["query_id"] for row in document["queries"]] == ["q1", "q2"]
    assert said.err == ""
    assert "refund" not in said.out


def test_audit_passes_the_scope_as_a_flag(here, monkeypatch, capsys):
    calls = stand_in(monkeypatch)
    told(["audit", bundle(here / "b"), "--scope", "retrieval"], capsys)
    settings = calls[0]["bundle"].settings
    assert settings.audit.scope == "retrieval"
    assert settings.origin["audit.scope"] == "flag --scope"


def test_audit_reads_settings_from_the_environment(here, monkeypatch, capsys):
    calls = stand_in(monkeypatch)
    monkeypatch.setenv("RAGAUDIT_SEED", "7")
    told(["audit", bundle(here / "b")], capsys)
    assert calls[0]["bundle"].settings.audit.seed == 7


def test_a_blocked_audit_exits_with_3(here, monkeypatch, capsys):
    stand_in(monkeypatch, raising=InputError("b: No ACL rule. Write [acl]."))
    said = told(["audit", bundle(here / "b")], capsys, code=3)
    assert (said.out, said.err) == ("", "ragaudit: b: No ACL rule. Write [acl].\n")
    assert not (here / "b.audit").exists()


def test_an_interrupted_audit_says_that_it_resumes(here, monkeypatch, capsys):
    stand_in(monkeypatch, raising=KeyboardInterrupt())
    said = told(["audit", bundle(here / "b")], capsys, code=130)
    assert said.out == ""
    assert said.err == (
        "What was done is kept in b.audit.partial; run the same command again to resume.\nragaudit: interrupted.\n"
    )
    assert names(here) == ["b", "b.audit.partial"]


@pytest.mark.parametrize("options", [["--judge", "off"], ["--judge", "auto"], []])
def test_without_a_judge_model_nobody_judges(here, monkeypatch, capsys, options):
    calls = stand_in(monkeypatch)
    told(["audit", bundle(here / "b"), *options], capsys)
    assert calls[0]["judge"] is None


def test_the_configured_model_judges_unless_it_is_turned_off_or_another_is_named(here, monkeypatch, capsys):
    calls = stand_in(monkeypatch)
    bundle(here / "b")
    (here / "b" / "ragaudit.toml").write_text('[judge]\nmodel = "provider/model"\ncache = ""\n')
    for options in ([], ["--judge", "off"], ["--judge", "provider/other"]):
        told(["audit", here / "b", *options], capsys)
    models = [call["judge"].how.model if call["judge"] else None for call in calls]
    assert models == ["provider/model", None, "provider/other"]


def test_a_tape_without_any_model_is_refused(here, capsys):
    said = told(["audit", bundle(here / "b"), "--tape", "none"], capsys, code=2)
    assert "--tape: no judge model is set. Write [judge] model in ragaudit.toml, or pass --judge." in said.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["audit", "absent"], 3, "absent: no such folder"),
        (["audit", "b", "-o", "thesis.txt"], 2, "thesis.txt: exists and is not an audit file"),
        (["audit", "b", "-o", "no/where.audit"], 2, "its folder does not exist"),
        (["audit", "b", "--config", "none.toml"], 2, "none.toml: no such file. Check what was passed as --config."),
        (["audit", "b", "--config", "b"], 2, "b: a folder, not a file. Pass the file as --config."),
        (["audit", "b", "--config", "/dev/null"], 2, "/dev/null: a device or a pipe, and an audit reads its files"),
        (["audit", "b", "--chunks", "none.jsonl"], 3, "none.jsonl: no such file"),
        (["audit"], 2, "Name a BUNDLE folder, or at least --traces FILE."),
    ],
)
def test_audit_errors_name_the_place(here, arguments, code, message, monkeypatch, capsys):
    stand_in(monkeypatch)
    bundle(here / "b")
    (here / "thesis.txt").write_text("my thesis")
    said = told(arguments, capsys, code=code)
    assert message in said.err
    assert said.out == ""
    assert names(here) == ["b", "thesis.txt"]


# --- check ---------------------------------------------------------------------------------------------------------


def test_check_lists_findings_and_succeeds(here, monkeypatch, capsys):
    stand_in(monkeypatch)
    said = told(["check", bundle(here / "b")], capsys)
    assert (
        said.out
        == "b: 1 finding (0 block, 1 warn, 0 info)\n\n  ! warn  Fewer than 30 queries.\n          > Log more.\n"
    )


def test_check_as_json_puts_blocking_findings_first_and_exits_with_3(here, monkeypatch, capsys):
    stand_in(monkeypatch, findings=(WARNING, BLOCK))
    document = json.loads(told(["check", bundle(here / "b"), "--json"], capsys, code=3).out)
    assert list(document) == ["schema", "run", "blocked", "preflight", "messages"]
    assert (document["blocked"], document["messages"]) == (True, [])
    assert [finding["severity"] for finding in document["preflight"]] == ["block", "warn"]


def damaged(folder, lines):
    """A bundle with one good trace and so many lines that are none."""
    path = bundle(folder, "q1") / "traces.jsonl"
    path.write_text(path.read_text() + '{"query_id": "q2", "k_final": 2, "final_context_ids": []}\n' * lines)
    return folder


WRONG = "query_text: missing. Log the text that the user asked."


def test_check_names_file_line_and_field_of_the_first_ten_rows_left_out(here, capsys):
    said = told(["check", damaged(here / "b", 12)], capsys).out
    assert "  ! warn  12 rows left out that could not be read\n" in said
    _, shown = said.split("-- Left out or repaired while reading ------------------------------------------\n")
    assert shown.splitlines() == [
        *(f"  - traces.jsonl:{line}: {WRONG}" for line in range(2, 12)),
        "  and 2 more: `ragaudit check BUNDLE --json` lists up to 100",
    ]


def test_check_counts_no_further_than_the_readers_kept(here, capsys):
    said = told(["check", damaged(here / "b", 120)], capsys).out
    assert said.endswith("  and at least 90 more: `ragaudit check BUNDLE --json` lists up to 100\n")


def test_check_as_json_holds_the_messages_by_place(here, capsys):
    document = json.loads(told(["check", damaged(here / "b", 2), "--json"], capsys).out)
    assert document["messages"] == [{"place": f"traces.jsonl:{n}", "message": WRONG} for n in (2, 3)]


def test_check_of_a_clean_bundle_ends_with_its_findings(here, capsys):
    assert "Left out or repaired" not in told(["check", bundle(here / "b")], capsys).out


def test_the_summary_of_an_audit_names_the_command_that_lists_what_was_left_out(here, capsys):
    said = " ".join(told(["audit", damaged(here / "b", 2)], capsys).out.split())
    assert f"2 input rows left out. First message: traces.jsonl:2: {WRONG}" in said
    assert "`ragaudit check BUNDLE` lists what was left out or repaired, by file, line and field." in said


def test_a_run_with_repairs_alone_is_not_said_to_have_lost_rows(here, capsys):
    path = bundle(here / "b") / "traces.jsonl"
    path.write_bytes(path.read_bytes().replace(b"refund window?", b"refund \xff?", 1))
    said = " ".join(told(["audit", here / "b"], capsys).out.split())
    assert "the input was read with repairs. First message: traces.jsonl:1: byte" in said
    assert "could not be read" not in said
    assert "1 line held bytes that are not UTF-8, read as U+FFFD" in said


def test_an_audit_of_misses_alone_is_not_refused(here, capsys):
    path = bundle(here / "b", *(f"q{n}" for n in range(6))) / "traces.jsonl"
    lines = [line.replace("c9", f"z{n}") for n, line in enumerate(path.read_text().splitlines())]
    path.write_text("\n".join(lines) + "\n")
    assert "no list holds 6 gold ids (first: 'z0')" in " ".join(told(["audit", here / "b"], capsys).out.split())
    path.write_text("\n".join(lines).replace('"z', '"doc-') + "\n")
    said = told(["audit", here / "b"], capsys, code=3)
    assert "traces and gold are of different id spaces" in said.err


def test_evidence_that_was_delivered_and_never_judged_names_the_scope(here, capsys):
    path = bundle(here / "b", "q1") / "traces.jsonl"
    path.write_text(path.read_text().replace('["c9"]', '["c1"]'))
    said = " ".join(told(["audit", here / "b", "-o", "x.audit"], capsys).out.split())
    assert (
        "The evidence reached the prompt for 1 of 1 query, and nobody judged the answer: `--scope retrieval` counts "
        "that as a pass."
    ) in said
    hint = "> or audit with --scope retrieval: evidence in the prompt is then a pass, whatever was answered"
    assert hint in " ".join(told(["show", "x.audit", "q1"], capsys).out.split())
    told(["audit", here / "b", "-o", "x.audit", "--scope", "retrieval"], capsys)
    assert "--scope" not in told(["show", "x.audit", "q1"], capsys).out


# --- show ----------------------------------------------------------------------------------------------------------


def test_show_prints_one_query(here, capsys):
    write_audit(here / "run.audit")
    said = told(["show", "run.audit", "q2"], capsys)
    assert said.out.startswith("X q2   FAIL at Rerank/pack\n")
    assert "arm:dense #3 CUT -> packed -" in said.out
    assert "refund" not in said.out and "30 days" not in said.out


def test_show_with_text_keeps_back_what_the_user_may_not_read(here, capsys):
    write_audit(here / "run.audit", [result("q1", leaks=("c7",))])
    said = told(["show", "run.audit", "q1", "--with-text"], capsys)
    assert "refund window?" in said.out and "30 days" in said.out
    assert "salary bands" not in said.out
    assert "c7\n    (not shown: the user may not read it)" in said.out


def test_show_as_json_is_the_row_of_the_report(here, capsys):
    write_audit(here / "run.audit")
    row = json.loads(told(["show", "run.audit", "q1", "--json"], capsys).out)
    report = json.loads(told(["report", "run.audit", "--json"], capsys).out)
    assert row == report["queries"][0] | {"experiments": []}


def test_show_of_an_unknown_query_names_near_ones(here, capsys):
    write_audit(here / "run.audit", [result("tour-1"), result("q2")])
    assert "no query 'ur'. Queries there: tour-1, ..." in told(["show", "run.audit", "ur"], capsys, code=2).err
    assert "Queries there: tour-1, q2, ..." in told(["show", "run.audit", "zz"], capsys, code=2).err


def test_show_of_hostile_ids_is_inert(here, capsys):
    write_audit(here / "run.audit", [result(HOSTILE, gold_id=HOSTILE)])
    said = told(["show", "run.audit", HOSTILE], capsys)
    assert "\x1b" not in said.out and "\u202e" not in said.out
    assert "<U+001B>[2J<script>|`x`<U+202E>[a](b)" in said.out
    missing = told(["show", "run.audit", "zz"], capsys, code=2)
    assert "\x1b" not in missing.err


# --- report --------------------------------------------------------------------------------------------------------


def test_report_prints_markdown(here, capsys):
    write_audit(here / "run.audit")
    said = told(["report", "run.audit"], capsys)
    assert said.out.startswith("# RAG audit: support-kb\n")
    assert "refund" not in said.out
    assert "refund window?" in told(["report", "run.audit", "--with-text"], capsys).out


def test_report_writes_a_file_and_says_so(here, capsys):
    write_audit(here / "run.audit")
    on_stdout = told(["report", "run.audit"], capsys).out
    said = told(["report", "run.audit", "-o", "report.md"], capsys)
    assert (said.out, said.err) == ("", "Wrote report.md.\n")
    assert (here / "report.md").read_text() == on_stdout
    assert names(here) == ["report.md", "run.audit"]


def test_a_report_that_fails_leaves_the_old_file(here, capsys):
    write_audit(here / "run.audit")
    (here / "report.md").write_text("old")
    (here / "report.md.jinja").write_text("{{ nothing }}")
    said = told(["report", "run.audit", "-o", "report.md", "--templates", "."], capsys, code=2)
    assert "report.md.jinja: 'nothing' is undefined. Correct the template." in said.err
    assert (here / "report.md").read_text() == "old"
    assert "cannot be written" in told(["report", "run.audit", "-o", "no/report.md"], capsys, code=2).err


def test_report_as_json_has_every_query(here, capsys):
    write_audit(here / "run.audit", [result(f"q{n}") for n in range(300)])
    document = json.loads(told(["report", "run.audit", "--format", "json"], capsys).out)
    assert len(document["queries"]) == 300
    assert "and 100 more of 300 queries" in told(["report", "run.audit"], capsys).out


def test_reports_of_hostile_ids_are_inert(here, capsys):
    write_audit(here / "run.audit", [result(HOSTILE, gold_id=HOSTILE)], name=HOSTILE)
    for arguments in (["report", "run.audit"], ["report", "run.audit", "--json"]):
        out = told(arguments, capsys).out
        assert "\x1b" not in out and "\u202e" not in out
    assert "<script" not in told(["report", "run.audit"], capsys).out


@pytest.mark.parametrize("command", [["show", "file", "q1"], ["report", "file"]])
def test_a_file_that_is_no_audit_exits_with_3(here, command, capsys):
    (here / "file").write_text("not an audit file, only text that is long enough to be read as one" * 10)
    assert "file: not an audit file" in told(command, capsys, code=3).err


# --- init, registries, demo ----------------------------------------------------------------------------------------


def test_init_writes_a_configuration_that_loads_and_never_overwrites(here, capsys):
    told(["init"], capsys)
    written = (here / "ragaudit.toml").read_text()
    assert "pipeline" in tomllib.loads(written)
    said = told(["init", "."], capsys, code=2)
    assert "ragaudit.toml: exists" in said.err
    assert (here / "ragaudit.toml").read_text() == written


def test_init_makes_the_folder_that_is_named(here, capsys):
    told(["init", "runs/my-run"], capsys)
    assert names(here / "runs" / "my-run") == ["ragaudit.toml"]


def test_init_says_when_a_file_stands_where_the_folder_should(here, capsys):
    (here / "notes").write_text("mine")
    said = told(["init", "notes"], capsys, code=2)
    assert said.err == "ragaudit: notes: no folder can be made there (File exists). Name another.\n"
    assert (here / "notes").read_text() == "mine"


def test_init_as_json_names_the_file(here, capsys):
    said = told(["init", "--json"], capsys)
    assert json.loads(said.out) == {"written": "ragaudit.toml"}
    assert said.err == ""


def test_stages_are_the_nine_in_order(capsys):
    document = json.loads(told(["stages", "--json"], capsys).out)
    assert [row["stage"] for row in document["stages"]] == [stage.value for stage in STAGES]
    assert all(row["note"] and row["causes"] for row in document["stages"])
    lines = told(["stages"], capsys).out.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [stage.value for stage in STAGES]
    assert max(map(len, lines)) <= 80


def test_causes_can_be_listed_by_stage(capsys):
    every = json.loads(told(["causes", "--json"], capsys).out)["causes"]
    parse = json.loads(told(["causes", "--stage", "parse", "--json"], capsys).out)["causes"]
    assert parse == [row for row in every if row["stage"] == "parse"] != []
    text = told(["causes", "--stage", "parse"], capsys).out
    assert all(f"  {row['cause']}\n" in text for row in parse)
    assert max(map(len, text.splitlines())) <= 80


def test_metrics_are_listed_with_their_conventions(capsys):
    document = json.loads(told(["metrics", "--json"], capsys).out)
    assert document["metrics"][1]["name"] == "recall@k"
    text = told(["metrics"], capsys).out
    assert text.startswith("hit@k                Did any of the evidence reach the generator?\n")
    assert max(map(len, text.splitlines())) <= 80


def test_demo_shows_the_summary_one_diagnosis_and_what_to_type(tmp_path, monkeypatch, capsys):
    stand_in(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = told(["demo"], capsys)
    assert "-- Lost at (" in said.out
    assert "-- One diagnosis, worked -" in said.out
    assert "ragaudit show " in said.err and "demo.audit" in said.err
    assert [path.name for folder in tmp_path.iterdir() for path in folder.iterdir()] == ["demo.audit"]


def test_demo_can_print_the_report_or_the_json(tmp_path, monkeypatch, capsys):
    stand_in(monkeypatch)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert told(["demo", "--report"], capsys).out.startswith("# RAG audit: ")
    assert json.loads(told(["demo", "--json"], capsys).out)["schema"] == "ragaudit.audit/1"
