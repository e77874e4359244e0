"""The stores by name, each imported when it is asked for."""

from collections.abc import Mapping
from importlib import import_module

from ragaudit.errors import ConfigError
from ragaudit.inventories.records import Store

MODULES: Mapping[str, str] = {
    "chroma": "chroma",
    "qdrant": "qdrant",
    "pgvector": "pgvector",
    "lancedb": "lancedb",
    "milvus": "milvus",
    "elasticsearch": "elasticsearch",
    "opensearch": "elasticsearch",
    "faiss": "faiss",
    "llamaindex": "llamaindex",
    "file": "file",
}
"""Name -> module of `stores` that holds its `STORE`."""


def store_named(name: str) -> Store:
    """One store.

    Raises:
        ConfigError: There is none of this name.
    """
    if name not in MODULES:
        raise ConfigError(f"{name}: no such store. Use one of: {', '.join(MODULES)}.")
    found: Store = import_module(f"ragaudit.inventories.stores.{MODULES[name]}").STORE
    return found
