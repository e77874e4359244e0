"""One query as text: outcome, evidence, the journey of each gold id, what to log, what to change. 80 columns, ASCII."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from ragaudit.diagnosis.registry import CauseInfo
from ragaudit.model.diagnosis import Basis, Diagnosis, GoldDiagnosis, Outcome, Severity, Stage
from ragaudit.model.experiment import Experiment
from ragaudit.model.result import QueryResult
from ragaudit.report.clean import for_terminal
from ragaudit.report.figures import LABELS, in_order, number, stages_named
from ragaudit.report.funnel import funnel, standing, unlogged
from ragaudit.report.layout import WIDTH, flow, heading, wrap
from ragaudit.report.next_text import change_of, effect
from ragaudit.store.texts import ChunkText, hidden_ids

MARKS = {
    Outcome.PASS: ".",
    Outcome.FAIL: "X",
    Outcome.UNDETERMINED: "?",
    Outcome.NOT_APPLICABLE: "-",
    Outcome.LABEL_ISSUE: "?",
}
GOLD_SHOWN = 12
EXPERIMENTS_SHOWN = 3
TEXT_CHARACTERS = 600

Texts = Callable[[str], ChunkText]
"""The text of a chunk that the query's user may read, else why it is not shown."""


def diagnosis_text(
    result: QueryResult,
    causes: Mapping[str, CauseInfo],
    stage_notes: Mapping[Stage, str],
    *,
    texts: Texts | None = None,
    experiments: Sequence[Experiment] = (),
    width: int = WIDTH,
) -> str:
    """Everything concluded about one query.

    Args:
        result: The query.
        causes: The registered causes, for the sentence and the remedy of each.
        stage_notes: What each stage means.
        texts: Where chunk texts come from; None = no query or chunk text is shown. It is never asked for a chunk
            that the user may not read.
        experiments: The run's experiments that answer this query, best first.
        width: Columns.
    """
    diagnosis = result.diagnosis
    blocks = [list(_head(result, texts is not None, width))]
    if diagnosis.severity is Severity.LEAK:
        blocks.append(list(_leak(diagnosis, width)))
    blocks += [
        list(_evidence(diagnosis, stage_notes, width)),
        list(_golds(diagnosis, width)),
        list(_undecided(diagnosis, width)),
        list(_causes(diagnosis, causes, width)),
        list(_experiments(experiments, width)),
        list(_numbers(result, width)),
        list(_context(diagnosis, width)),
    ]
    if texts is not None:
        blocks.append(list(_texts(diagnosis, texts, width)))
    return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block) + "\n"


def _head(result: QueryResult, with_text: bool, width: int) -> Iterator[str]:
    diagnosis = result.diagnosis
    stands = standing(diagnosis.outcome, diagnosis.stage)
    yield f"{MARKS[diagnosis.outcome]} {for_terminal(diagnosis.query_id, 40)}   {stands}"
    gold = "no gold" if not diagnosis.gold else "gold by label"
    if diagnosis.basis is Basis.JUDGE:
        gold = "gold found by the judge"
    said = [f"K = {result.k_final}", gold]
    if diagnosis.delivered is not None:
        said.append(f"evidence {'' if diagnosis.delivered else 'not '}in the prompt")
    if diagnosis.gap is not None:
        said.append(f"beside the stage: {diagnosis.gap.value.replace('_', ' ')}")
    yield from flow(said, width, joint="   ", first="  ", rest="  ")
    if with_text:
        yield from wrap(for_terminal(result.query_text, TEXT_CHARACTERS), width, first="  ", rest="  ")
    if diagnosis.secondary:
        yield from wrap(f"also lost at {', '.join(s.label for s in diagnosis.secondary)}", width, first="  ", rest="  ")


