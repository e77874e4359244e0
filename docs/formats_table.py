"""Writes the table of formats into docs/import.md, from the registry: `python docs/formats_table.py`."""

from pathlib import Path

from ragaudit.importers.registry import formats

MANUAL = Path(__file__).parent / "import.md"
START, END = "<!-- formats: written by `make docs-tables` -->", "<!-- end of formats -->"


def table() -> str:
    """One row a format, in the order in which `auto` asks."""
    rows = [f"| `{each.name}` | {each.title} | {each.reads} |" for each in formats()]
    return "\n".join(["| FORMAT | tool | reads |", "| :--- | :--- | :--- |", *rows])


def written(manual: str) -> str:
    """The manual with the table as it is now."""
    before, _, rest = manual.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{table()}\n\n{END}{after}"


if __name__ == "__main__":
    MANUAL.write_text(written(MANUAL.read_text(encoding="utf-8")), encoding="utf-8")
