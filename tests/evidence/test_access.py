"""Who may read what, how a filter meets a chunk, what came in against the rules, and what is then withheld."""

from typing import Any

import pytest
from evidence_builders import ANY, evidence, gold, inventory, ranking, trace
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.config import AclSettings
from ragaudit.evidence.acl import admits, may_read
from ragaudit.evidence.leaks import Foreign, foreign_hits
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.evidence.withheld import without_unreadable_text
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import Hit

ALL = AclSettings(rule="all")
PUBLIC = AclSettings(everyone=("public",))


# --- acl ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acl", "user", "rule", "expected"),
    [
        (("a", "b"), ("b",), ANY, True),
        (("a", "b"), ("c",), ANY, False),
        (("a", "b"), ("b",), ALL, False),
        (("a", "b"), ("b", "a", "c"), ALL, True),
        ((), ("a",), ANY, False),
        ((), ("a",), ALL, False),
        (("a",), (), ANY, False),
        (None, ("a",), ANY, None),
        (("a",), None, ANY, None),
        (("public",), ("a",), PUBLIC, True),
        (("public",), (), PUBLIC, True),
        (("hr",), ("a",), PUBLIC, False),
        (("public", "a"), ("a",), AclSettings(rule="all", everyone=("public",)), True),
        (("Tenant:acme",), ("tenant:acme",), ANY, False),
    ],
)
def test_admits(acl: Any, user: Any, rule: AclSettings, expected: bool | None) -> None:
    assert admits(acl, user, rule) is expected


principals = st.frozensets(st.sampled_from("abcd")).map(lambda names: tuple(sorted(names)))


@given(principals, principals)
def test_who_holds_every_principal_of_a_list_holds_one_of_them(acl: tuple[str, ...], user: tuple[str, ...]) -> None:
    assert not admits(acl, user, ALL) or admits(acl, user, ANY)


@given(principals, principals, principals)
def test_more_principals_never_take_access_away(acl: Any, user: Any, more: Any) -> None:
    for rule in (ANY, ALL):
        assert not admits(acl, user, rule) or admits(acl, (*user, *more), rule)


def held(source_acl: Any = None, chunk_acl: Any = None):
    row = {"chunk_id": "g", "source_id": "s", "acl": chunk_acl}
    return inventory(row, sources=({"source_id": "s", "acl": source_acl},))


@pytest.mark.parametrize(
    ("source_acl", "chunk_acl", "expected"),
    [
        (["a"], ["b"], True),  # the source decides
        (["b"], ["a"], False),
        (None, ["a"], True),  # else the copy in the index
        (None, ["b"], False),
        (None, [], None),  # an empty copy proves nothing
        (None, None, None),
        ([], ["a"], False),  # an empty list at the source admits nobody
    ],
)
def test_the_source_s_acl_decides_and_the_stored_copy_only_where_it_is_unknown(
    source_acl: Any, chunk_acl: Any, expected: bool | None
) -> None:
    query = trace(user_acl=("a",))
    assert may_read("g", query, held(source_acl, chunk_acl), ANY) is expected
    assert evidence(query, held(source_acl, chunk_acl)).gold[0].eligible is expected


def test_the_label_s_own_word_wins() -> None:
    query = trace(user_acl=("a",), gold=gold("g", eligible=True))
    assert evidence(query, held(["b"])).gold[0].eligible is True


def test_a_document_level_label_takes_the_acl_of_its_document() -> None:
    assert evidence(trace(user_acl=("a",), gold=gold("s")), held(["b"])).gold[0].eligible is False


def test_an_alias_is_as_readable_as_its_chunk() -> None:
    row = {"chunk_id": "g", "source_id": "s", "aliases": ["row-7"]}
    hidden = inventory(row, sources=({"source_id": "s", "acl": ["b"]},))
    assert may_read("row-7", trace(user_acl=("a",)), hidden, ANY) is False


# --- predicate ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "stored", "expected"),
    [
        ("acme", "acme", Match.YES),
        ("acme", "other", Match.NO),
        ("acme", "Acme", Match.CASE),
        (3, "3", Match.TYPE),
        ("3", 3, Match.TYPE),
        (3, 3.0, Match.YES),
        (True, 1, Match.NO),
        (1, True, Match.NO),
        (True, "True", Match.TYPE),
        (True, "true", Match.CASE),
        ("None", None, Match.TYPE),
        ("none", None, Match.CASE),
        (["a", "b"], "b", Match.YES),
        (["a", "b"], "c", Match.NO),
        ("b", ["a", "b"], Match.YES),
        (["x", "b"], ["a", "b"], Match.YES),
        ([], "a", Match.NO),
        ("a", [], Match.NO),
        ({"eq": "a"}, "a", Match.YES),
        ({"$in": ["a", "b"]}, "b", Match.YES),
        ({"ne": "a"}, "b", Match.YES),
        ({"ne": "a"}, "a", Match.NO),
        ({"nin": ["a"]}, "A", Match.UNKNOWN),
        ({"gte": 2020}, 2020, Match.YES),
        ({"gt": 2020}, 2020, Match.NO),
        ({"lte": "2026-01-01"}, "2025-12-31", Match.YES),
        ({"lt": 5}, "4", Match.NO),
        ({"gte": 2020, "lt": 2025}, 2024, Match.YES),
        ({"gte": 2020, "lt": 2025}, 2026, Match.NO),
        ({"near": 3}, 3, Match.UNKNOWN),
        ({}, "a", Match.UNKNOWN),
    ],
)
def test_match(condition: Any, stored: Any, expected: Match) -> None:
    assert match(condition, {"field": stored}, "field") is expected


