"""TREC: runs and qrels, as files of columns or as the JSON and Parquet of ranx; several runs are several lists."""

from ragaudit.importers.formats import Format, Sample
from ragaudit.importers.ir import LOGS, reader
from ragaudit.importers.ir_files import Kind, looks_like

_WHY = {
    Kind.RUN: "lines of `query Q0 id rank score tag`",
    Kind.QRELS: "lines of `query 0 id grade`",
    Kind.SCORES: "a table of query, id and score, as ranx writes runs",
    Kind.GRADES: "a table of query, id and grade, as ranx writes qrels",
}


def sniff(sample: Sample) -> str | None:
    """By the columns, or by an object of query -> id -> number."""
    if sample.path.is_dir():
        return None
    if sample.path.name.endswith(".lz4"):
        return "the name of a compressed run of ranx"
    part = looks_like(sample.path, None)
    return None if part is None else _WHY.get(part.kind)


read, read_all = reader(None)

FORMAT = Format(
    name="trec",
    title="TREC and ranx",
    reads="runs (several are several lists), qrels, queries and a corpus as one INPUT each; needs --k",
    sniff=sniff,
    read=read,
    read_all=read_all,
    logs=LOGS,
)
