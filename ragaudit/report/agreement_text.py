"""How far the judge is trusted, for the terminal: agreement with people, with gold ids, between modes; fitted cuts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ragaudit.judge.agree import AgainstGold, Kind, Modes
from ragaudit.model.counting import counted, queries
from ragaudit.model.judgement import Agreement, Calibration, FittedCut, Statistic
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS
from ragaudit.report.layout import WIDTH, heading, pad, wrap

SHOWN = 20
"""Differences that are listed; the rest are counted."""

NAMES: Mapping[str, str] = {
    **LABELS,
    "abstained": "Abstention",
    "verdict": "Verdict on a claim and a chunk",
    "claim": "Verdict on a claim",
    "p_supported": "P(supported)",
    "gold chunks": "Packed chunk is evidence",
    "recall": "Context recall and recall@k",
}
KINDS: Mapping[Kind, str] = {
    Kind.GOLD_UNSUPPORTED: "gold in the context, supports no claim says the judge",
    Kind.JUDGE_ONLY: "supports a claim says the judge, and is no gold",
    Kind.FOUND_ELSEWHERE: "outside the context, supports a claim says the judge, and is no gold",
}


def sentence(calibration: Calibration) -> str:
    """One line for a report: how far this judge agrees with people, and on how much that rests."""
    parts = [
        f"{NAMES.get(each.about, each.about)} {_short(each.balanced_accuracy)}, {_short(each.kappa)} (n {each.n})"
        for each in calibration.agreements
        if each.balanced_accuracy.value is not None or each.kappa.value is not None
    ]
    on = f"{counted(calibration.n_labels, 'label')} in {calibration.labels}"
    return f"agreement with people on {on} (balanced accuracy, kappa): {'; '.join(parts) or 'undefined'}"


def calibration_text(calibration: Calibration, width: int = WIDTH) -> str:
    """What `judge calibrate` found: agreement with people, the cuts that fit, the means corrected."""
    people = counted(calibration.annotators, "person", "people") if calibration.annotators else "people not named"
    model = calibration.model or "model not known"
    first = f"{counted(calibration.n_labels, 'label')} by {people} ({calibration.labels}) against {model}"
    lines = wrap(for_terminal(first), width)
    if calibration.prompts:
        lines += wrap(for_terminal(f"prompts {', '.join(calibration.prompts)}"), width)
    if calibration.unmatched:
        lines += wrap(f"{counted(calibration.unmatched, 'label')} about nothing in this audit: left out.", width)
    blocks = ["\n".join(lines)]
    blocks += ["\n".join(_agreement(each, width, "people")) for each in calibration.agreements]
    if calibration.cuts:
        blocks.append("\n".join([heading("Cuts", width), *_cuts(calibration.cuts, width)]))
    if calibration.means:
        blocks.append(
            "\n".join([heading("Means: as judged, and corrected for the judge", width), *_means(calibration)])
        )
    return "\n\n".join(blocks) + "\n"


def against_gold_text(found: AgainstGold, agreements: Iterable[Agreement], width: int = WIDTH) -> str:
    """What `judge agree` found: figures, then every chunk that labels and judge see differently."""
    blocks = [f"{queries(found.queries)} with labelled gold and a judgement"]
    blocks += ["\n".join(_agreement(each, width, "gold ids")) for each in agreements]
    rows = [
        (each.query_id, each.chunk_id, KINDS[each.kind] + (f" ({', '.join(each.claims)})" if each.claims else ""))
        for each in found.differences
    ]
    blocks.append("\n".join([heading(f"For review ({len(rows)})", width), *_listed(rows, width)]))
    return "\n\n".join(blocks) + "\n"


def modes_text(found: Modes, agreements: Iterable[Agreement], width: int = WIDTH) -> str:
    """What `judge agree --modes` found: the per-claim mode against the matrix, and where they differ."""
    blocks = [f"{queries(found.queries)} judged in both modes: matrix, and one claim at a time"]
    blocks += ["\n".join(_agreement(each, width, "the matrix")) for each in agreements]
    rows = [
        (each.query_id, each.chunk_id, f"matrix {each.matrix}, per claim {each.per_claim}") for each in found.differing
    ]
    blocks.append("\n".join([heading(f"Verdicts that differ ({len(rows)})", width), *_listed(rows, width)]))
    return "\n\n".join(blocks) + "\n"


def _agreement(each: Agreement, width: int, against: str) -> Iterator[str]:
    yield heading(f"{NAMES.get(each.about, each.about)} against {against} (n {each.n}, yes from {each.cut:g})", width)
    rows = [
        ("Cohen's kappa", each.kappa),
        ("balanced accuracy", each.balanced_accuracy),
        ("yes-cases right (TPR)", each.tpr),
        ("no-cases right (TNR)", each.tnr),
        ("Pearson", each.pearson),
        ("Spearman", each.spearman),
        ("ROC AUC", each.auc),
    ]
    if each.human_kappa is not None:
        rows.append(("two people: kappa", each.human_kappa))
    if each.human_pearson is not None:
        rows.append(("two people: Pearson", each.human_pearson))
    if each.n:
        yield from (f"  {name:<24}{_figure(figure)}" for name, figure in rows)
    else:
        yield "  nothing could be compared"
    if each.left_out:
        said = ", ".join(f"{reason.replace('_', ' ')} {n}" for reason, n in each.left_out.items())
        yield from wrap(f"left out: {said}", width, first="  ", rest="    ")


def _cuts(cuts: Iterable[FittedCut], width: int) -> Iterator[str]:
    for cut in cuts:
        if cut.fitted is None:
            yield from wrap(f"{cut.setting}: not fitted: {cut.reason}.", width, first="  ", rest="    ")
            continue
        checked = "too few labels to check" if cut.cross_validated is None else f"{cut.cross_validated:.3f}"
        said = (
            f"{cut.setting} = {cut.fitted:.6g} (now {cut.before:g}): balanced accuracy {cut.balanced_accuracy:.3f} on "
            f"these {cut.n}, cross-validated {checked}"
        )
        yield from wrap(said, width, first="  ", rest="    ")


def _means(calibration: Calibration) -> Iterator[str]:
    for mean in calibration.means:
        yield f"  {NAMES.get(mean.metric, mean.metric)}"
        yield f"    {'as judged':<22}{_figure(mean.raw)}"
        yield f"    {'corrected':<22}{_figure(mean.corrected)}"


def _listed(rows: Sequence[tuple[str, str, str]], width: int) -> Iterator[str]:
    for query_id, chunk_id, said in rows[:SHOWN]:
        yield from wrap(
            said, width, first=f"  {pad(for_terminal(query_id), 14)} {for_terminal(chunk_id, 24)}: ", rest="    "
        )
    if len(rows) > SHOWN:
        yield f"  and {len(rows) - SHOWN} more: --json lists all"


def _figure(figure: Statistic) -> str:
    if figure.value is None:
        return f"-      {figure.reason or 'undefined'}"
    return f"{figure.value:6.3f}  [{figure.low:.3f}, {figure.high:.3f}]   n {figure.n}"


def _short(figure: Statistic) -> str:
    if figure.value is None:
        return "undefined"
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"


def replicates_text(found: Statistic, times: int) -> str:
    """What `judge agree --replicates` found: how often a verdict flips when the same thing is asked again."""
    if found.value is None:
        return f"flip rate: undefined ({found.reason})\n"
    return (
        f"flip rate {found.value:.3f} [{found.low:.3f}, {found.high:.3f}]:"
        f" {found.n:,} verdicts, asked {times} times\n"
        "the chance that one claim against one text is judged differently when it is asked again\n"
    )
