"""The registered causes, one module a neighbourhood. Importing this package registers all of them."""

from ragaudit.diagnosis.causes import access, answer, context, corpus, fusion, index, search

__all__ = ["access", "answer", "context", "corpus", "fusion", "index", "search"]
