"""What a reader of a comparison must know before believing it: sentences, the weightiest first."""

from collections.abc import Iterator

from ragaudit.compare.variables import Pairs
from ragaudit.model.comparison import LOWER_IS_BETTER, Comparison, Verdict

SHOWN = 3
NOTABLE = 0.005
"""A mean difference below this is not worth a warning about direction."""


def warnings_about(found: Comparison, pairs: Pairs, min_queries: int) -> tuple[str, ...]:
    """Every warning that holds."""
    return tuple(
        [
            *_access(found, pairs),
            *_allowed(found),
            *_size(found, min_queries),
            *_missing(found),
            *_directions(found),
            *_newly_undefined(found, pairs),
            *_slices_against(found),
            *_unseen(found),
        ]
    )


def listed(queries: tuple[str, ...] | list[str]) -> str:
    """The first few ids, and how many more."""
    more = f" and {len(queries) - SHOWN:,} more" if len(queries) > SHOWN else ""
    return ", ".join(queries[:SHOWN]) + more


def _access(found: Comparison, pairs: Pairs) -> Iterator[str]:
    if found.newly_leaking:
        named = listed([change.query_id for change in found.newly_leaking])
        yield (
            f"the candidate shows chunks that their users may not read, and the baseline did not ({named}): "
            "restore the access filter before anything else"
        )
    still = [now.query_id for was, now in pairs if set(was.leaks) & set(now.leaks)]
    if still:
        yield f"leaks of the baseline are still there ({listed(still)}): repair the access filter before anything else"


def _allowed(found: Comparison) -> Iterator[str]:
    for difference in (*found.variables, *found.exceptions):
        if difference.allowed:
            what = f"{difference.before} -> {difference.after}"
            yield f"allowed by --allow: {difference.name} differs too ({what}); part of any change may come from it"


def _size(found: Comparison, min_queries: int) -> Iterator[str]:
    if found.pairs < min_queries:
        yield (
            f"the test set is too small: {found.pairs} paired queries, fewer than {min_queries}; intervals this wide "
            "settle little"
        )


def _missing(found: Comparison) -> Iterator[str]:
    if found.only_base:
        n = len(found.only_base)
        yield f"{n:,} queries of the baseline are not in the candidate ({listed(found.only_base)}): unknown, not passed"
    if found.only_candidate:
        n = len(found.only_candidate)
        yield f"{n:,} queries are new in the candidate ({listed(found.only_candidate)}) and in none of these figures"


def _directions(found: Comparison) -> Iterator[str]:
    recall, mrr = found.change_of("recall@k"), found.change_of("mrr@k")
    if recall is None or mrr is None:
        return
    up, down = recall.paired.difference or 0.0, mrr.paired.difference or 0.0
    if up >= NOTABLE and down <= -NOTABLE:
        neither = recall.verdict is Verdict.SAME and mrr.verdict is Verdict.SAME
        unsure = " Neither is distinguishable from no change." if neither else ""
        yield (
            f"recall up ({up:+.3f}), MRR down ({down:+.3f}): more evidence arrives, and it stands lower; "
            f"a generator that reads the first chunks most may answer worse.{unsure}"
        )


def _newly_undefined(found: Comparison, pairs: Pairs) -> Iterator[str]:
    for change in found.metrics:
        gone = [now.query_id for was, now in pairs if change.metric in was.metrics and change.metric not in now.metrics]
        if gone:
            yield f"{change.metric}: {len(gone):,} queries that had a value have none now ({listed(gone)})"


def _slices_against(found: Comparison) -> Iterator[str]:
    """Slices that fall while the whole does not; a convention for attention, not a test."""
    for metric in ("recall@k", "context_recall"):
        change = found.change_of(metric)
        if change is None or change.verdict is Verdict.WORSE or metric in LOWER_IS_BETTER:
            continue
        for part in found.slices:
            result = part.metrics.get(metric)
            if result is not None and result.high is not None and result.high < 0:
                yield (
                    f"{metric} falls by {-(result.difference or 0):.3f} in {part.slice} = {part.value} "
                    f"({result.n} queries), though not over all; one of {len(found.slices)} slices looked at"
                )


def _unseen(found: Comparison) -> Iterator[str]:
    if not found.variables and not found.exceptions:
        yield (
            "no pipeline variable differs: what changed, if anything, is not in [pipeline] "
            "(corpus, index, code, chance)"
        )
    if found.base.ragaudit != found.candidate.ragaudit:
        yield f"audited by different versions of ragaudit ({found.base.ragaudit}, {found.candidate.ragaudit})"
