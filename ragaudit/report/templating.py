"""The sandboxes that print templates: every value is escaped for its medium where it is printed, none can be missed."""

from collections.abc import Iterable
from pathlib import Path

from jinja2 import BaseLoader, FileSystemLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ragaudit.report.clean import Html, Markdown, code, fenced, for_html, for_markdown
from ragaudit.report.figures import counted

OWN = FileSystemLoader(Path(__file__).parent / "templates")
MAX_IDS = 5


def markdown_environment(loader: BaseLoader = OWN) -> ImmutableSandboxedEnvironment:
    """For Markdown. What is `Markdown` already is printed as it is."""
    environment = ImmutableSandboxedEnvironment(
        loader=loader,
        autoescape=False,  # that would escape for HTML; `finalize` escapes for Markdown
        finalize=lambda value: "" if value is None else for_markdown(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"code": code, "markdown": for_markdown, "listed": listed, "fenced": fenced}
    return environment


def html_environment(loader: BaseLoader = OWN) -> ImmutableSandboxedEnvironment:
    """For HTML. `finalize` cleans what autoescape would only escape: control and direction characters."""
    environment = ImmutableSandboxedEnvironment(
        loader=loader,
        autoescape=True,
        finalize=lambda value: value if hasattr(value, "__html__") else "" if value is None else for_html(value),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"lines": _with_lines}
    return environment


def listed(ids: Iterable[str] | None, most: int = MAX_IDS) -> Markdown:
    """Ids as code, the first few and how many more there are; None = not logged."""
    if ids is None:
        return Markdown("not logged")
    every = list(ids)
    if not every:
        return Markdown("none")
    more = f" and {counted(len(every) - most, 'more', 'more')}" if len(every) > most else ""
    return Markdown(", ".join(code(i) for i in every[:most]) + more)


def _with_lines(text: object) -> Html:
    return for_html(text, lines=True)
