"""What the recorder promises: the rows of DATA.md, one a query, and no exception whatever it is handed."""

import asyncio
import datetime
import json
import logging
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from ragaudit.record import Query, Recorder, current
from ragaudit.record.recorder import sampled

NOON = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.UTC)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "traces.jsonl"


def recorder(path: Path, **settings: Any) -> Recorder:
    return Recorder(path, clock=lambda: NOON, **settings)


def rows(rec: Recorder, path: Path) -> list[dict[str, Any]]:
    rec.close()
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def test_a_query_becomes_one_row_with_the_names_of_the_bundle(path: Path) -> None:
    rec = recorder(path, index_revision="kb-1", embedding_model="bge-m3", k_final=2)
    with rec.query("how long?", "q1", user_acl=("team:kb",), filters={"tenant": "acme"}, session_id=7) as q:
        q.arm("dense", [("c1", 0.7), ("c2", 0.5)], limit=10, filter={"tenant": "acme"}, query_text="how long refund")
        q.arm("bm25", [], limit=10)
        q.arm("sparse", status="errored", error="timeout")
        q.fused(["c1", "c2"])
        q.after_filter({"dense": ["c1"]})
        q.after_threshold(["c1"])
        q.rerank_input(["c1", "c2"])
        q.reranked([{"id": "c2", "score": 0.9}])
        q.context([("c2", "Refunds take 14 days."), ("c1", "Keys expire.")], prompt="Use: Refunds take  14 days.")
        q.answer("14 days", finish_reason="stop", supported_by=["c2"])
        q.gold(["c2"], mode="any", reference="14 days", answerable=True)
        q.set(prompt_tokens=31, slices={"family": "refunds"}, query_rewrite="how long refund")
    assert rows(rec, path) == [
        {
            "query_id": "q1",
            "query_text": "how long?",
            "timestamp": "2026-11-30T12:00:00+00:00",
            "index_revision": "kb-1",
            "embedding_model": "bge-m3",
            "k_final": 2,
            "user_acl": ["team:kb"],
            "filters_applied": {"tenant": "acme"},
            "session_id": "7",
            "arms": {
                "dense": [{"id": "c1", "rank": 1, "score": 0.7}, {"id": "c2", "rank": 2, "score": 0.5}],
                "bm25": [],
            },
            "arm_status": {
                "dense": {
                    "status": "ran",
                    "query_text": "how long refund",
                    "filter": {"tenant": "acme"},
                    "limit": 10,
                    "returned": 2,
                },
                "bm25": {"status": "ran", "limit": 10, "returned": 0},
                "sparse": {"status": "errored", "error": "timeout"},
            },
            "fused": [{"id": "c1", "rank": 1}, {"id": "c2", "rank": 2}],
            "after_filter": {"dense": [{"id": "c1", "rank": 1}]},
            "after_threshold": [{"id": "c1", "rank": 1}],
            "rerank_input": [{"id": "c1", "rank": 1}, {"id": "c2", "rank": 2}],
            "after_rerank": [{"id": "c2", "rank": 1, "score": 0.9}],
            "final_context_ids": ["c2", "c1"],
            "context_texts": {"c2": "Refunds take 14 days.", "c1": "Keys expire."},
            "final_context_chars": 33,
            "answer": {"text": "14 days", "finish_reason": "stop", "supported_by": ["c2"]},
            "gold_mode": "any",
            "reference": "14 days",
            "answerable": True,
            "gold_ids": ["c2"],
            "prompt_tokens": 31,
            "slices": {"family": "refunds"},
            "query_rewrite": "how long refund",
            "prompt_ids": ["c2"],
            "provenance": {"prompt_ids": "derived"},
        }
    ]
    assert rec.stats().errors == {}


def test_a_query_without_an_id_gets_one_and_two_queries_get_two(path: Path) -> None:
    rec = recorder(path)
    for _ in range(2):
        with rec.query("q"):
            pass
    first, second = rows(rec, path)
    assert len(first["query_id"]) == 32
    assert first["query_id"] != second["query_id"]


