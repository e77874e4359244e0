"""The second call: claims against texts. What was asked, what a reply says about it, and the cells that follow."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from ragaudit.judge.fence import fenced, shown
from ragaudit.judge.how import HowToJudge, closed, request
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.quotes import is_quoted_from
from ragaudit.model.judgement import Cell, Claim, Request, Side, Verdict

REFERENCE_COLUMN = "@reference"
"""The column of the matrix that holds the reference, asked about answer claims: does the reference say it too?"""
QUERY_ROW = "@query"
"""The row of the cells that say whether a chunk helps to answer the question; only without answer and reference."""

CHUNK = "c"
"""How the labels of chunks begin; theirs are always numbered."""
_OVERLAP = 200
_QUOTES = {
    "type": "array",
    "items": closed({"text": {"type": "string"}, "quote": {"type": "string"}}),
}
RELEVANCE = {"relevant": Verdict.SUPPORTED, "irrelevant": Verdict.MISSING}
"""The closed set of words of the prompt `relevance`, and what they mean in a cell."""
VERDICTS = {verdict.value: verdict for verdict in Verdict}
"""The closed set of words of the prompt `claim`."""


class Window(NamedTuple):
    """A text, or a part of a long one, under the name that the model knows it by. `side` = whose claims it is for."""

    label: str
    column: str
    """The chunk's id, ANSWER_COLUMN or REFERENCE_COLUMN."""
    text: str
    side: Side | None = None


class Said(NamedTuple):
    """What a reply says about one claim and one text; no verdict when it says two things at once."""

    verdict: Verdict | None
    quote: str | None = None
    reason: str | None = None
    p_supported: float | None = None


Rows: TypeAlias = Mapping[str, Mapping[str, Window]]
"""Claim id, or QUERY_ROW -> label -> the window that it is held against."""
NOTHING = Said(Verdict.MISSING)
"""What a text says about a claim that it is not listed for."""


def windows_of(
    label: str, texts: Iterable[tuple[str, str]], limit: int, *, side: Side | None = None
) -> tuple[Window, ...]:
    """The texts (column, text) under the labels c1, c2, ... (answer, answer2, ...); one over the limit takes several.

    Such parts overlap, so that words on a border stand whole in one of them.
    """
    windows: list[Window] = []
    for column, text in texts:
        for start in range(0, max(len(text) - _OVERLAP, 1), limit - _OVERLAP):
            number = str(len(windows) + 1) if windows or label == CHUNK else ""
            windows.append(Window(label + number, column, text[start : start + limit], side))
    return tuple(windows)


def rows_of(claims: Iterable[Claim], windows: Sequence[Window]) -> Rows:
    """What is asked: the windows that each claim is held against; without claims, all of them against the question.

    Claims of one side share theirs.
    """
    mine: dict[Side, dict[str, Window]] = {side: {} for side in Side}
    for window in windows:
        for side, some in mine.items():
            if window.side is None or window.side is side:
                some[window.label] = window
    rows = {claim.id: mine[claim.side] for claim in claims}
    return rows or {QUERY_ROW: {window.label: window for window in windows}}


def matrix_request(
    how: HowToJudge, prompts: PromptSet, claims: Sequence[Claim], windows: Sequence[Window], *, key: str, purpose: str
) -> Request:
    """Ask about all these claims and texts at once; the texts first, so that a server can keep what it has read."""
    sides = {claim.side for claim in claims}
    used = [window for window in windows if window.side is None or window.side in sides]
    rows = "\n".join(f"{claim.id}: {claim.text}" for claim in claims)
    return request(
        how,
        prompts,
        "matrix",
        purpose=purpose,
        schema=_matrix_schema(tuple(window.label for window in used)),
        key=key,
        texts=_texts(used, key),
        claims=fenced("claims", rows, key),
        ids=", ".join(claim.id for claim in claims),
    )


def _matrix_schema(labels: tuple[str, ...]) -> dict[str, Any]:
    listed = closed({"text": {"type": "string", "enum": list(labels)}, "quote": {"type": "string"}})
    texts = {"type": "array", "items": listed}
    row = closed({"id": {"type": "string"}, "supported": texts, "contradicted": texts})
    return closed({"verdicts": {"type": "array", "items": row}})


