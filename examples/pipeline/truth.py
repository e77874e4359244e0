"""The truth of each query, proved by running it again with its fault switched off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .cases import Case, GoldSpan
from .corpus import Source
from .faults import FAULTS, SOURCE_FAULTS
from .gold import gold_id, is_delivered, is_readable, is_satisfied
from .rerank import Idf
from .run import Run, answer_query
from .search import exact, predicate, rank_of
from .store import Models, Store, build

ANN_FAULTS = ("few_probes", "bulk_load_wrong_list")


class FaultDidNotBiteError(AssertionError):
    """A query does not show what its fault promises."""


def source_of(case: Case) -> str | None:
    """The source whose ingestion fault this query is about, if any."""
    names = [source for source, fault in SOURCE_FAULTS.items() if fault == case.fault]
    touched = [gold.source for gold in case.gold if gold.source in names]
    if not touched and len(names) == 1 and case.fault is not None:
        return names[0]
    return touched[0] if touched else None


def repaired_store(case: Case, sources: Mapping[str, Source], models: Models, actual: Store) -> Store:
    """The index with this query's ingestion fault switched off and every other one left on."""
    source_id = source_of(case)
    if source_id is None or case.fault in ("type_mismatch", "case_mismatch"):
        return actual
    faults = {key: fault for key, fault in SOURCE_FAULTS.items() if key != source_id}
    return build(sources, models, faults)


def truth_row(
    case: Case, run: Run, stores: tuple[Store, Store], sources: dict[str, Source], idf: Idf
) -> dict[str, Any]:
    """Check one query against its counterfactual and state its truth.

    Args:
        case: the query.
        run: the run as logged, fault on.
        stores: the index as it is, and with nothing broken.
        sources: the documents.
        idf: weights of stems.

    Raises:
        FaultDidNotBiteError: the fault changed nothing, or switching it off repaired nothing.
    """
    actual, reference = stores
    eligible = [gold for gold in case.gold if is_readable(gold, case, sources)]
    _no_unread_hits(case, run, actual)
    _no_other_loss(case, run, actual, reference, eligible)
    if case.fault is not None:
        store = repaired_store(case, sources, actual.models, actual)
        _prove(case, run, answer_query(case, store, idf, faulty=False), eligible)
    elif case.outcome in ("", "pass", "undetermined"):
        _require(case, _is_right(case, run, eligible), f"no fault, but not right: {run.answer.text!r}")
    fault = FAULTS[case.fault] if case.fault else None
    outcome = case.outcome or ("fail" if fault else "pass")
    is_hidden = outcome == "undetermined"
    stage = {"fail": fault.stage if fault else "none", "undetermined": "undetermined"}.get(outcome, "none")
    if is_hidden and fault is not None:
        outcome = "fail"
    row: dict[str, Any] = {
        "query_id": case.query_id,
        "outcome": outcome,
        "stage": stage,
        "acceptable_stages": list(dict.fromkeys([stage, *case.acceptable])),
        "cause": fault.cause if fault and outcome == "fail" and not is_hidden else None,
        "gap": case.gap or (fault.gap if fault and outcome == "fail" and not is_hidden else None),
    }
    if is_hidden:
        row["acceptable_outcomes"] = list(dict.fromkeys([outcome, "undetermined", *(["pass"] if not fault else [])]))
    if len(case.gold) > 1 and outcome == "fail":
        row["stage_per_gold"] = {
            gold_id(gold, actual, reference): _gold_stage(gold, run, eligible, stage) for gold in case.gold
        }
    row["why"] = case.why
    return row


def _prove(case: Case, on: Run, off: Run, eligible: list[GoldSpan]) -> None:
    assert case.fault is not None
    stage = FAULTS[case.fault].stage
    _require(case, not _is_right(case, on, eligible), f"{case.fault} is on, and all is right: {on.answer.text!r}")
    _require(case, _is_right(case, off, eligible), f"{case.fault} is off, and it is not right: {off.answer.text!r}")
    if stage == "generate" or case.fault == "not_deleted":
        _require(case, is_satisfied(case, on, eligible), "gold was not delivered, so it is not the generator")
        return
    if case.fault != "acl_filter_lost":
        _require(case, not is_satisfied(case, on, eligible), f"{case.fault} is on, and the gold is delivered")


