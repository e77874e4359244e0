"""Judging queries of a finished audit: the same file in the end, nothing lost on the way, nothing asked twice."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from ragaudit.audit.rejudge import Judged, Moment, open_queries, plan, rejudge
from ragaudit.audit.summing import catch_up, sum_again
from ragaudit.errors import AuditFileError, InputError, TapeMissError
from ragaudit.judge import live
from ragaudit.judge.plan import nothing_recorded
from ragaudit.model.diagnosis import Basis, Outcome, Severity
from ragaudit.model.judgement import Failure, JudgeState
from ragaudit.model.review import Patch, ReviewVerdict
from ragaudit.store import AuditReader, AuditUpdater, Reviews
from tests.audit.rejudge_builders import (
    a_judge,
    audited_at_once,
    audited_without_judge,
    contents,
    judged_bundle,
    reopened,
    trace,
    use,
)
from tests.cli.judged_bundle import Literal, budget

ROOT = Path(__file__).resolve().parents[2]
ALL = ("q1", "q2", "q3")
ONE_AT_A_TIME = "concurrency = 1\n"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Literal:
    return use(monkeypatch, Literal())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return judged_bundle(tmp_path / "b", config=ONE_AT_A_TIME)


@pytest.fixture
def path(folder: Path, tmp_path: Path) -> Path:
    return audited_without_judge(folder, tmp_path / "run.audit")


def judged(path: Path, folder: Path, ids: Any = ALL, tape: str = "new", **how: Any) -> Judged:
    audited = reopened(path, folder)
    with a_judge(audited.bundle, tape) as judge:
        return rejudge(audited, judge, ids, **how)


def faithfulness(path: Path) -> dict[str, float | None]:
    with AuditReader.open(path) as reader:
        return {r.diagnosis.query_id: r.metrics["faithfulness"] for r in reader.iter_results()}


# --- what comes out ------------------------------------------------------------------------------------------------


def test_judged_later_is_judged_at_once_field_by_field(tmp_path: Path) -> None:
    bundle = ROOT / "examples" / "judged"
    at_once = audited_at_once(bundle, tmp_path / "once.audit", "none")
    later = audited_without_judge(bundle, tmp_path / "later.audit")
    assert contents(later)["judgements"] == []
    with AuditReader.open(later) as reader:
        ids = reader.ids()
    found = judged(later, bundle, ids, "none")
    assert (found.moment.done, found.moment.total, found.left) == (25, 25, 0)
    assert contents(later) == contents(at_once)


def test_only_the_chosen_queries_are_judged_and_the_others_stay_as_they_were(
    path: Path, folder: Path, model: Literal
) -> None:
    before = contents(path)
    found = judged(path, folder, ["q2"])
    after = contents(path)
    assert (found.moment.total, found.moment.done) == (1, 1)
    assert faithfulness(path) == {"q1": None, "q2": 0.0, "q3": None}
    changed = [n for n, (old, new) in enumerate(zip(before["results"], after["results"], strict=True)) if old != new]
    assert changed == [1]
    assert found.summary.metrics["faithfulness"].n == 1
    assert found.summary.judge is not None and found.summary.judge.samples == 1


def test_a_query_without_labels_gets_its_diagnosis_from_the_evidence_that_the_judge_finds(
    path: Path, folder: Path, model: Literal
) -> None:
    with AuditReader.open(path) as reader:
        before = reader.query("q3")
        assert before is not None and before.diagnosis.outcome is Outcome.UNDETERMINED
    judged(path, folder, ["q3"])
    with AuditReader.open(path) as reader:
        result, (row,) = reader.query("q3"), [row for row in reader.page() if row.query_id == "q3"]
        summary = reader.summary()
    assert result is not None
    assert (result.diagnosis.outcome, result.diagnosis.basis) == (Outcome.FAIL, Basis.JUDGE)
    assert (row.outcome, row.stage, row.causes) == (
        Outcome.FAIL,
        result.diagnosis.stage,
        result.diagnosis.causes,
    )
    assert (summary.outcomes["fail"], summary.outcomes["undetermined"]) == (1, 2)


def test_what_was_judged_is_passed_over_and_what_leaves_nothing_open_is_too(tmp_path: Path, model: Literal) -> None:
    folder = judged_bundle(
        tmp_path / "b",
        trace("q1", "Free keys expire after 30 days.", ("c1",)),
        trace("q2", "", ("c1",), reference=None),
        trace("q3", "The limit is 100 calls a minute.", ("c2",)),
    )
    path = audited_without_judge(folder, tmp_path / "run.audit")
    judged(path, folder, ["q1"])
    audited = reopened(path, folder)
    with AuditReader.open(path) as reader:
        there = open_queries(audited, ALL, reader.judgement)
        again = open_queries(audited, ALL, reader.judgement, again=True)
    assert (there.ids, there.judged, there.nothing) == ({"q3"}, 1, 1)
    assert (again.ids, again.judged, again.nothing) == ({"q1", "q3"}, 0, 1)


def test_an_audit_of_the_first_traces_is_judged_on_those(tmp_path: Path, folder: Path, model: Literal) -> None:
    path = audited_without_judge(folder, tmp_path / "some.audit", limit=2)
    found = judged(path, folder, ALL)
    assert (found.moment.done, found.summary.run.traces) == (2, 2)
    assert set(faithfulness(path)) == {"q1", "q2"}


def test_the_plan_counts_the_calls_that_are_then_made(path: Path, folder: Path, model: Literal) -> None:
    audited = reopened(path, folder)
    with a_judge(audited.bundle) as judge:
        planned = plan(audited, judge, ["q1", "q2"], nothing_recorded, lambda: False)
        assert model.asked == []
        rejudge(audited, judge, ["q1", "q2"])
    assert (planned.samples, planned.expected.on_tape) == (2, 0)
    assert planned.expected.calls <= len(model.asked) <= planned.most.calls


# --- stopping, going on --------------------------------------------------------------------------------------------


def test_a_stop_keeps_what_is_done_and_the_next_time_asks_nothing_twice(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Slow(Literal):
        """Answers all about the first query, and the first question about the second."""

        async def complete(self, request: Any) -> Any:
            if "90 days" in request.messages[-1]["content"] and request.prompt != "claims":
                await asyncio.sleep(3600)
            return await super().complete(request)

    monkeypatch.setattr(live, "GRACE_SECONDS", 0.0)
    slow, quick = use(monkeypatch, Slow()), Literal()
    seen: list[Moment] = []
    first = judged(path, folder, progress=seen.append, stop=lambda: len(slow.asked) >= 3)
    assert (first.moment.done, first.left, first.budget_spent) == (1, 2, False)
    assert faithfulness(path) == {"q1": 1.0, "q2": None, "q3": None}
    assert (first.summary.behind, first.summary.metrics["faithfulness"].n) == (0, 1)
    use(monkeypatch, quick)
    second = judged(path, folder)
    assert (second.moment.total, second.moment.done, second.left) == (2, 2, 0)
    at_once = use(monkeypatch, Literal())
    audited_at_once(judged_bundle(tmp_path / "whole"), tmp_path / "whole.audit")
    assert sorted(slow.asked + quick.asked) == sorted(at_once.asked)
    assert contents(path)["results"] == contents(tmp_path / "whole.audit")["results"]


def test_a_pause_asks_nothing_and_what_is_said_while_it_lasts_is_told(path: Path, folder: Path, model: Literal) -> None:
    seen: list[Moment] = []
    judged(path, folder, progress=seen.append, pause=lambda: len(seen) < 5)
    paused = [moment for moment in seen if moment.is_paused]
    assert {(m.done, m.calls.requests if m.calls else 0, m.seconds) for m in paused[1:]} == {(0, 0, 0.0)}
    assert (seen[-1].done, seen[-1].is_paused) == (3, False)


def test_a_spent_budget_leaves_the_rest_as_it_was_and_is_told(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Literal(failing=budget()))
    before = contents(path)
    found = judged(path, folder)
    assert (found.budget_spent, found.moment.done, found.left) == (True, 0, 3)
    assert contents(path) == before


def test_a_missing_recording_ends_it_and_what_was_done_before_is_kept(path: Path, folder: Path, model: Literal) -> None:
    judged(path, folder, ["q1"])
    (folder / "traces.jsonl").touch()
    with pytest.raises(TapeMissError, match="no reply for claims@1"):
        judged(path, folder, ALL, "none")
    assert faithfulness(path) == {"q1": 1.0, "q2": None, "q3": None}


def test_what_was_done_before_an_interruption_is_in_the_file_and_in_the_figures(
    path: Path, folder: Path, model: Literal
) -> None:
    def interrupt(moment: Moment) -> None:
        if moment.calls is not None and moment.calls.samples == 2 and not moment.is_summing:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(path, folder, progress=interrupt)
    assert faithfulness(path) == {"q1": 1.0, "q2": None, "q3": None}
    with AuditReader.open(path) as reader:
        assert (reader.summary().metrics["faithfulness"].n, reader.summary().behind) == (1, 0)


# --- failures ------------------------------------------------------------------------------------------------------


def test_a_failed_judgement_is_unscored_and_never_zero(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, Literal(failing=Failure(kind="server", message="HTTP 500")))
    found = judged(path, folder, ["q2"])
    assert (found.moment.done, found.moment.unscored) == (1, 1)
    with AuditReader.open(path) as reader:
        result, judgement = reader.query("q2"), reader.judgement("q2")
    assert result is not None and judgement is not None
    assert result.metrics["faithfulness"] is None
    assert result.undefined["faithfulness"] == "judge_failed: server: HTTP 500"
    assert judgement.states["faithfulness"] is JudgeState.JUDGE_FAILED
    assert found.summary.metrics["faithfulness"].mean is None
    assert found.summary.judge is not None and found.summary.judge.states["faithfulness"] == {"judge_failed": 1}


def test_a_failed_query_is_asked_again_the_next_time(path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, Literal(failing=Failure(kind="server", message="HTTP 500")))
    judged(path, folder, ["q2"])
    use(monkeypatch, Literal())
    assert judged(path, folder, ["q2"]).moment.total == 1
    assert faithfulness(path)["q2"] == 0.0


def test_asking_again_in_vain_keeps_what_was_said_before(
    path: Path, folder: Path, model: Literal, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged(path, folder)
    before = contents(path)
    use(monkeypatch, Literal(failing=Failure(kind="server", message="HTTP 500")))
    found = judged(path, folder, ALL, "all", again=True)
    assert (found.moment.done, found.moment.unscored) == (3, 3)
    assert contents(path) == before


# --- the right bundle ----------------------------------------------------------------------------------------------


def refused(path: Path, folder: Path, saying: str) -> None:
    with pytest.raises(InputError, match=saying):
        reopened(path, folder)


def test_a_bundle_with_another_file_is_refused_by_name(path: Path, folder: Path) -> None:
    rows = (folder / "chunks.jsonl").read_text()
    (folder / "chunks.jsonl").write_text(rows.replace("30 days", "31 days"))
    refused(path, folder, r"b: chunks.jsonl is not the file that was audited\. Name the bundle of run.audit")


def test_a_bundle_that_lacks_a_file_or_has_one_more_is_refused(path: Path, folder: Path) -> None:
    (folder / "sources.jsonl").write_text('{"source_id": "s", "text": "more"}\n')
    refused(path, folder, "sources.jsonl was not there when it was audited")
    (folder / "sources.jsonl").unlink()
    (folder / "chunks.jsonl").unlink()
    refused(path, folder, "chunks.jsonl is missing")


def test_another_pipeline_is_refused_and_a_judge_table_that_came_later_is_not(path: Path, folder: Path) -> None:
    config = folder / "ragaudit.toml"
    said = config.read_text()
    config.write_text(said + "p_cut = 0.4\n[audit]\nseed = 9\n[slices]\ndimensions = ['language']\n")
    assert reopened(path, folder).around.settings.audit.seed == 0
    config.write_text(said + "[pipeline.rerank]\ntop_n = 3\n")
    refused(path, folder, r"\[pipeline\] or \[acl\] in ragaudit.toml is not as it was audited")


def test_traces_that_change_while_the_audit_is_open_are_refused(path: Path, folder: Path, model: Literal) -> None:
    audited = reopened(path, folder)
    rows = (folder / "traces.jsonl").read_text()
    (folder / "traces.jsonl").write_text(rows.replace("90 days", "91 days"))
    with a_judge(audited.bundle) as judge, pytest.raises(InputError, match="was changed since it was audited"):
        rejudge(audited, judge, ALL)
    assert model.asked == []


def test_an_audit_that_another_ragaudit_wrote_is_refused(path: Path, folder: Path) -> None:
    with AuditUpdater.open(path) as updater:
        summary = updater.summary()
        run = summary.run.model_copy(update={"ragaudit": "0.0.1"})
        updater.finish(summary.model_copy(update={"run": run}), updater.replaced())
    refused(path, folder, r"ragaudit 0.0.1 wrote it")


def test_one_audit_is_not_judged_by_two_judges(path: Path, folder: Path, model: Literal) -> None:
    judged(path, folder, ["q1"])
    audited = reopened(path, folder)
    settings = audited.bundle.settings
    assert settings.judge is not None
    other = settings.judge.model_copy(update={"model": "test/other"})
    audited.bundle.settings.__dict__["judge"] = other
    with a_judge(audited.bundle) as judge, pytest.raises(InputError, match="model test/literal then, test/other now"):
        rejudge(audited, judge, ["q2"])
    assert faithfulness(path)["q2"] is None


# --- others at the same time ---------------------------------------------------------------------------------------


def test_reviews_of_another_terminal_are_kept_while_queries_are_judged(
    path: Path, folder: Path, model: Literal
) -> None:
    with Reviews.open(path) as reviews:

        def review(moment: Moment) -> None:
            if moment.calls is not None and reviews.of("q1") is None:
                reviews.apply(["q1", "q2"], Patch(verdict=ReviewVerdict.AGREE, note="looked at it"))

        judged(path, folder, progress=review)
        assert reviews.apply(["q3"], Patch(tags=("later",))) == 1
        assert [(r.query_id, r.note, r.tags) for r, _, _ in reviews.every()] == [
            ("q1", "looked at it", ()),
            ("q2", "looked at it", ()),
            ("q3", "", ("later",)),
        ]
    assert faithfulness(path) == {"q1": 1.0, "q2": 0.0, "q3": 1.0}


def test_what_another_judging_writes_while_the_figures_are_made_is_counted_too(
    path: Path, folder: Path, model: Literal, tmp_path: Path
) -> None:
    judged(path, folder, ["q1"])
    other = audited_at_once(folder, tmp_path / "other.audit")
    rounds: list[int] = []
    with AuditUpdater.open(path) as ours, AuditUpdater.open(path) as theirs, AuditReader.open(other) as source:
        result, judgement = source.query("q2"), source.judgement("q2")
        assert result is not None and judgement is not None
        note = theirs.summary().judge
        assert note is not None

        def propose(summary: Any) -> tuple[()]:
            if not rounds:
                theirs.replace([(result, judgement)], note)
            rounds.append(summary.metrics["faithfulness"].n)
            return ()

        summary = sum_again(ours, None, propose)
    assert rounds == [1, 2]
    assert (summary.metrics["faithfulness"].n, summary.behind) == (2, 0)


def test_an_audit_whose_judging_was_killed_says_so_and_is_brought_up_to_date(
    path: Path, folder: Path, model: Literal, tmp_path: Path
) -> None:
    other = audited_at_once(folder, tmp_path / "other.audit")
    with AuditUpdater.open(path) as killed, AuditReader.open(other) as source:
        note = source.summary().judge
        assert note is not None
        for query_id in ALL:
            result, judgement = source.query(query_id), source.judgement(query_id)
            assert result is not None and judgement is not None
            killed.replace([(result, judgement)], note)
    with AuditReader.open(path) as reader:
        assert (reader.summary().behind, reader.summary().judge) == (3, None)
        assert [row.outcome for row in reader.page()] == [row.outcome for row in AuditReader.open(other).page()]
    assert catch_up(path).behind == 0
    assert contents(path) == contents(other)


def test_an_audit_that_took_the_place_of_this_one_is_not_written_to(
    path: Path, folder: Path, model: Literal, tmp_path: Path
) -> None:
    audited = reopened(path, folder)
    elsewhere = judged_bundle(tmp_path / "c", trace("q1", "No.", ("c1",)), trace("q9", "No.", ("c1",)))
    audited_without_judge(elsewhere, path)
    before = contents(path)
    with a_judge(audited.bundle) as judge, pytest.raises(InputError, match="another audit took its place"):
        rejudge(audited, judge, ALL)
    assert contents(path) == before


def test_an_audit_that_is_replaced_while_it_is_judged_is_not_written_to(
    path: Path, folder: Path, model: Literal
) -> None:
    def replace_it(moment: Moment) -> None:
        if moment.calls is not None and moment.calls.samples == 1:
            audited_without_judge(folder, path)

    with pytest.raises(AuditFileError, match="another audit took its place"):
        judged(path, folder, progress=replace_it)
    assert contents(path)["judgements"] == []


# --- access --------------------------------------------------------------------------------------------------------


def test_what_the_user_may_not_read_is_not_sent_and_leaks_stay_first(tmp_path: Path, model: Literal) -> None:
    secret = "Salaries begin at ninety thousand."
    leaking = trace("q2", "Free keys expire after 30 days.", ("c1",), user_acl=["all"])
    leaking["final_context_ids"].append("hr")
    leaking["context_texts"]["hr"] = secret
    folder = judged_bundle(tmp_path / "b", trace("q1", "No limit.", ("c1",), user_acl=["all"]), leaking)
    chunks = folder / "chunks.jsonl"
    chunks.write_text(chunks.read_text() + json.dumps({"chunk_id": "hr", "source_id": "h", "text": secret}) + "\n")
    sources = [{"source_id": "h", "acl": ["hr"], "text": secret}, {"source_id": "s", "acl": ["all"]}]
    (folder / "sources.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sources))
    sent: list[str] = []
    asks = model.complete

    async def listening(request: Any) -> Any:
        sent.extend(message["content"] for message in request.messages)
        return await asks(request)

    model.complete = listening  # type: ignore[method-assign]
    path = audited_without_judge(folder, tmp_path / "run.audit")
    judged(path, folder)
    assert sent and not any("ninety thousand" in text for text in sent)
    with AuditReader.open(path) as reader:
        first, second = reader.page()
        judgement, stored = reader.judgement("q2"), reader.trace("q2")
    assert (first.query_id, first.severity, second.query_id) == ("q2", Severity.LEAK, "q1")
    assert judgement is not None and "ninety" not in repr(judgement)
    assert stored is not None and "ninety" not in repr(stored)
    audited_without_judge(folder, path)
    judged(path, folder, ALL, "none")
    assert contents(path) == contents(audited_at_once(folder, tmp_path / "once.audit", "none"))