def claim_request(
    how: HowToJudge, prompts: PromptSet, claim: Claim, windows: Sequence[Window], *, key: str, purpose: str
) -> Request:
    """Ask about one claim: one word for each text."""
    used = rows_of([claim], windows)[claim.id].values()
    word = {"type": "string", "enum": list(VERDICTS)}
    return request(
        how,
        prompts,
        "claim",
        purpose=purpose,
        schema=closed({"verdicts": closed({window.label: word for window in used}), "quotes": _QUOTES}),
        verdict_tokens=True,
        key=key,
        texts=_texts(used, key),
        claim=fenced("claim", claim.text, key),
        names=", ".join(window.label for window in used),
    )


def relevance_request(
    how: HowToJudge, prompts: PromptSet, query: str, windows: Sequence[Window], *, key: str
) -> Request:
    """Ask which texts help to answer the question."""
    word = {"type": "string", "enum": list(RELEVANCE)}
    return request(
        how,
        prompts,
        "relevance",
        purpose="relevance",
        schema=closed({"verdicts": closed({window.label: word for window in windows})}),
        verdict_tokens=True,
        key=key,
        question=fenced("question", shown(query), key),
        texts=_texts(windows, key),
        names=", ".join(window.label for window in windows),
    )


def cells_of(
    rows: Rows,
    said: Mapping[str, Mapping[str, Said]],
    unsaid: Mapping[tuple[str, str], str],
) -> list[Cell]:
    """One cell for each row and column, from the verdicts on the column's parts.

    Args:
        rows: What was asked.
        said: The verdicts, by row and label.
        unsaid: Why there is none, for the pairs (row, label) that have none.
    """
    missing = Verdict.MISSING
    columns_of: dict[int, list[tuple[str, str, list[Window]]]] = {}
    cells: list[Cell] = []
    for row, windows in rows.items():
        if (columns := columns_of.get(id(windows))) is None:
            columns = columns_of[id(windows)] = _columns(windows.values())
        heard = said.get(row, {})
        cells += [
            Cell(row, column, missing)  # most of a matrix
            if heard.get(label) is NOTHING
            else _cell(row, column, parts, heard, unsaid)
            for column, label, parts in columns
        ]
    return cells


def _columns(windows: Iterable[Window]) -> list[tuple[str, str, list[Window]]]:
    """(column, label of its only part or "", parts)."""
    columns: dict[str, list[Window]] = {}
    for window in windows:
        columns.setdefault(window.column, []).append(window)
    return [(column, parts[0].label if len(parts) == 1 else "", parts) for column, parts in columns.items()]


def _together(heard: Sequence[tuple[Window, Said | None]]) -> tuple[Window, Said | None]:
    """What the parts of one text say, and the part that says it; None = a part that could change it says nothing."""
    known = [one for _, one in heard if one is not None]
    verdicts = {one.verdict for one in known}
    if Verdict.SUPPORTED in verdicts and Verdict.CONTRADICTED in verdicts:
        return heard[0][0], Said(None, reason="its parts contradict each other")
    for wanted in (Verdict.SUPPORTED, Verdict.CONTRADICTED):
        for part, one in heard:
            if one is not None and one.verdict is wanted:
                return part, one._replace(p_supported=_highest(known))
    for part, one in heard:
        if one is None:
            return part, None
    undecided = next((one for one in known if one.verdict is None), None)
    return heard[0][0], undecided or Said(Verdict.MISSING, p_supported=_highest(known))


def _highest(ones: Iterable[Said]) -> float | None:
    return max((one.p_supported for one in ones if one.p_supported is not None), default=None)


def _cell(
    row: str,
    column: str,
    parts: Sequence[Window],
    heard: Mapping[str, Said],
    unsaid: Mapping[tuple[str, str], str],
) -> Cell:
    part, one = parts[0], heard.get(parts[0].label)
    if len(parts) > 1:
        part, one = _together([(part, heard.get(part.label)) for part in parts])
    if one is None:
        return Cell(row, column, None, unsaid.get((row, part.label), "the judge gave no verdict"))
    if one.verdict in (None, Verdict.MISSING):
        return Cell(row, column, one.verdict, one.reason, p_supported=one.p_supported)
    if one.quote is not None and not is_quoted_from(one.quote, part.text):
        reason = "the quoted words are not in the text"
        return Cell(row, column, one.verdict, reason, p_supported=one.p_supported)
    return Cell(row, column, one.verdict, quote=one.quote, p_supported=one.p_supported)


def _texts(windows: Iterable[Window], key: str) -> str:
    return "\n".join(fenced(window.label, shown(window.text), key) for window in windows)
