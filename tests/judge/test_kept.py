from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from judge_builders import Oracle
from tape_builders import FakeClient, a_reply

from ragaudit.audit.judging import Judge
from ragaudit.errors import TapeMissError
from ragaudit.judge import kept, protocol
from ragaudit.judge.cache import ReplyCache
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.kept import KeptJudgements
from ragaudit.judge.limits import Limits
from ragaudit.judge.progress import Tally
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.runner import run
from ragaudit.judge.tape import Tape, TapeMode
from ragaudit.model.judgement import Failure, Judgement, JudgeSample, Reply, Request, SampleChunk

PROMPTS = PromptSet.load()
HOW = HowToJudge(model="openai/m")
SAMPLE = JudgeSample(
    query_id="q1",
    query="When do free keys expire?",
    reference="Free keys expire after 30 days.",
    chunks=(SampleChunk(id="c1", text="Free keys expire after 30 days."),),
)
KNOWS = Oracle(
    reference=["Free keys expire after 30 days."],
    supports={"Free keys expire after 30 days.": {"Free keys expire after 30 days.": "30 days"}},
)
DENIES = Oracle(reference=["Free keys expire after 30 days."])

Answer = Callable[[Request], Reply | Failure]


def says(oracle: Oracle) -> Answer:
    return lambda request: a_reply(oracle(request))


class Judged:
    """Judges the sample, and notes how often a judgement was made from replies."""

    def __init__(self, folder: Path) -> None:
        self.cache = folder / "cache"
        self.cassette: Path | None = None
        self.made = 0
        self.client: FakeClient | None = None
        self.tally = Tally()

    def __call__(
        self,
        sample: JudgeSample = SAMPLE,
        *,
        mode: TapeMode = TapeMode.NEW,
        prompts: PromptSet = PROMPTS,
        how: HowToJudge = HOW,
        answer: Answer | None = None,
    ) -> Judgement:
        def judge(*given: Any) -> Generator[list[Request], list[Reply | Failure], Judgement]:
            self.made += 1
            return protocol.judge(*given)

        self.made, self.tally = 0, Tally()
        self.client = FakeClient(answer or says(KNOWS))
        with Tape.open(mode, cassette=self.cassette, cache=self.cache) as tape:
            (judgement,) = run(
                [sample],
                prompts=prompts,
                how=how,
                tape=tape,
                client=self.client,
                judge=judge,
                kept=KeptJudgements.of(tape, prompts, how),
                so_far=self.tally,
            )
        return judgement


@pytest.fixture
def judged(tmp_path: Path) -> Judged:
    return Judged(tmp_path)


def replies(folder: Path) -> list[str]:
    cache = ReplyCache.open(folder, records=False)
    try:
        return [key for key, _, _ in cache.entries()]
    finally:
        cache.release()


def test_a_rerun_reads_the_judgement_that_its_replies_would_give_again(judged: Judged, tmp_path: Path) -> None:
    first = judged()
    assert (judged.made, first.metrics["context_recall"]) == (1, 1.0)
    again = judged()
    assert (judged.made, judged.tally.now().from_tape) == (0, 2)
    with Tape.open(TapeMode.NONE, cassette=None, cache=tmp_path / "cache") as tape:
        (replayed,) = run([SAMPLE], prompts=PROMPTS, how=HOW, tape=tape, client=None)
    assert again == replayed
    assert all(call.from_tape and call.key for call in again.calls)


def test_it_is_read_where_nothing_may_be_written(judged: Judged) -> None:
    judged()
    judged(mode=TapeMode.NONE)
    assert judged.made == 0


def test_nothing_is_kept_where_nothing_may_be_written(judged: Judged) -> None:
    judged()
    other = SAMPLE.model_copy(update={"query_id": "the same question of another query"})
    for _ in range(2):
        judged(other, mode=TapeMode.NONE)
        assert judged.made == 1


@pytest.mark.parametrize(
    "change",
    [
        {"answerable": True},
        {"candidates": (SampleChunk(id="c2", text="Other words."),)},
        {"chunks": (SampleChunk(id="c9", text="Free keys expire after 30 days."),)},
        {"query_id": "q2"},
    ],
    ids=str,
)
def test_a_change_of_the_sample_makes_it_anew(judged: Judged, change: dict[str, Any]) -> None:
    """Also one that asks nothing new."""
    judged()
    judged(SAMPLE.model_copy(update=change))
    assert (judged.made, judged.client and judged.client.asked) == (1, [])


@pytest.mark.parametrize("change", [{"retries": 0}, {"p_cut": 0.5}, {"max_candidates": 3}], ids=str)
def test_a_change_of_a_setting_makes_it_anew_also_one_that_no_request_shows(
    judged: Judged, change: dict[str, Any]
) -> None:
    judged()
    judged(how=HOW.model_copy(update=change))
    assert (judged.made, judged.client and judged.client.asked) == (1, [])


