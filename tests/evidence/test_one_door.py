"""What one query may show: one set of access clauses for leaks, the stored trace, and the judge."""

from typing import Any

import pytest
from evidence_builders import ANY, gold, inventory, ranking, trace

from ragaudit.evidence.access import Access
from ragaudit.evidence.candidates import sample_of, searchable
from ragaudit.evidence.identity import Identities
from ragaudit.evidence.leaks import Foreign, foreign_hits
from ragaudit.evidence.principals import in_other_words
from ragaudit.evidence.withheld import without_unreadable_text
from ragaudit.model.inventory import Inventory
from ragaudit.model.judgement import JudgeSample
from ragaudit.model.pipeline import Pipeline
from ragaudit.model.trace import ArmStatus, Hit, Trace

SECRET = "Salary bands of globex begin at ninety thousand."
OPEN = "Refunds are possible within thirty days."
THEIRS = {"tenant": "globex"}
WHERE = {
    "sent": ({"filters_applied": {"tenant": "acme"}}, {}),
    "arm": ({"arm_status": {"dense": ArmStatus(filter={"tenant": "acme"})}}, {}),
    "expected": ({"filters_applied": {}}, {"tenant": "acme"}),
}


def pipeline(expected: dict[str, Any] | None = None) -> Pipeline:
    return Pipeline.model_validate({"filter": {"expected": expected}} if expected else {})


def access(query: Trace, held: Inventory | None = None, expected: dict[str, Any] | None = None) -> Access:
    return Access(query, Identities.of(held or inventory()), ANY, pipeline(expected))


def judged(query: Trace, held: Inventory | None = None, expected: dict[str, Any] | None = None) -> JudgeSample:
    held = held or inventory()
    return sample_of(query, Identities.of(held), ANY, pipeline(expected), searchable(held))


@pytest.mark.parametrize("where", WHERE)
def test_what_is_hidden_is_a_leak_where_it_was_packed_and_reaches_no_file_and_no_judge(where: str) -> None:
    log, expected = WHERE[where]
    query = trace(
        user_acl=("u1",),
        arms={"dense": (Hit("x", 1, text=SECRET, metadata=THEIRS), Hit("g", 2, text=OPEN))},
        final_context_ids=("x", "g"),
        context_texts={"x": SECRET, "g": OPEN},
        reference=OPEN,
        **log,
    )
    door = access(query, expected=expected)
    assert foreign_hits(door) == (Foreign("x", "tenant", True),)
    assert [door.may_show(i) for i in "xg"] == [False, True]
    kept = without_unreadable_text(query, Identities.of(inventory()), ANY, pipeline(expected))
    assert kept.context_texts == {"g": OPEN}
    assert SECRET not in repr(kept)
    again = access(kept, expected=expected)
    assert foreign_hits(again) == (Foreign("x", "tenant", True),)
    assert judged(query, expected=expected).chunks is None
    deeper = judged(query.model_copy(update={"final_context_ids": ("g",)}), expected=expected)
    assert [chunk.text for chunk in (*(deeper.chunks or ()), *deeper.candidates)] == [OPEN]


def test_a_row_must_meet_what_was_sent_and_what_is_expected() -> None:
    rows = [{"chunk_id": name, "metadata": {"tenant": name}} for name in ("acme", "globex", "other")]
    query = trace(filters_applied={"tenant": ["globex", "acme"]})
    door = access(query, inventory(*rows), {"tenant": "acme"})
    assert [door.broken_clause(i) for i in ("acme", "globex", "other")] == [None, "tenant", "tenant"]


def test_an_acl_that_admits_the_user_outweighs_a_clause() -> None:
    held = inventory(
        {"chunk_id": "x", "source_id": "s", "metadata": THEIRS},
        {"chunk_id": "y", "source_id": "t", "metadata": THEIRS},
        sources=({"source_id": "s", "acl": ["u1"]}, {"source_id": "t", "acl": ["u2"]}),
    )
    query = trace(user_acl=("u1",), filters_applied={"tenant": "acme"}, final_context_ids=("x", "y"))
    door = access(query, held)
    assert foreign_hits(door) == (Foreign("x", "tenant", None, is_leak=False), Foreign("y", None, None))
    assert [door.may_show(i) for i in "xy"] == [True, False]


