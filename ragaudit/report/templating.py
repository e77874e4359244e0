"""The sandboxes that print templates: every value is escaped for its medium where it is printed, none can be missed."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from jinja2 import BaseLoader, ChoiceLoader, FileSystemLoader, StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ragaudit.errors import ConfigError
from ragaudit.model.counting import counted
from ragaudit.report.clean import Html, Markdown, code, fenced, for_html, for_markdown

OWN = FileSystemLoader(Path(__file__).parent / "templates")
STYLE = "report.css"
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


def rendered(
    environment: Callable[[BaseLoader], ImmutableSandboxedEnvironment],
    name: str,
    view: Mapping[str, Any],
    templates: Path | None = None,
) -> str:
    """The template of this name, the user's own where the folder has one, printed.

    Raises:
        ConfigError: the folder is missing, or the user's template does not work.
    """
    try:
        return environment(_loader(templates)).get_template(name).render(view)
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        if templates is None:
            raise
        line = getattr(error, "lineno", None)
        place = templates / (getattr(error, "name", None) or name)
        raise ConfigError(f"{place}{f':{line}' if line else ''}: {error}. Correct the template.") from error


def styled(templates: Path | None = None) -> dict[str, Html]:
    """The style of an HTML page, the user's own where the folder has one, and the source expression that lets it in."""
    style = _loader(templates).get_source(html_environment(), STYLE)[0]
    return {"style": Html(style), "style_hash": style_hash(style)}


def style_hash(style: str) -> Html:
    """The source expression that lets this style in and no other (CSP level 2)."""
    return Html(f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'")


def _loader(templates: Path | None) -> BaseLoader:
    if templates is None:
        return OWN
    if not templates.is_dir():
        raise ConfigError(f"{templates}: no such folder. Pass the folder that holds your templates.")
    return ChoiceLoader([FileSystemLoader(templates), OWN])


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
