"""Calls, tokens, wall time and CPU of the judge, against a model on 127.0.0.1 that takes 0.2 s for every reply.

The yardstick of a sample: 8 chunks of 300 tokens, question 20, reference 80 (4 claims), answer 120 (6 claims); context
recall, context precision and faithfulness. With ragas in the same environment its row stands beside ours.
"""

import argparse
import asyncio
import importlib.util
import json
import multiprocessing
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import print_table

if TYPE_CHECKING:
    from ragaudit.model.judgement import JudgeSample

WORDS = (
    *("amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "harbor"),
    *("island", "jetty", "kelp", "lagoon", "meadow", "north", "ocean", "prairie"),
)
N_REFERENCE, N_ANSWER, N_CHUNKS = 4, 6, 8
TARGETS = {"calls": 2.0, "tokens": 7_000, "ratio": 1.3, "cached": 0.2}


@dataclass(frozen=True)
class Row:
    """What one way of judging took."""

    name: str
    calls: float
    """A sample."""
    tokens: float
    """Input tokens a sample, as o200k_base counts them."""
    seconds: float
    ideal: float
    """Seconds: calls x latency / concurrency."""


# --- the samples ----------------------------------------------------------------------------------------------


def words(n: int, seed: int) -> str:
    """Text of about `n` tokens, one to a word, of its own for each seed."""
    picked = [WORDS[(seed * 7 + i * (3 + seed % 5)) % len(WORDS)] for i in range(max(1, n - 3))]
    return f"Item {seed} " + " ".join(picked) + "."


def sentences(n: int, tokens: int, seed: int) -> list[str]:
    """`n` sentences of `tokens` tokens in all."""
    return [words(tokens // n, seed * 10 + i) for i in range(n)]


@dataclass(frozen=True)
class Texts:
    """One query of the yardstick."""

    question: str
    reference: list[str]
    answer: list[str]
    chunks: list[str]


def yardstick(n: int) -> list[Texts]:
    return [
        Texts(
            words(20, 1000 + i),
            sentences(N_REFERENCE, 80, 2000 + i),
            sentences(N_ANSWER, 120, 5000 + i),
            [words(300, 100_000 + 10 * i + k) for k in range(N_CHUNKS)],
        )
        for i in range(n)
    ]


# --- the model: a process of its own, so that it costs us nothing ---------------------------------------------


def serve(latency: float, port: Connection) -> None:
    """Answer until the process is ended; sends its port, then for each line it is sent the counts so far."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
                body = json.loads(await reader.readexactly(int(size[1]) if size else 0))
                asked.append([message["content"] for message in body["messages"]])
                await asyncio.sleep(latency)
                text = json.dumps(completion(body)).encode()
                lead = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
                writer.write(lead.encode() + text)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=2**22)
        port.send(server.sockets[0].getsockname()[1])
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, port.recv):
            port.send(list(asked))
            asked.clear()

    asked: list[list[str]] = []
    asyncio.run(main())


def completion(body: dict[str, Any]) -> dict[str, Any]:
    text = reply_to(body)
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 1, "completion_tokens": len(text) // 4, "total_tokens": 1 + len(text) // 4}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "mock", "choices": [choice], "usage": usage}


def reply_to(body: dict[str, Any]) -> str:
    """A reply in the form that the asking prompt wants: ours by the schema's name, those of ragas by their words."""
    prompt = ((body.get("response_format") or {}).get("json_schema") or {}).get("name")
    content = "\n".join(message["content"] for message in body["messages"])
    if prompt == "claims":
        return json.dumps({side: claims_in(content, side) for side in ("reference", "answer")} | {"abstained": False})
    if prompt == "matrix":
        ids = re.findall(r"^([ra]\d+): ", content, re.MULTILINE)
        rows = [
            {"id": each, "supported": [{"text": f"c{1 + i % N_CHUNKS}", "quote": "Item"}], "contradicted": []}
            for i, each in enumerate(ids)
        ]
        return json.dumps({"verdicts": rows})
    # ragas describes its output in the prompt; the last of its forms that is named is the one wanted
    if "classifications" in content:
        one = {"statement": "a statement of average length", "reason": "it is in the context", "attributed": 1}
        return json.dumps({"classifications": [one] * N_REFERENCE})
    if "NLIStatementOutput" in content or "faithfulness of a series" in content:
        one = {"statement": "a statement of average length", "reason": "it is in the context", "verdict": 1}
        return json.dumps({"statements": [one] * N_ANSWER})
    if "reak down each sentence" in content:
        return json.dumps({"statements": ["a statement of average length, with its pronouns resolved"] * N_ANSWER})
    return json.dumps({"reason": "useful", "verdict": 1})


def claims_in(content: str, side: str) -> list[dict[str, str]]:
    found = re.search(rf"<{side}:(\w+)>\n(.*?)\n</{side}:\1>", content, re.DOTALL)
    return [{"quote": text, "claim": text} for text in re.findall(r"Item [^.]*\.", found[2])] if found else []


class Mock:
    """The serving process between `with` and its end."""

    def __init__(self, latency: float) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(latency, theirs), daemon=True)

    def __enter__(self) -> "Mock":
        self._process.start()
        self.url = f"http://127.0.0.1:{self._pipe.recv()}/v1"
        return self

    def asked(self) -> list[list[str]]:
        """The messages of all requests since the last look."""
        self._pipe.send(True)
        found: list[list[str]] = self._pipe.recv()
        return found

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()


def tokens_in(asked: Sequence[Sequence[str]]) -> int:
    """Input tokens of requests; tiktoken has its tables offline only through LiteLLM, which brings one."""
    from litellm import token_counter

    return sum(token_counter(model="gpt-4o", text="\n".join(messages)) for messages in asked)


# --- the contenders -------------------------------------------------------------------------------------------


def some_samples(texts: Sequence[Texts]) -> "list[JudgeSample]":
    from ragaudit.model.judgement import JudgeSample, SampleChunk

    return [
        JudgeSample(
            query_id=f"q{i}",
            query=each.question,
            answer=" ".join(each.answer),
            reference=" ".join(each.reference),
            chunks=tuple(SampleChunk(id=f"k{k}", text=text) for k, text in enumerate(each.chunks)),
        )
        for i, each in enumerate(texts)
    ]


def with_ragaudit(url: str, texts: Sequence[Texts], concurrency: int, cache: Path) -> float:
    """Seconds for a run that asks for everything."""
    from ragaudit.judge.client import LiteLLMClient
    from ragaudit.judge.how import HowToJudge
    from ragaudit.judge.kept import KeptJudgements
    from ragaudit.judge.limits import Limits
    from ragaudit.judge.prompts import PromptSet
    from ragaudit.judge.runner import run
    from ragaudit.judge.tape import Tape, TapeMode

    samples, prompts, limits = some_samples(texts), PromptSet.load(None), Limits(concurrency=concurrency)
    how = HowToJudge(model="openai/mock", api_base=url)
    client = LiteLLMClient(limits)
    with Tape.open(TapeMode.NEW, cassette=None, cache=cache) as tape:
        kept = KeptJudgements.of(tape, prompts, how)
        start = time.perf_counter()
        judged = list(run(samples, prompts=prompts, how=how, tape=tape, client=client, limits=limits, kept=kept))
        seconds = time.perf_counter() - start
    failed = [judgement for judgement in judged if judgement.metrics["faithfulness"] is None]
    assert not failed, f"{len(failed)} queries were not scored: {failed[0].reasons}"
    return seconds


def replayed(url: str, texts: Sequence[Texts], cache: Path, rounds: int) -> tuple[float, float, float]:
    """CPU milliseconds a call of a cached rerun, in three ways.

    The tape alone = key, look-up and reply of the very requests. Made again = prompts, verdicts and scores as well.
    All of it = as an audit does it: judgements are read back where their replies are still the same.
    """
    from ragaudit.judge.how import HowToJudge
    from ragaudit.judge.kept import KeptJudgements
    from ragaudit.judge.prompts import PromptSet
    from ragaudit.judge.protocol import judge
    from ragaudit.judge.runner import run
    from ragaudit.judge.tape import Tape, TapeMode
    from ragaudit.model.judgement import JudgeCall, Judgement, JudgeSample, Request

    samples, prompts, how = some_samples(texts), PromptSet.load(None), HowToJudge(model="openai/mock", api_base=url)
    batches: dict[str, list[list[Request]]] = {}

    def noting(sample: JudgeSample, prompts: PromptSet, how: HowToJudge) -> Any:
        steps = judge(sample, prompts, how)
        batches[sample.query_id] = []
        batch = next(steps)
        while True:
            batches[sample.query_id].append(batch)
            try:
                batch = steps.send((yield batch))
            except StopIteration as end:
                return end.value

    def tape_alone(sample: JudgeSample, prompts: PromptSet, how: HowToJudge) -> Any:
        calls = []
        for batch in batches[sample.query_id]:
            answers = yield batch
            calls += [JudgeCall(key="", purpose="", prompt="") for _ in answers]
        return Judgement(query_id=sample.query_id, calls=tuple(calls))

    spent: dict[Any, list[float]] = {noting: [], tape_alone: [], judge: [], None: []}
    for _ in range(rounds):
        for how_to in spent:
            with Tape.open(TapeMode.NEW, cassette=None, cache=cache) as tape:
                start = time.process_time()
                kept = KeptJudgements.of(tape, prompts, how) if how_to is None else None
                for _ in run(samples, prompts=prompts, how=how, tape=tape, client=None, judge=how_to, kept=kept):
                    pass
                spent[how_to].append(time.process_time() - start)
    calls = sum(len(batch) for each in batches.values() for batch in each)
    a_call = {how_to: 1000 * min(seconds) / calls for how_to, seconds in spent.items()}
    return a_call[tape_alone], a_call[judge], a_call[None]


def with_ragas(url: str, texts: Sequence[Texts], concurrency: int) -> float:
    from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]
    from ragas import EvaluationDataset, RunConfig, SingleTurnSample, evaluate  # type: ignore[import-not-found]
    from ragas.llms import LangchainLLMWrapper  # type: ignore[import-not-found]
    from ragas.metrics import (  # type: ignore[import-not-found]
        Faithfulness,
        LLMContextPrecisionWithReference,
        LLMContextRecall,
    )

    dataset = EvaluationDataset(
        [
            SingleTurnSample(
                user_input=each.question,
                response=" ".join(each.answer),
                reference=" ".join(each.reference),
                retrieved_contexts=each.chunks,
            )
            for each in texts
        ]
    )
    model = LangchainLLMWrapper(ChatOpenAI(model="mock", base_url=url, api_key="none"))
    metrics = [LLMContextRecall(), LLMContextPrecisionWithReference(), Faithfulness()]
    start = time.perf_counter()
    evaluate(dataset, metrics=metrics, llm=model, run_config=RunConfig(max_workers=concurrency), show_progress=False)
    return time.perf_counter() - start


def measured(name: str, mock: Mock, n: int, latency: float, concurrency: int, judge: Callable[[], float]) -> Row:
    mock.asked()
    seconds = judge()
    asked = mock.asked()
    return Row(name, len(asked) / n, tokens_in(asked) / n, seconds, len(asked) * latency / concurrency)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge_speed", description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--latency", type=float, default=0.2, metavar="SECONDS")
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--cached-rounds", type=int, default=5)
    parser.add_argument("--only", choices=("ragaudit", "ragas"), help="default: whatever is importable")
    args = parser.parse_args(argv)
    n, texts = args.samples, yardstick(args.samples)
    rows = []
    with Mock(args.latency) as mock, tempfile.TemporaryDirectory() as folder:
        if args.only != "ragas" and importlib.util.find_spec("ragaudit"):
            # The first call imports LiteLLM, which takes seconds and is not what is measured here.
            with_ragaudit(mock.url, yardstick(1), 1, Path(folder) / "warm")
            cache = Path(folder) / "cache"
            rows.append(
                measured(
                    "ragaudit", mock, n, args.latency, args.concurrency,
                    lambda: with_ragaudit(mock.url, texts, args.concurrency, cache),
                )
            )  # fmt: skip
            tape_alone, made_again, all_of_it = replayed(mock.url, texts, cache, args.cached_rounds)
        if args.only != "ragaudit" and importlib.util.find_spec("ragas"):
            rows.append(
                measured(
                    "ragas", mock, n, args.latency, args.concurrency,
                    lambda: with_ragas(mock.url, texts, args.concurrency),
                )
            )  # fmt: skip
    print_table(
        f"Judge: {n} samples of 8 chunks x 300 tokens, {args.latency} s a reply, {args.concurrency} at a time",
        ("", "calls/sample", "input tokens/sample", "seconds", "ideal", "seconds/ideal"),
        [
            (
                r.name,
                f"{r.calls:.2f}",
                f"{r.tokens:,.0f}",
                f"{r.seconds:.2f}",
                f"{r.ideal:.2f}",
                f"{r.seconds / r.ideal:.2f}",
            )
            for r in rows
        ],
    )
    if rows and rows[0].name == "ragaudit":
        print(
            f"Cached rerun, CPU a call: {all_of_it:.3f} ms (target {TARGETS['cached']}); {made_again:.3f} ms where "
            f"judgements are made again from the replies, {tape_alone:.3f} ms of it for the tape"
        )
        print(f"Targets: {TARGETS['calls']:.0f} calls, {TARGETS['tokens']:,} tokens, {TARGETS['ratio']} of the ideal")
    if not importlib.util.find_spec("ragas"):
        print("ragas is not installed here. In an environment of its own:")
        print("  pip install 'ragas==0.4.3' 'langchain-community<0.4' 'openai<2' langchain-openai litellm")
        print("  PYTHONPATH=. python -W ignore -m benchmarks.judge_speed --only ragas")


if __name__ == "__main__":
    main()