def test_a_field_that_the_metadata_does_not_show_is_unknown() -> None:
    assert match("a", {"other": "a"}, "field") is Match.UNKNOWN
    assert match("a", None, "field") is Match.UNKNOWN


def test_acl_clauses_are_not_metadata_clauses() -> None:
    assert list(clauses({"acl": ["a"], "tenant": "acme"})) == [("tenant", "acme")]
    assert list(clauses(None)) == []


values = st.one_of(st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False))


@given(values)
def test_every_value_meets_itself(value: Any) -> None:
    assert match(value, {"f": value}, "f") is Match.YES
    assert match([value], {"f": [value]}, "f") is Match.YES
    assert match({"ne": value}, {"f": value}, "f") is Match.NO


# --- leaks and withheld text --------------------------------------------------------------------------------------

HR = inventory(
    {"chunk_id": "h", "source_id": "hr"},
    {"chunk_id": "g", "source_id": "s", "metadata": {"tenant": "acme"}},
    {"chunk_id": "f", "source_id": "s", "metadata": {"tenant": "other"}},
    sources=({"source_id": "hr", "acl": ["hr"]}, {"source_id": "s", "acl": ["a"]}),
)


def foreign(**over: Any) -> tuple[Foreign, ...]:
    expected = over.pop("expected", None)
    pipeline = Pipeline.model_validate({"filter": {"expected": expected}} if expected else {})
    return foreign_hits(trace(user_acl=("a",), **over), HR, pipeline, ANY)


def test_an_unreadable_chunk_in_the_context_is_foreign() -> None:
    assert foreign(final_context_ids=("h", "g"), fused=ranking("h", "g")) == (Foreign("h", None, True),)
    assert foreign(final_context_ids=("h", "g"), fused=ranking("g")) == (Foreign("h", None, False),)


def test_a_chunk_that_was_found_and_not_packed_is_no_leak() -> None:
    assert foreign(final_context_ids=("g",), fused=ranking("h", "g")) == ()


def test_the_sent_and_the_expected_filter_are_both_held_up() -> None:
    packed = {"final_context_ids": ("f", "g")}
    assert foreign(**packed) == ()
    assert foreign(**packed, filters_applied={"tenant": "acme"}) == (Foreign("f", "tenant", True),)
    assert foreign(**packed, expected={"tenant": "acme"}) == (Foreign("f", "tenant", True),)
    assert foreign(**packed, filters_applied={"year": 2026}) == ()


def test_metadata_that_the_hit_was_logged_with_counts_where_there_is_no_row() -> None:
    listed = (Hit("x", 1, metadata={"tenant": "other"}),)
    found = foreign(final_context_ids=("x",), fused=listed, filters_applied={"tenant": "acme"})
    assert found == (Foreign("x", "tenant", True),)


def test_a_value_of_another_type_or_case_is_no_leak() -> None:
    listed = (Hit("x", 1, metadata={"tenant": "ACME"}), Hit("y", 2, metadata={"tenant": "acme"}))
    assert foreign(final_context_ids=("x", "y"), fused=listed, filters_applied={"tenant": "acme"}) == ()


def test_withheld_text_leaves_id_rank_and_score() -> None:
    hidden = Hit("h", 1, 0.9, None, ("dense",), "secret", "hr", {"title": "secret"}, {"page_content": "secret"})
    shown = Hit("g", 2, 0.8, text="open")
    packed: dict[str, Any] = {"context_texts": {"h": "secret", "g": "open"}, "context_hashes": {"h": "1", "g": "2"}}
    kept = without_unreadable_text(trace(user_acl=("a",), arms={"dense": (hidden, shown)}, **packed), HR, ANY)
    assert kept.arms == {"dense": (Hit("h", 1, 0.9, None, ("dense",), None, "hr"), shown)}
    assert kept.context_texts == {"g": "open"}
    assert kept.context_hashes == {"g": "2"}


def test_a_trace_without_unreadable_text_is_returned_as_it_is() -> None:
    query = trace(user_acl=("a",), fused=(Hit("g", 1, text="open"), Hit("h", 2)))
    assert without_unreadable_text(query, HR, ANY) is query
