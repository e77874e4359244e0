"""Who may read what, how a filter meets a chunk, what came in against the rules, and what is then withheld."""

from typing import Any

import pytest
from evidence_builders import ANY, evidence, gold, inventory, ranking, trace
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.config import AclSettings
from ragaudit.evidence.access import Access
from ragaudit.evidence.access_clauses import is_access_clause
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.leaks import Foreign, foreign_hits
from ragaudit.evidence.predicate import Match, clauses, match
from ragaudit.evidence.principals import admits, clause_meets, denials, meets, named_principals
from ragaudit.evidence.withheld import without_unreadable_text
from ragaudit.model.inventory import Inventory
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import ArmStatus, Gold, Hit, Trace

ALL = AclSettings(rule="all")
PUBLIC = AclSettings(everyone=("public",))
NOTHING_SAID = Pipeline()


def access_of(query: Trace, held: Inventory, pipeline: Pipeline = NOTHING_SAID) -> Access:
    return Access(query, Identities.of(held), ANY, pipeline)


def may_read(chunk_id: str, query: Trace, inventory: Inventory) -> bool | None:
    return access_of(query, inventory).may_read(chunk_id)


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
        # differ in case or spaces alone: not proven either way
        (("Tenant:acme",), ("tenant:acme",), ANY, None),
        ((" a",), ("a",), ANY, None),
        (("A", "b"), ("a", "b"), ALL, None),
        (("A", "c"), ("a", "b"), ALL, False),
        # every user, perhaps, until [acl] everyone says so
        (("public",), ("a",), ANY, None),
        (("Everyone",), (), ANY, None),
        (("all",), ("a",), ANY, None),
        (("*",), ("a",), ANY, None),
        (("all",), ("a",), PUBLIC, False),
        (("public", "hr"), ("a",), ALL, False),
        (("all-staff",), ("a",), ANY, False),
        # entries that deny are not evaluated
        (("a", "!user:bob"), ("a", "user:bob"), ANY, None),
        (("a", "!user:bob"), ("a",), ANY, None),
        (("a", "!user:bob"), ("c",), ANY, False),
        (("a", "deny:c"), ("c",), ANY, None),
        (("a", "-c"), ("C",), ANY, None),
        (("!user:bob",), ("a",), ANY, None),
        (("a", "b", "!c"), ("a",), ALL, False),
    ],
)
def test_admits(acl: Any, user: Any, rule: AclSettings, expected: bool | None) -> None:
    assert admits(acl, user, rule) is expected


@pytest.mark.parametrize(
    ("acl", "sent", "expected"),
    [
        (("a", "b"), ("b",), True),
        (("A",), ("a",), False),
        (("public",), ("a",), False),
        ((), ("a",), False),
        (("a", "!b"), ("a",), None),
        (None, ("a",), None),
        (("a",), None, None),
    ],
)
def test_a_store_compares_word_for_word(acl: Any, sent: Any, expected: bool | None) -> None:
    assert meets(acl, sent, ANY) is expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ({"$in": ["a"]}, ("a",)),
        ({"any": "a"}, ("a",)),
        ({"ne": "a"}, None),
        (True, None),
        ([], None),
    ],
)
def test_the_principals_of_a_clause(condition: Any, expected: tuple[str, ...] | None) -> None:
    assert named_principals(condition) == expected


def test_a_clause_counts_by_what_was_sent_and_one_of_unknown_form_by_what_the_user_holds() -> None:
    assert clause_meets(["a"], ("b",), ("a", "b"), ANY) is False
    assert clause_meets(True, ("b",), ("a", "b"), ANY) is True
    assert clause_meets(True, ("public",), ("a",), PUBLIC) is True
    assert clause_meets(True, ("b",), None, ANY) is None


def test_the_entries_that_deny() -> None:
    assert denials(("a", "!b", "-c", "deny:d", "!", "-")) == ["!b", "-c", "deny:d"]


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
    assert may_read("g", query, held(source_acl, chunk_acl)) is expected
    assert evidence(query, held(source_acl, chunk_acl)).gold[0].eligible is expected


