"""MS MARCO: runs of three columns, qrels, queries and the collection as TSV. top1000 is no ranking and is refused."""

from ragaudit.importers.formats import Format, Sample
from ragaudit.importers.ir import LOGS, reader
from ragaudit.importers.ir_files import Kind, looks_like

_WHY = {
    Kind.RUN: "lines of `query id rank`",
    Kind.CANDIDATES: "lines of `query id text text`, as top1000 has them",
    Kind.QUERIES: "a file of queries, `id text`",
    Kind.CORPUS: "a collection, `id text`",
}


def sniff(sample: Sample) -> str | None:
    """By the number of columns of a TSV."""
    if sample.path.is_dir():
        return None
    part = looks_like(sample.path, Kind.RUN)
    if part is None or (part.columns not in (2, 3) and part.kind is not Kind.CANDIDATES):
        return None
    return _WHY.get(part.kind)


read, read_all = reader(Kind.RUN)

FORMAT = Format(
    name="msmarco",
    title="MS MARCO",
    reads="run, qrels, queries and collection as TSV, one INPUT each; needs --k",
    sniff=sniff,
    read=read,
    read_all=read_all,
    logs=LOGS,
)