def test_a_second_search_of_an_arm_is_kept_apart(path: Path) -> None:
    rec = recorder(path)
    with rec.query("q") as q:
        q.arm("dense", ["a"])
        q.arm("dense", ["b"], query_text="rewritten")
    (row,) = rows(rec, path)
    assert row["arms"] == {"dense": [{"id": "a", "rank": 1}], "dense#2": [{"id": "b", "rank": 1}]}
    assert row["arm_status"]["dense#2"] == {"status": "ran", "query_text": "rewritten", "returned": 1}


def test_a_list_that_is_given_twice_is_the_last_and_is_counted(path: Path) -> None:
    rec = recorder(path)
    with rec.query("q") as q:
        q.fused(["a"])
        q.fused(["b"])
    assert rows(rec, path)[0]["fused"] == [{"id": "b", "rank": 1}]
    assert rec.stats().errors == {"fused: given twice in one query: the last is kept": 1}


def test_without_a_context_the_last_list_cut_at_k_is_assumed(path: Path) -> None:
    rec = recorder(path, k_final=1)
    with rec.query("q") as q:
        q.arm("dense", ["a", "b"])
        q.fused(["b", "a"])
    (row,) = rows(rec, path)
    assert (row["final_context_ids"], row["provenance"]) == (["b"], {"final_context_ids": "assumed"})


def test_without_k_the_length_of_the_context_is_derived(path: Path) -> None:
    rec = recorder(path)
    with rec.query("q") as q:
        q.context(["a", "b"])
    (row,) = rows(rec, path)
    assert (row["k_final"], row["provenance"]) == (2, {"k_final": "derived"})


@pytest.mark.parametrize(
    ("texts", "prompt", "found"),
    [
        ([("a", "alpha"), ("b", "beta")], "beta and alpha", ["a", "b"]),
        ([("a", "alpha"), ("b", "beta")], [{"role": "user", "content": [{"type": "text", "text": "alpha"}]}], ["a"]),
        ([("a", "alpha"), ("b", "beta")], "neither is there", None),
        (["a", ("b", "beta")], "beta", None),
    ],
    ids=["all, in the order of packing", "one was cut off", "none is found: written otherwise", "one has no text"],
)
def test_packed_texts_are_looked_up_in_the_prompt(texts: Any, prompt: Any, found: Any, path: Path) -> None:
    rec = recorder(path)
    with rec.query("q") as q:
        q.context(texts, prompt=prompt)
    assert rows(rec, path)[0].get("prompt_ids") == found


def test_scores_are_those_of_the_moment_when_the_list_was_handed_over(path: Path) -> None:
    hits = [{"id": "a", "score": 0.9, "metadata": {"tags": ["x"]}}]
    rec = recorder(path)
    with rec.query("q") as q:
        q.arm("dense", hits)
        hits[0]["score"] = 0.03
        hits[0]["metadata"]["tags"].append("later")
    assert rows(rec, path)[0]["arms"]["dense"] == [{"id": "a", "rank": 1, "score": 0.9, "metadata": {"tags": ["x"]}}]


def test_an_exception_in_the_block_goes_on_and_what_was_seen_is_kept(path: Path) -> None:
    rec = recorder(path)
    with pytest.raises(ConnectionError, match="the store"), rec.query("q", "q1") as q:
        q.arm("dense", ["a"])
        raise ConnectionError("the store")
    (row,) = rows(rec, path)
    assert (row["application_error"], row["arms"]) == ("ConnectionError", {"dense": [{"id": "a", "rank": 1}]})
    assert current() is None


def test_the_current_query_is_the_innermost_open_one(path: Path) -> None:
    rec = recorder(path)
    assert current() is None
    with rec.query("outer") as outer:
        with rec.query("inner") as inner:
            assert current() is inner
        assert current() is outer
    assert [row["query_text"] for row in rows(rec, path)] == ["inner", "outer"]


