"""`ragaudit import` end to end: import, check, audit; what is said; and what is left behind when it goes wrong."""

import json
from pathlib import Path

import pytest

from ragaudit.cli.main import execute
from ragaudit.importers import ragas, table
from ragaudit.importers.formats import Table
from ragaudit.importers.registry import MODULES

DATA = Path(__file__).parents[1] / "importers" / "data"
RUNS = [DATA / "trec" / f"demo.{name}.run" for name in ("dense", "bm25", "rrf", "rerank")]
LOG = "question,relevant,hits\nhow long?,0012,0012|c2\nwho?,c9,c1\n"
MAPS = ("--map", "query_text=question", "--map", "gold_ids=relevant", "--map", "arms.dense=hits")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log.csv").write_text(LOG)
    return tmp_path


def told(arguments, capsys, code=0):
    assert execute([str(argument) for argument in arguments]) == code
    return capsys.readouterr()


def flat(text):
    return " ".join(text.split())


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# --- import, check, audit ------------------------------------------------------------------------------------------


def test_runs_and_a_beir_folder_become_a_bundle_that_an_audit_reads(here, capsys):
    told(["import", "trec", *RUNS, DATA / "trec" / "demo.qrels", DATA / "beir", "-o", "run", "--k", "3"], capsys)
    assert names(here / "run") == ["chunks.jsonl", "traces.jsonl"]
    told(["check", "run", "--json"], capsys)
    said = told(["audit", "run", "-o", "run.audit", "--json"], capsys)
    document = json.loads(said.out)
    assert (document["run"]["traces"], document["run"]["k_final"]) == (5, 3)
    assert document["metrics"]["recall@k"]["mean"] == 0.8
    assert {name: cells["recall@k"]["mean"] for name, cells in document["at"].items()} == {
        "arm:dense": 0.8,
        "arm:bm25": 0.8,
        "fused": 0.8,
        "after_rerank": 0.8,
        "final": 0.8,
    }


def test_a_home_made_log_becomes_traces_that_an_audit_reads(here, capsys):
    said = told(["import", "table", "log.csv", "-o", "traces.jsonl", "--k", "1", *MAPS], capsys)
    assert said.err == "Wrote traces.jsonl. Next: ragaudit audit --traces traces.jsonl\n"
    document = json.loads(told(["audit", "--traces", "traces.jsonl", "-o", "x.audit", "--json"], capsys).out)
    assert [query["metrics"]["recall@k"] for query in document["queries"]] == [1.0, 0.0]


def test_labels_alone_are_written_as_qrels_that_an_audit_reads_beside_traces(here, capsys):
    told(["import", "beir", DATA / "beir", "-o", "labels"], capsys)
    assert names(here / "labels") == ["chunks.jsonl", "qrels.tsv"]
    assert (here / "labels" / "qrels.tsv").read_text().splitlines()[:3] == [
        "query-id\tcorpus-id\tscore",
        "q-1\tkb-001#0\t1",
        "q-1\tkb-001#1\t0",
    ]
    told(["import", "trec", RUNS[0], "-o", "traces.jsonl", "--k", "3"], capsys)
    arguments = ["audit", "--traces", "traces.jsonl", "--qrels", "labels/qrels.tsv", "-o", "x.audit", "--json"]
    assert json.loads(told(arguments, capsys).out)["metrics"]["recall@k"]["mean"] == 0.8


def test_texts_are_found_in_the_inventory_that_was_imported_before(here, capsys):
    told(["import", "msmarco", DATA / "msmarco" / "collection.tsv", "-o", "kb"], capsys)
    goldens = DATA / "deepeval" / "goldens.json"
    told(["import", "deepeval", goldens, "-o", "traces.jsonl", "--chunks", "kb/chunks.jsonl"], capsys)
    assert lines(here / "traces.jsonl")[0]["final_context_ids"] == ["7000", "7001", "7010"]


# --- what is said --------------------------------------------------------------------------------------------------


def test_the_report_says_what_was_read_how_and_what_an_audit_cannot_decide(here, capsys):
    said = told(["import", "auto", DATA / "trec" / "demo.dense.run", "-o", "traces.jsonl", "--k", "3"], capsys)
    dense = DATA / "trec" / "demo.dense.run"
    assert said.err.startswith(f"{dense}: TREC and ranx, lines of `query Q0 id rank score tag`.\n")
    assert said.out.splitlines()[:5] == [
        "-- Import: TREC and ranx -------------------------------------------------------",
        "  read      5 traces",
        "  noted     5 x no query text: pass queries.jsonl or queries.tsv as a further",
        "            INPUT (q-1, q-2)",
        "",
    ]
    assert "  final_context_ids            -         -         5         -\n" in said.out
    assert "  query_text                   -         -         -         5\n" in said.out
    assert (
        "  ! warn  every query without gold: cannot decide whether the evidence was found\n"
        "          at all\n"
        "          > pass the qrels as a further INPUT\n"
    ) in said.out
    assert "  absent everywhere:\n  - query_text: pass queries.jsonl or queries.tsv as a further INPUT\n" in said.out
    assert said.out.endswith("smaller findings: ragaudit check\n")


