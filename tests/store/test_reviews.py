import sqlite3
from datetime import UTC, datetime

import pytest

from ragaudit.errors import AuditFileError
from ragaudit.model.diagnosis import Diagnosis, Outcome, Stage
from ragaudit.model.result import QueryResult
from ragaudit.model.review import Patch, Place, ReviewVerdict
from ragaudit.model.trace import Trace
from ragaudit.store import AuditReader, AuditWriter, Reviews
from ragaudit.store.filters import parse_filter
from tests.store.test_audit_file import summary

NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
AGREE = Patch(verdict=ReviewVerdict.AGREE)


def write(path, *, stage=Stage.RERANK, ids=("q1", "q2", "q3")):
    with AuditWriter(path, key=f"k{stage}{ids}") as writer:
        for query_id in ids:
            diagnosis = Diagnosis(query_id=query_id, outcome=Outcome.FAIL, stage=stage)
            result = QueryResult(diagnosis=diagnosis, query_text="?", k_final=8, metrics={})
            writer.add([(result, Trace(query_id=query_id, query_text="?", k_final=8))])
        writer.finish(summary())


@pytest.fixture
def path(tmp_path):
    write(tmp_path / "run.audit")
    return tmp_path / "run.audit"


def opened(path):
    return Reviews.open(path, clock=lambda: NOON)


def test_a_verdict_is_in_the_file_with_the_diagnosis_it_was_given_on(path):
    with opened(path) as reviews:
        assert reviews.apply(["q2"], AGREE) == 1
    with opened(path) as reviews:
        review = reviews.of("q2")
        assert (review.verdict, review.at) == (ReviewVerdict.AGREE, NOON)
        assert (review.about_outcome, review.about_stage) == (Outcome.FAIL, Stage.RERANK)
        assert reviews.of("q1") is None
        assert reviews.count() == 1


def test_patches_of_different_fields_add_up(path):
    with opened(path) as reviews:
        reviews.apply(["q1"], Patch(verdict=ReviewVerdict.DISAGREE, stage=Stage.FUSE))
        reviews.apply(["q1"], Patch(tags=("short",), note="looks short"))
        reviews.apply(["q1"], Patch(gold=("c9",)))
        review = reviews.of("q1")
    assert (review.verdict, review.stage, review.gold) == (ReviewVerdict.DISAGREE, Stage.FUSE, ("c9",))
    assert (review.tags, review.note) == (("short",), "looks short")


def test_an_emptied_review_is_no_review(path):
    with opened(path) as reviews:
        reviews.apply(["q1"], Patch(note="x", tags=("y",)))
        reviews.apply(["q1"], Patch(note="", tags=()))
        assert reviews.of("q1") is None and list(reviews.every()) == []


def test_a_note_on_a_later_audit_does_not_renew_the_verdict(path):
    with opened(path) as reviews:
        reviews.apply(["q1"], AGREE)
    write(path, stage=Stage.FUSE)
    with opened(path) as reviews:
        reviews.apply(["q1"], Patch(note="seen again"))
        review = reviews.of("q1")
        assert (review.about_stage, review.note, review.verdict) == (Stage.RERANK, "seen again", ReviewVerdict.AGREE)
        reviews.apply(["q1"], AGREE)
        assert reviews.of("q1").about_stage is Stage.FUSE


def test_every_review_comes_with_what_the_diagnosis_says_now(path):
    with opened(path) as reviews:
        reviews.apply(["q3", "q1", "q2"], AGREE)
    write(path, stage=Stage.FUSE, ids=("q1", "q3"))
    with opened(path) as reviews:
        found = [(review.query_id, outcome, stage) for review, outcome, stage in reviews.every()]
    assert found == [("q1", Outcome.FAIL, Stage.FUSE), ("q3", Outcome.FAIL, Stage.FUSE)]


def test_reviews_can_be_read_where_they_cannot_be_written(path):
    with opened(path) as reviews:
        reviews.apply(["q1"], AGREE)
    before = path.read_bytes()
    with Reviews.open(path, writable=False) as reviews:
        assert reviews.of("q1").verdict is ReviewVerdict.AGREE
        with pytest.raises(AuditFileError, match="cannot be opened"):
            reviews.apply(["q1"], Patch(note="no"))
    assert path.read_bytes() == before


