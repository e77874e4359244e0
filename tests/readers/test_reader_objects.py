import json
from pathlib import Path
from typing import Any

import pytest
from reader_builders import as_line, read, record, write

from ragaudit.readers.objects import read_objects
from ragaudit.readers.problems import Problems

THREE = [record(query_id=f"q{n}", notes='a "]}" in a text \\') for n in (1, 2, 3)]


def ids(folder: Path, *lines: Any) -> list[str]:
    """The query ids, read without any problem."""
    traces, bundle = read(folder, *lines)
    assert bundle.problems.texts() == ()
    assert bundle.inputs()["traces.jsonl"].rows == len(traces)
    return [trace.query_id for trace in traces]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(json.dumps(each, indent=2) for each in THREE),
        "\r\n".join(json.dumps(each, indent="\t").replace("\n", "\r\n") for each in THREE),
        json.dumps(THREE),
        json.dumps(THREE, indent=4),
        json.dumps(THREE, indent=0),
        "[" + ",\n".join(json.dumps(each) for each in THREE) + "]\n",
        "[\n" + "\n, ".join(json.dumps(each) for each in THREE) + "\n]\n",
        "\n".join(json.dumps([each]) for each in THREE),
        "\n\n" + "}, {".join(json.dumps(THREE, indent=1).split("},\n {")),
    ],
    ids=[
        "objects",
        "tabs",
        "list",
        "pretty list",
        "flush list",
        "a line each",
        "commas first",
        "lists of one",
        "joined",
    ],
)
def test_objects_that_are_not_one_a_line_are_read(tmp_path: Path, text: str) -> None:
    assert ids(tmp_path, text.encode()) == ["q1", "q2", "q3"]


def test_an_object_wrapped_by_hand_as_in_a_manual_is_read(tmp_path: Path) -> None:
    text = json.dumps(THREE[0]).replace(', "', ',\n "', 3)
    assert ids(tmp_path, text.encode()) == ["q1"]


def test_places_are_the_lines_that_objects_begin_on(tmp_path: Path) -> None:
    bad = [{**THREE[0], "notes": 5}, {**THREE[1], "k_final": 0}]
    _, bundle = read(tmp_path, json.dumps(bad, indent=2).encode())
    second = json.dumps(bad, indent=2).splitlines().index("  {", 2) + 1
    assert [problem.place for problem in bundle.problems.messages] == ["traces.jsonl:2", f"traces.jsonl:{second}"]


def test_objects_on_one_line_are_numbered(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, json.dumps([THREE[0], {**THREE[1], "k_final": 0}, THREE[2]]).encode())
    assert [trace.query_id for trace in traces] == ["q1", "q3"]
    assert [problem.place for problem in bundle.problems.messages] == ["traces.jsonl:2"]
    assert (bundle.inputs()["traces.jsonl"].rows, bundle.inputs()["traces.jsonl"].set_aside) == (3, 1)


def test_a_first_line_that_was_cut_does_not_swallow_the_good_lines_after_it(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, b'{"query_id": "q0", "arms": {\n', THREE[0], THREE[1])
    assert [trace.query_id for trace in traces] == ["q1", "q2"]
    assert bundle.problems.counts() == {"not_json": 1}
    assert bundle.problems.texts()[0].endswith("Write one JSON object on one line.")


def test_what_stands_between_the_objects_is_set_aside(tmp_path: Path) -> None:
    text = b"[" + json.dumps(THREE[0]).encode() + b', "stray", ' + json.dumps(THREE[1]).encode() + b"] end\n"
    traces, bundle = read(tmp_path, text)
    assert [trace.query_id for trace in traces] == ["q1", "q2"]
    assert [problem.place for problem in bundle.problems.messages] == ["traces.jsonl:2", "traces.jsonl:4"]


def test_an_object_that_is_cut_is_reported(tmp_path: Path) -> None:
    text = "\n".join(json.dumps(each, indent=2) for each in THREE)[:-30]
    traces, bundle = read(tmp_path, text.encode())
    assert [trace.query_id for trace in traces] == ["q1", "q2"]
    assert bundle.problems.counts() == {"cut": 1}


def test_a_list_that_is_cut_between_two_objects_is_reported(tmp_path: Path) -> None:
    traces, bundle = read(tmp_path, b"[\n", as_line(THREE[0]).rstrip() + b",\n")
    assert [trace.query_id for trace in traces] == ["q1"]
    assert bundle.problems.texts() == (
        "traces.jsonl:3: the list is not closed: was the writer stopped? Write the rest of it.",
    )


def test_one_object_on_each_line_is_passed_on_as_it_is(tmp_path: Path) -> None:
    lines = [b'{"a": [1]}\n', b"broken {\n", b'{"b": "]"}']
    found = list(read_objects(write(tmp_path / "f", *lines), "f", Problems()))
    assert found == [(1, lines[0]), (2, lines[1]), (3, lines[2])]


def test_a_text_without_an_end_costs_time_in_proportion_to_its_length(tmp_path: Path) -> None:
    hostile = b'[{"a": "' + b'\\"' * 500_000 + b"\n"
    assert [number for number, _ in read_objects(write(tmp_path / "f", hostile), "f", Problems())] == [1]


def test_an_object_that_never_ends_is_not_gathered_without_a_limit(tmp_path: Path) -> None:
    path, problems = write(tmp_path / "f", b'[\n{"a": 1},\n{"b": [\n', *[b'"x",\n'] * 100), Problems()
    assert list(read_objects(path, "f", problems, max_object=200)) == [(2, b'{"a": 1}\n')]
    assert problems.texts() == (
        "f:3: the object has more than 200 bytes; nothing after it was read."
        " Write one object on one line, and texts in chunks.jsonl.",
    )
