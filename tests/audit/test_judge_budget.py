"""`max_cost` bounds a whole audit, however many batches it takes."""

from pathlib import Path
from typing import Any

import pytest

from ragaudit.audit import run
from ragaudit.store import AuditReader
from tests.audit.rejudge_builders import audited_at_once
from tests.cli.judged_bundle import Literal, judged_bundle, trace, use


class Dear(Literal):
    """A dollar a call."""

    async def complete(self, request: Any) -> Any:
        return (await super().complete(request)).model_copy(update={"usd": 1.0})


def test_the_budget_of_an_audit_is_spent_once_and_not_once_a_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "JUDGED_BATCH", 1)
    model = use(monkeypatch, Dear())
    rows = [trace(f"q{n}", f"Free keys expire after {n} days.", ("c1",)) for n in range(30, 36)]
    folder = judged_bundle(tmp_path / "b", *rows, config="max_cost = 4.0\nconcurrency = 1\n")
    path = audited_at_once(folder, tmp_path / "run.audit")
    with AuditReader.open(path) as reader:
        summary = reader.summary()
    assert (len(model.asked), summary.cost.usd) == (4, 4.0)
    assert summary.judge is not None
    assert summary.judge.states["faithfulness"] == {"scored": 2, "unmeasured": 4}
