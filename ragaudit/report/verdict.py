"""The sentences that open every written form: what the run says, in order of weight, from the summary alone."""

from ragaudit.model.counting import counted, queries
from ragaudit.model.result import Summary
from ragaudit.report.figures import interval, listed, losses, number, share

FEW = 3


def verdict(summary: Summary) -> str:
    """One or two sentences: how many fail, which stage loses most, and how much evidence reaches the generator."""
    n = sum(summary.outcomes.values())
    failing = summary.outcomes.get("fail", 0)
    undecided = summary.outcomes.get("undetermined", 0)
    if not n:
        return "No query was audited."
    if failing:
        first = f"{failing:,} of {queries(n)} {'fails' if failing == 1 else 'fail'} ({share(failing, n)})"
        most = max(count for _, count in losses(summary))
        if most:
            worst = [stage.label for stage, count in losses(summary) if count == most]
            each = f"loses most ({most:,})" if len(worst) == 1 else f"lose most ({most:,} each)"
            first += f"; {listed(worst)} {each}"
        else:
            first += "; what was logged does not name the stage of any"
    elif undecided == n:
        first = f"None of {queries(n)} could be decided from what was logged"
        if summary.delivered_unjudged == n:
            first = (
                f"The evidence reached the prompt for {n:,} of {queries(n)}, and nobody judged the "
                f"{'answer' if n == 1 else 'answers'}: `--scope retrieval` counts that as a pass"
            )
    else:
        first = f"None of {queries(n)} fails"
    if undecided and undecided != n:
        first += f"; {undecided:,} could not be decided"
    return " ".join(filter(None, (f"{first}.", _recall(summary), behind_sentence(summary))))


def behind_sentence(summary: Summary) -> str | None:
    """That the figures are older than the queries, when they are."""
    if not summary.behind:
        return None
    n = counted(summary.behind, "judged query", "judged queries")
    return (
        f"These figures are older than {n}: judging goes on, or was cut off. "
        "`ragaudit judge run` and `ragaudit review` bring them up to date."
    )


def leak_sentence(summary: Summary) -> str | None:
    """The security finding, when there is one. It stands above everything else."""
    leaks = summary.acl.leaks
    if not leaks:
        return None
    named = sorted({leak.query_id for leak in leaks})
    shown = listed(named) if len(named) <= FEW else f"{', '.join(named[:FEW])} and {len(named) - FEW:,} more"
    chunks = f"{len(leaks):,} {'chunk' if len(leaks) == 1 else 'chunks'}"
    return (
        f"LEAK: {chunks} that the user may not read stood in the final context of {queries(len(named))} ({shown}). "
        "This is a security finding: restore the access filter before anything else."
    )


def acl_sentences(summary: Summary) -> list[str]:
    """What access rules took out of the numbers. It is a note on the numbers, never a reason to widen access."""
    acl = summary.acl
    said = []
    if acl.excluded_gold:
        ids = "1 gold id is" if acl.excluded_gold == 1 else f"{acl.excluded_gold:,} gold ids are"
        said.append(f"{ids} outside what the query's user may read, and left numerators and denominators.")
    if acl.queries_without_eligible_gold:
        has = "has" if acl.queries_without_eligible_gold == 1 else "have"
        said.append(
            f"{queries(acl.queries_without_eligible_gold)} {has} no gold that the user may read: "
            "not applicable, and in no mean."
        )
    if acl.unknown:
        said.append(
            f"The access to {acl.unknown:,} gold {'id' if acl.unknown == 1 else 'ids'} could not be checked: "
            "counted as labelled. Log `user_acl` and the sources' `acl`."
        )
    return said


def generation_sentence(summary: Summary) -> str | None:
    """How many queries got their evidence to the prompt and then an answer that nobody judged."""
    n = summary.delivered_unjudged
    if not n:
        return None
    return (
        f"{queries(n)} got {'its' if n == 1 else 'their'} evidence into the prompt and nobody judged the answer: "
        "retrieval did its part. Log `answer.correct`, or audit with `--scope retrieval`."
    )


def _recall(summary: Summary) -> str:
    k = "the K of each query" if summary.run.k_final is None else f"K = {summary.run.k_final}"
    recall = summary.metrics.get("recall@k")
    if recall is None or recall.mean is None:
        return f"Recall at {k} is undefined: no query has gold that could be counted."
    left_out = f", undefined for {recall.undefined:,}" if recall.undefined else ""
    return (
        f"Recall at {k}, the context that reached the generator: {number(recall.mean)} {interval(recall)} "
        f"(95% interval, {queries(recall.n)}{left_out})."
    )