TENANT_ROW = {"chunk_id": "c", "source_id": "s", "metadata": THEIRS, "text": SECRET}
NAMES: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    "row": ("c", [TENANT_ROW], {}),
    "alias": ("old", [{**TENANT_ROW, "aliases": ["old"]}], {}),
    "mapped id": ("p", [TENANT_ROW], {"id_map": {"p": "c"}}),
    "hit of an alias": ("c", [{"chunk_id": "c", "aliases": ["old"]}], {"fused": (Hit("old", 1, metadata=THEIRS),)}),
    "hit of what it maps to": ("p", [], {"id_map": {"p": "c"}, "fused": (Hit("c", 1, metadata=THEIRS),)}),
    "hit of a mapped id": ("c", [], {"id_map": {"p": "c"}, "fused": (Hit("p", 1, metadata=THEIRS),)}),
    "hit, beside its row": ("c", [{"chunk_id": "c", "metadata": {}}], {"fused": (Hit("c", 1, metadata=THEIRS),)}),
    "parent": ("P", [{**TENANT_ROW, "parent_id": "P"}, {"chunk_id": "P", "source_id": "s"}], {}),
    "document": ("s", [TENANT_ROW], {}),
    "same text": ("z", [TENANT_ROW], {"context_texts": {"z": SECRET}}),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_clause_is_held_against_a_chunk_by_every_name(name: str) -> None:
    chunk_id, rows, log = NAMES[name]
    query = trace(filters_applied={"tenant": "acme"}, final_context_ids=(chunk_id,), gold=gold(chunk_id), **log)
    door = access(query, inventory(*rows))
    assert (door.broken_clause(chunk_id), door.may_show(chunk_id), door.is_leak(chunk_id)) == ("tenant", False, True)
    assert door.broken_by(query.gold[0]) == "tenant"
    mine = access(query.model_copy(update={"filters_applied": {"tenant": "globex"}}), inventory(*rows))
    assert (mine.broken_clause(chunk_id), mine.may_show(chunk_id), mine.is_leak(chunk_id)) == (None, True, False)


def test_a_text_that_a_chunk_of_the_user_holds_as_well_is_shown() -> None:
    rows = (TENANT_ROW, {"chunk_id": "d", "metadata": {"tenant": "acme"}, "text": SECRET})
    door = access(trace(filters_applied={"tenant": "acme"}, context_texts={"z": SECRET}), inventory(*rows))
    assert (door.broken_clause("z"), door.broken_clause("c"), door.broken_clause("d")) == (None, "tenant", None)


def test_stored_acls_close_a_parent_without_one_and_a_document() -> None:
    held = inventory(
        {"chunk_id": "c", "source_id": "s", "parent_id": "P", "acl": ["hr"]}, {"chunk_id": "P"}, {"chunk_id": "Q"}
    )
    door = access(trace(user_acl=("a",), gold=gold("s")), held)
    assert [door.may_read(i) for i in ("c", "P", "s", "Q")] == [False, False, False, None]
    assert door.eligible(door.trace.gold[0]) is None


@pytest.mark.parametrize("asked", ["c", "old", "p", "q"])
@pytest.mark.parametrize("listed", ["c", "old", "p", "q"])
def test_the_source_of_a_hit_counts_for_all_names_of_its_chunk(listed: str, asked: str) -> None:
    held = inventory({"chunk_id": "c", "aliases": ["old"]}, sources=({"source_id": "hr", "acl": ["hr"]},))
    query = trace(user_acl=("a",), id_map={"p": "c", "q": "old"}, fused=(Hit(listed, 1, source_id="hr"),))
    assert access(query, held).may_read(asked) is False


def test_fields_are_taken_from_the_row_then_from_the_hit() -> None:
    row = {"chunk_id": "c", "source_id": "s", "language": "de", "metadata": {"year": 2024}}
    hits = (Hit("c", 1, metadata={"year": 2023, "tag": "a"}), Hit("x", 2, source_id="s2"), Hit("y", 3))
    door = access(trace(fused=hits), inventory(row))
    known = {"source_id": "s", "language": "de", "lang": "de", "year": 2024, "tag": "a"}
    assert [door.metadata(i) for i in "cxy"] == [known, {"source_id": "s2"}, None]


