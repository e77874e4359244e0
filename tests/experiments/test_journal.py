import json
import multiprocessing

import pytest
from journal_builders import change, comparison, experiment, planned

from ragaudit.errors import ConfigError, InputError
from ragaudit.experiments.conclusion import conclude
from ragaudit.experiments.events import Outcome, Status
from ragaudit.experiments.journal import Journal, append, refuted, tried
from ragaudit.model.comparison import Verdict

AT = "2026-10-01T12:00:00+00:00"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "experiments.jsonl"


def plan(path, at=AT, **fields):
    return Journal.read(path).plan(
        experiment(**fields), moves="recall@k", run="base", fingerprint="b2:base", at=at, audit="base.audit"
    )


def finish(path, found=None, **fields):
    made = plan(path, **fields)
    return Journal.read(path).finish(made.id, found or comparison(to=fields.get("after", 16)), at=AT)


def test_a_file_that_is_not_there_is_an_empty_journal(path):
    assert Journal.read(path).entries == ()
    assert not path.exists()


def test_an_experiment_from_plan_to_finish(path):
    made = plan(path)
    journal = Journal.read(path)
    assert journal.entry(made.id).status is Status.PLANNED
    journal.start(made.id, at=AT)
    assert Journal.read(path).entry(made.id).status is Status.STARTED
    Journal.read(path).finish(made.id, comparison(), at=AT)
    entry = Journal.read(path).entry(made.id)
    assert entry.status is Status.FINISHED
    assert entry.plan == made
    assert entry.finished.outcome is Outcome.CONFIRMED
    assert entry.finished.metrics["recall@k"].error == 0.01


def test_each_event_is_one_readable_line(path):
    made = plan(path, why="Größere Liste,\nmehr Treffer \u202e返")
    (line,) = path.read_text("utf-8").splitlines()
    assert line.startswith('{"event": "plan", "id": "' + made.id + '", "at": "2026-10-01T12:00:00+00:00"')
    assert '"from": 8, "to": 16' in line
    assert "Größere Liste,\\nmehr Treffer \\u202e返" in line
    assert len(made.id) == 6


def test_earlier_lines_are_never_touched(path):
    made = plan(path)
    before = path.read_bytes()
    Journal.read(path).start(made.id, at=AT)
    assert path.read_bytes().startswith(before)


def test_ids_are_stable_and_differ(path):
    first, second = plan(path), plan(path, at="2026-10-02T12:00:00+00:00")
    assert first.id != second.id
    assert [entry.plan.id for entry in Journal.read(path).entries] == [first.id, second.id]


def test_the_same_plan_twice_gets_a_longer_id(path):
    first, second = plan(path), plan(path)
    assert second.id.startswith(first.id)
    assert Journal.read(path).entry(first.id).plan.id == first.id


def test_an_id_may_be_shortened_while_it_is_the_only_one(path):
    made = plan(path)
    assert Journal.read(path).entry(made.id[:3]).plan.id == made.id
    with pytest.raises(ConfigError, match=r"zzz: no such experiment in .*Ids there: " + made.id):
        Journal.read(path).entry("zzz")


def test_what_is_done_is_not_done_again(path):
    finish(path)
    journal = Journal.read(path)
    made = journal.entries[0].plan
    with pytest.raises(ConfigError, match="is finished already"):
        journal.finish(made.id, comparison(), at=AT)
    with pytest.raises(ConfigError, match="is finished already"):
        journal.start(made.id, at=AT)


def test_a_missing_last_line_end_does_not_glue_two_events(path):
    made = plan(path)
    path.write_text(path.read_text().rstrip("\n"))
    Journal.read(path).start(made.id, at=AT)
    assert Journal.read(path).entry(made.id).status is Status.STARTED
    assert len(path.read_text().splitlines()) == 2


def test_lines_that_a_merge_put_in_another_order_are_read(path):
    made = plan(path)
    Journal.read(path).start(made.id, at=AT)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[1], "", lines[0], lines[0]]) + "\n")
    assert Journal.read(path).entry(made.id).status is Status.STARTED


def test_keys_of_a_newer_version_are_kept(path):
    plan(path)
    row = json.loads(path.read_text())
    path.write_text(json.dumps(row | {"owner": "ann"}) + "\n")
    assert Journal.read(path).entries[0].plan.model_extra == {"owner": "ann"}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", ":1: not JSON"),
        ("[]", ":1: no event of a journal. Each line has event: plan, start, finish."),
        ('{"event": "start", "id": "a"}', ":1: at: Field required"),
        ('{"event": "start", "id": "a", "at": "x"}', ":1: no plan has the id 'a'"),
        ("<<<<<<< HEAD", ":1: an unresolved merge"),
    ],
)
def test_a_line_that_is_no_event_is_refused_with_its_place(path, line, message):
    path.write_text(line + "\n")
    with pytest.raises(InputError) as refused:
        Journal.read(path)
    assert message in str(refused.value)


def _write_many(path, name):
    for n in range(40):
        append(path, planned(id=f"{name}{n}", hypothesis="x" * 300))


