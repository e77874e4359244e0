"""The `ragaudit` commands that a page shows outside its `console` blocks, and what kind each is."""

import re
import shlex
from dataclasses import dataclass

import click

from ragaudit.cli.main import group
from tests.docs.docs_console import blocks

_FORM = re.compile(r"\[|\.\.\.|\w\|\w| \| (?=[a-z]+ [\w.]+ )|\b(COMMAND|EXPR|FORMAT)\b|^ragaudit \w+( \|)")
"""What only the form of a command has: options in brackets, one of several words, a word to be replaced."""


@dataclass(frozen=True)
class Command:
    """A line that begins with `ragaudit`, without the remark behind it."""

    line: str
    path: tuple[str, ...]
    rest: tuple[str, ...]
    is_form: bool
    is_mention: bool
    """Only named in a sentence, as in "`ragaudit next` proposes"."""


def commands(page: str) -> list[Command]:
    """Every command of a page, in order, each once."""
    lines: list[str] = []
    without = page
    for block in blocks(page):
        without = without.replace(f"```{block.info}\n{block.text}```", "")
        if block.info in ("", "bash", "sh"):
            lines += [re.split(r" {2,}| # ", line)[0] for line in block.text.splitlines()]
    shown = [line for line in lines if line.startswith("ragaudit ")]
    named = re.findall(r"`(ragaudit [^`\n]+)`", without)
    return [
        _command(re.split(r" (?:>|\|\|) | \| head", line)[0], in_block=line in shown)
        for line in dict.fromkeys([*shown, *named])
    ]


def command_of(path: tuple[str, ...]) -> click.Command:
    """The command of this path.

    Raises:
        AssertionError: there is none.
    """
    command: click.Command = group
    for word in path:
        assert isinstance(command, click.Group), path
        found = command.get_command(click.Context(command), word)
        assert found is not None, f"no command {word!r}: ragaudit {' '.join(path)}"
        command = found
    return command


def options_of(path: tuple[str, ...]) -> set[str]:
    """The options of a command; of a group, those of all its commands."""
    command = command_of(path)
    found = {name for param in command.params for name in param.opts} | {"--help", "-h"}
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            found |= options_of((*path, name))
    return found


def _command(line: str, *, in_block: bool) -> Command:
    words = shlex.split(line)[1:]
    path: list[str] = []
    command: click.Command = group
    while words and isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words[0])
        if found is None:
            break
        command = found
        path.append(words.pop(0))
    if words[:1] == ["|"]:  # `ragaudit stages | causes`: several commands in one line
        path = []
    is_form = _FORM.search(line) is not None
    return Command(line, tuple(path), tuple(words), is_form, is_mention=not (words or is_form or in_block))