def _no_other_loss(case: Case, run: Run, actual: Store, reference: Store, eligible: list[GoldSpan]) -> None:
    """The lists must tell the story of the fault, not of another one."""
    for gold in case.gold if case.outcome != "label_issue" else ():
        _require(case, gold.span in actual.ingested[gold.source].source.text, f"not in the source: {gold.span!r}")
    stage = FAULTS[case.fault].stage if case.fault else None
    k = run.settings["k_final"]
    lost = [gold_id(gold, actual, reference) for gold in eligible if not is_delivered(gold, run)]
    in_arms = [_best_arm_rank(chunk_id, run) for chunk_id in lost]
    if stage == "fuse":
        _require(case, all(rank is not None and rank <= k for rank in in_arms), f"gold is in no arm's top {k}")
    elif stage in ("retrieve", "embed") and case.fault != "no_reranker":
        _require(case, all(rank is None for rank in in_arms), f"gold is in an arm: {in_arms}")
    elif stage == "filter" or case.fault == "no_reranker":
        _require(case, all(rank is None or rank > k for rank in in_arms), f"gold is in an arm's top {k}: {in_arms}")
    elif stage == "rerank":
        pool = run.candidates if run.candidates is not None else [hit.chunk_id for hit in run.fused]
        _require(case, all(chunk_id in pool for chunk_id in lost), "gold did not reach the reranker")
    if case.fault not in ANN_FAULTS and case.fault != "acl_filter_lost":
        _no_ann_miss(case, run, actual, reference, eligible)


def _no_ann_miss(case: Case, run: Run, actual: Store, reference: Store, eligible: list[GoldSpan]) -> None:
    hits = run.arms.get("dense")
    if hits is None or run.id_map or run.settings["filter"]["mode"] == "post":
        return
    ranked = exact(actual, actual.models.main.embed(run.search_text), predicate(case.user_acl, case.filters))
    limit = run.settings["search"]["dense"]["fetch_k"]
    for gold in eligible:
        chunk_id = gold_id(gold, actual, reference)
        rank = rank_of(chunk_id, ranked)
        is_missed = rank is not None and rank <= limit and rank_of(chunk_id, hits) is None
        _require(case, not is_missed or actual.rows[chunk_id].source_id in SOURCE_FAULTS, f"ANN missed {chunk_id}")


def _no_unread_hits(case: Case, run: Run, actual: Store) -> None:
    foreign = [row.chunk_id for row in run.packed if row.acl and not set(row.acl) & set(case.user_acl)]
    is_leak = case.fault == "acl_filter_lost"
    _require(case, bool(foreign) == is_leak, f"chunks the user may not read: {foreign}")


def _is_right(case: Case, run: Run, eligible: list[GoldSpan]) -> bool:
    return run.grade.correct and run.grade.supported and is_satisfied(case, run, eligible)


def _best_arm_rank(chunk_id: str, run: Run) -> int | None:
    ranks: list[int] = []
    for hits in run.arms.values():
        names = [run.id_map.get(hit.chunk_id, hit.chunk_id) for hit in hits or ()]
        if chunk_id in names:
            ranks.append(names.index(chunk_id) + 1)
    return min(ranks, default=None)


def _gold_stage(gold: GoldSpan, run: Run, eligible: list[GoldSpan], stage: str) -> str:
    if gold not in eligible:
        return "none"
    return "none" if is_delivered(gold, run) and stage != "generate" else stage


def _require(case: Case, holds: bool, message: str) -> None:
    if not holds:
        raise FaultDidNotBiteError(f"{case.query_id}: {message}")