def test_the_label_s_own_word_wins() -> None:
    query = trace(user_acl=("a",), gold=gold("g", eligible=True))
    assert evidence(query, held(["b"])).gold[0].eligible is True


def test_a_document_level_label_takes_the_acl_of_its_document() -> None:
    assert evidence(trace(user_acl=("a",), gold=gold("s")), held(["b"])).gold[0].eligible is False


def test_an_alias_is_as_readable_as_its_chunk() -> None:
    row = {"chunk_id": "g", "source_id": "s", "aliases": ["row-7"]}
    hidden = inventory(row, sources=({"source_id": "s", "acl": ["b"]},))
    assert may_read("row-7", trace(user_acl=("a",)), hidden) is False


SECRET = "The salary band begins at ninety thousand."
HR_SOURCE = {"source_id": "hr", "acl": ["hr"]}
OPEN_SOURCE = {"source_id": "s", "acl": ["a"]}


def reads(chunk_id: str, *chunks: Any, **log: Any) -> bool | None:
    """May a user who holds `a` read it, given HR's source and an open one?"""
    return may_read(chunk_id, trace(user_acl=("a",), **log), inventory(*chunks, sources=(HR_SOURCE, OPEN_SOURCE)))


def test_a_document_id_in_a_list_has_the_acl_of_its_document() -> None:
    assert (reads("hr"), reads("s"), reads("x")) == (False, True, None)


@pytest.mark.parametrize("logged", [{"source_id": "hr"}, {"metadata": {"source_id": "hr"}}])
@pytest.mark.parametrize("listed", ["fused", "after_rerank", "arms", "after_filter"])
def test_a_hit_has_the_acl_of_the_source_that_it_was_logged_with(logged: dict[str, Any], listed: str) -> None:
    hits = (Hit("x", 1, **logged),)
    assert reads("x", **{listed: {"dense": hits} if listed in ("arms", "after_filter") else hits}) is False


def test_a_mapped_id_has_the_acl_of_what_it_stands_for() -> None:
    row = {"chunk_id": "h", "source_id": "hr"}
    assert reads("p-2", row, id_map={"p-2": "h"}) is False
    assert reads("p-2", row, id_map={"p-2": "s"}) is True
    assert reads("p-2", row) is None


def test_a_parent_without_a_source_is_as_closed_as_any_of_its_children() -> None:
    parent = {"chunk_id": "P", "kind": "parent"}
    closed = {"chunk_id": "c1", "source_id": "hr", "parent_id": "P"}
    open_ = {"chunk_id": "c2", "source_id": "s", "parent_id": "P"}
    unknown = {"chunk_id": "c3", "source_id": "t", "parent_id": "P"}
    assert reads("P", parent, closed, open_) is False
    assert reads("P", closed) is False
    assert reads("P", parent, open_) is True
    assert reads("P", parent, open_, unknown) is None
    assert reads("P", {**parent, "source_id": "s"}, closed) is True


def test_an_unknown_id_whose_text_only_unreadable_chunks_hold_is_unreadable() -> None:
    row = {"chunk_id": "h", "source_id": "hr", "text": SECRET}
    assert reads("x", row, context_texts={"x": SECRET}) is False
    assert reads("x", row, context_hashes={"x": content_hash(SECRET)}) is False
    assert reads("x", row, fused=(Hit("x", 1, text=SECRET),)) is False
    assert reads("x", row, context_texts={"x": "another text"}) is None
    assert reads("x", row, {"chunk_id": "g", "source_id": "s", "text": SECRET}, context_texts={"x": SECRET}) is None
    assert reads("x", row, {"chunk_id": "g", "text": SECRET}, context_texts={"x": SECRET}) is None
    assert reads("g", row, {"chunk_id": "g", "text": SECRET}, context_texts={"g": SECRET}) is None