def _leak(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    named = ", ".join(for_terminal(leak, 40) for leak in diagnosis.leaks) or "see the evidence"
    text = f"LEAK: the user may not read what stood in the context: {named}. Restore the access filter first."
    yield from wrap(text, width, first="!! ", rest="   ")


def _evidence(diagnosis: Diagnosis, stage_notes: Mapping[Stage, str], width: int) -> Iterator[str]:
    note = stage_notes.get(diagnosis.stage)
    if not diagnosis.evidence and not note:
        return
    yield heading("Why", width)
    for sentence in diagnosis.evidence:
        yield from wrap(for_terminal(sentence), width, first="  ", rest="    ")
    if note and diagnosis.stage not in (Stage.NONE, Stage.UNDETERMINED):
        yield from wrap(f"{diagnosis.stage.label}: {note}", width, first="  ", rest="    ")


def _golds(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    if not diagnosis.gold:
        return
    yield heading("Journey   #3 = rank 3   - = absent", width)
    for gold in diagnosis.gold[:GOLD_SHOWN]:
        yield from _gold(gold, width)
    if len(diagnosis.gold) > GOLD_SHOWN:
        yield f"  and {len(diagnosis.gold) - GOLD_SHOWN} more gold ids"


def _gold(gold: GoldDiagnosis, width: int) -> Iterator[str]:
    head = [f"{MARKS[gold.outcome]} {for_terminal(gold.id, 40)}", standing(gold.outcome, gold.stage)]
    if gold.grade != 1:
        head.append(f"grade {gold.grade:g}")
    if gold.eligible is False:
        head.append("not readable for this user")
    yield from flow(head, width, joint="   ", first="  ", rest="      ")
    if parts := funnel(gold.journey):
        yield from flow(parts, width, first="      ", rest="      ")
    for step in gold.journey:
        if step.note:
            yield from wrap(
                f"{step.checkpoint.value}: {for_terminal(step.note)}", width, first="      ", rest="        "
            )
    absent = unlogged(gold.journey)
    if absent and gold.outcome is not Outcome.PASS:
        yield from wrap(f"not logged: {', '.join(absent)}", width, first="      ", rest="        ")


def _undecided(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    if not diagnosis.could_be and not diagnosis.log:
        return
    yield heading("What would decide", width)
    if diagnosis.could_be:
        yield from wrap(
            f"could be {stages_named([s.value for s in diagnosis.could_be])}", width, first="  ", rest="    "
        )
    for field in diagnosis.log:
        yield from wrap(f"log {for_terminal(field)}", width, first="  > ", rest="    ")
    if diagnosis.delivered and diagnosis.outcome is Outcome.UNDETERMINED:
        unjudged = "or audit with --scope retrieval: evidence in the prompt is then a pass, whatever was answered"
        yield from wrap(unjudged, width, first="  > ", rest="    ")


def _causes(diagnosis: Diagnosis, causes: Mapping[str, CauseInfo], width: int) -> Iterator[str]:
    if not diagnosis.causes:
        return
    yield heading("Causes, and the one thing to change", width)
    for name in diagnosis.causes:
        known = causes.get(name)
        sentence = f"{name.replace('_', ' ')}: {known.summary}" if known else name.replace("_", " ")
        yield from wrap(for_terminal(sentence), width, first="  ", rest="    ")
        if known:
            yield from wrap(known.remedy, width, first="  > ", rest="    ")


def _experiments(experiments: Sequence[Experiment], width: int) -> Iterator[str]:
    if not experiments:
        return
    yield heading("Next experiment that answers it, over the whole run", width)
    for experiment in experiments[:EXPERIMENTS_SHOWN]:
        text = f"{change_of(experiment)}   {effect(experiment)}"
        yield from wrap(for_terminal(text), width, first="  > ", rest="    ")


def _numbers(result: QueryResult, width: int) -> Iterator[str]:
    defined = [name for name in in_order(result.metrics) if result.metrics[name] is not None]
    undefined = sorted({f"{why.replace('_', ' ')}" for why in result.undefined.values()})
    if not result.metrics:
        return
    n = len({*result.metrics, *result.undefined}) - len(defined)
    yield heading("Metrics of this query", width)
    if defined:
        said = [for_terminal(f"{LABELS.get(name, name)} {number(result.metrics[name])}") for name in defined]
        yield from flow(said, width, joint="   ", first="  ", rest="  ")
    if undefined:
        yield from wrap(f"{n} undefined: {for_terminal('; '.join(undefined))}", width, first="  ", rest="    ")


def _context(diagnosis: Diagnosis, width: int) -> Iterator[str]:
    ids = diagnosis.final_context_ids
    if ids is None:
        return
    yield heading("Final context", width)
    golds = {gold.id for gold in diagnosis.gold}
    named = [f"{for_terminal(i, 40)}{'*' * (i in golds)}{'!' * (i in diagnosis.leaks)}" for i in ids]
    meanings = ["* gold"] * bool(golds.intersection(ids)) + ["! not readable for this user"] * bool(diagnosis.leaks)
    if meanings:
        named.append(f"  ({', '.join(meanings)})")
    yield from flow(named or ["empty"], width, first="  ", rest="  ")


def _texts(diagnosis: Diagnosis, texts: Texts, width: int) -> Iterator[str]:
    hidden = hidden_ids(diagnosis)
    ids = dict.fromkeys([*(gold.id for gold in diagnosis.gold), *(diagnosis.final_context_ids or ())])
    yield heading("Texts", width)
    for chunk_id in ids:
        found = None if chunk_id in hidden else texts(chunk_id)
        shown = "not shown: the user may not read it" if found is None else found.why
        text = for_terminal(found.text, TEXT_CHARACTERS) if found is not None and found.text else f"({shown})"
        yield f"  {for_terminal(chunk_id, width - 4)}"
        yield from wrap(text, width, first="    ", rest="    ")
