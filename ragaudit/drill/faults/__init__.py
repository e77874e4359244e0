"""The faults by neighbourhood. Importing this package registers all of them, in the order of the stages."""

from ragaudit.drill.faults import corpus, search, merge, context, answer  # isort: skip

__all__ = ["answer", "context", "corpus", "merge", "search"]
