"""The prompts as data: `<name>.jinja` files whose front matter says name, version, variables and labels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Self

from jinja2 import StrictUndefined, Template, TemplateError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ragaudit.errors import ConfigError

_FRONT = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_ROLE = re.compile(r"^\[(system|user)\]\n", re.MULTILINE)
_KEYS = ("name", "version", "measures", "variables", "labels")
_LONGEST = 40_000


@dataclass(frozen=True)
class Prompt:
    """One prompt as its file states it, compiled."""

    name: str
    version: int
    measures: str
    """What it finds out, in one line."""
    variables: tuple[str, ...]
    labels: tuple[str, ...]
    text: str
    """The whole file: a changed text needs a new version."""
    sections: tuple[tuple[str, Template | str], ...]
    """(role, template) in the order of the file. The roles are cut before anything is filled in.

    A section that does no more than name its variables is a format string, which is filled in ten times as fast.
    """


@dataclass(frozen=True)
class PromptSet:
    """The prompts that a run asks with, by name."""

    prompts: Mapping[str, Prompt]

    @classmethod
    def load(cls, folder: Path | None = None, *, part: str = "") -> Self:
        """Read the shipped prompts, and those of `folder` in place of the shipped ones of the same name.

        `part` is a folder of shipped prompts that the judge does not ask with: `report`.

        Raises:
            ConfigError: The folder or a file in it cannot be read, or is not a prompt that can take the place of the
                shipped one: other variables or labels, or a changed text under the shipped version.
        """
        prompts = {path.stem: _read(path) for path in sorted((_shipped() / part).glob("*.jinja"))}
        if folder is not None:
            if not folder.is_dir():
                raise ConfigError(f"{folder}: is not a folder. Name the folder that holds your prompts.")
            for path in sorted(folder.glob("*.jinja")):
                own = _read(path)
                _check_override(path, own, prompts)
                prompts[own.name] = own
        return cls(prompts)

    def render(self, name: str, **variables: str) -> tuple[tuple[dict[str, str], ...], int]:
        """The messages of a prompt with its variables filled in, and the prompt's version."""
        prompt = self.prompts[name]
        messages = tuple(
            {"role": role, "content": (part % variables if isinstance(part, str) else part.render(variables)).strip()}
            for role, part in prompt.sections
        )
        return messages, prompt.version

    def versions(self) -> dict[str, int]:
        """Name -> version of every prompt: what a report names beside its figures."""
        return {name: prompt.version for name, prompt in self.prompts.items()}


def _shipped() -> Path:
    """The folder of the prompts: inside the package in a wheel, beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "prompts"
    return inside if inside.is_dir() else package.parent / "prompts"


def _read(path: Path) -> Prompt:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8. Save the file as UTF-8.") from None
    text = text.replace("\r\n", "\n")
    if len(text) > _LONGEST:
        raise ConfigError(f"{path}: is longer than {_LONGEST:,} characters. Shorten it: every call carries it.")
    front = _FRONT.match(text)
    if front is None:
        raise ConfigError(f"{path}: has no front matter. Begin with '---', name, version, variables, labels, '---'.")
    said = dict(_lines(front[1], path))
    for key in _KEYS:
        if key not in said and key != "measures":
            raise ConfigError(f"{path}: the front matter has no '{key}'. Add the line '{key}: ...'.")
    if said["name"] != path.stem:
        raise ConfigError(f"{path}: is named '{said['name']}' inside. Give file and prompt the same name.")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", said["version"]):
        raise ConfigError(f"{path}: version '{said['version']}' is not a whole number from 1. Write one.")
    variables = _words(said["variables"])
    return Prompt(
        name=said["name"],
        version=int(said["version"]),
        measures=said.get("measures", ""),
        variables=variables,
        labels=_words(said["labels"]),
        text=text,
        sections=_sections(front[2], variables, path),
    )


def _lines(front: str, path: Path) -> list[tuple[str, str]]:
    pairs = []
    for line in front.splitlines():
        key, colon, value = line.partition(":")
        if not colon or key.strip() not in _KEYS:
            raise ConfigError(f"{path}: '{line[:60]}' is no line of a front matter. Known keys: {', '.join(_KEYS)}.")
        pairs.append((key.strip(), value.strip()))
    return pairs


def _words(value: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in value.strip("[]").split(",") if word.strip())


def _sections(body: str, variables: tuple[str, ...], path: Path) -> tuple[tuple[str, Template | str], ...]:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    before, *parts = _ROLE.split(body)
    if before.strip() or not parts:
        raise ConfigError(f"{path}: the text stands under no role. Put '[system]' or '[user]' on a line above it.")
    sections: list[tuple[str, Template | str]] = []
    marks = {name: f"[{path.stem}:{name}]" for name in variables}
    whole = ""
    try:
        for role, source in zip(parts[::2], parts[1::2], strict=True):
            template = environment.from_string(source)
            sections.append((role, _format_string(environment.parse(source)) or template))
            whole += template.render(marks)
    except TemplateError as error:
        names = ", ".join(variables)
        raise ConfigError(f"{path}: cannot be filled in ({error}). Use only its variables: {names}.") from None
    for name, mark in marks.items():
        if mark not in whole:
            raise ConfigError(f"{path}: does not use its variable '{name}'. Each one is needed.")
    return tuple(sections)


def _format_string(section: nodes.Template) -> str | None:
    """The section as a %-format; None when there is more in it than text and names."""
    made = ""
    for part in section.body:
        for node in part.nodes if isinstance(part, nodes.Output) else [part]:
            match node:
                case nodes.TemplateData():
                    made += node.data.replace("%", "%%")
                case nodes.Name():
                    made += f"%({node.name})s"
                case _:
                    return None
    return made


def _check_override(path: Path, own: Prompt, shipped: Mapping[str, Prompt]) -> None:
    if own.name not in shipped:
        near = get_close_matches(own.name, shipped, n=1)
        hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(shipped)}."
        raise ConfigError(f"{path}: there is no prompt '{own.name}' to take the place of. {hint}")
    other = shipped[own.name]
    for what, mine, theirs in (
        ("variables", own.variables, other.variables),
        ("labels", own.labels, other.labels),
    ):
        if sorted(mine) != sorted(theirs):
            raise ConfigError(
                f"{path}: its {what} are {list(mine)}. They must be {list(theirs)}: the judge reads them."
            )
    if own.version == other.version and own.text != other.text:
        raise ConfigError(f"{path}: differs from the shipped version {own.version}. Give it another version number.")
