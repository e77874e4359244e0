"""Causes in the filter and the access rules. Every remedy repairs data or the predicate; none widens access."""

from ragaudit.diagnosis.causes.index import breadth_starved
from ragaudit.diagnosis.facts import ArmFacts, GoldFacts
from ragaudit.diagnosis.registry import cause
from ragaudit.evidence.predicate import ACL_KEY, Match
from ragaudit.evidence.principals import admits, in_other_words, named_principals
from ragaudit.model.diagnosis import Stage


def _gone(f: GoldFacts) -> bool:
    """The gold is in no arm, or in no list after the filter."""
    if not f.in_any_arm:
        return True
    after = [places.places[f.position] for name, places in f.evidence.lists.items() if name.startswith("after_filter")]
    return (bool(after) and all(place is None for place in after)) or all(entry.place is None for entry in f.merged)


@cause(
    "predicate_type",
    Stage.FILTER,
    "filter",
    summary="The filter compares values of different types, so a row that should match never does.",
    remedy="Send the filter value in its stored type (the filter stays as strict as it is); count the matching rows.",
)
def predicate_type(f: GoldFacts) -> str | None:
    return _clause(f, Match.TYPE, "only when both are read as text")


@cause(
    "predicate_case",
    Stage.FILTER,
    "filter",
    summary="The filter misses a row that differs only in case.",
    remedy="Fold case on both sides of that one comparison; count the matching rows.",
)
def predicate_case(f: GoldFacts) -> str | None:
    return _clause(f, Match.CASE, "only when case is folded")


def _clause(f: GoldFacts, kind: Match, how: str) -> str | None:
    if not _gone(f):
        return None
    for name, clause in f.filter.tested.items():
        if clause.found is kind:
            return f"{f.id}: filter {name} = {clause.sent!r} meets the stored {clause.stored!r} {how}"
    return None


@cause(
    "acl_data",
    Stage.FILTER,
    "filter",
    summary="The ACL stored in the index is empty or out of date; by its source or its label the user may read it.",
    remedy="Repair the stored ACL of that one document from its source, each principal in the words that the filter "
    "compares, and sync only that; the query filter stays.",
)
def acl_data(f: GoldFacts) -> str | None:
    chunk = f.row.chunk
    if chunk is None or f.row.eligible is not True or f.filter.stored_acl_admits is not False or not _gone(f):
        return None
    of_source = f.row.source.acl if f.row.source else None
    stored = "is empty" if not chunk.acl else f"is {list(chunk.acl)}"
    admitted = admits(of_source, f.trace.user_acl, f.acl)
    if admitted is False:
        # a copy of an ACL that does not admit the user would not either, unless the sync left a principal out
        unmapped = None if chunk.acl else in_other_words(of_source or (), f.trace.user_acl or ())
        if unmapped is None:
            return None
        return (
            f"{f.id}: its label says that the user may read it, the ACL of its source names {unmapped[0]!r} where the "
            f"user holds {unmapped[1]!r}: the ACL sync did not map it, the ACL in the index {stored}"
        )
    by_source = admitted is True or f.row.gold.eligible is None
    says = "its source admits the user" if by_source else "its label says that the user may read it"
    return f"{f.id}: {says}, its ACL in the index {stored}"


@cause(
    "principals_not_sent",
    Stage.FILTER,
    "filter",
    summary="The access clause lacks principals that the user holds and that the gold's ACL names.",
    remedy="Send the same acl clause with all of the user's own principals in it, and nothing else.",
)
def principals_not_sent(f: GoldFacts) -> str | None:
    chunk = f.row.chunk
    if chunk is None or f.row.eligible is not True or f.filter.stored_acl_admits is not True or not _gone(f):
        return None
    missed = {"", *(arm.name for arm in f.arms if arm.place is None)}
    where = next((name for name, met in f.filter.sent_acl_holds.items() if met is False and name in missed), None)
    if where is None:
        return None
    status = (f.trace.arm_status or {}).get(where)
    filters = f.trace.filters_applied if status is None else status.filter
    sent = named_principals((filters or {}).get(ACL_KEY)) or ()
    lacking = [name for name in f.trace.user_acl or () if name in (chunk.acl or ()) and name not in sent]
    if not lacking:
        return None
    clause = f"the acl clause of {where}" if where else "the acl clause"
    return f"{f.id}: {clause} lacks {', '.join(lacking)}, which the user holds and its ACL names"


@cause(
    "filter_fails_gold",
    Stage.FILTER,
    "filter",
    summary="The filter, evaluated on the gold's own metadata, is false.",
    remedy="Correct the one clause or the one metadata field that does not fit; the ACL clause stays.",
)
def filter_fails_gold(f: GoldFacts) -> str | None:
    if not _gone(f):
        return None
    if f.probe_says("filter_passes") is False:
        note = next((p.note for p in f.probes("filter_passes") if p.note), None)
        return f"{f.id}: the filter is false on its metadata{f' ({note})' if note else ''}{_readable(f)}"
    for name, clause in f.filter.tested.items():
        if clause.found in (Match.NO, Match.LOOSE):
            return f"{f.id}: filter on {name} is false on the stored {clause.stored!r}{_readable(f)}"
    return None