def test_another_model_is_asked(judged: Judged) -> None:
    judged()
    judgement = judged(how=HOW.model_copy(update={"model": "openai/other"}), answer=says(DENIES))
    assert (judged.made, judgement.metrics["context_recall"]) == (1, 0.0)


def test_a_change_of_a_prompt_makes_it_anew(judged: Judged) -> None:
    judged()
    claim = replace(PROMPTS.prompts["claim"], text=PROMPTS.prompts["claim"].text + " ")
    judged(prompts=PromptSet({**PROMPTS.prompts, "claim": claim}))
    assert judged.made == 1


def test_a_change_of_the_code_makes_it_anew(judged: Judged, monkeypatch: pytest.MonkeyPatch) -> None:
    judged()
    monkeypatch.setattr(kept, "code", lambda: "another line")
    judged()
    assert judged.made == 1


def test_the_code_is_that_of_the_judge_and_its_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(*lines: str) -> str:
        for name, line in zip(("judge/kept.py", "judge/score.py", "model/judgement.py"), lines, strict=True):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(line)
        kept.code.cache_clear()
        return kept.code()

    monkeypatch.setattr(kept, "__file__", str(tmp_path / "judge" / "kept.py"))
    try:
        assert digest("a", "b", "c") == digest("a", "b", "c")
        assert len({digest("a", "b", "c"), digest("x", "b", "c"), digest("a", "x", "c"), digest("a", "b", "x")}) == 4
    finally:
        kept.code.cache_clear()


def test_another_reply_under_the_same_key_makes_it_anew(judged: Judged) -> None:
    judged()
    assert judged(mode=TapeMode.ALL, answer=says(DENIES)).metrics["context_recall"] == 0.0
    assert judged.made == 1
    assert judged().metrics["context_recall"] == 0.0
    assert judged.made == 1
    judged()
    assert judged.made == 0


def test_a_reply_that_is_gone_is_missed(judged: Judged) -> None:
    judged()
    cache = ReplyCache.open(judged.cache, records=True)
    cache._rows.delete(replies(judged.cache)[1])  # type: ignore[union-attr]
    cache.release()
    with pytest.raises(TapeMissError, match="no reply for"):
        judged(mode=TapeMode.NONE)


def test_all_asks_everything_again(judged: Judged) -> None:
    judged()
    judged(mode=TapeMode.ALL)
    assert (judged.made, len(judged.client.asked) if judged.client else 0) == (1, 2)


def test_a_judgement_with_a_failed_call_is_not_kept(judged: Judged) -> None:
    down = judged(answer=lambda request: Failure(kind="timeout", message="60 s"))
    assert (down.metrics["context_recall"], judged.made) == (None, 1)
    assert (judged().metrics["context_recall"], judged.made) == (1.0, 1)


def test_a_cassette_is_replayed_and_filled_as_ever(judged: Judged, tmp_path: Path) -> None:
    judged()
    judged.cassette = tmp_path / "judge.jsonl"
    for _ in range(2):
        judged()
        assert judged.made == 1
    assert len(judged.cassette.read_text().splitlines()) == 3


@pytest.mark.parametrize("text", ["", "{", '{"marks": []}', '{"marks": [], "judgement": {"query_id": "q1"}}'])
def test_a_row_that_is_no_judgement_makes_it_anew(judged: Judged, text: str) -> None:
    first = judged()
    cache = ReplyCache.open(judged.cache, records=True)
    (key,) = [key for key in cache._rows.iterkeys() if key.startswith("kept:")]  # type: ignore[union-attr]
    cache.keep(key.removeprefix("kept:"), text)
    cache.release()
    assert judged().metrics == first.metrics
    assert judged.made == 1


def test_a_text_that_no_file_can_hold_is_judged_each_time(judged: Judged) -> None:
    for _ in range(2):
        judged(SAMPLE.model_copy(update={"query": "half a pair: \ud83d"}))
        assert judged.made == 1


def test_it_is_no_reply_and_is_pruned_with_them(judged: Judged) -> None:
    judged()
    cache = ReplyCache.open(judged.cache, records=True)
    assert (len(cache), len(replies(judged.cache))) == (2, 2)
    assert cache.keep_only(replies(judged.cache)) == 0
    cache.release()
    judged()
    assert judged.made == 1


def test_an_audit_reads_them(judged: Judged, monkeypatch: pytest.MonkeyPatch) -> None:
    first = judged()
    monkeypatch.setattr(protocol, "judge", None)
    with Tape.open(TapeMode.NEW, cassette=None, cache=judged.cache) as tape:
        (read,) = Judge(HOW, PROMPTS, tape, Limits(), client=None, cuts={}).over([SAMPLE])
    assert read.metrics == first.metrics
