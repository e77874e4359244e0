"""Writes the tables of keys into docs/review.md, from the keys that the app binds: `make keys`."""

from collections.abc import Iterable
from pathlib import Path

from textual.binding import Binding

from ragaudit.tui.keys import EVERYWHERE, SCREEN_KEYS, Key, shown
from ragaudit.tui.panes import Pane

MANUAL = Path(__file__).parent / "review.md"
START, END = "<!-- keys: written by `make keys` -->", "<!-- end of keys -->"


def tables() -> str:
    """A table for what works everywhere, for each screen, and within a pane."""
    parts = [_table("Everywhere", EVERYWHERE)]
    parts += [_table(f"{screen.capitalize()} screen", keys) for screen, keys in SCREEN_KEYS.items()]
    parts.append(_table("Within a pane", _pane_keys()))
    return "\n".join(parts)


def written(manual: str) -> str:
    """The manual with the tables as they are now."""
    before, _, rest = manual.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{tables()}\n{END}{after}"


def _table(title: str, keys: Iterable[Key]) -> str:
    rows = [f"| {_code(key.keys)} | {key.does} | `{key.id}` |" for key in keys]
    return "\n".join([f"**{title}**", "", "| key | does | id |", "| :--- | :--- | :--- |", *rows, ""])


def _code(keys: str) -> str:
    return ", ".join(f"`{one}`" for one in shown(keys).split(", "))


def _pane_keys() -> list[Key]:
    return [
        Key(binding.id or "", binding.key, binding.action, "", binding.description)
        for binding in Pane.BINDINGS
        if isinstance(binding, Binding)
    ]


if __name__ == "__main__":
    MANUAL.write_text(written(MANUAL.read_text(encoding="utf-8")), encoding="utf-8")
