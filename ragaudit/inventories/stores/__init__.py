"""One module a kind of store. Each only reads, and imports its client when it is opened."""
