import pytest

from ragaudit.evidence.feedback import UserFeedback, liked
from ragaudit.model.feedback import Feedback
from ragaudit.model.trace import Trace


@pytest.mark.parametrize("rating", [True, 1, 1.0, "up", "Thumbs up", "+1"])
def test_good_ratings(rating):
    assert liked(rating) is True


@pytest.mark.parametrize("rating", [False, 0, -1, "thumbs_down", "-1"])
def test_bad_ratings(rating):
    assert liked(rating) is False


@pytest.mark.parametrize("rating", [3, 0.4, "3 stars", None, float("nan")])
def test_a_rating_of_an_unknown_scale_says_nothing(rating):
    assert liked(rating) is None


def about(*events, query_id="q1", session="s1", context=("c1", "c2")):
    trace = Trace(query_id=query_id, query_text="?", k_final=2, session_id=session, final_context_ids=context)
    return UserFeedback.of(Feedback(**event) for event in events).about(trace)


def test_feedback_is_joined_by_the_session():
    assert about({"session_id": "s1", "rating": 1}) == "positive"
    assert about({"session_id": "s2", "rating": 1}) is None
    assert about({"session_id": "s1", "rating": 1}, session=None) is None


def test_feedback_that_names_chunks_is_about_the_queries_that_packed_one_of_them():
    event = {"session_id": "s1", "chunk_ids": ["c2"], "rating": -1}
    assert about(event) == "negative"
    assert about(event, context=("c9",)) is None


def test_feedback_that_names_the_query_is_about_no_other():
    event = {"session_id": "s1", "query_id": "q1", "rating": False}
    assert about(event) == "negative"
    assert about(event, query_id="q2") is None


def test_ratings_that_differ_are_mixed():
    assert about({"session_id": "s1", "rating": 1}, {"session_id": "s1", "rating": -1}) == "mixed"


def test_what_users_only_did_is_no_rating():
    assert about({"session_id": "s1", "implicit": "copied"}) is None
