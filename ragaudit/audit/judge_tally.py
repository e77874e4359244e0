"""Adds up what the judge did: calls and cost, states of each metric, failures, the 2x2, disagreements with labels."""

from collections import Counter
from collections.abc import Mapping

from ragaudit.model.diagnosis import Basis
from ragaudit.model.judgement import Judgement, JudgeState
from ragaudit.model.result import JUDGED, Cost, Disagreement, JudgeNote, QueryResult

MAX_LISTED = 200
"""Disagreements that the summary lists."""


class JudgeTally:
    """Counts one judged query at a time."""

    def __init__(self) -> None:
        self.samples = 0
        self._states: dict[str, Counter[str]] = {metric: Counter() for metric in JUDGED}
        self._failures: Counter[str] = Counter()
        self._quadrants: Counter[str] = Counter()
        self._prompts: dict[str, int] = {}
        self._disagreements: list[Disagreement] = []
        self._calls = self._from_tape = self._input = self._output = 0
        self._usd: float = 0.0
        self._unpriced = 0

    def add(self, result: QueryResult, judgement: Judgement) -> None:
        """Count one query."""
        self.samples += 1
        for metric, states in self._states.items():
            states[judgement.states.get(metric, JudgeState.UNMEASURED).value] += 1
        for call in judgement.calls:
            self._calls += 1
            self._from_tape += call.from_tape
            self._input += call.input_tokens
            self._output += call.output_tokens
            self._usd += 0.0 if call.from_tape else call.usd or 0.0
            self._unpriced += call.usd is None and not call.from_tape
            name, _, version = call.prompt.rpartition("@")
            self._prompts[name] = int(version) if version.isdigit() else 0
            if call.error is not None:
                self._failures[call.error.partition(":")[0]] += 1
        if result.quadrant is not None:
            self._quadrants[result.quadrant] += 1
        self._compare(result, judgement)

    def _compare(self, result: QueryResult, judgement: Judgement) -> None:
        """Labels and judge on one question: did the evidence reach the generator?"""
        diagnosis, recall = result.diagnosis, judgement.metrics.get("context_recall")
        if diagnosis.basis is not Basis.GOLD or diagnosis.delivered is None or recall is None:
            return
        if diagnosis.delivered != (recall == 1.0) and len(self._disagreements) < MAX_LISTED:
            said = "all gold is in the context" if diagnosis.delivered else "gold is missing from the context"
            self._disagreements.append(
                Disagreement(query_id=diagnosis.query_id, labels=said, judge=f"context recall {recall:.2f}")
            )

    def cost(self) -> Cost:
        """What was asked and what it took; replies from the tape cost nothing."""
        return Cost(
            judge_calls=self._calls,
            from_tape=self._from_tape,
            input_tokens=self._input,
            output_tokens=self._output,
            usd=self._usd,
            unpriced=self._unpriced,
        )

    def note(self, model: str, mode: str, cuts: Mapping[str, float]) -> JudgeNote:
        """What stands behind the judged figures."""
        return JudgeNote(
            model=model,
            mode=mode,
            prompts=dict(sorted(self._prompts.items())),
            samples=self.samples,
            states={metric: dict(states) for metric, states in self._states.items() if states},
            failures=dict(self._failures),
            quadrants=dict(self._quadrants),
            disagreements=tuple(self._disagreements),
            cuts=dict(cuts),
        )
