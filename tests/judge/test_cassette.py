import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tape_builders import a_reply, a_request

from ragaudit.errors import InputError
from ragaudit.judge.cassette import Cassette, merge, part_of, problems
from ragaudit.judge.recording import request_key
from ragaudit.model.judgement import Reply, Request


def recorded(path: Path, *pairs: tuple[Request, Reply]) -> Path:
    cassette = Cassette.open(path, records=True)
    for request, reply in pairs:
        cassette.record(request, reply)
    cassette.close()
    return path


def five(path: Path) -> Path:
    return recorded(path, *((a_request(f"text {i}"), a_reply(f"reply {i}")) for i in range(5)))


def keys(path: Path) -> list[str]:
    return [json.loads(line)["key"] for line in path.read_text().splitlines()[1:]]


def test_a_cassette_is_one_header_line_and_one_line_a_reply_sorted_by_key(tmp_path: Path) -> None:
    path = five(tmp_path / "sub" / "c.jsonl")
    lines = path.read_text().splitlines()
    assert lines[0] == '{"schema": "ragaudit.cassette/1"}'
    assert len(lines) == 6 and keys(path) == sorted(keys(path))
    assert path.read_bytes().endswith(b"\n")
    assert [p.name for p in path.parent.iterdir()] == ["c.jsonl"]


def test_the_order_of_recording_does_not_change_the_file(tmp_path: Path) -> None:
    pairs = [(a_request(f"text {i}"), a_reply(f"reply {i}")) for i in range(5)]
    one, two = recorded(tmp_path / "1.jsonl", *pairs), recorded(tmp_path / "2.jsonl", *reversed(pairs))
    assert one.read_bytes() == two.read_bytes()


def test_a_reply_comes_back_as_it_was(tmp_path: Path) -> None:
    reply = a_reply(
        "ünï\n\u2028\u202e\x00 '\"",
        usd=0.25,
        tokens=({"token": "yes", "logprob": -0.5, "top": [{"token": "no", "logprob": -1}]},),
    )
    path = recorded(tmp_path / "c.jsonl", (a_request(), reply), (a_request("empty"), a_reply("")))
    cassette = Cassette.open(path, records=False)
    assert cassette.find(request_key(a_request())) == reply
    assert cassette.find(request_key(a_request("empty"))) == a_reply("")


def test_characters_that_hide_or_reorder_text_are_escaped_in_the_file(tmp_path: Path) -> None:
    path = recorded(tmp_path / "c.jsonl", (a_request("a\u202eb\u200bc\u2028d\U000e0041e"), a_reply("\ufeff\x7f")))
    text = path.read_text()
    for char in "\u202e\u200b\u2028\ufeff\x7f\U000e0041":
        assert char not in text
    assert "a\\u202eb\\u200bc\\u2028d\\udb40\\udc41e" in text
    assert problems(path) == ()


def test_no_credential_reaches_the_file(tmp_path: Path) -> None:
    request = a_request(
        api_base="https://user:hunter2@host/v1?api_key=hunter3#hunter4",
        parameters={
            "temperature": 0,
            "api_key": "hunter5",
            "extra_headers": {"Authorization": "Bearer hunter6", "X-Api-Key": "hunter7", "x-trace": "kept"},
            "extra_body": [{"access_token": "hunter8", "Cookie": "hunter9"}],
            "max_tokens": 7,
        },
    )
    path = recorded(tmp_path / "c.jsonl", (request, a_reply()))
    assert "hunter" not in path.read_text()
    entry = json.loads(path.read_text().splitlines()[1])["request"]
    assert entry["api_base"] == "https://host/v1"
    assert entry["parameters"] == {
        "temperature": 0,
        "extra_headers": {"x-trace": "kept"},
        "extra_body": [{}],
        "max_tokens": 7,
    }
    assert Cassette.open(path, records=False).find(request_key(request)) == a_reply()


def test_each_reply_is_on_disk_before_record_returns(tmp_path: Path) -> None:
    cassette = Cassette.open(tmp_path / "c.jsonl", records=True)
    cassette.record(a_request("one"), a_reply())
    assert part_of(cassette.path).read_text().splitlines()[0] == '{"schema": "ragaudit.cassette/1"}'
    assert not cassette.path.exists()
    again = Cassette.open(tmp_path / "c.jsonl", records=True)
    assert again.find(request_key(a_request("one"))) == a_reply()


