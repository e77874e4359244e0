"""BEIR: a folder of corpus, queries and qrels; traces where a run is passed with it, else labels and inventory."""

from ragaudit.importers.formats import Format, Sample
from ragaudit.importers.ir import LOGS, reader
from ragaudit.importers.ir_files import Kind, is_beir


def sniff(sample: Sample) -> str | None:
    """By the files of the folder, or the field names of a corpus or of queries."""
    if sample.path.is_dir():
        return "a folder with corpus.jsonl and queries.jsonl" if is_beir(sample.names) else None
    first = next((value for value in sample.values if isinstance(value, dict)), {})
    if {"_id", "text"} <= set(first):
        return "records with _id and text"
    header = sample.head.split("\n", 1)[0].split()
    return "the header query-id, corpus-id, score" if header == ["query-id", "corpus-id", "score"] else None


read, read_all = reader(Kind.QRELS)

FORMAT = Format(
    name="beir",
    title="BEIR",
    reads="a folder of corpus.jsonl, queries.jsonl and qrels/test.tsv, or these files; runs (TREC, MTEB) beside it",
    sniff=sniff,
    read=read,
    read_all=read_all,
    logs=LOGS,
)
