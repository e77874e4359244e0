import json
import multiprocessing
import os
import pickle
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import diskcache
import pytest
from tape_builders import a_reply, a_request

from ragaudit.errors import InputError
from ragaudit.judge.cache import ForeignRowError, ReplyCache, TextDisk
from ragaudit.judge.recording import request_key

KEY = request_key(a_request())


class Marker:
    """Unpickling it makes a folder: harmless, and plain to see."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, (str(self.folder),)


@contextmanager
def opened(folder: Path, *, records: bool = True) -> Iterator[ReplyCache]:
    cache = ReplyCache.open(folder, records=records)
    try:
        yield cache
    finally:
        cache.release()


def filled(folder: Path, n: int = 1) -> Path:
    with opened(folder) as cache:
        cache.record(a_request(), a_reply())
        for i in range(1, n):
            cache.record(a_request(f"text {i}"), a_reply(f"reply {i}"))
    return folder


def sql(folder: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(folder / "cache.db")) as connection, connection:
        connection.execute(statement, values)


def all_of(folder: Path) -> list[str]:
    with opened(folder) as cache:
        return [reply.text for _, _, reply in cache.entries()]


# --- ordinary use ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("records", [True, False])
def test_a_reply_comes_back_as_it_was(tmp_path: Path, records: bool) -> None:
    reply = a_reply("ünï\n\x00'\"\u2028", usd=0.5, tokens=({"token": "a", "logprob": -1.5, "top": []},))
    with opened(tmp_path / "c") as cache:
        cache.record(a_request(), reply)
    with opened(tmp_path / "c", records=records) as cache:
        assert cache.find(KEY) == reply
        assert cache.find(request_key(a_request("other"))) is None
        assert len(cache) == 1
        ((key, question, found),) = cache.entries()
        assert (key, question["prompt"], found) == (KEY, "matrix", reply)


def test_opening_to_read_changes_nothing(tmp_path: Path) -> None:
    folder = filled(tmp_path / "c")
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())}
    with opened(folder, records=False) as cache:
        assert cache.find(KEY) == a_reply()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.iterdir())} == before


def test_a_reader_sees_what_a_writer_has_committed(tmp_path: Path) -> None:
    with opened(tmp_path / "c") as writer:
        writer.record(a_request(), a_reply())
        with opened(tmp_path / "c", records=False) as reader:
            assert reader.find(KEY) == a_reply()


def test_the_folder_is_private_and_stays_out_of_git(tmp_path: Path) -> None:
    folder = filled(tmp_path / "a" / "c")
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / ".gitignore").read_text() == "*\n"


def test_credentials_do_not_reach_the_cache(tmp_path: Path) -> None:
    with opened(tmp_path / "c") as cache:
        cache.record(
            a_request(api_base="http://u:hunter2@h/v1?k=hunter2", parameters={"api_key": "hunter2"}), a_reply()
        )
    assert all(b"hunter2" not in path.read_bytes() for path in (tmp_path / "c").iterdir())


def test_without_a_limit_nothing_is_dropped_and_with_one_the_oldest_is(tmp_path: Path) -> None:
    for size_limit, kept in ((None, 60), (200_000, 30)):
        folder = tmp_path / str(size_limit)
        cache = ReplyCache.open(folder, records=True, size_limit=size_limit)
        for i in range(60):
            cache.record(a_request(f"{i} {'x' * 10_000}"), a_reply())
        assert len(cache) == 60 if size_limit is None else len(cache) < kept
        assert cache.find(request_key(a_request(f"59 {'x' * 10_000}"))) is not None
        cache.release()


# --- a cache file from elsewhere ------------------------------------------------------------------------------


def test_a_pickle_as_value_runs_in_plain_diskcache_and_not_here(tmp_path: Path) -> None:
    folder, marker = filled(tmp_path / "c"), tmp_path / "ran"
    sql(folder, "UPDATE Cache SET mode = 4, value = ?", pickle.dumps(Marker(marker)))
    for records in (True, False):
        with opened(folder, records=records) as cache, pytest.raises(ForeignRowError) as caught:
            cache.find(KEY)
        assert str(caught.value) == (
            f"{folder}: a value of mode 4 was not written by ragaudit and was not opened. Delete the cache folder."
        )
    assert not marker.exists()
    with closing(diskcache.Cache(str(folder))) as plain:
        plain.get(KEY)
    assert marker.exists(), "the poison works, so the tests above mean something"


def test_a_pickle_as_key_does_not_run(tmp_path: Path) -> None:
    folder, marker = filled(tmp_path / "c"), tmp_path / "ran"
    sql(folder, "UPDATE Cache SET raw = 0, key = ?", pickle.dumps(Marker(marker)))
    for records in (True, False):
        with opened(folder, records=records) as cache:
            assert cache.find(KEY) is None
            with pytest.raises(ForeignRowError, match="key that is not text was not written by ragaudit"):
                list(cache.entries())
    assert not marker.exists()
    with closing(diskcache.Cache(str(folder))) as plain:
        list(plain)
    assert marker.exists(), "the poison works, so the tests above mean something"


def test_a_row_poisoned_for_jsondisk_does_not_run(tmp_path: Path) -> None:
    # JSONDisk asks its base class for the bytes first, and that unpickles a row of mode 4.
    folder, marker = tmp_path / "c", tmp_path / "ran"
    with closing(diskcache.Cache(str(folder), disk=diskcache.JSONDisk)) as theirs:
        theirs.set(KEY, {"text": "yes"})
    poison = pickle.dumps(Marker(marker))
    sql(folder, "UPDATE Cache SET mode = 4, value = ?", poison)
    with opened(folder) as cache:
        assert cache.find(KEY) is None, "JSONDisk keys are compressed bytes, ours are text"
        with pytest.raises(ForeignRowError):
            list(cache.entries())
    sql(folder, "UPDATE Cache SET key = ?, raw = 1", KEY)
    with opened(folder) as cache, pytest.raises(ForeignRowError):
        cache.find(KEY)
    assert not marker.exists()


@pytest.mark.parametrize(
    ("columns", "values"),
    [
        ("mode = 1, value = ?", (b"raw bytes",)),
        ("mode = 1, value = ?", (7,)),
        ("mode = 1, value = ?", (None,)),
        ("mode = 2, filename = ?, value = NULL", ("../secret.txt",)),
        ("mode = 3, filename = ?, value = NULL", ("../secret.txt",)),
        ("mode = 1, filename = ?", ("../secret.txt",)),
        ("mode = 'x'", ()),
        ("mode = NULL", ()),
    ],
)
def test_every_other_mode_is_refused_and_no_file_is_opened(tmp_path: Path, columns: str, values: tuple[object]) -> None:
    folder = filled(tmp_path / "c")
    (tmp_path / "secret.txt").write_text("secret")
    sql(folder, f"UPDATE Cache SET {columns}", *values)
    for records in (True, False):
        with opened(folder, records=records) as cache, pytest.raises(ForeignRowError) as caught:
            cache.find(KEY)
        assert "secret" not in str(caught.value)


def test_a_file_named_by_a_row_is_not_deleted_when_the_row_is_overwritten(tmp_path: Path) -> None:
    folder, precious = filled(tmp_path / "c"), tmp_path / "precious.txt"
    precious.write_text("mine")
    sql(folder, "UPDATE Cache SET mode = 3, filename = ?, value = NULL", "../precious.txt")
    with opened(folder) as cache:
        cache.record(a_request(), a_reply("new"))
        assert cache.find(KEY) == a_reply("new")
    assert precious.read_text() == "mine"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda disk: disk.put(b"k"), "key of type bytes"),
        (lambda disk: disk.put(("k", 1)), "key of type tuple"),
        (lambda disk: disk.get(b"\x80\x04N.", False), "key that is not text"),
        (lambda disk: disk.get("k", False), "key that is not text"),
        (lambda disk: disk.store(b"v", False), "value that is not text"),
        (lambda disk: disk.store({"v": 1}, False), "value that is not text"),
        (lambda disk: disk.store("v", True), "value that is not text"),
        (lambda disk: disk.fetch(1, None, "v", True), "value of mode 1"),
        (lambda disk: disk.fetch(4, None, b"\x80\x04N.", False), "value of mode 4"),
        (lambda disk: disk.filename("k", "v"), "value in a file"),
    ],
)
def test_the_disk_knows_text_and_nothing_else(tmp_path: Path, call: object, message: str) -> None:
    with pytest.raises(ForeignRowError, match=message):
        call(TextDisk(str(tmp_path)))  # type: ignore[operator]


def test_settings_that_diskcache_does_not_have_are_refused(tmp_path: Path) -> None:
    # It would set each of them as an attribute of the cache: `get` and all.
    folder = filled(tmp_path / "c")
    sql(folder, "INSERT INTO Settings VALUES ('get', 'x')")
    with pytest.raises(ForeignRowError) as caught:
        ReplyCache.open(folder, records=True)
    assert str(caught.value) == (
        f"{folder / 'cache.db'}: is not a reply cache of ragaudit (it holds 'get'). Choose another folder."
    )


def test_another_program_s_database_is_refused_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir()
    sql(folder, "CREATE TABLE contacts (name)")
    before = (folder / "cache.db").read_bytes()
    with pytest.raises(ForeignRowError, match="holds 'contacts'"):
        ReplyCache.open(folder, records=True)
    assert (folder / "cache.db").read_bytes() == before


# --- damage ---------------------------------------------------------------------------------------------------


def test_a_file_that_is_no_database_is_refused_with_what_to_do(tmp_path: Path) -> None:
    folder = filled(tmp_path / "c")
    (folder / "cache.db").write_bytes(b"not a database" * 1000)
    for records in (True, False):
        with pytest.raises(InputError) as caught, opened(folder, records=records) as cache:
            cache.find(KEY)
        assert str(caught.value) == (
            f"{folder}: the reply cache cannot be used (file is not a database). If it is damaged, move the folder "
            "away: what it held is then asked again."
        )


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.9])
def test_a_database_that_was_cut_short_never_gives_a_wrong_reply(tmp_path: Path, keep: float) -> None:
    folder = filled(tmp_path / "c", n=100)
    whole = (folder / "cache.db").read_bytes()
    (folder / "cache.db").write_bytes(whole[: int(len(whole) * keep)])
    for records in (False, True):
        try:
            with opened(folder, records=records) as cache:
                found = [(i, cache.find(request_key(a_request(f"text {i}")))) for i in range(1, 100)]
        except InputError as error:
            assert "cannot be used" in str(error)
        else:
            assert all(reply in (None, a_reply(f"reply {i}")) for i, reply in found)


def test_a_row_whose_text_changed_is_asked_again(tmp_path: Path) -> None:
    folder = filled(tmp_path / "c")
    sql(folder, "UPDATE Cache SET value = replace(value, 'yes', 'no!')")
    with opened(folder) as cache:
        assert cache.find(KEY) is None and cache.damaged == 1
        cache.record(a_request(), a_reply("again"))
        assert cache.find(KEY) == a_reply("again")


def test_a_row_that_was_moved_to_another_key_is_asked_again(tmp_path: Path) -> None:
    folder, other = filled(tmp_path / "c"), request_key(a_request("other"))
    sql(folder, "UPDATE Cache SET key = ?", other)
    with opened(folder) as cache:
        assert cache.find(other) is None and list(cache.entries()) == []


def test_a_row_with_a_valid_checksum_and_a_wrong_form_is_asked_again(tmp_path: Path) -> None:
    folder = filled(tmp_path / "c")
    for text in ("[]", "", "{}", json.dumps({"text": 7}), json.dumps({"text": "x", "refused": 7})):
        line = f"{text}\n{{}}"
        checksum = f"{zlib.crc32(line.encode(), zlib.crc32(KEY.encode())):08x}"
        sql(folder, "UPDATE Cache SET value = ?", checksum + line)
        with opened(folder) as cache:
            assert cache.find(KEY) is None


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/c: the reply cache cannot be opened \(Not a directory\)"):
        ReplyCache.open(tmp_path / "file" / "c", records=True)


# --- several processes ----------------------------------------------------------------------------------------


def _write_and_read(folder: Path, number: int, out: "multiprocessing.Queue[tuple[int, int]]") -> None:
    cache = ReplyCache.open(folder, records=True)
    seen = 0
    for i in range(50):
        cache.record(a_request(f"own {number} {i}"), a_reply(f"{number} {i}"))
        cache.record(a_request(f"common {i}"), a_reply(f"common {i}"))
        other = cache.find(request_key(a_request(f"own {(number + 1) % 4} {i}")))
        assert other is None or other.text == f"{(number + 1) % 4} {i}"
        seen += other is not None
    cache.release()
    out.put((number, seen))


def test_four_processes_share_a_cache(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    out: multiprocessing.Queue[tuple[int, int]] = context.Queue()
    processes = [context.Process(target=_write_and_read, args=(tmp_path / "c", n, out)) for n in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    assert [process.exitcode for process in processes] == [0] * 4
    assert sorted(out.get(timeout=5)[0] for _ in processes) == [0, 1, 2, 3]
    found = all_of(tmp_path / "c")
    assert len(found) == 4 * 50 + 50
    assert sorted(found) == sorted(
        [f"{n} {i}" for n in range(4) for i in range(50)] + [f"common {i}" for i in range(50)]
    )


def test_killing_a_process_in_mid_write_loses_at_most_that_call(tmp_path: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from tape_builders import a_reply, a_request
from ragaudit.judge.cache import ReplyCache
cache = ReplyCache.open(Path({str(tmp_path / "c")!r}), records=True)
for i in range(1_000_000):
    cache.record(a_request(f"text {{i}}"), a_reply(f"reply {{i}} " + "x" * 20_000))
    sys.stdout.write(f"{{i}}\\n")
    sys.stdout.flush()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(40)]
        process.kill()
        said += [int(line) for line in process.stdout if line.strip().isdigit()]
    with opened(tmp_path / "c") as cache:
        assert cache.damaged == 0
        for i in said:
            reply = cache.find(request_key(a_request(f"text {i}")))
            assert reply is not None and reply.text.startswith(f"reply {i} ")
        assert len(said) <= len(cache) <= len(said) + 1