def test_gold_ids_that_no_text_can_match_say_to_pass_the_chunks(here, capsys):
    said = told(["import", "deepeval", DATA / "deepeval" / "goldens.json", "-o", "traces.jsonl"], capsys)
    assert (
        "X block none of the 5 gold ids of 5 queries is in any list, and no listed id looks like them (gold: "
        "'kb-001#0', listed: 'text-491e83a78575f48c'): traces and gold are of different id spaces"
    ) in flat(said.out)
    fix = "> Pass --chunks chunks.jsonl: hits were logged as texts only, and their ids are looked up there."
    assert fix in flat(said.out)
    assert said.err == "Wrote traces.jsonl. An audit of it would stop, as said above.\n"


def test_the_report_as_json(here, capsys):
    said = told(["import", "table", "log.csv", "-o", "traces.jsonl", "--k", "1", "--json", *MAPS], capsys)
    report = json.loads(said.out)
    assert (report["schema"], report["format"], report["rows"]) == ("ragaudit.import/1", "table", {"traces": 2})
    assert report["fields"]["arms"] == {"observed": 2}
    assert report["fields"]["final_context_ids"] == {"assumed": 2}
    assert report["fields"]["user_acl"] == {"absent": 2}
    assert "missing_user_acl" in [finding["check"] for finding in report["preflight"]]
    assert report["stops"] == ""


def test_a_bundle_that_an_audit_would_stop_at_says_so(here, capsys):
    (here / "b").mkdir()
    (here / "b" / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nother\tc1\t1\n")
    said = told(["import", "table", "log.csv", "-o", "b", "--k", "1", *MAPS], capsys)
    assert "!! an audit of this would stop: qrels.tsv: 1 of 1 query id is not in the run" in said.out


def test_what_only_a_folder_can_hold_is_said_when_a_file_is_written(here, capsys):
    said = told(["import", "beir", DATA / "beir", RUNS[0], "-o", "traces.jsonl", "--k", "3"], capsys)
    assert "12 x rows for chunks.jsonl: not written, pass a folder as -o to keep them" in flat(said.out)
    assert names(here) == ["log.csv", "traces.jsonl"]


def test_hostile_names_can_steer_no_terminal(here, capsys):
    hostile = "\x1b[2J\u202ebad"
    (here / "x.jsonl").write_text(json.dumps({"question": "q?", hostile: 1}) + "\n")
    said = told(["import", "table", "x.jsonl", "-o", "t.jsonl", "--map", f"query_text={hostile}q"], capsys, code=2)
    assert "<U+001B>[2J<U+202E>bad" in said.err
    assert not {"\x1b", "\u202e"} & set(said.err + said.out)
    (here / "y.jsonl").write_text(json.dumps({"query_id": hostile, "query_text": "q?"}) + "\n")
    (here / "z.jsonl").write_text(json.dumps({"query_id": hostile, "query_text": "q?", "gold_ids": [1.5]}) + "\n")
    said = told(["import", "table", "y.jsonl", "z.jsonl", "-o", "t.jsonl"], capsys, code=3)
    assert not {"\x1b", "\u202e"} & set(said.err + said.out)


# --- what goes wrong -----------------------------------------------------------------------------------------------


def test_nothing_usable_leaves_no_file_and_no_folder(here, capsys):
    (here / "x.jsonl").write_text('{"user_input": "q?"}\n')
    said = told(["import", "ragas", "x.jsonl", "-o", "deep/bundle"], capsys, code=3)
    assert said.err == (
        "ragaudit: x.jsonl: nothing usable for Ragas: no list of hits and no context: nothing was retrieved, or"
        " nothing of it was logged (1-9fe05e41). Check the file and the format.\n"
    )
    assert names(here) == ["log.csv", "x.jsonl"]


@pytest.mark.parametrize("output", ["traces.jsonl", "bundle"])
def test_an_interrupted_import_leaves_no_file(here, monkeypatch, capsys, output):
    def read(path, options, report):
        yield Table.TRACES, {"query_id": "q1", "query_text": "q?", "k_final": 1, "final_context_ids": ["c1"]}
        raise KeyboardInterrupt

    monkeypatch.setattr(ragas, "FORMAT", ragas.FORMAT.__class__(**{**vars(ragas.FORMAT), "read": read}))
    said = told(["import", "ragas", "log.csv", "-o", output], capsys, code=130)
    assert said.err == "ragaudit: interrupted.\n"
    assert names(here) == ["log.csv"]


def test_a_file_that_is_there_stays_as_it_was(here, capsys):
    (here / "traces.jsonl").write_text("mine\n")
    arguments = ["import", "table", "log.csv", "-o", "traces.jsonl", "--k", "1", *MAPS]
    said = told(arguments, capsys, code=2)
    assert said.err == "ragaudit: traces.jsonl: exists. Pass --replace to write over it, or choose another name.\n"
    assert (here / "traces.jsonl").read_text() == "mine\n"
    told([*arguments, "--replace"], capsys)
    assert len(lines(here / "traces.jsonl")) == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["nosuch", "log.csv"], 2, f"nosuch: no such format. Use auto, or one of: {', '.join(MODULES)}."),
        (["auto", "absent.json"], 3, "absent.json: no such file or folder. Check the path."),
        (["auto", "empty.jsonl"], 3, "empty.jsonl: no known format fits (the file is empty)."),
        (["auto", "log.csv"], 3, "log.csv: no known format fits (records with question, relevant, hits)."),
        (["ragas", "empty.jsonl"], 3, "empty.jsonl: nothing usable for Ragas: it holds no records."),
        (["ragas", "wide.jsonl"], 3, "wide.jsonl: the file is UTF-16. Save it as UTF-8."),
        (["ragas", "."], 3, ".: cannot be read (Is a directory). Check the path."),
        (["table", "log.csv", "--map", "query_text"], 2, "query_text: write NAME=VALUE."),
        (["table", "log.csv", "--mapping", "empty.jsonl"], 2, "empty.jsonl: cannot be read as a mapping"),
        (["table", "log.csv", "--mapping", "list.json"], 2, "list.json: is no mapping."),
        (["table", "log.csv", "--chunks", "log.csv"], 3, "log.csv: no row has a chunk_id and a text."),
        (["trec", str(RUNS[0])], 2, "--k: a run does not say how many of its chunks reach the prompt."),
    ],
)
def test_an_error_says_where_what_and_what_to_do(here, capsys, arguments, code, message):
    (here / "empty.jsonl").write_text("")
    (here / "list.json").write_text("[1]")
    (here / "wide.jsonl").write_bytes('{"user_input": 1}'.encode("utf-16"))
    said = told(["import", *arguments, "-o", "out"], capsys, code=code)
    assert message in said.err
    assert not (here / "out").exists()