def test_gold_takes_the_acl_of_the_source_that_its_hit_was_logged_with() -> None:
    query = trace(user_acl=("a",), fused=(Hit("g", 1, source_id="hr"),))
    assert evidence(query, inventory(sources=(HR_SOURCE,))).gold[0].eligible is False


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
        ({"lt": 5}, "4", Match.TYPE),
        ({"lt": 5}, "6", Match.NO),
        ({"gte": "2020"}, 2022, Match.TYPE),
        ({"gte": 2020}, "spring", Match.UNKNOWN),
        ({"gte": 2020}, ["2019", 2021], Match.YES),
        (False, None, Match.LOOSE),
        ("acme", None, Match.LOOSE),
        ("acme", [None], Match.LOOSE),
        ({"gte": 2020}, None, Match.LOOSE),
        (None, None, Match.YES),
        ({"gte": 2020, "lt": 2025}, 2024, Match.YES),
        ({"gte": 2020, "lt": 2025}, 2026, Match.NO),
        ({"near": 3}, 3, Match.UNKNOWN),
        ({}, "a", Match.UNKNOWN),
    ],
)
def test_match(condition: Any, stored: Any, expected: Match) -> None:
    assert match(condition, {"field": stored}, "field") is expected


@pytest.mark.parametrize(
    ("field", "condition", "stored", "expected"),
    [
        ("lang", "es", "es-MX", Match.LOOSE),
        ("language", "es-MX", "es", Match.LOOSE),
        ("meta.lang", ["en", "es"], "es_MX", Match.LOOSE),
        ("lang", "es-ES", "es-MX", Match.NO),
        ("lang", "es", "est", Match.NO),
        ("region", "es", "es-MX", Match.NO),
    ],
)
def test_a_language_that_only_adds_a_region_is_no_plain_mismatch(
    field: str, condition: Any, stored: Any, expected: Match
) -> None:
    assert match(condition, {field: stored}, field) is expected


@pytest.mark.parametrize(
    ("field", "condition", "expected"),
    [
        ("tenant", "globex", True),
        ("tenant_id", "globex", True),
        ("tenantId", 7, True),
        ("metadata.Tenant-ID", "globex", True),
        ("allowedGroups", ["x"], True),
        ("schema_name", "erp", True),
        ("tenant.keyword", "globex", True),
        ("org.id", 7, True),
        ("user.language", "en", False),
        ("metadata.dataset", "2024", False),
        ("dataset", ["2023-2024", "v2"], False),
        ("dataset", ["2024", "acme"], True),
        ("namespace", {"ne": "acme"}, False),
        ("collection", 9, True),
        ("collection", 8, False),
        ("year", 2026, False),
        ("tags", "adr", False),
        ("plant", "north", True),
        ("plant", "south", False),
        ("plant_id", {"$in": ["south", "north"]}, True),
        ("owner_or_reader", "user:u42", True),
        ("catalog", 9, True),
    ],
)
def test_a_clause_is_about_access_by_its_field_or_by_a_principal_of_the_user(
    field: str, condition: Any, expected: bool
) -> None:
    assert is_access_clause(field, condition, ("plant:north", "user:u42", "catalog:9")) is expected


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


HR_IDS = Identities.of(HR)


def foreign(**over: Any) -> tuple[Foreign, ...]:
    expected = over.pop("expected", None)
    pipeline = Pipeline.model_validate({"filter": {"expected": expected}} if expected else {})
    return foreign_hits(access_of(trace(user_acl=("a",), **over), HR, pipeline))


def test_an_unreadable_chunk_in_the_context_is_foreign() -> None:
    assert foreign(final_context_ids=("h", "g"), fused=ranking("h", "g")) == (Foreign("h", None, True),)
    assert foreign(final_context_ids=("h", "g"), fused=ranking("g")) == (Foreign("h", None, False),)


def test_a_chunk_that_was_found_and_not_packed_is_no_leak() -> None:
    assert foreign(final_context_ids=("g",), fused=ranking("h", "g")) == ()


