"""PostgreSQL with pgvector: tables of LangChain, LlamaIndex and Haystack, or your own. One read-only snapshot."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ragaudit.errors import ConfigError
from ragaudit.inventories.clients import calls, chosen, client
from ragaudit.inventories.pg_table import Table, found_tables, langchain_collections, lookup
from ragaudit.inventories.records import Contents, Held, Page, Reader, Record, Store, Where, higher, lower

ARM = "dense"
LEXICAL = "bm25"
_METRICS = {
    "cosine": ("cosine", lower("cosine distance")),
    "l2": ("l2", lower("Euclidean distance")),
    "ip": ("dot", lower("negative dot product")),
    "l1": ("l1", lower("Manhattan distance")),
}


class _Table:
    def __init__(self, where: Where, connection: Any, table: Table, error: type[Exception]) -> None:
        self._where = where
        self._connection = connection
        self._table = table
        self._error = error
        self.resumes = table.key is not None

    def contents(self) -> Contents:
        table = self._table
        with calls(self._where, self._error):
            rows = self._one(f"SELECT count(*) FROM {table.source}", table.values)
            hidden = self._one("SELECT row_security_active(%s::regclass)", (table.name,))
            mark = self._one(
                "SELECT concat_ws(':', n_tup_ins, n_tup_upd, n_tup_del) FROM pg_stat_user_tables "
                "WHERE relid = %s::regclass",
                (table.name,),
            )
            indexes = self._connection.execute(_INDEXES, (table.name,)).fetchall()
        arms = {self._where.arm(ARM): _vector_arm(indexes)} if table.vector else {}
        if table.lexical:
            arms[self._where.arm(LEXICAL)] = {"score": higher("ts_rank")}
        unindexed = (f"{table.vector} has no vector index: the metric stands in your query, not in the table",)
        has_metric = any(arm.get("metric") for arm in arms.values())
        return Contents(
            collection=table.collection,
            rows=int(rows),
            arms=arms,
            mark=mark,
            is_snapshot=True,
            restricted=(f"row level security hides rows of {table.name} from this user",) if hidden else (),
            notes=() if has_metric or not table.vector else unindexed,
        )

    def pages(self, after: Any, size: int) -> Iterator[Page]:
        """By the primary key, in its order; by place where there is none."""
        table = self._table
        while True:
            sql, values = table.page(after, size, with_vectors=self._where.with_vectors)
            with calls(self._where, self._error):
                rows = self._connection.execute(sql, values).fetchall()
            if not rows:
                return
            after = rows[-1]["_place"]
            yield Page([self._record(row) for row in rows], after)

    def _record(self, row: dict[str, Any]) -> Record:
        table = self._table
        arms: dict[str, Held | None] = {}
        if table.vector:
            held = Held(row["_dim"], None if row["_norm"] is None else round(row["_norm"], 6))
            arms[self._where.arm(ARM)] = held if row["_has_vector"] else None
        if table.lexical:
            arms[self._where.arm(LEXICAL)] = Held() if row["_has_words"] else None
        payload = {name: value for name, value in row.items() if not name.startswith("_") and value is not None}
        if table.key and table.key != self._where.id_field:
            payload.pop(table.key, None)
        metadata = payload.pop(table.metadata, None) if table.metadata else None
        own = payload.pop(table.own_id, None) if table.own_id else None
        whole = {**payload, **(metadata if isinstance(metadata, dict) else {})}
        return Record(
            table.record_key(row),
            whole,
            arms=arms,
            namespace=table.namespace,
            own_id=None if own is None else str(own),
        )

    def _one(self, sql: str, values: tuple[Any, ...]) -> Any:
        row = self._connection.execute(sql, values).fetchone()
        return None if row is None else next(iter(row.values()))


_INDEXES = """
SELECT am.amname AS ann, opc.opcname AS operators FROM pg_index i
JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam
JOIN pg_opclass opc ON opc.oid = i.indclass[0]
WHERE i.indrelid = %s::regclass AND i.indisvalid AND am.amname IN ('hnsw', 'ivfflat')"""


def _vector_arm(indexes: list[dict[str, Any]]) -> dict[str, Any]:
    if not indexes:
        return {"ann": "exact"}
    kinds = {part for index in indexes for part in str(index["operators"]).split("_") if part in _METRICS}
    if len(kinds) != 1:
        return {"ann": str(indexes[0]["ann"])}
    metric, score = _METRICS[kinds.pop()]
    return {"metric": metric, "ann": str(indexes[0]["ann"]), "score": score}


@contextmanager
def _open(where: Where) -> Iterator[Reader]:
    psycopg = client("psycopg", "pgvector")
    rows = client("psycopg.rows", "pgvector").dict_row
    if not where.is_url:
        raise ConfigError(
            "pgvector: pass the connection as --url postgresql://... or in RAGAUDIT_STORE_URL, not a path."
        )
    with calls(where, psycopg.Error):
        connection = psycopg.connect(
            where.place, row_factory=rows, **({"password": where.key} if where.key else {}), connect_timeout=20
        )
    try:
        with calls(where, psycopg.Error):
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            tables = found_tables(connection)
            collections = langchain_collections(connection, tables)
        names = [*(name for name in tables if name not in collections.values()), *collections]
        name = where.collection if where.collection in tables else chosen(where, names, "table")
        with calls(where, psycopg.Error):
            table = lookup(connection, tables, collections, name)
        yield _Table(where, connection, table, psycopg.Error)
    finally:
        connection.close()


STORE = Store("pgvector", "PostgreSQL with pgvector", "postgresql://user@host/database", _open)