# --- several inputs ------------------------------------------------------------------------------------------------


def test_inputs_that_stand_alone_are_read_one_after_the_other(here, capsys):
    (here / "more.csv").write_text(LOG.replace("who?", "when?"))
    said = told(["import", "table", "log.csv", "more.csv", "-o", "traces.jsonl", "--k", "1", *MAPS], capsys)
    assert [row["query_text"] for row in lines(here / "traces.jsonl")] == ["how long?", "who?", "when?"]
    assert "1 x a query id that came before: an audit reads the first (1-a8cd7a0a)" in flat(said.out)


def test_auto_takes_the_format_of_the_first_input_that_tells_it(here, capsys):
    (here / "notes.txt").write_text("what these runs are\n")
    said = told(["import", "auto", "notes.txt", RUNS[0], "-o", "x.jsonl", "--k", "3"], capsys, code=3)
    assert "TREC and ranx, lines of" in said.err
    assert "notes.txt: is no run (6 columns), qrels (3 or 4), queries, collection, or JSON" in said.err


# --- mappings ------------------------------------------------------------------------------------------------------


def test_a_mapping_is_kept_for_the_next_time_and_map_wins_over_it(here, capsys):
    told(["import", "table", "log.csv", "-o", "a.jsonl", "--k", "1", "--save-mapping", "m.json", *MAPS], capsys)
    assert json.loads((here / "m.json").read_text()) == {
        "query_text": "question",
        "gold_ids": "relevant",
        "arms.dense": "hits",
    }
    told(["import", "table", "log.csv", "-o", "b.jsonl", "--k", "1", "--mapping", "m.json"], capsys)
    assert (here / "a.jsonl").read_text() == (here / "b.jsonl").read_text()
    told(
        ["import", "table", "log.csv", "-o", "c.jsonl", "--k", "1", "--mapping", "m.json", "--map", "notes=hits"],
        capsys,
    )
    assert lines(here / "c.jsonl")[0]["notes"] == "0012|c2"


def test_a_mapping_of_an_import_that_failed_is_not_kept(here, capsys):
    arguments = ["import", "table", "log.csv", "-o", "a.jsonl", "--save-mapping", "m.json", "--map", "query_text=q"]
    told(arguments, capsys, code=2)
    assert names(here) == ["log.csv"]


def test_map_is_said_to_mean_nothing_to_a_format_that_knows_its_columns(here, capsys):
    said = told(["import", "trec", RUNS[0], "-o", "t.jsonl", "--k", "3", "--map", "query_text=q"], capsys)
    assert said.err.startswith("--map means nothing to trec, which knows its own fields; `import table` reads any.\n")


def test_values_that_json_cannot_hold_are_read_as_null_and_said(here, capsys):
    (here / "x.jsonl").write_text('{"query_text": "q?", "final_context_ids": ["c1"], "filters_applied": {"a": NaN}}\n')
    said = told(["import", "table", "x.jsonl", "-o", "t.jsonl"], capsys)
    assert lines(here / "t.jsonl")[0]["filters_applied"] == {"a": None}
    assert "was read as null" in said.out


def test_formats_lists_every_format_in_the_order_of_auto(capsys):
    said = told(["formats", "--json"], capsys)
    assert [row["name"] for row in json.loads(said.out)["formats"]] == list(MODULES)
    assert table.FORMAT.title in said.out