def test_the_sent_and_the_expected_filter_are_both_held_up() -> None:
    packed: dict[str, Any] = {"final_context_ids": ("f", "g"), "fused": ranking("f", "g")}
    assert foreign(**packed) == ()
    assert foreign(**packed, filters_applied={"tenant": "acme"}) == (Foreign("f", "tenant", True, is_leak=False),)
    assert foreign(**packed, expected={"tenant": "acme"}) == (Foreign("f", "tenant", True, is_leak=False),)
    assert foreign(**packed, filters_applied={"year": 2026}) == ()


def test_metadata_that_the_hit_was_logged_with_counts_where_there_is_no_row() -> None:
    listed = (Hit("x", 1, metadata={"tenant": "other"}),)
    found = foreign(final_context_ids=("x",), fused=listed, filters_applied={"tenant": "acme"})
    assert found == (Foreign("x", "tenant", True),)


def test_without_any_list_it_is_not_known_whether_a_search_let_it_in() -> None:
    assert foreign(final_context_ids=("h", "g")) == (Foreign("h", None, None),)
    assert foreign(final_context_ids=("h", "g"), arms={"dense": ()}) == (Foreign("h", None, False),)


def test_a_clause_about_a_subject_makes_a_foreign_row_and_no_leak() -> None:
    listed = (Hit("x", 1, metadata={"year": 1999, "tenant": "other"}),)
    packed: dict[str, Any] = {"final_context_ids": ("x",), "fused": listed}
    assert foreign(**packed, filters_applied={"year": 2026}) == (Foreign("x", "year", True, is_leak=False),)
    both = {"year": 2026, "tenant": "acme"}
    assert foreign(**packed, filters_applied=both) == (Foreign("x", "tenant", True),)


def test_a_parent_of_a_leak_that_was_searched_came_out_of_the_search() -> None:
    held = inventory({"chunk_id": "c", "source_id": "hr", "parent_id": "P"}, sources=(HR_SOURCE,))
    query = trace(user_acl=("a",), fused=ranking("c", "p-2"), final_context_ids=("P",))
    assert foreign_hits(access_of(query, held)) == (Foreign("P", None, True),)
    listed = query.model_copy(update={"fused": ranking("p-2")})
    assert foreign_hits(access_of(listed, held)) == (Foreign("P", None, False),)
    mapped = listed.model_copy(update={"id_map": {"p-2": "P"}})
    assert foreign_hits(access_of(mapped, held)) == (Foreign("P", None, True),)


def test_a_label_against_its_acl_takes_back_only_what_that_acl_would_admit() -> None:
    """The user may hold "board" as well, or "b" may be its other name: that says nothing about HR."""
    held = inventory(
        {"chunk_id": "g", "source_id": "b"},
        {"chunk_id": "b2", "source_id": "b"},
        {"chunk_id": "h", "source_id": "hr"},
        sources=({"source_id": "b", "acl": ["board"]}, HR_SOURCE),
    )
    query = trace(
        user_acl=("a",), gold=gold("g", eligible=True), final_context_ids=("g", "b2", "h"), fused=ranking("h")
    )
    assert foreign_hits(access_of(query, held)) == (Foreign("h", None, True),)
    access = access_of(query, held)
    assert (access.may_read("b2"), access.is_leak("b2"), access.may_show("b2")) == (False, False, False)
    assert access.label_disagrees(query.gold[0]) is True
    assert access.label_disagrees(Gold(id="g")) is False
    unlabelled = query.model_copy(update={"gold": gold("g")})
    assert [hit.id for hit in foreign_hits(access_of(unlabelled, held))] == ["g", "b2", "h"]


def test_a_value_of_another_type_or_case_is_no_leak() -> None:
    listed = (Hit("x", 1, metadata={"tenant": "ACME"}), Hit("y", 2, metadata={"tenant": "acme"}))
    assert foreign(final_context_ids=("x", "y"), fused=listed, filters_applied={"tenant": "acme"}) == ()