def test_two_processes_keep_each_others_lines(path):
    fork = multiprocessing.get_context("spawn")
    writers = [fork.Process(target=_write_many, args=(path, name)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    ids = [entry.plan.id for entry in Journal.read(path).entries]
    assert sorted(ids) == sorted(f"{name}{n}" for name in "ab" for n in range(40))


# --- what came out ---------------------------------------------------------------------------------------------------


def outcome(found, **plan_fields):
    finished = conclude(planned(**plan_fields), found, at=AT)
    return finished.outcome, finished.why


def test_a_distinguishable_gain_confirms():
    assert outcome(comparison()) == (Outcome.CONFIRMED, "recall@k +0.050")


def test_a_gain_with_harm_says_what_got_worse():
    found = comparison(changes=(change(), change("mrr@k", difference=-0.1, verdict=Verdict.WORSE)))
    assert outcome(found) == (Outcome.CONFIRMED, "recall@k +0.050; worse: mrr@k")


def test_a_loss_refutes():
    found = comparison(changes=(change(difference=-0.05, low=-0.09, high=-0.01, verdict=Verdict.WORSE),))
    assert outcome(found) == (Outcome.REFUTED, "recall@k -0.050: worse")


def test_no_distinguishable_change_leaves_it_open_while_the_prediction_fits():
    found = comparison(changes=(change(difference=0.02, low=-0.01, high=0.05, verdict=Verdict.SAME),))
    assert outcome(found) == (Outcome.OPEN, "recall@k +0.020: not distinguishable from no change")


def test_no_distinguishable_change_refutes_when_the_prediction_is_outside_the_interval():
    found = comparison(changes=(change(difference=0.0, low=-0.01, high=0.01, verdict=Verdict.SAME),))
    assert outcome(found)[0] is Outcome.REFUTED
    assert outcome(found, predicted={})[0] is Outcome.OPEN


def test_new_leaks_refute_whatever_was_gained():
    assert outcome(comparison(leaking=("q1",))) == (
        Outcome.REFUTED,
        "1 queries newly leak: no gain makes up for that",
    )


def test_a_metric_that_is_undefined_leaves_it_open():
    assert outcome(comparison(changes=()))[0] is Outcome.OPEN


@pytest.mark.parametrize(("difference", "within"), [(0.02, True), (0.2, False)])
def test_the_prediction_error_and_whether_its_interval_held(difference, within):
    finished = conclude(planned(), comparison(changes=(change(difference=difference),)), at=AT)
    assert finished.metrics["recall@k"].error == pytest.approx(difference - 0.04)
    assert finished.metrics["recall@k"].within is within


def test_a_comparison_of_another_variable_is_refused(path):
    with pytest.raises(InputError, match=r"changes pipeline.fusion.k, but .* planned pipeline.rerank.top_n"):
        finish(path, comparison(variable="pipeline.fusion.k"))


def test_a_comparison_without_the_change_is_refused(path):
    with pytest.raises(InputError, match=r"pipeline.rerank.top_n is as it was"):
        finish(path, comparison(variable=None))


def test_another_value_than_planned_is_refused(path):
    with pytest.raises(InputError, match=r"pipeline.rerank.top_n is 12, but .* planned 16"):
        finish(path, comparison(to=12))


def test_a_moved_floor_is_recognised_by_its_key(path):
    floor = comparison(variable="pipeline.thresholds[0]", to={"value": 0.3, "on": "dense"})
    assert finish(path, floor, variable="thresholds[0].on", after="dense").outcome is Outcome.CONFIRMED
    with pytest.raises(InputError, match=r"is 'dense', but .* planned 'bm25'"):
        finish(path, floor, variable="thresholds[0].on", after="bm25")


def test_a_change_of_the_index_shows_in_no_key(path):
    found = comparison(variable=None)
    assert finish(path, found, variable="index.sources", after="r2").outcome is Outcome.CONFIRMED
    with pytest.raises(InputError, match=r"changes pipeline.fusion.k"):
        finish(path, comparison(variable="pipeline.fusion.k"), variable="index.sources", after="r2")


def test_what_was_allowed_by_hand_is_noted(path):
    found = comparison(allowed="pipeline.fusion.k")
    assert finish(path, found).exceptions == ("pipeline.fusion.k",)


# --- for the proposer ------------------------------------------------------------------------------------------------


def test_tried_and_refuted_are_variables_with_their_values(path):
    finish(path)
    finish(path, comparison(leaking=("q1",), to=32), after=32)
    plan(path, after=64)
    journal = Journal.read(path)
    assert tried(journal) == {("pipeline.rerank.top_n", "16"), ("pipeline.rerank.top_n", "32")}
    assert refuted(journal) == {("pipeline.rerank.top_n", "32")}


def test_a_value_reads_the_same_after_it_was_written(path):
    floors = [{"value": 0.3, "on": "dense"}]
    for made in (plan(path, variable="pipeline.thresholds", after=floors), plan(path, variable="index.x", after=None)):
        Journal.read(path).start(made.id, at=AT)
    assert tried(Journal.read(path)) == {("pipeline.thresholds", str(floors)), ("index.x", "")}


def known(path, **fields):
    return Journal.read(path).about(experiment(**fields))


def test_a_change_is_known_by_its_variable_and_value(path):
    confirmed = plan(path)
    Journal.read(path).finish(confirmed.id, comparison(to=16), at=AT)
    finish(path, comparison(leaking=("q1",), to=32), after=32)
    plan(path, after=64)
    assert [entry.plan.id for entry in known(path)] == [confirmed.id]
    assert [[entry.is_refuted for entry in known(path, after=value)] for value in (16, 32, 64, 128)] == [
        [False],
        [True],
        [False],
        [],
    ]


def test_a_proposal_without_a_value_or_for_any_arm_is_known_by_what_it_means(path):
    plan(path, variable="pipeline.search.dense.fetch_k", after=50)
    assert len(known(path, variable="pipeline.search.*.fetch_k", after=None)) == 1
    assert len(known(path, variable="pipeline.search.*.fetch_k", after=50)) == 1
    assert known(path, variable="pipeline.search.*.fetch_k", after=80) == ()
    assert known(path, variable="pipeline.search.bm25.fetch_k", after=None) == ()
