"""continuous-eval: datasets with the texts that were retrieved and the texts that should have been."""

from collections.abc import Iterator
from pathlib import Path

from ragaudit.importers.cells import id_text, joined_texts
from ragaudit.importers.contexts import set_context
from ragaudit.importers.draft import Draft, line_id
from ragaudit.importers.formats import Format, Options, Row, Sample, Table
from ragaudit.importers.inputs import objects
from ragaudit.importers.labels import set_gold
from ragaudit.importers.report import ImportReport

_GOLD = ("ground_truth_contexts", "ground_truth_context")


def sniff(sample: Sample) -> str | None:
    """By the names of the ground truth."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    if any(name in first for name in _GOLD):
        return "records with ground_truth_contexts"
    return "records with question and ground_truths" if _is_answers(set(first)) else None


def _is_answers(names: set[str]) -> bool:
    return {"question", "ground_truths"} <= names and "contexts" not in names


def read(path: Path, options: Options, report: ImportReport) -> Iterator[Row]:
    """One trace a record. Gold is text: its ids are looked up in the inventory of `--chunks`."""
    for number, (place, record) in enumerate(objects(path, report), start=1):
        question = record.get("question")
        if not isinstance(question, str) or not question.strip():
            report.skip("no question as text", place)
            continue
        draft = Draft(id_text(record.get("uid")) or line_id(number, question), question)
        retrieved = joined_texts(record.get("retrieved_contexts", record.get("retrieved_context")))
        set_context(draft, retrieved, report, place, options.texts)
        gold = next((record[name] for name in _GOLD if record.get(name) is not None), None)
        set_gold(draft, None, joined_texts(gold), options.texts, report, place)
        answers = joined_texts(record.get("ground_truths", record.get("ground_truth_answers")))
        if answers:
            draft.observed("reference", str(answers[0]))
            if len(answers) > 1:
                report.note("several reference answers: the first is kept", place)
        if isinstance(answer := record.get("answer", record.get("generated_answer")), str):
            draft.observed("answer", {"text": answer})
        draft.settle(options.k)
        yield Table.TRACES, draft.row()


FORMAT = Format(
    name="continuous-eval",
    title="continuous-eval",
    reads="a dataset with retrieved_contexts and ground_truth_contexts, JSONL or JSON",
    sniff=sniff,
    read=read,
    logs={
        "gold": "pass --chunks chunks.jsonl to find the ids of ground_truth_contexts",
        "arms": "the dataset keeps the final context only: log the lists of each arm with ragaudit.record",
        "user_acl": "the dataset has no field for it: log traces with ragaudit.record",
    },
)
