"""Numbers with their nouns, as every message writes them."""


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """`1 query`, `1,240 queries`."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def queries(n: int) -> str:
    """`1 query`, `1,240 queries`."""
    return counted(n, "query", "queries")