def test_killing_the_process_loses_at_most_the_call_in_hand(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from tape_builders import a_reply, a_request
from ragaudit.judge.cassette import Cassette
cassette = Cassette.open(Path({str(path)!r}), records=True)
for i in range(3):
    cassette.record(a_request(f"text {{i}}"), a_reply(f"reply {{i}}"))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    cassette = Cassette.open(path, records=True)
    assert [cassette.find(request_key(a_request(f"text {i}"))) for i in range(3)] == [
        a_reply(f"reply {i}") for i in range(3)
    ]
    cassette.close()
    assert len(keys(path)) == 3 and not part_of(path).exists()


def test_a_line_that_a_crash_left_open_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    first = Cassette.open(path, records=True)
    first.record(a_request("one"), a_reply())
    with part_of(path).open("ab") as file:
        file.write(b'{"key": "sha256:torn", "requ')
    second = Cassette.open(path, records=True)
    second.record(a_request("two"), a_reply())
    second.close()
    assert sorted(keys(path)) == sorted([request_key(a_request("one")), request_key(a_request("two"))])


def test_a_part_with_nothing_whole_in_it_is_nothing(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    part_of(path).write_bytes(b'{"schema": "raga')
    cassette = Cassette.open(path, records=True)
    cassette.close()
    assert len(cassette) == 0 and path.read_text() == '{"schema": "ragaudit.cassette/1"}\n'


def test_two_recordings_at_once_keep_the_replies_of_both(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    one, two = Cassette.open(path, records=True), Cassette.open(path, records=True)
    one.record(a_request("one"), a_reply("1"))
    two.record(a_request("two"), a_reply("2"))
    one.close()
    two.record(a_request("three"), a_reply("3"))
    two.close()
    assert len(keys(path)) == 3 and not part_of(path).exists()


def test_closing_what_recorded_nothing_touches_no_file(tmp_path: Path) -> None:
    path = five(tmp_path / "c.jsonl")
    os.utime(path, (1, 1))
    Cassette.open(path, records=True).close()
    assert path.stat().st_mtime == 1


def test_a_last_line_that_was_cut_off_is_left_out_and_noted(tmp_path: Path) -> None:
    path = five(tmp_path / "c.jsonl")
    last = keys(path)[-1]
    path.write_bytes(path.read_bytes()[:-20])
    cassette = Cassette.open(path, records=False)
    assert cassette.cut_off and len(cassette) == 4 and last not in cassette
    assert problems(path) == (f"{path}: the last line is cut off. Record it again.",)


def test_a_missing_line_feed_at_the_end_is_no_damage(tmp_path: Path) -> None:
    path = five(tmp_path / "c.jsonl")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes()[:-1].replace(b"\n", b"\r\n"))
    cassette = Cassette.open(path, records=False)
    assert not cassette.cut_off and len(cassette) == 5


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda lines: [lines[0], lines[1], "<<<<<<< ours", *lines[2:]],
            ":3: is not a recorded reply. Restore the file",
        ),
        (lambda lines: [lines[0], lines[1][:-9], *lines[2:]], ":2: is not a recorded reply."),
        (lambda lines: [lines[0], '{"key": "k", "request": [], "reply": {}}', *lines[2:]], ":2: is not a recorded"),
        (lambda lines: lines[1:], ":1: is not a cassette: it does not start with ragaudit.cassette/1. Check the path."),
        (
            lambda lines: ['{"schema": "ragaudit.cassette/2"}', *lines[1:]],
            ":1: is of format 'ragaudit.cassette/2', this ragaudit reads ragaudit.cassette/1. Update ragaudit",
        ),
    ],
)
def test_damage_and_unknown_formats_are_refused_by_line(tmp_path: Path, spoil: object, message: str) -> None:
    path = five(tmp_path / "c.jsonl")
    path.write_text("\n".join(spoil(path.read_text().splitlines())) + "\n")  # type: ignore[operator]
    with pytest.raises(InputError) as caught:
        Cassette.open(path, records=False)
    assert str(caught.value).startswith(f"{path}{message}")


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\x80\x04\x95 pickled\n")
    with pytest.raises(InputError, match="is not a cassette"):
        Cassette.open(path, records=False)


def test_a_folder_in_place_of_a_cassette_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        Cassette.open(tmp_path, records=False)


def test_merging_adds_what_is_new_and_keeps_the_first_of_two(tmp_path: Path) -> None:
    one = recorded(tmp_path / "1.jsonl", (a_request("a"), a_reply("1")), (a_request("b"), a_reply("1")))
    two = recorded(
        tmp_path / "2.jsonl",
        (a_request("a"), a_reply("1")),
        (a_request("b"), a_reply("2")),
        (a_request("c"), a_reply("2")),
    )
    done = merge(one, [two])
    assert (done.added, done.same, done.conflicts) == (1, 1, (request_key(a_request("b")),))
    cassette = Cassette.open(one, records=False)
    assert [cassette.find(request_key(a_request(text))).text for text in "abc"] == ["1", "1", "2"]  # type: ignore[union-attr]
    assert keys(one) == sorted(keys(one))


def test_merging_a_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such cassette"):
        merge(five(tmp_path / "c.jsonl"), [tmp_path / "none.jsonl"])


def test_an_edited_question_and_a_reply_of_the_wrong_form_are_found(tmp_path: Path) -> None:
    path = recorded(tmp_path / "c.jsonl", (a_request("kept"), a_reply()))
    path.write_text(path.read_text().replace("kept", "edited").replace('"input_tokens": 10', '"input_tokens": "ten"'))
    found = problems(path)
    assert ["the question was edited" in found[0], "the reply is damaged" in found[1], len(found)] == [True, True, 2]
    assert Cassette.open(path, records=False).find(request_key(a_request("kept"))) is None


def test_a_cassette_that_is_not_sorted_is_found(tmp_path: Path) -> None:
    path = five(tmp_path / "c.jsonl")
    header, *lines = path.read_text().splitlines()
    path.write_text("\n".join([header, *reversed(lines)]) + "\n")
    assert [problem.split(": ", 1)[1] for problem in problems(path)] == [
        "is not sorted by key. Merge it with itself to sort it."
    ]
    merge(path, [path])
    assert problems(path) == ()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cassette = Cassette.open(tmp_path / "c.jsonl", records=True)
    cassette.path = tmp_path / "file" / "c.jsonl"
    with pytest.raises(InputError, match="cannot be written"):
        cassette.record(a_request(), a_reply())
