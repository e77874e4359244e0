import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tape_builders import FakeClient, a_reply, a_request, some_samples, texts, toy

from ragaudit.errors import JudgeError, TapeMissError
from ragaudit.judge import live
from ragaudit.judge.limits import Limits
from ragaudit.judge.progress import JudgeProgress
from ragaudit.judge.recording import request_key
from ragaudit.judge.runner import run
from ragaudit.judge.tape import Tape, TapeMode
from ragaudit.model.judgement import Failure, JudgeCall, Judgement, JudgeSample, Reply, Request


def a_tape(folder: Path, mode: TapeMode = TapeMode.NEW) -> Tape:
    return Tape.open(mode, cassette=None, cache=folder / "cache")


def go(tape: Tape, client: Any, samples: Any = 3, **how: Any) -> Iterator[Judgement]:
    wanted = some_samples(samples) if isinstance(samples, int) else samples
    given = {"judge": toy(), "limits": Limits()} | how
    return run(wanted, prompts=None, how=None, tape=tape, client=client, **given)  # type: ignore[arg-type]


class Stuck(FakeClient):
    """Never answers what holds a word."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word
        self.stuck = threading.Event()

    async def work(self, request: Request) -> None:
        if self.word in request.messages[-1]["content"]:
            self.stuck.set()
            await asyncio.sleep(3600)


# --- order, streaming, concurrency ----------------------------------------------------------------------------


def test_judgements_come_in_the_order_of_the_samples(tmp_path: Path) -> None:
    class LastFirst(FakeClient):
        async def work(self, request: Request) -> None:
            number = int(request.messages[-1]["content"].split()[1][1:])
            await asyncio.sleep(0.002 * (20 - number))

    with a_tape(tmp_path) as tape:
        judged = list(go(tape, LastFirst(), 20))
    assert [judgement.query_id for judgement in judged] == [f"q{i}" for i in range(20)]
    assert texts(judged[:1]) == ["re: first q0", "re: second q0 re: first q0"]


def test_steps_of_a_query_follow_each_other_and_requests_of_a_step_go_together(tmp_path: Path) -> None:
    client = FakeClient()
    with a_tape(tmp_path) as tape:
        (judgement,) = go(tape, client, 1, judge=toy(("a {id}", "b {id}"), ("c {said}",)))
    assert client.asked == ["a q0", "b q0", "c re: a q0/re: b q0"] and client.most_in_flight == 2
    assert texts([judgement])[-1] == "re: c re: a q0/re: b q0"


def test_no_more_calls_than_allowed_are_in_flight(tmp_path: Path) -> None:
    client = FakeClient()
    with a_tape(tmp_path) as tape:
        assert len(list(go(tape, client, 30, limits=Limits(concurrency=5)))) == 30
    assert client.most_in_flight == 5 and len(client.asked) == 60


def test_samples_are_read_a_bounded_number_ahead(tmp_path: Path) -> None:
    read: list[str] = []

    def endless() -> Iterator[JudgeSample]:
        i = 0
        while True:
            read.append(f"q{i}")
            yield JudgeSample(query_id=f"q{i}", query="")
            i += 1

    with a_tape(tmp_path) as tape:
        judged = list(islice(go(tape, FakeClient(), endless(), limits=Limits(concurrency=2)), 40))
    assert len(judged) == 40 and len(read) <= 40 + 8 * 2
    again: list[str] = read.copy()
    read.clear()
    with a_tape(tmp_path, TapeMode.NONE) as tape:
        list(islice(go(tape, None, endless()), 10))
    assert len(read) == 10, "what is on the tape is not read ahead"
    assert len(again) < 60


def test_earlier_queries_finish_first(tmp_path: Path) -> None:
    client = FakeClient()
    with a_tape(tmp_path) as tape:
        list(go(tape, client, 10, limits=Limits(concurrency=1)))
    assert client.asked.index("second q0 re: first q0") <= 2


def test_it_runs_inside_an_event_loop_too(tmp_path: Path) -> None:
    async def inside() -> list[Judgement]:
        with a_tape(tmp_path) as tape:
            return list(go(tape, FakeClient()))

    assert len(asyncio.run(inside())) == 3


def test_nothing_happens_before_the_first_judgement_is_asked_for(tmp_path: Path) -> None:
    client = FakeClient()
    with a_tape(tmp_path) as tape:
        go(tape, client)
    assert client.asked == []


# --- the tape -------------------------------------------------------------------------------------------------


def test_a_second_run_asks_nothing_and_says_the_same(tmp_path: Path) -> None:
    with a_tape(tmp_path) as tape:
        first = list(go(tape, FakeClient()))
    again = FakeClient()
    with a_tape(tmp_path) as tape:
        second = list(go(tape, again))
    assert again.asked == [] and texts(first) == texts(second)
    assert [call.from_tape for judgement in first for call in judgement.calls] == [False] * 6
    assert [call.from_tape for judgement in second for call in judgement.calls] == [True] * 6


def test_every_reply_is_on_the_tape_before_it_is_used(tmp_path: Path) -> None:
    def judge(sample: JudgeSample, prompts: object, how: object) -> Any:
        yield [a_request("only")]
        with a_tape(tmp_path, TapeMode.NONE) as other:
            assert other.find(a_request("only")) == a_reply("re: only")
        return Judgement(query_id=sample.query_id, calls=(JudgeCall(purpose="", prompt=""),))

    with a_tape(tmp_path) as tape:
        assert len(list(go(tape, FakeClient(), 1, judge=judge))) == 1


def test_calls_carry_the_key_under_which_the_tape_keeps_their_reply(tmp_path: Path) -> None:
    keys = [request_key(a_request("one")), request_key(a_request("two"))]
    for mode in (TapeMode.NEW, TapeMode.NONE):
        with a_tape(tmp_path, mode) as tape:
            (judged,) = go(tape, FakeClient(), 1, judge=toy(("one", "two")))
        assert [(call.key, call.from_tape) for call in judged.calls] == [(key, mode == "none") for key in keys]


def test_the_same_request_in_flight_is_asked_once(tmp_path: Path) -> None:
    client, seen = FakeClient(), []
    with a_tape(tmp_path) as tape:
        judged = list(
            go(
                tape,
                client,
                5,
                judge=toy(
                    ("common", "common"),
                ),
                progress=seen.append,
            )
        )
    assert client.asked == ["common"] and texts(judged) == ["re: common"] * 10
    last: JudgeProgress = seen[-1]
    assert (last.replies, last.shared + last.from_tape, last.requests) == (1, 9, 10)
    assert sum(not call.from_tape for judgement in judged for call in judgement.calls) == 1


def test_a_reply_that_was_cut_off_is_not_asked_for_again(tmp_path: Path) -> None:
    client = FakeClient(lambda request: a_reply("half", finish_reason="length"))
    for _ in range(2):
        with a_tape(tmp_path) as tape:
            assert texts(go(tape, client, 1, judge=toy(("a",)))) == ["half"]
    assert client.asked == ["a"]


def test_replicates_in_mode_all_ask_again_and_only_once(tmp_path: Path) -> None:
    with a_tape(tmp_path) as tape:
        list(go(tape, FakeClient()))
    client = FakeClient()
    with a_tape(tmp_path, TapeMode.ALL) as tape:
        list(go(tape, client))
        list(go(tape, client))
    assert len(client.asked) == 6


def test_a_miss_names_the_query(tmp_path: Path) -> None:
    with a_tape(tmp_path, TapeMode.NONE) as tape, pytest.raises(TapeMissError, match=r'matrix@1 on "q0" "question 0"'):
        list(go(tape, FakeClient()))


def test_a_miss_without_a_model_says_what_to_set(tmp_path: Path) -> None:
    with a_tape(tmp_path) as tape, pytest.raises(JudgeError) as caught:
        list(go(tape, None))
    assert str(caught.value) == 'judge: "q0" "question 0" has to be asked about, and no model is set. Set judge.model.'


def test_a_run_that_was_interrupted_goes_on_where_it_stopped(tmp_path: Path) -> None:
    client = FakeClient()
    with a_tape(tmp_path) as tape:
        assert len(list(islice(go(tape, client, 10, limits=Limits(concurrency=2)), 4))) == 4
    done = len(client.asked)
    again = FakeClient()
    with a_tape(tmp_path) as tape:
        assert len(list(go(tape, again, 10))) == 10
    assert len(again.asked) <= 20 - 8 and len(set(client.asked) | set(again.asked)) == 20
    assert not set(client.asked[: done - 2]) & set(again.asked), "only what was in flight may be asked twice"


# --- stopping -------------------------------------------------------------------------------------------------


def test_stop_keeps_what_is_done_and_reads_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "GRACE_SECONDS", 0.05)

    class StuckFromThenOn(Stuck):
        """However late the stop is heard, four calls are in flight and the rest waits."""

        async def work(self, request: Request) -> None:
            await super().work(request)
            if self.stuck.is_set():
                await asyncio.sleep(3600)

    client = StuckFromThenOn("first q2")
    seen: list[JudgeProgress] = []
    with a_tape(tmp_path) as tape:
        judged = list(
            go(tape, client, 500, limits=Limits(concurrency=4), stop=client.stuck.is_set, progress=seen.append)
        )
    assert 3 <= len(judged) <= 500 - 100
    assert [judgement.query_id for judgement in judged] == [f"q{i}" for i in range(len(judged))]
    assert texts(judged[2:3])[0] == "cancelled: stopped in flight"
    assert texts(judged[-1:])[0] == "cancelled: not sent: the run was stopped"
    last = seen[-1]
    assert last.requests == 2 * len(judged) and last.in_flight == 0 and last.samples == len(judged)
    assert last.replies + last.failed["cancelled"] == last.requests
    assert client.closed == 1


def test_what_is_in_flight_at_a_stop_may_still_end(tmp_path: Path) -> None:
    begun = threading.Event()

    class Slow(FakeClient):
        async def work(self, request: Request) -> None:
            begun.set()
            await asyncio.sleep(0.3)

    with a_tape(tmp_path) as tape:
        (judgement,) = go(tape, Slow(), 1, stop=begun.is_set)
    assert texts([judgement]) == ["re: first q0", "cancelled: not sent: the run was stopped"]


def test_an_interrupt_ends_at_once_and_what_was_recorded_stays(tmp_path: Path) -> None:
    client = Stuck("q2")

    def interrupt(progress: JudgeProgress) -> None:
        if client.stuck.is_set() and progress.samples == 2:
            raise KeyboardInterrupt

    with a_tape(tmp_path) as tape, pytest.raises(KeyboardInterrupt):
        list(go(tape, client, 3, progress=interrupt))
    assert client.closed == 1
    again = FakeClient()
    with a_tape(tmp_path) as tape:
        list(go(tape, again, 3))
    assert again.asked == ["first q2", "second q2 re: first q2"]


def test_a_consumer_that_goes_away_leaves_no_thread(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with a_tape(tmp_path) as tape:
        judged = go(tape, Stuck("q3"), 10)
        next(judged)
        judged.close()  # type: ignore[attr-defined]
    assert set(threading.enumerate()) <= before, "threads of an earlier test may end meanwhile; none may be new"


def test_the_overall_time_limit_ends_a_run(tmp_path: Path) -> None:
    started = time.monotonic()
    bounds = Limits(concurrency=1, overall_timeout=0.3)
    with a_tape(tmp_path) as tape:
        judged = list(go(tape, Stuck("q1"), 4, limits=bounds, judge=toy(("ask {id}",))))
    assert time.monotonic() - started < 5
    assert texts(judged) == [
        "re: ask q0",
        "timeout: in flight when overall_timeout of 0.3 s was over",
        "budget: not sent: overall_timeout of 0.3 s is over",
        "budget: not sent: overall_timeout of 0.3 s is over",
    ]


# --- pausing --------------------------------------------------------------------------------------------------


def test_a_pause_starts_no_call_and_reads_no_sample_while_what_is_in_flight_ends(tmp_path: Path) -> None:
    class Held(FakeClient):
        async def work(self, request: Request) -> None:
            while not let_go.is_set():
                await asyncio.sleep(0.001)

    client, let_go, seen = Held(), threading.Event(), []

    def pause() -> bool:
        """From the first call on, until a good while after its reply."""
        if client.asked:
            let_go.set()
        answered = [progress for progress in seen if progress.replies == 1]
        return bool(client.asked) and len(answered) < 4

    read: list[str] = []

    def samples() -> Iterator[JudgeSample]:
        for sample in some_samples(3):
            read.append(sample.query_id)
            yield sample

    with a_tape(tmp_path) as tape:
        judged = list(go(tape, client, samples(), limits=Limits(concurrency=1), pause=pause, progress=seen.append))
    assert [judgement.query_id for judgement in judged] == ["q0", "q1", "q2"]
    assert (seen[-1].replies, seen[-1].failed) == (6, {})
    while_paused = [progress for progress in seen if progress.replies == 1][:4]
    assert {(progress.in_flight, progress.samples) for progress in while_paused} == {(0, 0)}


def test_a_pause_before_anything_is_asked_reads_nothing_and_a_stop_ends_it(tmp_path: Path) -> None:
    seen: list[JudgeProgress] = []
    client = FakeClient()
    with a_tape(tmp_path) as tape:
        run_over = go(tape, client, 3, pause=lambda: True, stop=lambda: len(seen) >= 2, progress=seen.append)
        assert list(run_over) == []
    assert (client.asked, len(seen)) == ([], 2)


# --- budget ---------------------------------------------------------------------------------------------------


def dear(usd: float | None) -> FakeClient:
    return FakeClient(lambda request: a_reply(f"re: {request.messages[-1]['content']}", usd=usd))


def test_max_cost_is_not_exceeded_and_the_rest_is_counted(tmp_path: Path) -> None:
    client, seen = dear(0.1), []
    with a_tape(tmp_path) as tape:
        judged = list(go(tape, client, 20, limits=Limits(max_cost=0.75), progress=seen.append))
    assert len(judged) == 20 and len(client.asked) == 7
    last: JudgeProgress = seen[-1]
    assert (last.replies, last.failed, last.requests) == (7, {"budget": 33}, 40)
    assert last.usd == pytest.approx(0.7)
    assert texts(judged)[-1] == "budget: not sent: $0.7000 of max_cost $0.75 is spent"


def test_a_spent_budget_still_replays_what_is_on_the_tape(tmp_path: Path) -> None:
    with a_tape(tmp_path) as tape:
        list(go(tape, FakeClient(), some_samples(6)[4:]))
    client = dear(0.1)
    with a_tape(tmp_path) as tape:
        judged = list(go(tape, client, 6, limits=Limits(max_cost=0.0)))
    assert client.asked == []
    assert [judgement.calls[0].from_tape for judgement in judged] == [False] * 4 + [True] * 2


def test_a_first_call_tells_what_one_costs_before_others_start(tmp_path: Path) -> None:
    client = dear(0.5)
    with a_tape(tmp_path) as tape:
        list(go(tape, client, 20, limits=Limits(max_cost=1.2)))
    assert len(client.asked) == 2 and client.most_in_flight == 1


def test_max_cost_with_an_unknown_price_stops_the_run(tmp_path: Path) -> None:
    client = dear(None)
    with (
        a_tape(tmp_path) as tape,
        pytest.raises(JudgeError, match=r"judge.max_cost: the price of openai/m is not known"),
    ):
        list(go(tape, client, 20, limits=Limits(max_cost=1.0)))
    assert len(client.asked) == 1


# --- failures -------------------------------------------------------------------------------------------------


def failing(kind: str, but: str | None = None) -> FakeClient:
    def answer(request: Request) -> Reply | Failure:
        text = request.messages[-1]["content"]
        return a_reply(text) if but is not None and but in text else Failure(kind=kind, message="said no")

    return FakeClient(answer)


def test_a_failure_is_a_value_that_is_not_recorded(tmp_path: Path) -> None:
    client, seen = failing("server", but="q1"), []
    with a_tape(tmp_path) as tape:
        judged = list(go(tape, client, 2, progress=seen.append))
        assert tape.find(a_request("first q0")) is None
    assert texts(judged) == ["server: said no", "server: said no", "first q1", "second q1 first q1"]
    assert (seen[-1].replies, seen[-1].failed) == (2, {"server": 2})


def test_a_refused_key_stops_the_run_at_once(tmp_path: Path) -> None:
    client = failing("auth")
    with a_tape(tmp_path) as tape, pytest.raises(JudgeError) as caught:
        list(go(tape, client, 1000, limits=Limits(concurrency=4)))
    assert str(caught.value) == (
        "judge: the model refuses the requests: said no. Check the API key in the environment."
    )
    assert len(client.asked) <= 4


def test_three_bad_requests_and_nothing_else_stop_the_run(tmp_path: Path) -> None:
    client = failing("bad_request")
    with a_tape(tmp_path) as tape, pytest.raises(JudgeError, match=r"said no. Check judge.model and its settings\."):
        list(go(tape, client, 1000, limits=Limits(concurrency=1)))
    assert 3 <= len(client.asked) <= 4


def test_a_run_of_one_query_whose_request_is_bad_fails_too(tmp_path: Path) -> None:
    with a_tape(tmp_path) as tape, pytest.raises(JudgeError, match="said no"):
        list(go(tape, failing("bad_request"), 1, judge=toy(("a",))))


def test_some_bad_requests_among_good_ones_do_not_stop_the_run(tmp_path: Path) -> None:
    with a_tape(tmp_path) as tape:
        judged = list(go(tape, failing("bad_request", but="q0"), 8, limits=Limits(concurrency=1)))
    assert len(judged) == 8


def test_a_few_bad_requests_after_a_replay_do_not_stop_the_run(tmp_path: Path) -> None:
    with a_tape(tmp_path) as tape:
        list(go(tape, FakeClient(), 2))
    with a_tape(tmp_path) as tape:
        assert len(list(go(tape, failing("bad_request"), 8))) == 8


def test_a_key_that_stops_working_is_not_tried_for_ever(tmp_path: Path) -> None:
    client = failing("auth", but="q0")
    with a_tape(tmp_path) as tape:
        judged = list(go(tape, client, 50, limits=Limits(concurrency=1)))
    assert len(client.asked) <= 6
    assert texts(judged)[-1] == "auth: not sent: said no"


def test_an_error_of_the_client_ends_the_run_with_that_error(tmp_path: Path) -> None:
    class Broken(FakeClient):
        async def work(self, request: Request) -> None:
            raise JudgeError("judge: broken. Mend it.")

    before = set(threading.enumerate())
    with a_tape(tmp_path) as tape, pytest.raises(JudgeError, match="broken"):
        list(go(tape, Broken()))
    assert set(threading.enumerate()) <= before, "threads of an earlier test may end meanwhile; none may be new"


def test_counts_add_up_whatever_happens(tmp_path: Path) -> None:
    kinds = ["server", "timeout", "rate_limit", "connection"]

    def answer(request: Request) -> Reply | Failure:
        number = int(request.messages[-1]["content"].split()[1][1:])
        if number % 3:
            return a_reply(request.messages[-1]["content"], usd=0.01)
        return Failure(kind=kinds[number % len(kinds)], message="x")

    seen: list[JudgeProgress] = []
    with a_tape(tmp_path) as tape:
        list(go(tape, FakeClient(), 9))
        judged = list(go(tape, FakeClient(answer), 60, progress=seen.append))
    last = seen[-1]
    assert len(judged) == last.samples == 60
    assert last.requests == 120 == sum(len(judgement.calls) for judgement in judged)
    assert last.from_tape == 18 == sum(call.from_tape for judgement in judged for call in judgement.calls)
    assert sum(last.failed.values()) == 34 == sum(call.error is not None for j in judged for call in j.calls)
    assert last.replies == 68 and last.usd == pytest.approx(0.68) and last.unpriced == 0
    assert (last.input_tokens, last.output_tokens, last.in_flight) == (680, 136, 0)
    assert [progress.samples for progress in seen] == sorted(progress.samples for progress in seen)


# --- what a replay loads --------------------------------------------------------------------------------------


def test_a_replay_imports_no_provider_no_http_client_and_no_event_loop(tmp_path: Path) -> None:
    with Tape.open(TapeMode.NEW, cassette=tmp_path / "c.jsonl", cache=tmp_path / "cache") as tape:
        list(go(tape, FakeClient()))
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from tape_builders import some_samples, toy
from ragaudit.config import JudgeSettings
from ragaudit.judge.runner import run
from ragaudit.judge.settings import how_to_judge, limits, litellm_client, open_tape
settings = JudgeSettings(model="openai/m", cassette="c.jsonl", cache={str(tmp_path / "cache")!r})
with open_tape(settings, "none", Path({str(tmp_path)!r})) as tape:
    judged = list(run(some_samples(3), prompts=None, how=how_to_judge(settings), tape=tape,
                      client=litellm_client(settings), limits=limits(settings), judge=toy()))
assert len(judged) == 3 and all(call.from_tape for each in judged for call in each.calls)
heavy = ["litellm", "openai", "httpx", "aiohttp", "requests", "urllib3", "tiktoken", "numpy", "ragaudit.judge.live"]
print([name for name in heavy if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
