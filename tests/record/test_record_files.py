"""The file: whole lines, nobody else's eyes, rotation, and what is left after a crash or on a full disk."""

import os
import stat
from pathlib import Path

import pytest

from ragaudit.record.files import LineFile

CLOCK = 1_700_000_000.0


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def test_only_the_owner_may_read_it_and_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "traces.jsonl"
    LineFile(path).append(["a"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_lines_of_two_writers_stand_whole_one_after_the_other(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    one, two = LineFile(path), LineFile(path)
    one.append(["a"])
    two.append(["b", "c"])
    one.append(["d"])
    assert lines(path) == ["a", "b", "c", "d"]


def test_a_line_that_a_crash_cut_off_is_closed_before_the_next(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n{"b":')
    LineFile(path).append(['{"c": 3}'])
    assert lines(path) == ['{"a": 1}', '{"b":', '{"c": 3}']


def test_a_full_disk_raises_and_costs_no_later_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.jsonl"
    file = LineFile(path)
    file.append(["first"])
    write = os.write

    def full(descriptor: int, payload: bytes) -> int:
        if len(payload) > 4:
            return write(descriptor, payload[:4])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        file.append(["second"])
    monkeypatch.setattr(os, "write", write)
    file.append(["third"])
    assert lines(path) == ["first", "seco", "third"]


def test_a_full_file_is_set_aside_under_a_free_name(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl"
    file = LineFile(path, rotate_bytes=10, clock=lambda: CLOCK)
    for name in ("aaaa", "bbbb", "cccc", "dddd", "eeee"):
        file.append([name])
    aside = f"traces.20231114T221320Z-{os.getpid()}"
    assert {each.name: lines(each) for each in tmp_path.iterdir()} == {
        f"{aside}.jsonl": ["aaaa", "bbbb"],
        f"{aside}-1.jsonl": ["cccc", "dddd"],
        "traces.jsonl": ["eeee"],
    }


def test_a_line_longer_than_the_limit_is_written_whole(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    LineFile(path, rotate_bytes=3).append(["abcdefgh"])
    assert lines(path) == ["abcdefgh"]


def test_a_file_that_was_moved_away_is_begun_again(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    file = LineFile(path)
    file.append(["a"])
    path.rename(tmp_path / "t.1")
    file.append(["b"])
    path.unlink()
    file.append(["c"])
    assert (lines(tmp_path / "t.1"), lines(path)) == (["a"], ["c"])
