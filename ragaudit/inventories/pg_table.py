"""Tables with vectors in PostgreSQL: which there are, who made them, and how to read one in pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ragaudit.errors import InputError

_VECTORS = ("vector", "halfvec", "sparsevec")
_LANGCHAIN = "langchain_pg_embedding"
_COLLECTIONS = "langchain_pg_collection"
_METADATA = ("cmetadata", "langchain_metadata", "metadata_", "meta", "metadata")
_OWN_IDS = ("node_id", "custom_id")


@dataclass(frozen=True)
class Table:
    """One table, as it is read."""

    name: str
    """Quoted, with its schema."""
    columns: Mapping[str, str]
    """Column -> type, without those that hold vectors and search words."""
    vector: str | None
    vector_type: str
    lexical: str | None
    """The column of type tsvector."""
    metadata: str | None
    """The column of JSON that the writer's own fields stand in."""
    own_id: str | None
    """The column that holds the user's id, where it is another than the key."""
    key: str | None
    """The primary key, or None where it is not one column."""
    key_type: str = "text"
    collection: str = ""
    namespace: str | None = None
    where: str = ""
    values: tuple[Any, ...] = ()

    @property
    def source(self) -> str:
        """What stands after FROM."""
        return f"{self.name} {self.where}"

    def page(self, after: Any, size: int, *, with_vectors: bool) -> tuple[str, tuple[Any, ...]]:
        """The statement for the next page, and its values."""
        place, kind = (quoted(self.key), self.key_type) if self.key else ("ctid", "tid")
        chosen = [quoted(name) for name in self.columns] + [f"{place}::text AS _place"]
        if self.vector:
            chosen += self._measures(quoted(self.vector), with_vectors)
        if self.lexical:
            chosen.append(f"{quoted(self.lexical)} IS NOT NULL AS _has_words")
        clauses = [self.where.removeprefix("WHERE ")] if self.where else []
        if after is not None:
            clauses.append(f"{place} > %s::{kind}")
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        values = (*self.values, *(() if after is None else (after,)), size)
        return f"SELECT {', '.join(chosen)} FROM {self.name} {where} ORDER BY {place} LIMIT %s", values

    def record_key(self, row: Mapping[str, Any]) -> str:
        """The store's own id of a row."""
        return str(row[self.key] if self.key else row["_place"])

    def _measures(self, column: str, with_vectors: bool) -> list[str]:
        has = f"{column} IS NOT NULL AS _has_vector"
        if not with_vectors:
            return [has, "NULL::int AS _dim", "NULL::float8 AS _norm"]
        if self.vector_type == "sparsevec":
            return [has, "NULL::int AS _dim", f"l2_norm({column})::float8 AS _norm"]
        length = "vector_norm" if self.vector_type == "vector" else "l2_norm"
        return [has, f"vector_dims({column}) AS _dim", f"{length}({column})::float8 AS _norm"]


def quoted(name: str | None) -> str:
    """An identifier that SQL takes as it is."""
    return '"' + str(name).replace('"', '""') + '"'


def found_tables(connection: Any) -> dict[str, tuple[int, str]]:
    """Table -> its oid and kind, for those that hold vectors: by name in the search path, else with the schema."""
    rows = connection.execute(
        """SELECT c.oid, c.relkind::text AS kind, n.nspname AS schema, c.relname AS name,
           pg_table_is_visible(c.oid) AS visible
           FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
           WHERE c.relkind IN ('r', 'p', 'm') AND EXISTS (
             SELECT 1 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
             WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND t.typname = ANY (%s))
           ORDER BY 2, 3""",
        (list(_VECTORS),),
    ).fetchall()
    names = [row["name"] if row["visible"] else f"{row['schema']}.{row['name']}" for row in rows]
    return {name: (row["oid"], row["kind"]) for name, row in zip(names, rows, strict=True)}


def langchain_collections(connection: Any, tables: Mapping[str, Any]) -> dict[str, str]:
    """Collection of LangChain -> the table that all of them share."""
    if _LANGCHAIN not in tables:
        return {}
    rows = connection.execute(f"SELECT name FROM {_COLLECTIONS} ORDER BY name").fetchall()
    return {row["name"]: _LANGCHAIN for row in rows}


def lookup(connection: Any, tables: Mapping[str, tuple[int, str]], collections: Mapping[str, str], name: str) -> Table:
    """The table of this name, or the one that holds this collection.

    Raises:
        InputError: It is partitioned and has no primary key of one column: nothing gives its rows an order.
    """
    oid, kind = tables[collections.get(name, name)]
    shown = connection.execute("SELECT %s::oid::regclass::text AS name", (oid,)).fetchone()["name"]
    columns = {
        row["attname"]: row["typname"]
        for row in connection.execute(
            """SELECT a.attname, t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
               WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum""",
            (oid,),
        )
    }
    keys = connection.execute(
        """SELECT a.attname, t.typname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid
           AND a.attnum = ANY (i.indkey) JOIN pg_type t ON t.oid = a.atttypid
           WHERE i.indrelid = %s AND i.indisprimary""",
        (oid,),
    ).fetchall()
    if len(keys) != 1 and kind == "p":
        raise InputError(f"{name}: a partitioned table without a primary key of one column. Export it with COPY.")
    vector = next((column for column, kind in columns.items() if kind in _VECTORS), None)
    narrowed: dict[str, Any] = {}
    if name in collections:
        row = connection.execute(f"SELECT uuid FROM {_COLLECTIONS} WHERE name = %s", (name,)).fetchone()
        narrowed = {"where": "WHERE collection_id = %s", "values": (row["uuid"],), "namespace": name}
    kept = {c: kind for c, kind in columns.items() if kind not in (*_VECTORS, "tsvector", "bytea")}
    kept.pop("collection_id", None) if name in collections else None
    return Table(
        name=shown,
        columns=kept,
        vector=vector,
        vector_type=columns.get(vector or "", ""),
        lexical=next((column for column, kind in columns.items() if kind == "tsvector"), None),
        metadata=next((c for c in _METADATA if kept.get(c) in ("json", "jsonb")), None),
        own_id=next((c for c in _OWN_IDS if c in kept), None),
        key=keys[0]["attname"] if len(keys) == 1 else None,
        key_type=keys[0]["typname"] if len(keys) == 1 else "tid",
        collection=name,
        **narrowed,
    )
