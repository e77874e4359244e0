"""A small, complete RAG pipeline with faults that can be switched on. Independent of ragaudit."""
