"""A comparison for the terminal: leaks first, what changed, metrics with intervals, stages, queries, slices."""

from collections.abc import Iterator, Sequence

from ragaudit.model.comparison import Comparison, Difference, MetricChange, Paired, QueryChange, SliceChange, Verdict
from ragaudit.model.counting import counted, queries
from ragaudit.model.diagnosis import Stage
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS, number, reasons
from ragaudit.report.layout import WIDTH, heading, pad, wrap

SHOWN = 10
"""Queries and slices of one kind; the rest are counted."""

_STAGES = {stage.value: stage.label for stage in Stage if stage is not Stage.NONE}


def compare_text(found: Comparison, width: int = WIDTH, *, shown: int = SHOWN) -> str:
    """The comparison in ASCII, `width` columns wide."""
    blocks = [
        list(_title(found, width)),
        list(_leaks(found, width, shown)),
        list(_changed(found, width)),
        list(_warnings(found, width)),
        list(_metrics(found, width)),
        list(_transitions(found, width, shown)),
        list(_queries("Newly failing", found.newly_failing, width, shown)),
        list(_queries("Newly passing", found.newly_passing, width, shown)),
        list(_slices(found, width, shown)),
    ]
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block) + "\n"


def verdict_sentence(found: Comparison) -> str:
    """What came of the change, leaks first: `WORSE: Recall -0.174 [-0.267, -0.093] and 3 more`."""
    said = []
    if found.newly_leaking:
        n = len(found.newly_leaking)
        said.append(f"LEAK: {queries(n)} newly {'leaks' if n == 1 else 'leak'}")
    for verdict in (Verdict.WORSE, Verdict.BETTER):
        changes = [change for change in found.metrics if change.verdict is verdict]
        changes.sort(key=lambda change: change.metric != "recall@k")
        if changes:
            more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
            said.append(f"{verdict.value.upper()}: {_moved(changes[0])}{more}")
    if not any(change.verdict is not Verdict.SAME for change in found.metrics):
        of = f" in any of {counted(len(found.metrics), 'metric')}" if found.metrics else ": no metric is defined"
        said.append(f"NOT DISTINGUISHABLE from no change{of}")
    return "; ".join(said)


def value_text(value: object) -> str:
    """A configuration value as it may be printed; nothing said is said so."""
    return "(not said)" if value is None else for_terminal('""' if value == "" else str(value), 60)


def difference_text(each: Difference) -> str:
    """`pipeline.rerank.top_n 8 -> 16`, and what else there is to say of it."""
    allowed = " (allowed by --allow)" if each.allowed else ""
    some = f" in {queries(len(each.queries))}" if each.queries else ""
    return f"{for_terminal(each.name)} {value_text(each.before)} -> {value_text(each.after)}{some}{allowed}"


def figures_text(result: Paired) -> str:
    """`0.536 -> 0.548  +0.012 [+0.000, +0.036]`."""
    interval = "" if result.low is None or result.high is None else f"[{result.low:+.3f}, {result.high:+.3f}]"
    return f"{number(result.before)} -> {number(result.after)}  {result.difference:+.3f} {interval:<16}"


def details_text(change: MetricChange) -> str:
    """P and p adjusted, how many queries are better, worse and the same, the smallest effect that would show."""
    result = change.paired
    said = []
    if result.p is not None and change.p_holm is not None:
        said.append(f"p {_p(result.p)}, adjusted {_p(change.p_holm)}")
    if result.n:
        said.append(f"{queries(result.n)}: {result.wins:,} better, {result.losses:,} worse, {result.ties:,} same")
    if result.mde is not None:
        said.append(f"80% power from {result.mde:.3f}")
    elif result.reason and result.difference is not None:
        said.append(result.reason)
    if change.note:
        said.append(change.note)
    return "; ".join(said)


def state_label(state: str) -> str:
    """A state as people call it: `Rerank/pack`, `pass`, `label issue`."""
    return _STAGES.get(state, state.replace("_", " "))


def undefined_sentences(metrics: Sequence[MetricChange]) -> Iterator[str]:
    """What has no value, once for all metrics that it holds for."""
    shared: dict[str, list[str]] = {}
    for change in metrics:
        label = LABELS.get(change.metric, change.metric)
        was, now = change.undefined_before, change.undefined_after
        sides = [("in both", was)] if was == now else [("before", was), ("after", now)]
        for side, why in sides:
            if why:
                shared.setdefault(f"undefined {side} for {sum(why.values()):,} ({reasons(why)})", []).append(label)
    for said, labels in shared.items():
        yield for_terminal(f"{', '.join(labels)}: {said}")


def _title(found: Comparison, width: int) -> Iterator[str]:
    sides = (("baseline ", found.base), ("candidate", found.candidate))
    for label, side in sides:
        k = "K varies" if side.k_final is None else f"K = {side.k_final}"
        frozen = "   frozen" if side.frozen else ""
        right = f"{queries(side.queries)}   {k}   {for_terminal(side.fingerprint, 20)}{frozen}"
        yield f"{label}  {pad(for_terminal(side.name), max(width - len(right) - 13, 8))}  {right}"
    yield f"paired     {queries(found.pairs)}"