def test_withheld_text_leaves_id_rank_and_score() -> None:
    hidden = Hit("h", 1, 0.9, None, ("dense",), "secret", "hr", {"title": "secret"}, {"page_content": "secret"})
    shown = Hit("g", 2, 0.8, text="open")
    packed: dict[str, Any] = {"context_texts": {"h": "secret", "g": "open"}, "context_hashes": {"h": "1", "g": "2"}}
    kept = without_unreadable_text(
        trace(user_acl=("a",), arms={"dense": (hidden, shown)}, **packed), HR_IDS, ANY, NOTHING_SAID
    )
    assert kept.arms == {"dense": (Hit("h", 1, 0.9, None, ("dense",), None, "hr"), shown)}
    assert kept.context_texts == {"g": "open"}
    assert kept.context_hashes == {"g": "2"}


def test_a_trace_without_unreadable_text_is_returned_as_it_is() -> None:
    query = trace(user_acl=("a",), fused=(Hit("g", 1, text="open"), Hit("h", 2)))
    assert without_unreadable_text(query, HR_IDS, ANY, NOTHING_SAID) is query


def test_what_shows_that_a_chunk_is_unreadable_is_kept_without_its_text() -> None:
    held = Identities.of(inventory({"chunk_id": "h", "source_id": "hr", "text": SECRET}, sources=(HR_SOURCE,)))
    listed = (
        Hit("x", 1, text=SECRET),
        Hit("y", 2, text=SECRET, metadata={"source_id": "hr", "title": "Salaries"}),
        Hit("z", 3, text="globex", metadata={"tenant": "globex", "title": "Globex"}),
    )
    query = trace(user_acl=("a",), fused=listed, filters_applied={"tenant": "acme"})
    kept = without_unreadable_text(query, held, ANY, NOTHING_SAID)
    assert kept.fused == (Hit("x", 1), Hit("y", 2, source_id="hr"), Hit("z", 3, metadata={"tenant": "globex"}))
    assert kept.context_hashes == {
        i: content_hash(text) for i, text in zip("xyz", (SECRET, SECRET, "globex"), strict=True)
    }
    again = Access(kept, held, ANY, NOTHING_SAID)
    assert [again.may_show(i) for i in "xyz"] == [False, False, False]


@pytest.mark.parametrize("where", ["query", "arm"])
def test_a_row_that_violates_an_access_clause_is_not_shown_unless_an_acl_admits_the_user(where: str) -> None:
    sent: dict[str, Any] = {"filters_applied": {"tenant": "acme"}}
    if where == "arm":
        sent = {"arm_status": {"dense": ArmStatus(filter={"tenant": "acme"}), "bm25": ArmStatus()}}
    query = trace(user_acl=("a",), **sent)
    rows = [
        {"chunk_id": i, "metadata": {"tenant": tenant}} for i, tenant in (("o", "other"), ("g", "acme"), ("n", None))
    ]
    shared = {"chunk_id": "f", "source_id": "s", "metadata": {"tenant": "other"}}
    access = access_of(query, inventory(*rows, shared, sources=(OPEN_SOURCE,)))
    assert {i: access.may_show(i) for i in "ognfx"} == {"o": False, "g": True, "n": True, "f": True, "x": True}
    assert [access.broken_clause(i) for i in "ogn"] == ["tenant", None, None]
    assert access.may_read("o") is None


def test_arms_that_send_different_values_are_each_obeyed() -> None:
    sent = {"a": ArmStatus(filter={"tenant": "acme"}), "b": ArmStatus(filter={"tenant": "beta"})}
    rows = [{"chunk_id": tenant, "metadata": {"tenant": tenant}} for tenant in ("acme", "beta", "other")]
    access = access_of(trace(arm_status=sent), inventory(*rows))
    assert [access.broken_clause(i) for i in ("acme", "beta", "other")] == [None, None, "tenant"]
