"""Theme and keys as a person wants them, checked before the app starts: what is wrong is said, never passed over."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from textual.binding import Binding
from textual.keys import Keys
from textual.theme import BUILTIN_THEMES

from ragaudit.errors import ConfigError
from ragaudit.tui.keys import EVERYWHERE, NAMES, SCREEN_KEYS, shown
from ragaudit.tui.panes import Pane
from ragaudit.tui.screens.dialogs import CLOSE
from ragaudit.tui.theme import DARK, THEMES

RESERVED = ("ctrl+c", "ctrl+p", "ctrl+q")
"""Textual's own: leave, the command palette, quit."""

KNOWN = frozenset({*(key.value for key in Keys), *NAMES})
"""Keys that have a name."""

ANSI = frozenset(name for name, theme in BUILTIN_THEMES.items() if theme.ansi)
"""Themes of the terminal's own colours: without colour their text is black on black."""


def checked_theme(wanted: str | None, place: str, *, no_color: bool) -> str:
    """The name of the theme to use; ours for the dark when nothing is wanted.

    Args:
        wanted: Name of a theme, ours or one of Textual's.
        place: Who wants it, for the message.
        no_color: NO_COLOR is set.

    Raises:
        ConfigError: There is no such theme, or it cannot be read without colour.
    """
    if wanted is None:
        return DARK.name
    known = [*(theme.name for theme in THEMES), *BUILTIN_THEMES]
    if wanted not in known:
        raise ConfigError(f"{place}: {wanted!r} is no theme. Use {', '.join(known)}.")
    if no_color and wanted in ANSI:
        raise ConfigError(f"{place}: {wanted!r} cannot be read with NO_COLOR set. Use {DARK.name}, or unset NO_COLOR.")
    return wanted


def checked_keymap(given: Mapping[str, str], place: str) -> dict[str, str]:
    """Id -> keys as Textual names them.

    Raises:
        ConfigError: An id or a key is not known, or one key would do two things on one screen.
    """
    known = dict(_defaults())
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "docs/review.md lists the ids."
            raise ConfigError(f"{place}: tui.keymap: {name!r} is no key's id. {hint}")
    keymap = {name: ",".join(_named(keys, f"{place}: tui.keymap.{name}")) for name, keys in given.items()}
    for screen, ids in _scopes():
        taken: dict[str, str] = {}
        for name in ids:
            for key in keymap.get(name, known[name]).split(","):
                other = taken.setdefault(key, name)
                if other != name and (name in keymap or other in keymap):
                    raise ConfigError(
                        f"{place}: tui.keymap: {shown(key)!r} would be both {other} and {name} on the {screen} screen. "
                        f"Give one of them another key."
                    )
    return keymap


def _defaults() -> Iterator[tuple[str, str]]:
    for key in (*EVERYWHERE, *(key for keys in SCREEN_KEYS.values() for key in keys)):
        yield key.id, key.keys
    yield from _fixed()


def _fixed() -> Iterator[tuple[str, str]]:
    """Keys within a pane and a dialog."""
    by_id: dict[str, list[str]] = {}
    for binding in Binding.make_bindings([*Pane.BINDINGS, CLOSE]):
        if binding.id is not None:
            by_id.setdefault(binding.id, []).append(binding.key)
    yield from ((name, ",".join(keys)) for name, keys in by_id.items())


def _scopes() -> Iterator[tuple[str, list[str]]]:
    """Screen, and the ids of all keys that work there at once."""
    within = [key.id for key in EVERYWHERE] + [name for name, _ in _fixed() if name != CLOSE.id]
    for screen, keys in SCREEN_KEYS.items():
        yield screen, [*within, *(key.id for key in keys)]


def _named(keys: str, place: str) -> Iterable[str]:
    people = {written: name for name, written in NAMES.items()}
    for one in (part.strip() for part in keys.split(",")):
        if not one or (len(one) > 1 and one not in KNOWN and one not in people):
            raise ConfigError(f"{place}: {one!r} is no key. Write a letter or sign, or a name: escape, f5, ctrl+k.")
        name = people.get(one) or next(iter(Binding.make_bindings([Binding(one, "")]))).key
        if name in RESERVED:
            raise ConfigError(f"{place}: {one!r} is taken by the terminal app itself. Choose another.")
        yield name