def _leaks(found: Comparison, width: int, shown: int) -> Iterator[str]:
    if not found.newly_leaking:
        return
    n = len(found.newly_leaking)
    yield from wrap(
        f"LEAK: {queries(n)} {'shows' if n == 1 else 'show'} a chunk that the user may not read, and did not in the "
        "baseline. Restore the access filter before anything else.",
        width,
        first="!! ",
        rest="   ",
    )
    for change in found.newly_leaking[:shown]:
        yield from wrap(f"{for_terminal(change.query_id)}: {_ids(change.leaks)}", width, first="   ", rest="     ")
    yield from _more(n, shown)


def _changed(found: Comparison, width: int) -> Iterator[str]:
    if not found.variables and not found.exceptions:
        yield "Changed: no key of [pipeline]"
        return
    for each in found.variables:
        yield from wrap(difference_text(each), width, first="Changed: ", rest="         ")
    for each in found.exceptions:
        yield from wrap(difference_text(each), width, first="Differs: ", rest="         ")


def _warnings(found: Comparison, width: int) -> Iterator[str]:
    if found.warnings:
        yield heading("Worth knowing", width)
    for warning in found.warnings:
        yield from wrap(for_terminal(warning), width, first="  - ", rest="    ")


def _metrics(found: Comparison, width: int) -> Iterator[str]:
    yield heading("Metrics: mean, difference, its 95% interval", width)
    if not found.metrics:
        yield "  No metric is defined in either run."
    for change in found.metrics:
        label = pad(for_terminal(LABELS.get(change.metric, change.metric)), 21)
        result = change.paired
        if result.difference is None:
            yield f"  {label} undefined: {for_terminal(result.reason or 'no reason given')}"
        else:
            yield f"  {label} {figures_text(result)}  {change.verdict.value.upper()}"
        yield from wrap(details_text(change), width, first="    ", rest="    ")
    for said in undefined_sentences(found.metrics):
        yield from wrap(said, width, first="  - ", rest="    ")


def _moved(change: MetricChange) -> str:
    result = change.paired
    interval = "" if result.low is None or result.high is None else f" [{result.low:+.3f}, {result.high:+.3f}]"
    return f"{for_terminal(LABELS.get(change.metric, change.metric))} {result.difference:+.3f}{interval}"


def _p(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _transitions(found: Comparison, width: int, shown: int) -> Iterator[str]:
    yield heading(f"From stage to stage ({queries(found.unchanged)} as before)", width)
    if not found.transitions:
        yield "  Every query stayed where it was."
    for each in found.transitions[:shown]:
        yield f"  {each.n:>6,}  {state_label(each.before)} -> {state_label(each.after)}"
    yield from _more(len(found.transitions), shown, "kind of change", "kinds of change")


def _queries(title: str, changes: Sequence[QueryChange], width: int, shown: int) -> Iterator[str]:
    if not changes:
        return
    yield heading(f"{title} ({len(changes):,})", width)
    for change in changes[:shown]:
        moved = ", ".join(
            f"{metric} {change.differences[metric]:+.3f}"
            for metric in ("recall@k", "mrr@k", "context_recall", "faithfulness")
            if metric in change.differences
        )
        leak = "LEAK  " if change.leaks else ""
        said = f"{leak}{state_label(change.before)} -> {state_label(change.after)}" + (f"   {moved}" if moved else "")
        yield f"  {pad(for_terminal(change.query_id), 20)}  {said}"
    yield from _more(len(changes), shown)


def _slices(found: Comparison, width: int, shown: int) -> Iterator[str]:
    rows = [(part, metric, result) for part in found.slices for metric, result in part.metrics.items()]
    rows = [row for row in rows if row[1] == _headline(row[0])]
    if not rows:
        return
    yield heading("Slices: where to look; not tested, one of many differs by chance", width)
    for part, _, result in rows[:shown]:
        named = pad(for_terminal(f"{part.slice} = {part.value}"), 22)
        moved = f"+{part.newly_passing} -{part.newly_failing}" if part.newly_passing or part.newly_failing else ""
        yield f"  {named} {result.n:>5,}  {figures_text(result)}  {moved}"
    yield from _more(len(rows), shown, "slice", "slices")


def _headline(part: SliceChange) -> str | None:
    """The first metric that the slice defines: recall, unless only a judge could tell."""
    return next(iter(sorted(part.metrics, key=lambda metric: (metric != "recall@k", metric != "context_recall"))), None)


def _more(n: int, shown: int, noun: str = "query", plural: str = "queries") -> Iterator[str]:
    if n > shown:
        yield f"  and {counted(n - shown, noun, plural)} more: --json"


def _ids(ids: Sequence[str]) -> str:
    more = f" and {len(ids) - 3:,} more" if len(ids) > 3 else ""
    return ", ".join(for_terminal(each) for each in ids[:3]) + more
