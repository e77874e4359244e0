"""The catalogue: complete, ordered, closed; and no point of its space expresses wider access."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES
from ragaudit.errors import ConfigError
from ragaudit.experiments import levers
from ragaudit.experiments.guard import refuses
from ragaudit.experiments.levers import (
    ALWAYS_FROZEN,
    LEVERS,
    STEPS,
    Stack,
    Variable,
    admits,
    is_retrieval,
    lever,
    lever_for,
    step_of,
    takes,
    where,
)
from ragaudit.metrics.registry import REGISTRY
from ragaudit.model.diagnosis import STAGES, Stage
from ragaudit.model.experiment import Lever
from ragaudit.model.pipeline import Pipeline

MANUAL = Path(__file__).resolve().parents[2] / "docs" / "levers.md"
EACH = pytest.mark.parametrize("known", LEVERS, ids=lambda known: known.name)
FILTER_LEVERS = [known for known in LEVERS if known.variable.startswith("filter.")]
MEASURES = {info.name for info in REGISTRY} | {"leaks", "latency", "tokens"}


def names(found: tuple[Lever, ...]) -> list[str]:
    return [known.name for known in found]


def test_the_steps_stand_in_the_taxonomys_order() -> None:
    assert STEPS == (
        "Index and parse the gold's sources",
        "Chunk boundaries, overlap, headers",
        "Corrections before tuning",
        "Candidate pool before post-filters",
        "Pre-filter in place of post-filter",
        "Search breadth",
        "Floors, fusion, arms",
        "Rerank after fusion",
        "Pack",
        "Embeddings last",
        "Generation: not retrieval",
    )
    assert [known.order for known in LEVERS] == sorted({known.order for known in LEVERS})
    assert (lever("reingest_source").order, lever("embedding_model").order // 100) == (101, 10)


@pytest.mark.parametrize("cause", CAUSES)
def test_every_cause_is_answered_by_a_lever_of_its_stage(cause: str) -> None:
    found = lever_for(cause)
    assert found
    assert all(CAUSES[cause].stage in known.stages for known in found)
    assert [known.order for known in found] == sorted(known.order for known in found)


@EACH
def test_every_lever_answers_known_causes_and_names_exactly_their_stages(known: Lever) -> None:
    assert set(known.causes) <= set(CAUSES)
    assert {CAUSES[cause].stage for cause in known.causes} == set(known.stages)
    assert set(known.stages) <= set(STAGES)


@EACH
def test_every_lever_says_what_moves_what_to_watch_and_what_stays(known: Lever) -> None:
    assert {known.moves, *known.watch} <= MEASURES
    assert known.moves not in known.watch
    assert known.watch
    always = [what for what in ALWAYS_FROZEN if what != "K" or known.name != "k_final"]
    assert list(known.frozen[-len(always) :]) == always
    assert len(known.frozen) > len(always)


@EACH
def test_whoever_writes_an_index_needs_the_permission(known: Lever) -> None:
    writes = known.variable.startswith(("index.", "parser.", "chunker.", "embedding.corpus.", "embedding.*", "metric."))
    writes = writes or known.name in ("lexical_tokenizer", "parent_key")
    assert known.authorisation == ("index_write" if writes else None)


@EACH
def test_every_lever_says_how_in_known_stacks(known: Lever) -> None:
    assert len(known.how) >= 2
    assert set(known.how) <= set(get_args(Stack))
    assert all(text and len(text) <= 160 and not text.endswith(".") for text in known.how.values())


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ("source_stale", ["reingest_source"]),
        ("span_split", ["chunk_boundary", "chunk_overlap", "chunk_header"]),
        ("acl_data", ["acl_data"]),
        ("post_filter_underfill", ["post_filter_pool", "pre_filter"]),
        ("fused_floor", ["floor_moved", "floor_value"]),
        ("top_n_cut", ["rerank_top_n"]),
        ("reranker_demotion", ["rerank_blend", "rerank_off"]),
        ("below_k", ["arm_pool", "lexical_arm", "rerank_on", "rerank_candidates", "k_final", "embedding_model"]),
        ("no_such_cause", []),
    ],
)
def test_the_lever_to_try_first_stands_first(cause: str, expected: list[str]) -> None:
    assert names(lever_for(cause)) == expected


def test_generation_levers_are_marked_as_not_retrieval() -> None:
    assert [known.name for known in LEVERS if not is_retrieval(known)] == [
        "output_limit",
        "prompt",
        "synthesis",
        "abstention",
    ]
    assert is_retrieval(lever("prompt_window"))
    assert step_of(lever("prompt")) == "Generation: not retrieval"


def test_an_unknown_lever_is_an_error_that_says_where_to_look() -> None:
    with pytest.raises(
        ConfigError, match=r"^lever 'disable_acl': is not known\. `ragaudit levers` lists the 68 that are\.$"
    ):
        lever("disable_acl")


# --- no lever expresses wider access -------------------------------------------------------------------------------


def test_no_key_of_the_catalogue_holds_a_predicate_or_an_access_rule() -> None:
    assert {known.variable for known in LEVERS} == set(get_args(Variable))
    assert [known.variable for known in FILTER_LEVERS] == [
        "filter.value_type",
        "filter.enforced",
        "filter.fetch_k",
        "filter.mode",
    ]
    touching = re.compile(r"acl|access|expected|permission|tenant|principal|everyone|rule|user")
    assert [known.variable for known in LEVERS if touching.search(known.variable)] == ["index.acl"]


@pytest.mark.parametrize("variable", ["filter.expected", "acl.rule", "acl.everyone", "filter", "user_acl"])
def test_a_lever_on_a_predicate_or_a_rule_cannot_be_written_down(variable: str) -> None:
    entry = levers._FILE.step[0].lever[0].model_dump()
    with pytest.raises(ValidationError, match="variable"):
        levers._Entry.model_validate({**entry, "variable": variable})


PREDICATES: list[Any] = [
    None, "", {}, [], (), "*", "none", "off", "null", False, "post", {"tenant": "acme"}, {"acl": ["*"]}, ["*"],
    ["role:admin"], {"match_all": {}}, "1=1", "tenant_id IS NULL", "acl; DROP POLICY p",
]  # fmt: skip


@pytest.mark.parametrize("value", PREDICATES, ids=repr)
@pytest.mark.parametrize("known", [*FILTER_LEVERS, lever("acl_data"), lever("metadata_field")], ids=lambda k: k.name)
def test_no_filter_or_acl_lever_admits_a_predicate_an_acl_or_nothing(known: Lever, value: Any) -> None:
    assert not admits(known, value)


@pytest.mark.parametrize(
    "value",
    [None, {}, [], (), {"a": {"b": 1}}, [{"x": 1}], "drop\nit", "a" * 1001, object()],
    ids=lambda value: "object" if type(value) is object else repr(value),  # its repr is an address, of this process
)
@EACH
def test_nothing_and_structures_are_admitted_by_no_lever_but_a_floor_that_may_be_off(known: Lever, value: Any) -> None:
    may_be_off = value is None and known.variable == "thresholds.*.value"
    is_text = takes(known) == "text" and value == "drop\nit"
    assert admits(known, value) is (may_be_off or is_text)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pre_filter", "pre"),
        ("pre_filter", "scan"),
        ("post_filter_pool", 200),
        ("filter_value_type", "int"),
        ("filter_enforced", "every arm"),
        ("acl_data", "s12 2026-10-02"),
        ("floor_value", 0.3),
        ("floor_value", None),
        ("fusion_weights", {"dense": 0.5, "bm25": 0.5}),
        ("lexical_arm", ["dense", "bm25"]),
        ("rerank_off", ""),
        ("rerank_on", "bge-reranker-v2-m3"),
        ("rewrite_off", False),
        ("query_prefix", "query: "),
        ("k_final", 12),
    ],
)
def test_a_lever_admits_what_it_is_for(name: str, value: Any) -> None:
    assert admits(lever(name), value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k_final", True),
        ("k_final", "12"),
        ("fusion_weights", {"dense": -1}),
        ("rewrite_off", 0),
        ("acl_data", "public"),
    ],
)
def test_a_lever_admits_no_value_of_another_kind(name: str, value: Any) -> None:
    assert not admits(lever(name), value)


def test_every_sentence_that_the_space_renders_passes_the_guard() -> None:
    said = 0
    for known in LEVERS:
        parts = [known.name, known.summary, step_of(known), known.moves, takes(known), *known.watch, *known.frozen]
        parts.append(where(known))
        how = [*known.how.values(), "; ".join(f"{stack}: {text}" for stack, text in known.how.items())]
        whole = [
            f"{known.name}: pipeline.{known.variable}, {takes(known)}. {known.summary} {cause}: {CAUSES[cause].remedy} "
            f"{stack}: {text}. Frozen: {', '.join(known.frozen)}. Watch {', '.join(known.watch)}."
            for cause in known.causes
            for stack, text in known.how.items()
        ]
        refused = [text for text in (*parts, *how, *whole) if refuses(text)]
        assert refused == []
        said += len(parts) + len(how) + len(whole)
    assert said > 1500


# --- the manual ----------------------------------------------------------------------------------------------------


def test_the_manual_has_one_heading_for_each_lever_in_order_under_its_step() -> None:
    headings = [line for line in MANUAL.read_text(encoding="utf-8").splitlines() if line.startswith(("## ", "### "))]
    expected: list[str] = []
    for number, title in enumerate(STEPS, start=1):
        expected += [f"## {number} {title}", *(f"### {known.name}" for known in LEVERS if step_of(known) == title)]
    assert headings == expected


@EACH
def test_the_manual_says_what_the_catalogue_says(known: Lever) -> None:
    section = MANUAL.read_text(encoding="utf-8").split(f"\n### {known.name}\n")[1].split("\n### ")[0].split("\n## ")[0]
    assert known.summary in section
    assert f"- Key: `{known.variable}`: {takes(known)}" in section
    assert f"- Answers: {', '.join(f'`{cause}`' for cause in known.causes)}" in section
    assert (f"- Where: {where(known)}\n" in section) is bool(where(known))
    assert ("- Where:" in section) is bool(where(known))
    assert f"- Moves: {known.moves}; watch {', '.join(known.watch)}" in section
    assert ("- Needs: `index_write`" in section) is (known.authorisation is not None)
    assert all(f"- {stack}: {text}" in section for stack, text in known.how.items())


def test_keys_that_the_configuration_knows_are_spelled_as_there() -> None:
    tables = {name: field for name, field in Pipeline.model_fields.items()}
    unknown = {known.variable.split(".")[0] for known in LEVERS} - set(tables)
    assert unknown == {"index", "rewrite"}


def test_stages_without_a_lever_there_are_none() -> None:
    assert {stage for known in LEVERS for stage in known.stages} == set(STAGES) - {Stage.NONE}