# --- passages of sources and the judge ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "chunk", "log", "shown"),
    [
        ({}, {}, {}, True),
        ({}, {"metadata": THEIRS}, {}, False),
        ({}, {"acl": ["u2"]}, {}, False),
        ({"acl": ["u1"]}, {"metadata": THEIRS}, {}, True),
        ({"acl": ["u2"]}, {"metadata": {"tenant": "acme"}}, {}, False),
        ({}, {}, {"fused": (Hit("q", 1, source_id="s", metadata=THEIRS),)}, False),
    ],
)
def test_a_passage_of_a_source_is_shown_only_where_all_its_chunks_may_be(
    source: dict[str, Any], chunk: dict[str, Any], log: dict[str, Any], shown: bool
) -> None:
    held = inventory(
        {"chunk_id": "c", "source_id": "s", **chunk}, sources=({"source_id": "s", "text": OPEN, **source},)
    )
    query = trace(user_acl=("u1",), filters_applied={"tenant": "acme"}, reference=OPEN, final_context_ids=(), **log)
    assert [chunk.id for chunk in judged(query, held).candidates] == (["source:s#0"] if shown else [])


def test_a_subject_clause_bounds_the_candidates_and_never_the_context() -> None:
    """Half a context would be judged as if it were all that the generator read."""
    rows = [
        {"chunk_id": name, "text": OPEN, "metadata": {"lang": lang}}
        for name, lang in (("a", "es-MX"), ("b", None), ("g", "es"), ("d", "es-MX"), ("e", "es"))
    ]
    query = trace(
        filters_applied={"lang": "es"}, fused=ranking(*"abgde"), final_context_ids=("a", "b", "g"), reference=OPEN
    )
    sample = judged(query, inventory(*rows))
    assert [chunk.id for chunk in sample.chunks or ()] == ["a", "b", "g"]
    assert [chunk.id for chunk in sample.candidates] == ["e"]


def test_a_packed_chunk_that_the_user_may_not_read_leaves_no_context_to_judge() -> None:
    held = inventory({"chunk_id": "h", "source_id": "hr"}, sources=({"source_id": "hr", "acl": ["hr"]},))
    texts = {"h": SECRET, "g": OPEN}
    query = trace(user_acl=("a",), final_context_ids=("h", "g"), context_texts=texts)
    assert judged(query, held).chunks is None
    assert [c.text for c in judged(query.model_copy(update={"prompt_ids": ("g", "g")}), held).chunks or ()] == [OPEN]


# --- names --------------------------------------------------------------------------------------------------------


def test_one_id_for_all_names_of_a_hit() -> None:
    held = Identities.of(inventory({"chunk_id": "c", "aliases": ["old", "d"]}, {"chunk_id": "d"}))
    query = trace(id_map={"p": "old", "q": "c", "d2": "d"})
    assert [held.canonical(each, query) for each in ("c", "old", "p", "q", "d", "d2", "x")] == [*"cccc", *"dd", "x"]


def test_whether_any_acl_is_known() -> None:
    assert Identities.of(inventory({"chunk_id": "c", "acl": []}, sources=({"source_id": "s"},))).has_acls is False
    assert Identities.of(inventory({"chunk_id": "c", "acl": ["a"]})).has_acls is True
    assert Identities.of(inventory(sources=({"source_id": "s", "acl": []},))).has_acls is True


@pytest.mark.parametrize(
    ("entry", "principal", "same"),
    [
        ("Everyone except external users", "group:EveryoneExceptExternalUsers", True),
        ("role:HR-Team", "role:hr team", True),
        ("role:hr", "user:hr", False),
        ("hr", "role:ops", False),
        ("!hr", "role:hr", False),
        ("-", "group:", False),
    ],
)
def test_a_principal_in_other_words(entry: str, principal: str, same: bool) -> None:
    assert in_other_words(["x", entry], ["y", principal]) == ((entry, principal) if same else None)
