"""The second call: claims against texts. What was asked, what a reply says about it, and the cells that follow."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import TypeAdapter

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
_CELLS = TypeAdapter(list[Cell])
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


NOTHING = Said(Verdict.MISSING)
"""What a text says about a claim that it is not listed for."""


def windows_of(
    label: str, texts: Iterable[tuple[str, str]], limit: int, *, side: Side | None = None
) -> tuple[Window, ...]:
    """The texts (column, text) under the labels c1, c2, ... (answer, answer2, ...); one over the limit takes several.

    Such parts overlap, so that words on a border stand whole in one of them.
    """
    step = limit - _OVERLAP
    parts = [
        (column, text[start : start + limit])
        for column, text in texts
        for start in range(0, max(len(text) - _OVERLAP, 1), step)
    ]
    numbers = [str(place) for place in range(1, len(parts) + 1)]
    if label != CHUNK:
        numbers[:1] = [""]
    return tuple(Window(label + number, *part, side) for number, part in zip(numbers, parts, strict=True))


def by_side(windows: Sequence[Window]) -> dict[Side, list[Window]]:
    """The windows that the claims of each side are held against."""
    return {side: [window for window in windows if window.side is None or window.side is side] for side in Side}


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
    used = by_side(windows)[claim.side]
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
    rows: Iterable[tuple[str, Sequence[Window]]],
    said: Mapping[str, Mapping[str, Said]],
    unsaid: Mapping[tuple[str, str], str],
) -> list[Cell]:
    """One cell for each row and column, from the verdicts on the column's parts.

    Args:
        rows: Claim ids (or QUERY_ROW), each with the windows that it was held against.
        said: The verdicts, by row and label.
        unsaid: Why there is none, for the pairs (row, label) that have none.
    """
    columns_of: dict[int, dict[str, list[Window]]] = {}
    fields: list[dict[str, Any]] = []
    for row, windows in rows:
        if (columns := columns_of.get(id(windows))) is None:
            columns = columns_of[id(windows)] = _columns(windows)
        heard = said.get(row, {})
        for column, parts in columns.items():
            if len(parts) == 1 and heard.get(parts[0].label) is NOTHING:  # most of a matrix
                fields.append({"claim_id": row, "chunk_id": column, "verdict": Verdict.MISSING})
            else:
                fields.append({"claim_id": row, "chunk_id": column} | _verdict(row, parts, heard, unsaid))
    return _CELLS.validate_python(fields)


def _columns(windows: Iterable[Window]) -> dict[str, list[Window]]:
    columns: dict[str, list[Window]] = {}
    for window in windows:
        columns.setdefault(window.column, []).append(window)
    return columns


def _verdict(
    row: str, parts: Sequence[Window], heard: Mapping[str, Said], unsaid: Mapping[tuple[str, str], str]
) -> dict[str, Any]:
    """What the parts of a column say together."""
    ones = [heard.get(part.label) for part in parts]
    known = [one for one in ones if one is not None]
    verdicts = {one.verdict for one in known}
    if Verdict.SUPPORTED in verdicts and Verdict.CONTRADICTED in verdicts:
        return {"verdict": None, "reason": "its parts contradict each other"}
    for wanted in (Verdict.SUPPORTED, Verdict.CONTRADICTED):
        if wanted in verdicts:
            one, part = next(
                (one, part) for one, part in zip(ones, parts, strict=True) if one and one.verdict is wanted
            )
            return {"verdict": wanted, "p_supported": _highest(known), **_quoted(one, part)}
    if len(known) < len(ones):
        label = parts[ones.index(None)].label
        return {"verdict": None, "reason": unsaid.get((row, label), "the judge gave no verdict")}
    if None in verdicts:
        return {"verdict": None, "reason": next(one.reason for one in known if one.verdict is None)}
    return {"verdict": Verdict.MISSING, "p_supported": _highest(known)}


def _highest(ones: Sequence[Said]) -> float | None:
    if len(ones) == 1:
        return ones[0].p_supported
    return max((one.p_supported for one in ones if one.p_supported is not None), default=None)


def _quoted(one: Said, part: Window) -> dict[str, str]:
    if one.quote is None:
        return {}
    if not is_quoted_from(one.quote, part.text):
        return {"reason": "the quoted words are not in the text"}
    return {"quote": one.quote}


def _texts(windows: Iterable[Window], key: str) -> str:
    return "\n".join(fenced(window.label, shown(window.text), key) for window in windows)
