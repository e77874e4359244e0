"""The doors for outside text: what a log or a chunk says can neither steer a terminal nor become markup."""

import re
from html import escape

from ragaudit.report.layout import cut

_UNSAFE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and newline: ESC starts sequences, CR overwrites
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # direction marks: they make text read as something else
    "\u2028\u2029"  # line and paragraph separators: a line break to some programs, to others none
    "\u200b\u2060-\u2064\ufeff\U000e0000-\U000e007f"  # characters without a shape, tags among them: hidden text
    "\ud800-\udfff"  # half surrogates: no encoding can write them
    "\ufffe\uffff"  # no characters, and never allowed in XML
    "]"
)
_BREAKS = re.compile(r"\s*[\t\n]\s*")
_MARKUP = re.compile(r"[\\`*~|\[\]$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=\bwww)\.")
_LINE_START = re.compile(r"\A(?:(?=[#>=])|(?=[-+][\s-])|(?=:-)|\d+(?=[.)](?:\s|$)))")
_CODE = re.compile(r"`([^`]+)`")
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;"})


class Markdown(str):
    """Text that is Markdown already: ours, or cleaned. Everything else is escaped where a template prints it."""

    __slots__ = ()


class Ours(str):
    """A sentence of ours: it holds nothing from outside, and backticks in it mark code, which each medium prints."""

    __slots__ = ()


class Html(str):
    """Text that is HTML already: ours, or cleaned. Templates print it as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        """How Jinja knows it."""
        return self


def visible(text: str) -> str:
    """The text with every character that acts instead of showing replaced by its code, as `<U+202E>`."""
    return _UNSAFE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def for_terminal(text: str, width: int | None = None, *, lines: bool = False) -> str:
    """Outside text as it may be printed: no control sequences, no bidirectional tricks.

    Args:
        text: Anything.
        width: Cut to this many terminal cells, ending in `...`; None = do not cut. Not with `lines`.
        lines: Keep line breaks; otherwise they and tabs fold to one space.
    """
    if lines:
        return visible(text.replace("\r\n", "\n")).expandtabs(4)
    shown = _BREAKS.sub(" ", visible(text.replace("\r\n", "\n"))).strip()
    return shown if width is None else cut(shown, width)


def for_markdown(text: object, limit: int | None = 400) -> Markdown:
    """Outside text as one line of Markdown that shows as written: no markup, no HTML, no link, no table cell.

    Args:
        text: Anything; text that is Markdown already, or ours, is returned as it is.
        limit: Cut after this many characters and say how many there are more; None = do not cut.
    """
    if isinstance(text, Markdown | Ours):
        return Markdown(text)
    shown = for_terminal(str(text))
    rest = ""
    if limit is not None and len(shown) > limit:
        rest = f" ({len(shown) - limit:,} more characters)"
        shown = shown[:limit] + "..."
    escaped = _MARKUP.sub(lambda found: "\\" + found[0], shown.translate(_HTML))
    # What makes a heading, a list, a quote or a rule does so at the start of a line only.
    return Markdown(_LINE_START.sub(lambda found: found[0] + "\\", escaped, count=1) + rest)


def code(text: object) -> Markdown:
    """An id or a name as a Markdown code span; escaped instead where a span could be left early, as in a table cell."""
    shown = for_terminal(str(text))
    if not shown or re.search(r"[`|\\]", shown):
        return for_markdown(shown or "(empty)")
    return Markdown(f"`{shown}`")


def fenced(text: str, language: str = "text") -> Markdown:
    """Outside text with its lines kept, in a Markdown code block that nothing in it can end."""
    shown = for_terminal(text, lines=True)
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", shown)), default=0))
    return Markdown(f"{fence}{language}\n{shown}\n{fence}")


def for_html(text: object, *, lines: bool = False) -> Html:
    """Outside text as HTML that shows as written, in an element or a quoted attribute.

    Args:
        text: Anything; text that is HTML already is returned as it is, and in text of ours backticks become code.
        lines: Keep line breaks; otherwise they and tabs fold to one space.
    """
    if isinstance(text, Html):
        return text
    shown = escape(for_terminal(str(text), lines=lines))
    return Html(_CODE.sub(r"<code>\1</code>", shown) if isinstance(text, Ours) else shown)


def for_xml(text: object, limit: int | None = None, *, lines: bool = False) -> str:
    """Outside text as XML that shows as written, in an element or a quoted attribute; ASCII, whatever the encoding is.

    Args:
        text: Anything.
        limit: Cut after this many characters and say how many there are more; None = do not cut.
        lines: Keep line breaks; otherwise they and tabs fold to one space, as they would in an attribute.
    """
    shown = shortened(for_terminal(str(text), lines=lines), limit)
    return escape(shown).encode("ascii", "xmlcharrefreplace").decode("ascii")


def for_workflow(text: object, limit: int | None = None, *, key: bool = False) -> str:
    """Outside text inside a GitHub workflow command (`::error title=KEY::TEXT`), which it can neither end nor begin.

    Args:
        text: Anything; line breaks fold to spaces.
        limit: Cut after this many characters and say how many there are more; None = do not cut.
        key: It is the value of a property, where `:` and `,` act too.
    """
    shown = shortened(for_terminal(str(text)), limit).replace("%", "%25")
    return shown.replace(":", "%3A").replace(",", "%2C") if key else shown


def shortened(text: str, limit: int | None) -> str:
    """The first characters and how many there are more."""
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit:,} more characters)"
