"""Files and the command: what is written, what is set aside, what is refused."""

import gzip
import json
import sys
import types
from pathlib import Path

import pytest
from redact_builders import KEY

from ragaudit.cli.main import execute
from ragaudit.redact.pseudonyms import Pseudonyms
from ragaudit.redact.text import Redactor

ANA = Redactor(Pseudonyms(KEY)).redact("ana@example.com")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_bytes(KEY + b"\n")
    return path


def trace(**more: object) -> str:
    return (
        json.dumps({"query_id": "q1", "query_text": "mail ana@example.com?", "k_final": 3, "arms": {}, **more}) + "\n"
    )


def test_a_row_is_redacted_wherever_a_string_stands(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {
        "user_acl": ["user:ana@example.com"], "gold_ids": ["ana@example.com#1"], "id_map": {"ana@example.com#1": "c1"},
        "score": 4111111111111111, "big": 123456789012345678901234567890,
        "unknown": {"deep": [{"ana@example.com": 1.50}]},
        "api_key": "anything at all", "none": None, "notes": "4111 1111 1111 1111",
    }  # fmt: skip
    (tmp_path / "traces.jsonl").write_text(trace(**row), "utf-8")
    out = tmp_path / "out.jsonl"
    assert execute(["redact", str(tmp_path / "traces.jsonl"), "-o", str(out), "--key-file", str(key)]) == 0
    made = json.loads(out.read_text("utf-8"))
    assert made["query_text"] == f"mail {ANA}?"
    assert made["user_acl"] == [f"user:{ANA}"]
    assert made["gold_ids"] == [*made["id_map"]] == [f"{ANA}#1"]
    assert made["unknown"] == {"deep": [{ANA: 1.5}]}
    assert (made["score"], made["big"], made["none"], made["k_final"]) == (row["score"], row["big"], None, 3)
    assert made["api_key"].startswith("<secret-")
    assert made["notes"].startswith("<card-")
    said = capsys.readouterr()
    assert "Replaced: email 5, secret 1, card 1." in said.out
    assert "query_text" in said.out
    assert "ana@" not in said.out + said.err


def test_a_line_that_cannot_be_read_is_counted_and_never_written(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [trace(), '{"query_text": "bob@example.com"\n', '"eve@example.com"\n', "[" * 100_000 + "\n", trace(n=1)]
    (tmp_path / "traces.jsonl").write_text("".join(lines), "utf-8")
    out = tmp_path / "out.jsonl"
    assert execute(["redact", str(tmp_path / "traces.jsonl"), "-o", str(out), "--key-file", str(key), "--json"]) == 0
    assert len(out.read_text("utf-8").splitlines()) == 2
    document = json.loads(capsys.readouterr().out)
    assert document["files"] == [{"name": "traces.jsonl", "written_as": "traces.jsonl", "rows": 5, "set_aside": 3}]
    assert [problem.split(": ")[0] for problem in document["problems"]] == [f"traces.jsonl:{n}" for n in (2, 3, 4)]
    assert "example.com" not in json.dumps(document)


def test_gzip_in_gives_the_same_gzip_out(tmp_path: Path, key: Path) -> None:
    (tmp_path / "traces.jsonl.gz").write_bytes(gzip.compress(trace().encode()))
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        arguments = [str(tmp_path / "traces.jsonl.gz"), "-o", str(tmp_path / name), "--key-file", str(key)]
        assert execute(["-q", "redact", *arguments]) == 0
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert ANA.encode() in gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes())


def test_parquet_is_written_as_json_lines(tmp_path: Path, key: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    (tmp_path / "in").mkdir()
    pq.write_table(
        pa.table({"query_id": ["q1"], "query_text": ["ana@example.com"]}), tmp_path / "in" / "traces.parquet"
    )
    assert execute(["-q", "redact", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--key-file", str(key)]) == 0
    assert json.loads((tmp_path / "out" / "traces.jsonl").read_text()) == {"query_id": "q1", "query_text": ANA}


def test_a_folder_is_redacted_and_what_is_not_known_is_named_and_not_copied(
    tmp_path: Path, key: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    files = {
        "traces.jsonl": trace(), "qrels.tsv": "query\tid\tgrade\nana@example.com\tc 1\t2\nbroken\n", "notes.docx": "x",
        "ragaudit.toml": '[acl]\n\neveryone = ["ana@example.com"]\n',
        "report.md": "by ana@example.com\n", "run.audit": "x",
        "index.json": '{"note": "ana@example.com", "arms": {}}',
    }  # fmt: skip
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    out = tmp_path / "out"
    assert execute(["redact", str(folder), "-o", str(out), "--key-file", str(key)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "index.json", "qrels.tsv", "ragaudit.toml", "report.md", "traces.jsonl",
    ]  # fmt: skip
    assert (out / "qrels.tsv").read_text() == f"query\tid\tgrade\n{ANA}\tc 1\t2\n"
    assert (out / "ragaudit.toml").read_text() == f'[acl]\n\neveryone = ["{ANA}"]\n'
    assert (out / "report.md").read_text() == f"by &lt;{ANA[1:-1]}&gt;\n"
    assert json.loads((out / "index.json").read_text()) == {"note": ANA, "arms": {}}
    said = capsys.readouterr().out
    assert "notes.docx: not of a known kind" in said
    assert "run.audit: an audit file" in said
    assert "sub: a folder" in said


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "traces.jsonl").write_text(trace(), "utf-8")
    assert execute(["redact", str(tmp_path), "--dry-run"]) == 0
    assert "Replaced: email 1." in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["traces.jsonl"]


def test_without_a_key_file_each_run_has_other_pseudonyms_and_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "traces.jsonl").write_text(trace(), "utf-8")
    made = []
    for name in ("a.jsonl", "b.jsonl"):
        assert execute(["redact", str(tmp_path / "traces.jsonl"), "-o", str(tmp_path / name)]) == 0
        made.append((tmp_path / name).read_text())
    assert made[0] != made[1]
    assert "A fresh key made these pseudonyms and is gone" in capsys.readouterr().err


def test_texts_dropped_leave_codes_hashes_and_joins(tmp_path: Path, key: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    more = {
        "user_acl": ["All Staff"], "filters_applied": {"title": "Leave Days", "tenant": "acme"}, "reference": "30 days",
        "context_texts": {"c1": "30 days of leave"}, "answer": {"text": "30 days", "correct": True}, "notes": "hm",
        "gold": [{"id": "c1", "span": "30 days"}, {"id": "c2", "span": "of rain"}], "timestamp": "2026-10-01 09:00:00",
    }  # fmt: skip
    (folder / "traces.jsonl").write_text(trace(**more), "utf-8")
    chunks = [
        {
            "chunk_id": "c1",
            "source_id": "s",
            "text": "30 days of leave",
            "metadata": {"title": "Leave Days", "tenant": "acme"},
        },
        {"chunk_id": "c2", "source_id": "s", "text": "snow", "acl": ["All Staff"]},
    ]
    (folder / "chunks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in chunks), "utf-8")
    out = tmp_path / "out"
    assert execute(["-q", "redact", str(folder), "-o", str(out), "--key-file", str(key), "--text", "drop"]) == 0
    made = json.loads((out / "traces.jsonl").read_text())
    one, two = [json.loads(line) for line in (out / "chunks.jsonl").read_text().splitlines()]
    assert made["query_text"].startswith("<text-")
    assert made["answer"]["text"].startswith("<text-")
    assert [made[name] for name in ("reference", "context_texts", "notes")] == [None, None, None]
    assert made["filters_applied"] == one["metadata"]
    assert made["filters_applied"]["tenant"] == "acme"
    assert made["user_acl"] == two["acl"] == ["All Staff"]
    assert made["timestamp"] == "2026-10-01 09:00:00"
    assert (one["text"], two["text"]) == (None, None)
    assert one["content_hash"].startswith("<hash-")
    assert one["content_hash"] != two["content_hash"]
    assert [label["span"] for label in made["gold"]] == [None, None]
    assert [label["span_in"]["chunk"] for label in made["gold"]] == [True, False]
    text = (out / "traces.jsonl").read_text() + (out / "chunks.jsonl").read_text()
    assert "days" not in text.lower()


REFUSED = {
    "no output": ["IN"],
    "inside the input": ["IN", "-o", "IN/out"],
    "the input inside": ["IN", "-o", "."],
    "a folder that holds something": ["IN", "-o", "FULL"],
    "the same file": ["IN/traces.jsonl", "-o", "IN/traces.jsonl", "--replace"],
    "a file that is there": ["IN/traces.jsonl", "-o", "FULL/x.jsonl"],
    "another ending": ["IN/traces.jsonl", "-o", "new.md"],
    "a short key": ["IN", "-o", "new", "--key-file", "SHORT"],
    "a key that would be shared": ["IN", "-o", "FULL", "--key-file", "FULL/x.jsonl"],
    "names that are everywhere": ["IN", "-o", "new", "--names-file", "SHORT"],
    "a model that is not there": ["IN", "-o", "new", "--names", "presidio"],
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_harm_is_refused_and_nothing_is_written(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "presidio_analyzer", None)
    Path("IN").mkdir()
    Path("FULL").mkdir()
    Path("IN/traces.jsonl").write_text(trace(), "utf-8")
    Path("FULL/x.jsonl").write_text("mine" * 10, "utf-8")
    Path("SHORT").write_text("a", "utf-8")
    was = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    assert execute(["redact", *REFUSED[case]]) == 2
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == was


def test_replace_writes_over_a_file(tmp_path: Path, key: Path) -> None:
    (tmp_path / "traces.jsonl").write_text(trace(), "utf-8")
    (tmp_path / "out.jsonl").write_text("old", "utf-8")
    arguments = [str(tmp_path / "traces.jsonl"), "-o", str(tmp_path / "out.jsonl"), "--replace", "--key-file", str(key)]
    assert execute(["-q", "redact", *arguments]) == 0
    assert ANA in (tmp_path / "out.jsonl").read_text()


def test_a_json_document_that_cannot_be_read_stops_the_run_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "index.json").write_text("{", "utf-8")
    assert execute(["redact", str(tmp_path / "in"), "-o", str(tmp_path / "out")]) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_presidio_is_asked_for_persons_and_nothing_is_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Seen:
        start, end = 5, 13

    class Engine:
        def __init__(self, **_: object) -> None: ...
        def create_engine(self) -> None: ...
        def analyze(self, text: str, language: str, entities: list[str]) -> list[Seen]:
            assert (language, entities) == ("en", ["PERSON"])
            return [Seen()] if text.startswith("mail Bo Adams") else []

    presidio, nlp, spacy, util = (types.ModuleType(name) for name in ("p", "n", "s", "u"))
    presidio.__dict__["AnalyzerEngine"] = nlp.__dict__["NlpEngineProvider"] = Engine
    util.__dict__["is_package"] = lambda model: model == "en_small"
    names = ("presidio_analyzer", "presidio_analyzer.nlp_engine", "spacy", "spacy.util")
    for name, module in zip(names, (presidio, nlp, spacy, util), strict=True):
        monkeypatch.setitem(sys.modules, name, module)
    (tmp_path / "traces.jsonl").write_text(trace(query_text="mail Bo Adams now"), "utf-8")
    arguments = [
        "-q",
        "redact",
        str(tmp_path / "traces.jsonl"),
        "-o",
        str(tmp_path / "out.jsonl"),
        "--names",
        "presidio",
    ]
    assert execute([*arguments, "--names-model", "en_large"]) == 2
    assert execute([*arguments, "--names-model", "en_small"]) == 0
    made = json.loads((tmp_path / "out.jsonl").read_text())["query_text"]
    assert made.startswith("mail <name-")
    assert made.endswith("> now")
