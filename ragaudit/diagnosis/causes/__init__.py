"""The registered causes, one module a neighbourhood. Importing this package registers all of them."""

from ragaudit.diagnosis.causes import access, answer, corpus, fusion, index, pack, rerank, search

__all__ = ["access", "answer", "corpus", "fusion", "index", "pack", "rerank", "search"]