def test_threads_that_copy_the_context_record_into_the_query(path: Path) -> None:
    def search(name: str) -> None:
        query = current()
        assert query is not None
        query.arm(name, [name])

    rec = recorder(path)
    with rec.query("q"):
        threads = [threading.Thread(target=copy_context().run, args=(search, name)) for name in ("dense", "bm25")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(rows(rec, path)[0]["arms"]) == {"dense", "bm25"}


def test_tasks_of_one_loop_record_into_their_own_queries(path: Path) -> None:
    async def search() -> None:
        query = current()
        assert query is not None
        await asyncio.sleep(0)
        query.arm("dense", [query.query_id])

    async def ask(rec: Recorder, name: str) -> None:
        with rec.query("q", name):
            await asyncio.gather(search(), asyncio.sleep(0))

    async def both(rec: Recorder) -> None:
        await asyncio.gather(ask(rec, "a"), ask(rec, "b"))

    rec = recorder(path)
    asyncio.run(both(rec))
    found = {row["query_id"]: row["arms"]["dense"][0]["id"] for row in rows(rec, path)}
    assert found == {"a": "a", "b": "b"}


def test_a_query_that_is_left_in_another_context_is_written_all_the_same(path: Path) -> None:
    def stream() -> Iterator[str]:
        with rec.query("q", "q1") as q:
            yield "first token"
            q.answer("all tokens")

    rec = recorder(path)
    tokens = stream()
    copy_context().run(next, tokens)
    assert list(copy_context().run(list, tokens)) == []
    assert rows(rec, path)[0]["answer"] == {"text": "all tokens"}


def test_what_comes_after_the_end_of_a_query_is_ignored(path: Path) -> None:
    rec = recorder(path)
    with rec.query("q") as q:
        pass
    q.arm("dense", ["a"])
    q.close()
    assert len(rows(rec, path)) == 1
    assert q.query_id is None


def test_the_share_that_is_sampled_depends_on_the_id_only(path: Path) -> None:
    ids = [f"q{n}" for n in range(1000)]
    rec = recorder(path, sample=0.3)
    for name in ids:
        with rec.query("q", name) as q:
            q.arm("dense", ["a"])
    kept = [row["query_id"] for row in rows(rec, path)]
    assert kept == [name for name in ids if sampled(name, 0.3)]
    assert len(kept) == 299
    assert rec.stats().unsampled == 701
    assert set(kept) < {name for name in ids if sampled(name, 0.5)}


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1.0, 100)])
def test_none_and_all_are_shares_too(share: float, expected: int, path: Path) -> None:
    rec = recorder(path, sample=share)
    for _ in range(100):
        with rec.query("q"):
            pass
    assert len(rows(rec, path)) == expected