def _readable(f: GoldFacts) -> str:
    return ", although the user may read it" if f.row.eligible is True else ""


@cause(
    "filter_matches_nothing",
    Stage.FILTER,
    "filter",
    summary="No row satisfies the filter that was sent, though the gold is written.",
    remedy="Compare the clause with one stored row (field name, type, spelling) and correct it; the ACL clause stays.",
)
def filter_matches_nothing(f: GoldFacts) -> str | None:
    for arm in f.arms:
        if arm.lexical or arm.hits or arm.status is None or arm.status.matching != 0 or not f.written:
            continue
        sent = arm.status.filter or f.trace.filters_applied
        if sent:
            return f"{arm.name}: 0 rows satisfy the filter on {', '.join(sent)}; {f.id} is in the index{_readable(f)}"
    return None


@cause(
    "filter_dropped",
    Stage.FILTER,
    "filter",
    summary="The gold was found, and a filter behind the search removed it.",
    remedy="Evaluate each clause on the gold's metadata and correct the one that fails; the ACL clause stays.",
)
def filter_dropped(f: GoldFacts) -> str | None:
    for arm in f.arms:
        after = f.evidence.lists.get(f"after_filter:{arm.name}")
        if arm.place and after is not None and after.places[f.position] is None:
            return f"{f.id}: rank {arm.place.rank} in {arm.name}, gone after its filter"
    after_all, fused = f.listed("after_filter"), f.listed("fused")
    if after_all is None or after_all.place is not None:
        return None
    if fused is not None and fused.place is not None:
        return f"{f.id}: rank {fused.place.rank} in the fused list, gone after the filter"
    if fused is None and f.in_any_arm:
        return f"{f.id}: rank {f.best_rank} in the search, gone after the filter"
    return None


@cause(
    "expected_filter",
    Stage.FILTER,
    "filter",
    summary="With the filter as it should be, the gold is within K: the one that was sent differs.",
    remedy="Send the expected filter, no clause more or less; a missing access clause is a security incident.",
)
def expected_filter(f: GoldFacts) -> str | None:
    rank = f.probe_rank("rank_expected_filter")
    if rank is None or rank > f.k:
        return None
    return f"{f.id}: rank {rank} under the expected filter, not in the top {f.k} under the one that was sent"


@cause(
    "foreign_hits",
    Stage.FILTER,
    "filter",
    summary="Rows outside the filter came back and took the gold's place.",
    remedy="Restore the filter on that call and check that no foreign id remains. A leak is a security incident.",
)
def foreign_hits(f: GoldFacts) -> str | None:
    foreign = {hit.id for hit in f.foreign if hit.searched}
    if not foreign:
        return None
    for arm in f.arms:
        if arm.place is None or arm.holds(f.k):
            continue
        own = arm.place.rank - sum(hit.id in foreign for hit in arm.hits[: arm.place.rank - 1])
        if own <= f.k:
            return f"{f.id}: rank {arm.place.rank} in {arm.name} behind {arm.place.rank - own} rows outside the filter"
    return None


@cause(
    "post_filter_underfill",
    Stage.FILTER,
    "filter",
    summary="The filter runs after the search and leaves fewer rows than match: the pool was too small.",
    remedy="Filter before the search, or raise fetch_k alone; the predicate stays the same.",
)
def post_filter_underfill(f: GoldFacts) -> str | None:
    for arm in f.arms:
        rank = f.probe_rank("rank_prefilter", arm.name)
        if arm.place is None and rank is not None and rank <= max(f.k, 1):
            matching = arm.status.matching if arm.status else None
            rows = f"; {matching} rows match" if matching is not None else ""
            return f"{f.id}: rank {rank} with the same filter before the search, lost when it runs after{rows}"
        starved = _starved(f, arm)
        if starved is not None:
            return starved
    return None


def _starved(f: GoldFacts, arm: ArmFacts) -> str | None:
    """A filtered arm returned fewer rows than were asked for and match, and its search breadth does not explain it."""
    status = arm.status
    filtered = bool(f.trace.filters_applied) or bool(status and status.filter)
    if arm.place is not None or status is None or status.matching is None or not filtered or f.in_arm_within_k:
        return None
    if arm.did_not_run:
        return None
    returned = status.returned if status.returned is not None else len(arm.hits)
    kept, asked = returned, status.limit or f.k
    if f.pipeline.filter.mode == "post":
        after = f.evidence.lists.get(f"after_filter:{arm.name}") or f.evidence.lists.get("after_filter")
        if after is not None:
            kept = len(after.hits)
        elif len(f.arms) == 1 and f.merged:
            kept, asked = len(f.merged[0].ids), f.k
    wanted = min(asked, status.matching)
    if kept >= wanted or (not arm.lexical and breadth_starved(arm) is not None):
        return None
    return f"{arm.name}: {kept} rows after the filter, {status.matching} match and {asked} were asked for"
