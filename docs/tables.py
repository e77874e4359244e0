"""Writes the tables of the manual from the registries of the program: `make docs-tables`.

Each stands between two marks in its page; a test says when a page is older than the program.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

import click
from textual.binding import Binding

from ragaudit import errors
from ragaudit.cli import streams
from ragaudit.cli.main import COMMANDS, group
from ragaudit.cli.streams import ExitCode
from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.experiments.levers import LEVERS, STEPS, step_of
from ragaudit.importers.registry import formats
from ragaudit.metrics.registry import REGISTRY
from ragaudit.model.diagnosis import STAGES
from ragaudit.tui.keys import EVERYWHERE, SCREEN_KEYS, Key, shown
from ragaudit.tui.panes import Pane

DOCS = Path(__file__).parent


def stages() -> str:
    """The nine stages, what each may lose, and how many causes are known of it."""
    rows = [
        f"| [{stage.label}](#{anchor(stage.label)}) | `{stage.value}` | {STAGE_NOTES[stage]} "
        f"| [{sum(info.stage is stage for info in CAUSES.values())}](causes.md#{anchor(stage.label)}) |"
        for stage in STAGES
    ]
    return _table(
        "| stage | name in JSON and filters | what happened | causes |", "| :--- | :--- | :--- | ---: |", rows
    )


def causes() -> str:
    """Every cause by stage, as links to its section."""
    rows = [
        f"| [{stage.label}](#{anchor(stage.label)}) "
        f"| {', '.join(f'[{name}](#{anchor(name)})' for name, info in CAUSES.items() if info.stage is stage)} |"
        for stage in STAGES
    ]
    return f"{len(CAUSES)} causes.\n\n" + _table("| stage | causes |", "| :--- | :--- |", rows)


def metrics() -> str:
    """Every metric: its question, whether order matters, what it needs, when it is undefined."""
    rows = [
        f"| [`{info.name}`](#{anchor(info.name)}) | {info.question} | {'yes' if info.order_sensitive else 'no'} "
        f"| {info.needs} | {info.undefined_when} |"
        for info in REGISTRY
    ]
    return _table(
        "| metric | question | order matters | needs | undefined when |", "| --- | --- | --- | --- | --- |", rows
    )


def levers() -> str:
    """Every lever by step, as links to its section."""
    rows = []
    for number, title in enumerate(STEPS, start=1):
        known = [lever for lever in LEVERS if step_of(lever) == title]
        links = ", ".join(f"[{lever.name}](#{anchor(lever.name)})" for lever in known)
        rows.append(f"| [{number} {title}](#{anchor(f'{number} {title}')}) | {links} |")
    return f"{len(LEVERS)} levers.\n\n" + _table("| step | levers |", "| :--- | :--- |", rows)


def exit_codes() -> str:
    """Every exit code with the errors that end in it."""
    said = _member_docs(Path(streams.__file__), ExitCode.__name__)
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    rows = [
        f"| {code.value} | {said[code.name]} "
        f"| {', '.join(f'`{kind.__name__}`' for kind in kinds if kind.exit_code == code) or '-'} |"
        for code in ExitCode
    ]
    return _table("| code | meaning | errors in Python |", "| ---: | :--- | :--- |", rows)


def commands() -> str:
    """Every command and subcommand with its options."""
    context = click.Context(group, info_name="ragaudit")
    parts = [_options(group, context)]
    for name in COMMANDS:
        command = group.get_command(context, name)
        assert command is not None
        parts += _command(command, click.Context(command, info_name=name, parent=context), level=2)
    return "\n".join(parts)


def keys() -> str:
    """A table of keys for what works everywhere, for each screen, and within a pane."""
    parts = [_keys("Everywhere", EVERYWHERE)]
    parts += [_keys(f"{screen.capitalize()} screen", bound) for screen, bound in SCREEN_KEYS.items()]
    parts.append(_keys("Within a pane", _pane_keys()))
    return "\n".join(parts)


def import_formats() -> str:
    """Every format that import reads, in the order in which `auto` asks."""
    rows = [f"| `{each.name}` | {each.title} | {each.reads} |" for each in formats()]
    return _table("| FORMAT | tool | reads |", "| :--- | :--- | :--- |", rows)


TABLES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "stages.md": {"stages": stages},
    "causes.md": {"causes": causes},
    "metrics.md": {"metrics": metrics},
    "levers.md": {"levers": levers},
    "exit-codes.md": {"exit codes": exit_codes},
    "commands.md": {"commands": commands},
    "review.md": {"keys": keys},
    "import.md": {"formats": import_formats},
}
"""Page -> name of a table in it -> what writes it."""


def written(page: str, text: str) -> str:
    """The text of a page with its tables as they are now.

    Raises:
        ValueError: a mark is missing.
    """
    for name, table in TABLES[page].items():
        start, end = f"<!-- {name}: written by `make docs-tables` -->", f"<!-- end of {name} -->"
        before, found, rest = text.partition(start)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{page}: no {start!r} or no {end!r}. Write both where the table belongs.")
        text = f"{before}{start}\n\n{table().strip()}\n\n{end}{after}"
    return text


def anchor(heading: str) -> str:
    """The id that GitHub and MkDocs both give to a heading of words, blanks and signs."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _table(head: str, rule: str, rows: Iterable[str]) -> str:
    return "\n".join([head, rule, *rows])


def _member_docs(module: Path, name: str) -> dict[str, str]:
    """The string under each member of an enum, which Python itself does not keep."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return {
        member.targets[0].id: str(text.value.value)
        for member, text in pairwise(body)
        if isinstance(member, ast.Assign)
        and isinstance(member.targets[0], ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def _command(command: click.Command, context: click.Context, level: int) -> Iterator[str]:
    path = context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f"{'#' * level} {path}\n\n```text\n{usage}\n```\n\n{_paragraphs(command.help or '')}\n"
    yield _options(command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _command(inner, click.Context(inner, info_name=name, parent=context), level + 1)


def _options(command: click.Command, context: click.Context) -> str:
    """A list, not a table: a bar in `[md|json]` would end a cell."""
    rows = []
    for param in command.params:
        record = param.get_help_record(context)
        if record is not None and isinstance(param, click.Option):
            names, text = record
            rows.append(f"- `{names}`: {_plain(text)}" if text else f"- `{names}`")
    return "\n".join(rows) + "\n" if rows else ""


def _paragraphs(text: str) -> str:
    return _plain("\n\n".join(" ".join(part.split()) for part in text.replace("\b", "").split("\n\n")).strip())


def _plain(text: str) -> str:
    """Help is plain text: `<bundle>` in it is no tag."""
    return text.replace("<", "&lt;")


def _keys(title: str, bound: Iterable[Key]) -> str:
    rows = [f"| {_code(key.keys)} | {key.does} | `{key.id}` |" for key in bound]
    return "\n".join([f"**{title}**", "", "| key | does | id |", "| :--- | :--- | :--- |", *rows, ""])


def _code(names: str) -> str:
    return ", ".join(f"`{one}`" for one in shown(names).split(", "))


def _pane_keys() -> list[Key]:
    return [
        Key(binding.id or "", binding.key, binding.action, "", binding.description)
        for binding in Pane.BINDINGS
        if isinstance(binding, Binding)
    ]


def main() -> None:
    """Write the tables into their pages."""
    for page in TABLES:
        path = DOCS / page
        path.write_text(written(page, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