def test_undo_takes_back_one_action_over_all_of_its_queries(path):
    with opened(path) as reviews:
        reviews.apply(["q1"], Patch(note="kept"))
        assert reviews.apply(["q1", "q3", "q1", "no such"], AGREE) == 2
        assert reviews.undo() == ("q1", "q3")
        assert reviews.of("q1").note == "kept" and reviews.of("q1").verdict is None
        assert reviews.of("q3") is None
        assert reviews.undo() == ("q1",)
        assert reviews.undo() == () and reviews.undoable == 0


def test_two_terminals_on_one_audit_keep_the_work_of_both(path):
    with opened(path) as one, opened(path) as two:
        seen = two.version()
        one.apply(["q1"], Patch(note="from one"))
        assert two.version() != seen
        two.apply(["q1"], AGREE)
        two.apply(["q2"], AGREE)
        assert one.undo() == ("q1",)
        for reviews in (one, two):
            assert reviews.of("q1").verdict is ReviewVerdict.AGREE and reviews.of("q1").note == ""
            assert reviews.count() == 2


def test_a_query_that_the_audit_does_not_have_is_not_reviewed(path):
    with opened(path) as reviews:
        assert reviews.apply(["nobody"], AGREE) == 0
        assert reviews.undoable == 0


def test_reviews_are_what_filters_ask_for(path):
    with opened(path) as reviews, AuditReader.open(path) as reader:
        reviews.apply(["q1"], Patch(verdict=ReviewVerdict.GOLD_WRONG, tags=("dup", "old")))
        reviews.apply(["q2"], Patch(tags=("dup",)))
        found = {
            wanted: [row.query_id for row in reader.page(parse_filter(wanted))]
            for wanted in ("is:reviewed", "is:unreviewed", "is:noted", "tag:dup", "-tag:old", "verdict:gold-wrong")
        }
        assert reviews.tags() == [("dup", 2), ("old", 1)]
    assert found == {
        "is:reviewed": ["q1"],
        "is:unreviewed": ["q2", "q3"],
        "is:noted": ["q1", "q2"],
        "tag:dup": ["q1", "q2"],
        "-tag:old": ["q2", "q3"],
        "verdict:gold-wrong": ["q1"],
    }


def test_a_second_audit_in_the_same_place_keeps_reviews_and_says_what_they_were_about(path):
    with opened(path) as reviews:
        reviews.apply(["q1", "q3"], AGREE)
        reviews.keep_place(Place(query_id="q3", filter="is:failing"))
    write(path, stage=Stage.FUSE, ids=("q1", "q2"))
    with opened(path) as reviews, AuditReader.open(path) as reader:
        assert reader.query("q1").diagnosis.stage is Stage.FUSE
        assert reviews.of("q1").about_stage is Stage.RERANK
        assert reviews.count() == 1, "q3 is not in the new audit"
        assert reviews.of("q3").verdict is ReviewVerdict.AGREE, "its review waits for an audit that has it"
        assert reviews.place().query_id == "q3"


def test_a_terminal_whose_audit_was_replaced_says_so_and_saves_nothing(path):
    with opened(path) as reviews:
        write(path, stage=Stage.FUSE)
        with pytest.raises(AuditFileError, match=r"another audit took its place. Nothing was saved; open it again"):
            reviews.apply(["q1"], AGREE)
    with opened(path) as reviews:
        assert reviews.of("q1") is None


def test_a_place_of_another_version_is_a_fresh_start(path):
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO meta VALUES ('place', '{\"page\": 3}')")
    with opened(path) as reviews:
        assert reviews.place() == Place()


def test_a_damaged_review_names_the_file(path):
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO reviews VALUES ('q1', 'agree', '[]', '{}')")
    with opened(path) as reviews, pytest.raises(AuditFileError, match=r"run\.audit: damaged: a review"):
        reviews.of("q1")


def test_a_file_that_may_not_be_written_is_refused_at_the_start(path, monkeypatch):
    with pytest.raises(AuditFileError, match="no such file"):
        Reviews.open(path.with_name("other.audit"))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("ragaudit.store.reviews.WAIT_SECONDS", 0.01)
    with pytest.raises(AuditFileError, match="another process is writing it"):
        Reviews.open(path)
    holder.close()
