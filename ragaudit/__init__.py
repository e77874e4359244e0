"""Says which stage of a RAG system lost the evidence."""

__version__ = "0.1.0"