class Hostile:
    """Fails at whatever is done with it."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError("secret of the user")

    def __str__(self) -> str:
        raise RuntimeError("secret of the user")

    def __iter__(self) -> Any:
        raise RuntimeError("secret of the user")


VALUES: dict[str, Any] = {
    **{"hostile": Hostile(), "object": object(), "number": 3.5, "bytes": b"x"},
    **{"list": [None], "table": {"a": 1}, "nested": [[[]]], "text": "x"},
}

METHODS: list[Callable[[Query, Any], None]] = [
    lambda q, x: q.arm("dense", x),
    lambda q, x: q.arm(x, ["a"], limit=x, filter=x),
    lambda q, x: q.fused(x),
    lambda q, x: q.after_filter(x),
    lambda q, x: q.after_threshold({"dense": x}),
    lambda q, x: q.rerank_input([x]),
    lambda q, x: q.reranked((x, 1.0)),
    lambda q, x: q.context(x, prompt=x),
    lambda q, x: q.answer(x, finish_reason=x, supported_by=x),
    lambda q, x: q.gold(x, groups=x),
    lambda q, x: q.set(slices=x, user_acl=x, unknown=x),
]


@pytest.mark.parametrize("method", METHODS, ids=range(len(METHODS)))
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_no_value_makes_recording_raise_or_spoils_the_file(
    method: Callable[[Query, Any], None], value: Any, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rec = recorder(path)
    with rec.query("q", "q1") as q:
        method(q, value)
    with rec.query("q", "q2"):
        pass
    ids = [row["query_id"] for row in rows(rec, path)]
    assert "q2" in ids
    assert "secret of the user" not in caplog.text


@pytest.mark.parametrize("value", [VALUES["hostile"], object(), b"x"], ids=["hostile", "object", "bytes"])
def test_no_beginning_raises(value: Any, path: Path) -> None:
    rec = recorder(path)
    with rec.query(value, value, user_acl=value, filters=value, session_id=value, k_final=value) as q:
        q.arm("dense", ["a"])
    rec.feedback(session_id=value, chunk_ids=value, rating=value)
    assert rec.stats().errors != {}


def test_a_list_that_cannot_be_read_is_absent_and_not_empty(path: Path) -> None:
    rec = recorder(path)
    with rec.query("q") as q:
        q.arm("dense", [{"score": 1}])
        q.fused(object())
    (row,) = rows(rec, path)
    assert "fused" not in row
    assert "arms" not in row
    assert rec.stats().errors == {"arm dense: a hit without id and text": 1, "fused: is no list of hits": 1}


def test_each_problem_is_logged_once_and_counted(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rec = recorder(path)
    with caplog.at_level(logging.WARNING, "ragaudit.record"):
        for _ in range(3):
            with rec.query("q") as q:
                q.fused(7)
    rec.close()
    assert rec.stats().errors == {"fused: is no list of hits": 3}
    assert [r.getMessage() for r in caplog.records] == [
        "fused: is no list of hits. The application goes on; further cases are only counted."
    ]


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"text": "hashed"}, "text: is no mode. Use one of full, hash, none"),
        ({"sample": 30}, "sample: is no share. Use 0 to 1"),
        ({"max_queue": 0}, "max_queue: is no number of queries. Use 1 or more"),
        ({"redact": "emails"}, "redact: cannot be called. Pass a function from text to text"),
        ({"rotate_bytes": -1}, "rotate_bytes: is no size"),
        ({"k_final": "5"}, "k_final: is no number of chunks"),
    ],
)
def test_a_wrong_setting_is_said_and_nothing_is_recorded(
    setting: dict[str, Any], problem: str, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rec = recorder(path, **setting)
    with rec.query("secret") as q:
        q.arm("dense", ["a"])
    rec.feedback(session_id="s", rating=1)
    rec.close()
    assert list(path.parent.iterdir()) == []
    assert f"Recorder: {problem}. Nothing is recorded." in caplog.text


def test_feedback_goes_beside_the_traces(path: Path) -> None:
    rec = recorder(path)
    rec.feedback(session_id=7, chunk_ids=["c1"], rating=-1, implicit="asked again")
    rec.close()
    (line,) = (path.parent / "feedback.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "session_id": "7",
        "chunk_ids": ["c1"],
        "rating": -1,
        "implicit": "asked again",
        "ts": "2026-11-30T12:00:00+00:00",
    }


def test_hostile_text_stays_one_line_and_reads_back_as_it_was(path: Path) -> None:
    text = 'a\nb\u2028c\x1b[31m\u202ed\x00 "\ud800'
    rec = recorder(path)
    with rec.query(text, "q\n1") as q:
        q.arm("den\nse", [("c\n1", 1.0, text)])
        q.answer(text)
    rec.close()
    raw = path.read_bytes()
    assert raw.count(b"\n") == 1
    assert b"\x1b" not in raw
    row = json.loads(raw)
    assert (row["query_text"], row["arms"]["den\nse"][0]["text"], row["answer"]["text"]) == (text, text, text)
