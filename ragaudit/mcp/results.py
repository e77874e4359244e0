"""What each tool answers as structured content. Every string in it was cleaned; the shapes are the output schemas."""

from typing import Any

from pydantic import Field

from ragaudit.mcp.bounds import Page
from ragaudit.mcp.outside import NOTE
from ragaudit.model.record import Concluded

Row = dict[str, Any]
"""As the command of the same name prints it with --json, strings and lists cut."""


class Result(Concluded):
    """What every answer starts with."""

    note: str = NOTE


class Checked(Result):
    """What preflight found."""

    run: str
    blocked: bool
    """An audit of this would not be sound: repair first."""
    ask_the_user: tuple[str, ...]
    """Rules and permissions that are missing. They are the user's to give: stop and ask, do not assume."""
    findings: list[Row]
    page: Page


class QueryLine(Concluded):
    """One query of a list."""

    query_id: str
    outcome: str
    stage: str
    causes: tuple[str, ...]
    leak: bool


class Audited(Result):
    """The run as a whole, and its failing queries, leaks first."""

    audit: str
    """What the other tools call it."""
    kept: str
    """Where the audit is, and how long."""
    verdict: str
    leak: str | None
    """The security finding that stands above every other, when there is one."""
    acl: tuple[str, ...]
    """What access rules took out of the numbers: a note on the numbers, no problem to solve."""
    ask_the_user: tuple[str, ...]
    run: Row
    outcomes: dict[str, int]
    stages: dict[str, int]
    undetermined: dict[str, int]
    metrics: Row
    patterns: tuple[str, ...]
    queries: list[QueryLine]
    page: Page


class Text(Concluded):
    """One text of a query, between marks; None = not shown, and `why` says why."""

    what: str
    text: str | None
    why: str = ""


class Shown(Result):
    """One query in full, or the list that was asked for instead."""

    audit: str
    query: Row | None = None
    gold: Page | None = None
    """Which gold ids of the query these are."""
    experiments: list[Row] = Field(default_factory=list)
    texts: list[Text] = Field(default_factory=list)
    texts_page: Page | None = None
    queries: list[QueryLine] = Field(default_factory=list)
    page: Page | None = None


class Proposed(Result):
    """Experiments, best first; each changes one variable."""

    audit: str
    ask_the_user: tuple[str, ...]
    refuted: int
    """Left out, because the journal says that they were tried in vain."""
    experiments: list[Row]
    page: Page


class Compared(Result):
    """A candidate against a baseline, query by query."""

    verdict: str
    worse: tuple[str, ...]
    """What would fail a gate: a metric worse, queries that newly leak or are missing."""
    comparison: Row


class Written(Result):
    """A part of the written report."""

    audit: str
    markdown: str
    characters: int
    next_offset: int | None
