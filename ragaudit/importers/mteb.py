"""MTEB: the prediction file of a retrieval task, subset -> split -> query -> id -> score."""

from ragaudit.importers.formats import Format, Sample
from ragaudit.importers.ir import LOGS, reader
from ragaudit.importers.ir_files import Kind


def sniff(sample: Sample) -> str | None:
    """By the model's entry."""
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    return "an object with mteb_model_meta" if "mteb_model_meta" in first else None


read, read_all = reader(Kind.QRELS)

FORMAT = Format(
    name="mteb",
    title="MTEB",
    reads="prediction files of a task (several are several arms); qrels, queries and corpus beside them; needs --k",
    sniff=sniff,
    read=read,
    read_all=read_all,
    logs=LOGS,
)
