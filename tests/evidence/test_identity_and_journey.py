"""Which ids stand for a gold id, and where it stands at each checkpoint."""

from typing import Any

import pytest
from evidence_builders import evidence, gold, inventory, ranking, trace

from ragaudit.evidence.identity import Identities, Via
from ragaudit.evidence.journey import Place, journey
from ragaudit.model.diagnosis import Checkpoint, State
from ragaudit.model.inventory import Inventory
from ragaudit.model.texts import content_hash
from ragaudit.model.trace import Answer, Hit

TEXT = "Refunds within 30 days."


def found(held: Inventory, *ids: str, packed: bool = False, **over: Any) -> Place | None:
    """Where the gold is in a list of these ids, or in a context of them."""
    query = trace(**({"final_context_ids": ids} if packed else {"fused": ranking(*ids)}), **over)
    seen = evidence(query, held)
    if packed:
        assert seen.packed is not None
        return seen.packed[0]
    return seen.lists["fused"].places[0]


ROW = {"chunk_id": "g", "source_id": "s", "text": TEXT}
PARENT = {"chunk_id": "p", "source_id": "s", "kind": "parent", "text": TEXT + " Keep the receipt."}


@pytest.mark.parametrize(
    ("held", "hit", "via"),
    [
        (inventory(), "g", Via.ITSELF),
        (inventory({**ROW, "aliases": ["row-7"]}), "row-7", Via.ALIAS),
        (inventory({**ROW, "chunk_id": "c", "aliases": ["g"]}), "c", Via.ALIAS),
        (inventory(ROW, {"chunk_id": "twin", "text": "Refunds  within\n30 days."}), "twin", Via.SAME_TEXT),
        (
            inventory({"chunk_id": "g", "content_hash": content_hash(TEXT)}, {**ROW, "chunk_id": "t"}),
            "t",
            Via.SAME_TEXT,
        ),
        (inventory({**ROW, "parent_id": "p"}, PARENT), "p", Via.PARENT),
        (inventory({**ROW, "parent_id": "p"}), "p", Via.PARENT),
        (inventory({"chunk_id": "s#1", "source_id": "g"}), "s#1", Via.SOURCE),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_another_id_stands_for_the_gold(held: Inventory, hit: str, via: Via, packed: bool) -> None:
    assert found(held, "d1", hit, packed=packed) == Place(2, None, hit, via)


def test_an_id_map_names_the_gold_in_a_list() -> None:
    assert found(inventory(), "row-7", id_map={"row-7": "g"}) == Place(1, None, "row-7", Via.MAPPED)
    assert found(inventory(), "row-7", id_map={"row-7": "other"}) is None


def test_a_child_stands_for_a_gold_parent_in_a_search_and_not_in_the_context() -> None:
    held = inventory({**PARENT, "chunk_id": "g"}, {"chunk_id": "c1", "source_id": "s", "parent_id": "g"})
    assert found(held, "c1") == Place(1, None, "c1", Via.CHILD)
    assert found(held, "c1", packed=True) is None


@pytest.mark.parametrize(
    ("held", "hit", "label"),
    [
        (inventory({**ROW, "parent_id": "p"}, {**PARENT, "source_id": "other"}), "p", {}),
        (inventory({**ROW, "chunk_id": "c", "aliases": ["g"], "source_id": "other"}), "c", {"source_id": "s"}),
        (inventory(ROW, {"chunk_id": "near", "text": TEXT + "!"}), "near", {}),
        (inventory({"chunk_id": "g", "text": ""}, {"chunk_id": "blank", "text": ""}), "blank", {}),
        (inventory(ROW, {"chunk_id": "sibling", "source_id": "s"}), "sibling", {}),
    ],
    ids=["foreign parent", "foreign alias", "other text", "two empty texts", "sibling"],
)
def test_what_does_not_stand_for_the_gold(held: Inventory, hit: str, label: dict[str, Any]) -> None:
    assert found(held, hit, gold=gold("g", **label)) is None


def test_a_hit_s_own_source_id_stands_for_document_level_gold() -> None:
    listed = (Hit("doc-chunk", 1, source_id="g"),)
    seen = evidence(trace(fused=listed, final_context_ids=("doc-chunk",)))
    assert seen.lists["fused"].places == seen.packed == (Place(1, None, "doc-chunk", Via.SOURCE),)
    chunk_level = evidence(trace(fused=listed), inventory(ROW))
    assert chunk_level.lists["fused"].places == (None,)


def test_a_packed_text_equal_to_the_gold_s_stands_for_it() -> None:
    query = trace(final_context_ids=("new-7",), context_texts={"new-7": "Refunds  within 30 days."})
    assert evidence(query, inventory(ROW)).packed == (Place(1, None, "new-7", Via.SAME_TEXT),)
    other = trace(final_context_ids=("new-7",), context_texts={"new-7": "Refunds within 31 days."})
    assert evidence(other, inventory(ROW)).packed == (None,)
    hashed = trace(final_context_ids=("new-7",), context_hashes={"new-7": content_hash("Refunds  within 30 days.")})
    assert evidence(hashed, inventory(ROW)).packed == (Place(1, None, "new-7", Via.SAME_TEXT),)


def test_the_first_place_counts_whatever_the_name() -> None:
    held = inventory({**ROW, "aliases": ["row-7"]})
    assert found(held, "d1", "row-7", "g") == Place(2, None, "row-7", Via.ALIAS)


def test_one_hit_stands_for_several_gold_ids() -> None:
    held = inventory({**ROW, "parent_id": "p"}, {**ROW, "chunk_id": "h", "text": "x", "parent_id": "p"}, PARENT)
    seen = evidence(trace(gold=gold("g", "h"), fused=ranking("d1", "p")), held)
    assert [place.rank for place in seen.lists["fused"].places if place] == [2, 2]


def test_a_row_of_another_source_is_not_the_gold_s_row() -> None:
    held = inventory({"chunk_id": "c", "source_id": "other", "aliases": ["g"]})
    identities = Identities.of(held)
    assert identities.chunk_of(gold("g", source_id="s")[0]) is None
    assert identities.chunk_of(gold("g")[0]) is held.chunk("c")


def test_the_logged_rank_never_counts_only_the_position() -> None:
    shifted = tuple(type(hit)(hit.id, hit.rank + 40, hit.score) for hit in ranking("d1", "g") if hit.rank is not None)
    place = evidence(trace(fused=shifted)).lists["fused"].places[0]
    assert place is not None
    assert place.rank == 2


# --- the journey --------------------------------------------------------------------------------------------------


def steps(held: Inventory | None = None, **over: Any) -> list[tuple[str, str, int | None, str | None, str | None]]:
    walked = journey(evidence(trace(**over), held), 0)
    return [(step.checkpoint.value, step.state.value, step.rank, step.list, step.note) for step in walked]


def test_what_was_not_logged_is_unobserved_and_every_checkpoint_appears() -> None:
    walked = steps()
    assert [step[0] for step in walked] == [checkpoint.value for checkpoint in Checkpoint]
    assert {step[1] for step in walked} == {State.UNOBSERVED.value}


def test_the_steps_stand_in_the_order_of_the_pipeline() -> None:
    held = inventory(
        {**ROW, "aliases": ["row-7"], "in": {"dense": True, "bm25": False}},
        sources=(
            {
                "source_id": "s",
                "registered": True,
                "acl": ["a"],
                "text": TEXT,
                "extracted_text": "Refunds with in 30 days.",
            },
        ),
    )
    walked = steps(
        held,
        user_acl=("a",),
        gold=gold("g", span="within 30 days"),
        arms={"dense": ranking("d1", "row-7", scores=(0.9, 0.8)), "bm25": ()},
        fused=ranking("row-7"),
        after_filter={"dense": ranking("g")},
        after_threshold=ranking("d1", "g"),
        rerank_input=ranking("g"),
        after_rerank=(),
        final_context_ids=("d1", "g"),
        prompt_ids=("d1",),
        answer=Answer(correct=False),
    )
    alias = "as row-7 (alias)"
    assert walked == [
        ("eligible", "present", None, None, None),
        ("registered", "present", None, None, None),
        ("parsed", "present", None, None, "normalised"),
        ("chunked", "present", None, None, None),
        ("indexed", "present", None, None, "not in bm25"),
        ("retrieved", "present", 2, "arm:dense", alias),
        ("retrieved", "absent", None, "arm:bm25", None),
        ("fused", "present", 1, "fused", alias),
        ("fused", "present", 2, "after_threshold", None),
        ("filtered", "present", 1, "after_filter:dense", None),
        ("reranked", "present", 1, "rerank_input", None),
        ("reranked", "absent", None, "after_rerank", None),
        ("packed", "present", 2, "final_context_ids", None),
        ("prompted", "absent", None, "prompt_ids", None),
        ("answered", "absent", None, None, None),
    ]


def test_an_empty_list_is_absent_and_a_missing_one_is_unobserved() -> None:
    empty = [step for step in steps(after_rerank=()) if step[0] == "reranked"]
    missing = [step for step in steps(after_rerank=None) if step[0] == "reranked"]
    assert empty == [("reranked", "absent", None, "after_rerank", None)]
    assert missing == [("reranked", "unobserved", None, None, None)]


def test_delivered_is_the_prompt_and_the_context_only_where_no_prompt_was_logged() -> None:
    both = evidence(trace(final_context_ids=("g",), prompt_ids=()))
    assert both.delivered == (None,)
    assert evidence(trace(final_context_ids=("g",))).delivered == (Place(1, None, "g", Via.ITSELF),)
    assert evidence(trace()).delivered is None


def test_a_list_s_score_is_its_score_and_else_the_fused_one() -> None:
    place = evidence(trace(arms={"dense": ranking("g", scores=(0.7,))})).lists["arm:dense"].places[0]
    assert place == Place(1, 0.7, "g", Via.ITSELF)
