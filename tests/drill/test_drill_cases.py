"""What a fault works with: healthy queries, their lists recomputed, the part of the inventory that bears on them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from drill_builders import opened, rewritten, without

from ragaudit.audit.batch import Surroundings, diagnose_batch
from ragaudit.config import AclSettings
from ragaudit.diagnosis.query_facts import RunFacts
from ragaudit.drill.case import Broken, Case, Store, victims_of
from ragaudit.drill.neighbourhood import neighbourhood
from ragaudit.drill.registry import FAULTS, fault, unset
from ragaudit.drill.relist import found_by_one, from_arms, lower_in_context, relistable
from ragaudit.drill.relist import without as arms_without
from ragaudit.drill.run import run
from ragaudit.errors import ConfigError, InputError
from ragaudit.evidence.identity import Identities
from ragaudit.model.diagnosis import Diagnosis, GoldDiagnosis, Outcome, Stage
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Gold, GoldMode, Trace
from ragaudit.readers.bundle import Bundle, read_traces


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return opened(Path(__file__).parents[2] / "examples" / "demo")


@pytest.fixture(scope="module")
def around(bundle: Bundle) -> Surroundings:
    identities = Identities.of(bundle.inventory)
    return Surroundings(bundle.settings, identities, bundle.settings.acl or AclSettings(), RunFacts())


def _healthy(bundle: Bundle, around: Surroundings) -> Iterator[tuple[Case, Diagnosis]]:
    store = Store.of(around.identities, around.acl, around.run)
    traces = list(read_traces(bundle))
    for trace, result in zip(traces, diagnose_batch(traces, around, {}), strict=True):
        victims = victims_of(trace, result.diagnosis)
        if result.diagnosis.outcome is Outcome.PASS and victims:
            pipeline = bundle.settings.pipeline.with_overrides(trace.config)
            yield Case(trace, pipeline, store, victims, "0"), result.diagnosis


def _case(bundle: Bundle, around: Surroundings, query_id: str) -> Case:
    return next(case for case, _ in _healthy(bundle, around) if case.trace.query_id == query_id)


def test_the_neighbourhood_gives_the_verdict_that_the_whole_inventory_gives(
    bundle: Bundle, around: Surroundings
) -> None:
    for case, verdict in _healthy(bundle, around):
        part = neighbourhood(Broken(case.trace, case.pipeline), case.store)
        assert len(part.chunks or ()) < len(bundle.inventory.chunks or ())
        alone = Surroundings(around.settings, Identities.of(part), around.acl, around.run)
        (result,) = diagnose_batch([case.trace], alone, {})
        assert result.diagnosis == verdict


def test_lists_that_follow_from_one_another_are_recomputed_as_logged(bundle: Bundle, around: Surroundings) -> None:
    case = _case(bundle, around, "q-018")
    again = from_arms(case, case.trace.arms or {})
    assert relistable(case)
    assert again is not None
    assert [hit.id for hit in again.fused or ()] == [hit.id for hit in case.trace.fused or ()]
    assert [hit.rrf for hit in again.fused or ()] == [hit.rrf for hit in case.trace.fused or ()]
    assert again.final_context_ids == case.trace.final_context_ids
    assert (again.prompt_tokens, again.prompt_ids) == (case.trace.prompt_tokens, case.trace.prompt_ids)


def test_a_context_that_the_packer_would_not_make_is_not_recomputed(bundle: Bundle, around: Surroundings) -> None:
    case = _case(bundle, around, "q-018")
    other = case.trace.model_copy(update={"final_context_ids": (case.trace.final_context_ids or ())[1:]})
    assert not relistable(case.became(other))


def test_rows_that_move_up_are_readable_and_match_the_filter(bundle: Bundle, around: Surroundings) -> None:
    seen = 0
    for case, _ in _healthy(bundle, around):
        taken = arms_without(case, case.names)
        if taken is None:
            continue
        before = {hit.id for hits in (case.trace.arms or {}).values() for hit in hits}
        new = {hit.id for hits in taken[0].values() for hit in hits} - before
        seen += len(new)
        assert not case.names & new
        assert all(case.access.may_read(i) is not False for i in new)
        assert all(case.matches(chunk) for i in new if (chunk := bundle.inventory.chunk(i)) is not None)
    assert seen > 20


def test_a_vector_arm_that_returned_every_matching_row_cannot_have_missed_one(
    bundle: Bundle, around: Surroundings
) -> None:
    case = _case(bundle, around, "q-041")
    assert [(arm.name, len(arm.hits), arm.matching) for arm in case.arms] == [("dense", 4, 4), ("bm25", 2, 2)]
    assert arms_without(case, case.names) is None
    gone = arms_without(case, case.names, gone=True)
    assert gone is not None
    assert {name: (len(gone[0][name]), (gone[1] or {})[name].matching) for name in gone[0]} == {
        "dense": (3, 3),
        "bm25": (1, 1),
    }


def test_a_query_is_posed_as_one_that_a_single_arm_answers(bundle: Bundle, around: Surroundings) -> None:
    case = _case(bundle, around, "q-018")
    posed = found_by_one(case, lexical=True)
    assert posed is not None
    name, alone = posed
    places = {arm.name: arm.place.rank if arm.place else None for arm in alone.arms}
    assert (name, places) == ("bm25", {"dense": None, "bm25": 1})
    assert alone.delivered(alone.trace)
    assert len((alone.trace.arms or {})["dense"]) == len((case.trace.arms or {})["dense"])


def test_a_gold_is_posed_last_in_the_context_and_still_delivered(bundle: Bundle, around: Surroundings) -> None:
    posed = lower_in_context(_case(bundle, around, "q-018"))
    assert posed is not None
    assert (posed.trace.final_context_ids or ())[-1] in posed.names


@pytest.mark.parametrize(
    ("mode", "lost", "victims"),
    [
        (GoldMode.ALL, (), {"a"}),
        (GoldMode.ANY, (), {"a", "b"}),
        (GoldMode.ANY, ("b",), set()),
        (GoldMode.ALL, ("b",), {"a"}),
        (GoldMode.ALL, ("a",), set()),
    ],
)
def test_the_victims_are_the_first_group_that_the_query_needs(
    mode: GoldMode, lost: tuple[str, ...], victims: set[str]
) -> None:
    gold = tuple(Gold(id=i) for i in "ab")
    trace = Trace(query_id="q", query_text="?", k_final=2, gold=gold, gold_mode=mode)
    verdicts = tuple(GoldDiagnosis(id=i, outcome=Outcome.FAIL if i in lost else Outcome.PASS) for i in ("a", "b"))
    diagnosis = Diagnosis(query_id="q", outcome=Outcome.PASS, gold=verdicts)
    assert victims_of(trace, diagnosis) == victims


def test_gold_that_the_user_may_not_read_is_no_victim() -> None:
    trace = Trace(query_id="q", query_text="?", k_final=2, gold=(Gold(id="a"), Gold(id="b")))
    verdicts = (GoldDiagnosis(id="a", outcome=Outcome.NOT_APPLICABLE), GoldDiagnosis(id="b", outcome=Outcome.PASS))
    assert victims_of(trace, Diagnosis(query_id="q", outcome=Outcome.PASS, gold=verdicts)) == {"b"}


def test_a_table_that_is_unset_was_never_spoken_of() -> None:
    said = Pipeline.model_validate({"thresholds": [], "k_final": 5})
    assert (said.floors_known, unset(said, "thresholds").floors_known) == (True, False)
    assert unset(said, "thresholds").k_final == 5


def test_a_fault_s_name_is_used_once() -> None:
    with pytest.raises(ValueError, match="'poor_rank' is registered twice"):
        fault("poor_rank", Stage.RETRIEVE, "Again.")(lambda case: None)
    assert FAULTS["poor_rank"].summary != "Again."


def test_an_unknown_fault_is_refused(bundle: Bundle) -> None:
    with pytest.raises(ConfigError, match="--fault nope: there is no such fault"):
        run(bundle, names=["nope"])


def test_a_run_with_nothing_healthy_says_what_to_do(repository: Path, tmp_path: Path) -> None:
    folder = rewritten(repository, tmp_path, edit=without("answer"))
    with pytest.raises(InputError, match=r"nothing healthy to break\. Judge the answers, or pass --scope retrieval"):
        run(opened(folder))
