"""The server: tools with their schemas and hints, errors as tool errors, progress and cancellation."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import anyio.from_thread
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from ragaudit import __version__
from ragaudit.errors import RagauditError
from ragaudit.mcp import outside, words
from ragaudit.mcp.answers import Answer, Desk
from ragaudit.mcp.bounds import MAX_ROWS, ROWS
from ragaudit.mcp.results import Audited, Checked, Compared, Proposed, Shown, Written
from ragaudit.store.filters import FAILING

Audit = Annotated[str, Field(description=words.AUDIT_PATH)]
Bundle = Annotated[str, Field(description=words.BUNDLE)]
Offset = Annotated[int, Field(ge=0, description="Leave out this many rows: `next_offset` of the answer before.")]
Limit = Annotated[int, Field(ge=1, le=MAX_ROWS, description="Rows at most.")]
Filter = Annotated[str, Field(description=words.FILTER)]
READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

Tool = TypeVar("Tool", bound=Callable[..., CallToolResult])


def server(desk: Desk) -> MCPServer[None]:
    """The server of one session.

    Tools are plain functions, which the package runs in worker threads: a long audit leaves the server answering.
    """
    made: MCPServer[None] = MCPServer(
        "ragaudit",
        instructions=words.instructions(desk.folders.named),
        version=__version__,
        log_level="WARNING",
        subscriptions=False,
    )

    def tool(text: str, hints: ToolAnnotations = READS) -> Callable[[Tool], Tool]:
        return made.tool(description=words.described(text), annotations=hints, structured_output=True)

    @tool(words.CHECK)
    def check(
        bundle: Bundle, ctx: Context, offset: Offset = 0, limit: Limit = ROWS
    ) -> Annotated[CallToolResult, Checked]:
        return _answered(lambda: desk.check(bundle, offset, limit, _Tick(ctx)))

    @tool(
        words.AUDIT.format(kept=words.KEPT if desk.folders.keeps else words.NOT_KEPT),
        WRITES if desk.folders.keeps else READS,
    )
    def audit(
        bundle: Bundle,
        ctx: Context,
        name: Annotated[str | None, Field(description="What to call the audit; default: the bundle's folder.")] = None,
        traces: Annotated[int | None, Field(ge=1, description="Only the first traces.")] = None,
        limit: Limit = ROWS,
    ) -> Annotated[CallToolResult, Audited]:
        return _answered(lambda: desk.audit(bundle, name, traces, limit, _Tick(ctx)))

    @tool(words.SHOW.format(texts=words.TEXTS if desk.with_text else words.NO_TEXTS))
    def show(
        audit: Audit,
        query_id: Annotated[str | None, Field(description="The query; without it the queries are listed.")] = None,
        filter: Filter = FAILING,
        offset: Offset = 0,
        limit: Limit = ROWS,
        texts_offset: Annotated[int, Field(ge=0, description="Leave out this many texts of the query.")] = 0,
    ) -> Annotated[CallToolResult, Shown]:
        if query_id is None:
            return _answered(lambda: desk.queries(audit, filter, offset, limit))
        return _answered(lambda: desk.show(audit, query_id, offset, texts_offset))

    @tool(words.NEXT)
    def next(
        audit: Audit,
        filter: Annotated[str | None, Field(description=f"For these failing queries alone. {words.FILTER}")] = None,
        journal: Annotated[
            str | None, Field(description="experiments.jsonl inside the named folders: leaves out what it refuted.")
        ] = None,
        offset: Offset = 0,
        limit: Limit = 5,
    ) -> Annotated[CallToolResult, Proposed]:
        return _answered(lambda: desk.next(audit, filter, journal, offset, limit))

    @tool(words.COMPARE)
    def compare(
        base: Annotated[str, Field(description="What there was: an audit or a baseline file.")],
        candidate: Annotated[str, Field(description="What was tried: an audit or a baseline file.")],
        ctx: Context,
    ) -> Annotated[CallToolResult, Compared]:
        return _answered(lambda: desk.compare(base, candidate, _Tick(ctx)))

    @tool(words.REPORT)
    def report(
        audit: Audit,
        offset: Annotated[
            int, Field(ge=0, description="Start at this character: `next_offset` of the answer before.")
        ] = 0,
    ) -> Annotated[CallToolResult, Written]:
        return _answered(lambda: desk.report(audit, offset))

    return made


class _Tick:
    """Called in the worker thread of a tool: reports progress, and ends the thread when the call was cancelled."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._last = 0

    def __call__(self, done: int) -> None:
        anyio.from_thread.check_cancelled()
        if done > self._last:
            self._last = done
            anyio.from_thread.run(self._ctx.report_progress, done)


def _answered(ask: Callable[[], Answer]) -> CallToolResult:
    """An answer in both forms; an error of ours as the tool's error. Any other is a bug: the package logs it."""
    try:
        answer = ask()
    except RagauditError as error:
        return CallToolResult(content=[TextContent(type="text", text=outside.lines(str(error)))], is_error=True)
    return CallToolResult(
        content=[TextContent(type="text", text=answer.text)],
        structured_content=answer.data.model_dump(mode="json"),
    )
