"""One chunk: where it stood, its text with the gold span, and the chunk that took its place."""

import re

from ragaudit.model.diagnosis import State
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import cut, wrap
from ragaudit.tui.lines import BLANK, Line, Piece, Role, flowed, head, line
from ragaudit.tui.query_view import PACKED, QueryView

OPEN, CLOSE = ">>", "<<"
"""Around the gold span: what colour says is said in text too."""

_START, _END = "\x02", "\x03"
"""Stand for them while the text is wrapped: no cleaned text holds a control character."""

MAX_CHARACTERS = 40_000
"""Of one text on the screen; the rest is counted."""


def chunk_lines(view: QueryView, chunk_id: str | None, width: int, *, wrapped: bool = True) -> list[Line]:
    """A chunk in full, as far as the query's user may read it."""
    if chunk_id is None:
        return flowed("No chunk is chosen: this query has no gold ids and no hits.", width)
    lines = [_about(view, chunk_id, width)]
    lines += _text(view, chunk_id, width, span=_span(view, chunk_id), wrapped=wrapped)
    taker = took_its_place(view, chunk_id)
    if taker is not None:
        lines += [BLANK, head(f"took its place: {for_terminal(taker, 40)}", width)]
        lines += _text(view, taker, width, span=None, wrapped=wrapped)
    terms = shared_terms(view, chunk_id)
    if terms is not None:
        lines += [BLANK, *flowed(f"query words in it: {' '.join(terms) or 'none'}", width, Role.DIM)]
    return lines


def took_its_place(view: QueryView, chunk_id: str) -> str | None:
    """For gold that did not arrive, the last chunk of the packed context: the one it would have pushed out."""
    gold = view.gold(chunk_id)
    if gold is None or gold.eligible is False or view.place(chunk_id, PACKED)[0] is not State.ABSENT:
        return None
    others = [i for i in view.diagnosis.final_context_ids or () if view.gold(i) is None]
    return others[-1] if others else None


def shared_terms(view: QueryView, chunk_id: str) -> list[str] | None:
    """Words of the query that the chunk holds; None when its text is not shown."""
    text = view.texts.text(chunk_id)
    if text is None:
        return None
    words = dict.fromkeys(re.findall(r"\w{2,}", view.result.query_text.lower()))
    held = set(re.findall(r"\w{2,}", text.lower()))
    return [for_terminal(word) for word in words if word in held]


def _about(view: QueryView, chunk_id: str, width: int) -> Line:
    gold = view.gold(chunk_id)
    shown = view.texts.chunk(chunk_id)
    said = [for_terminal(chunk_id, max(width // 2, 8))]
    if gold is not None:
        said.append(f"gold grade {gold.grade:g}")
    if chunk_id in view.diagnosis.leaks:
        said.append("!! LEAK")
    _, rank = view.place(chunk_id, PACKED)
    said.append(f"packed at {rank}" if rank is not None else "not packed")
    if shown.source_id and shown.source_id != chunk_id:
        said.append(f"of {for_terminal(shown.source_id, 30)}")
    return line((cut("   ".join(said), width), Role.STRONG))


def _span(view: QueryView, chunk_id: str) -> str | None:
    label = view.label(chunk_id)
    return None if label is None else label.span


def _text(view: QueryView, chunk_id: str, width: int, *, span: str | None, wrapped: bool) -> list[Line]:
    shown = view.texts.chunk(chunk_id)
    if shown.text is None:
        digest = f"   {shown.hash}" if shown.hash else ""
        return flowed(f"(not shown: {shown.why}{digest})", width, Role.UNSCORED)
    rest = len(shown.text) - MAX_CHARACTERS
    text = for_terminal(shown.text[:MAX_CHARACTERS], lines=True)
    lines = _with_span(text, span, width, wrapped=wrapped)
    if rest > 0:
        lines.append(line((f"({rest:,} more characters)", Role.DIM)))
    if span and not any(piece.role is Role.GOLD for one in lines for piece in one):
        lines += flowed(f"gold span, not found word for word here: {span}", width, Role.UNSCORED)
    return lines


def _with_span(text: str, span: str | None, width: int, *, wrapped: bool) -> list[Line]:
    """The text in lines, the span in it marked."""
    found = _found(span, text) if span else None
    if found is not None:
        start, end = found
        text = f"{text[:start]}{_START}{text[start:end]}{_END}{text[end:]}"
        width -= len(OPEN)
    broken = text.split("\n")
    rows = [row for one in broken for row in wrap(one, max(width, 8))] if wrapped else broken
    lines: list[Line] = []
    inside = False
    for row in rows:
        pieces: list[Piece] = []
        for part in re.split(f"({_START}|{_END})", row):
            inside = inside or part == _START
            if part:
                shown = {_START: OPEN, _END: CLOSE}.get(part, part)
                pieces.append(Piece(shown, Role.GOLD if inside else Role.PLAIN))
            inside = inside and part != _END
        lines.append(tuple(pieces))
    return lines


def _found(span: str, text: str) -> tuple[int, int] | None:
    """Where the span stands, white space and case aside; no other folding: what is marked is what is there."""
    words = [re.escape(word) for word in for_terminal(span).split()]
    match = re.search(r"\s+".join(words), text, re.IGNORECASE) if words else None
    return None if match is None else match.span()
