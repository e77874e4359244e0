"""What the benchmarks of judge quality share: the model they ask (by default that of examples/local_model), figures."""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragaudit.judge.runner import Judging
    from ragaudit.model.judgement import Judgement, JudgeSample, Statistic


def options(parser: argparse.ArgumentParser) -> None:
    """Which model is asked, how, and what keeps its replies."""
    parser.add_argument("--model", default="openai/qwen2.5-coder-1.5b")
    parser.add_argument("--api-base", default="http://127.0.0.1:8091/v1", help='"" for the provider\'s own')
    parser.add_argument("--mode", choices=("matrix", "per_claim"), default="per_claim")
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--p-cut", type=float, help="supported from this P(supported) on; default: the model's word")
    parser.add_argument("--cache", default="", help="folder that keeps the replies; default: only for this run")


def judged(
    samples: "Sequence[JudgeSample]", arguments: argparse.Namespace, judge: "Judging | None" = None
) -> "list[Judgement]":
    """What the model says, in the order of the samples, at temperature 0.

    Args:
        samples: What is judged.
        arguments: Those of `options`.
        judge: How one is judged; None = as in an audit.
    """
    from ragaudit.config import JudgeSettings
    from ragaudit.judge.prompts import PromptSet
    from ragaudit.judge.runner import run
    from ragaudit.judge.settings import how_to_judge, limits, litellm_client, open_tape

    with tempfile.TemporaryDirectory() as folder:
        settings = JudgeSettings(
            model=arguments.model,
            api_base=arguments.api_base or None,
            cache=arguments.cache or folder,
            mode=arguments.mode,
            logprobs=True,
            p_cut=arguments.p_cut,
            parameters={"seed": 1},
            concurrency=arguments.concurrency,
            call_timeout=600,
        )
        with open_tape(settings, "new", Path()) as tape:
            judgements = run(
                samples,
                prompts=PromptSet.load(),
                how=how_to_judge(settings),
                tape=tape,
                client=litellm_client(settings),
                limits=limits(settings),
                judge=judge,
            )
            return list(judgements)


def shown(figure: "Statistic") -> str:
    """The value with its interval."""
    if figure.value is None:
        return "-"
    return f"{figure.value:.2f}" + ("" if figure.low is None else f" [{figure.low:.2f}, {figure.high:.2f}]")
