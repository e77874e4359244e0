"""The second call: claims against texts. What was asked, what a reply says about it, and the cells that follow."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ragaudit.judge.fence import fenced, one_line, shown
from ragaudit.judge.how import HowToJudge, closed, request
from ragaudit.judge.parse import CONFLICT, Conflict, Read, Unreadable, read_json
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.quotes import is_quoted_from
from ragaudit.judge.tokens import p_of_word
from ragaudit.model.judgement import ANSWER_COLUMN, Cell, Claim, Reply, Request, SampleChunk, Side, Verdict

REFERENCE_COLUMN = "@reference"
"""The column of the matrix that holds the reference, asked about answer claims: does the reference say it too?"""
QUERY_ROW = "@query"
"""The row of the cells that say whether a chunk helps to answer the question; only without answer and reference."""

_OVERLAP = 200
_QUOTE_CHARS = 600
_LABEL = re.compile(r"[\W_]*([a-z]+[0-9]*)\b", re.IGNORECASE)
_QUOTES = {
    "type": "array",
    "items": closed({"text": {"type": "string"}, "quote": {"type": "string"}}),
}
_RELEVANCE = {"relevant": Verdict.SUPPORTED, "irrelevant": Verdict.MISSING}
_VERDICTS = {verdict.value: verdict for verdict in Verdict}


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


class Answered(NamedTuple):
    """The pairs (claim id, label) that a reply answers, and how many of its verdicts were about nothing we asked."""

    said: dict[tuple[str, str], Said]
    ignored: int


def windows_of(
    label: str, texts: Iterable[tuple[str, str]], limit: int, *, side: Side | None = None
) -> tuple[Window, ...]:
    """The texts (column, text) under the labels c1, c2, ...; a text over the limit takes several, which overlap."""
    windows: list[Window] = []
    for column, text in texts:
        step = limit - _OVERLAP
        for start in range(0, max(len(text) - _OVERLAP, 1), step):
            windows.append(Window("", column, text[start : start + limit], side))
    if label.startswith("c"):
        return tuple(window._replace(label=f"{label}{place}") for place, window in enumerate(windows, start=1))
    return tuple(
        window._replace(label=label if place == 1 else f"{label}{place}")
        for place, window in enumerate(windows, start=1)
    )


def asked_about(claim: Claim, windows: Iterable[Window]) -> list[Window]:
    """The windows that this claim is held against."""
    return [window for window in windows if window.side in (None, claim.side)]


def matrix_request(
    how: HowToJudge, prompts: PromptSet, claims: Sequence[Claim], windows: Sequence[Window], *, key: str, purpose: str
) -> Request:
    """Ask about all these claims and texts at once. The texts come first, so that a server can keep what it has read."""
    sides = {claim.side for claim in claims}
    used = [window for window in windows if window.side is None or window.side in sides]
    name = {"type": "string", "enum": [window.label for window in used]}
    row = closed(
        {
            "id": {"type": "string"},
            "supported": {"type": "array", "items": closed({"text": name, "quote": {"type": "string"}})},
            "contradicted": {"type": "array", "items": closed({"text": name, "quote": {"type": "string"}})},
        }
    )
    rows = "\n".join(f"{claim.id}: {one_line(claim.text)}" for claim in claims)
    return request(
        how,
        prompts,
        "matrix",
        purpose=purpose,
        schema=closed({"verdicts": {"type": "array", "items": row}}),
        key=key,
        texts=_texts(used, key),
        claims=fenced("claims", rows, key),
        ids=", ".join(claim.id for claim in claims),
    )


def claim_request(
    how: HowToJudge, prompts: PromptSet, claim: Claim, windows: Sequence[Window], *, key: str, purpose: str
) -> Request:
    """Ask about one claim: one word for each text."""
    used = asked_about(claim, windows)
    word = {"type": "string", "enum": list(_VERDICTS)}
    return request(
        how,
        prompts,
        "claim",
        purpose=purpose,
        schema=closed({"verdicts": closed({window.label: word for window in used}), "quotes": _QUOTES}),
        verdict_tokens=True,
        key=key,
        texts=_texts(used, key),
        claim=fenced("claim", one_line(claim.text), key),
        names=", ".join(window.label for window in used),
    )


def relevance_request(
    how: HowToJudge, prompts: PromptSet, query: str, windows: Sequence[Window], *, key: str
) -> Request:
    """Ask which texts help to answer the question."""
    word = {"type": "string", "enum": list(_RELEVANCE)}
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


def read_matrix(text: str, claims: Sequence[Claim], windows: Sequence[Window]) -> Answered | str:
    """The rows of a reply for the claims that were asked about; or what is wrong with all of it.

    A row accounts for all of its texts: one that stands in neither list is missing. A row that is not there, has
    neither list, or supports the claim by nothing but texts that do not exist is not answered.
    """
    by_id = {claim.id: claim for claim in claims}
    read = read_json(text, lambda value: _rows(value, by_id) is not None)
    if isinstance(read, Unreadable):
        return read.problem
    said: dict[tuple[str, str], Said] = {}
    ignored = 0
    for claim_id, row in _rows(read.value, by_id) or ():
        claim = by_id.get(claim_id)
        if claim is None:
            ignored += 1
            continue
        found, strange = _row(row, asked_about(claim, windows), {window.label for window in windows})
        ignored += strange
        for label, one in found.items():
            earlier = said.get((claim_id, label), one)
            same = earlier.verdict is one.verdict
            said[claim_id, label] = earlier if same else Said(None, reason="given two different verdicts")
    return Answered(said, ignored)


def read_words(
    reply: Reply, row: str, windows: Sequence[Window], *, relevance: bool = False
) -> Answered | str:
    """The words of a reply for each text; a word outside of the closed set is no answer."""
    words = _RELEVANCE if relevance else _VERDICTS
    labels = {window.label: window for window in windows}
    read = read_json(reply.text, lambda value: _table(value, labels) is not None)
    if isinstance(read, Unreadable):
        return read.problem
    quotes = _quotes(read.value.get("quotes") if isinstance(read.value, dict) else None)
    said: dict[tuple[str, str], Said] = {}
    ignored = 0
    for name, word in (_table(read.value, labels) or {}).items():
        label = _label(name)
        if label not in labels:
            ignored += 1
        elif isinstance(word, Conflict) or (row, label) in said:
            said[row, label] = Said(None, reason="given two different verdicts")
        elif isinstance(word, str) and (verdict := words.get(word.strip().casefold())) is not None:
            p = p_of_word(reply, name, word, words, yes=Verdict.SUPPORTED)
            said[row, label] = Said(verdict, quotes.get(label), p_supported=p)
    return Answered(said, ignored)


def cells_of(
    claim_id: str, windows: Iterable[Window], said: Mapping[tuple[str, str], Said], unsaid: Mapping[tuple[str, str], str]
) -> list[Cell]:
    """One cell for each column, from the verdicts on its parts.

    Args:
        claim_id: The row.
        windows: The parts that it was held against.
        said: The verdicts.
        unsaid: Why there is none, for the pairs that have none.
    """
    columns: dict[str, list[Window]] = {}
    for window in windows:
        columns.setdefault(window.column, []).append(window)
    return [_cell(claim_id, column, parts, said, unsaid) for column, parts in columns.items()]


def _cell(
    claim_id: str,
    column: str,
    parts: Sequence[Window],
    said: Mapping[tuple[str, str], Said],
    unsaid: Mapping[tuple[str, str], str],
) -> Cell:
    ones = [(said.get((claim_id, part.label)), part) for part in parts]
    verdicts = {one.verdict for one, _ in ones if one is not None}
    if Verdict.SUPPORTED in verdicts and Verdict.CONTRADICTED in verdicts:
        return Cell(claim_id=claim_id, chunk_id=column, verdict=None, reason="its parts contradict each other")
    for wanted in (Verdict.SUPPORTED, Verdict.CONTRADICTED):
        for one, part in ones:
            if one is not None and one.verdict is wanted:
                return _quoted(Cell(
                    claim_id=claim_id, chunk_id=column, verdict=wanted, p_supported=_highest(ones)
                ), one.quote, part.text)
    for one, part in ones:
        if one is None:
            reason = unsaid.get((claim_id, part.label), "the judge gave no verdict")
            return Cell(claim_id=claim_id, chunk_id=column, verdict=None, reason=reason)
        if one.verdict is None:
            return Cell(claim_id=claim_id, chunk_id=column, verdict=None, reason=one.reason)
    return Cell(claim_id=claim_id, chunk_id=column, verdict=Verdict.MISSING, p_supported=_highest(ones))


def _highest(ones: Iterable[tuple[Said | None, Window]]) -> float | None:
    return max((one.p_supported for one, _ in ones if one is not None and one.p_supported is not None), default=None)


def _quoted(cell: Cell, quote: str | None, text: str) -> Cell:
    if quote is None:
        return cell
    if not is_quoted_from(quote, text):
        return cell.model_copy(update={"reason": "the quoted words are not in the text"})
    return cell.model_copy(update={"quote": quote})


def _texts(windows: Iterable[Window], key: str) -> str:
    return "\n".join(fenced(window.label, shown(window.text), key) for window in windows)


def _label(name: object) -> str:
    """`c2` also of `C2`, `<c2:1f0a9b3c>` and `c2.`; anything else is no label of ours."""
    found = _LABEL.match(name) if isinstance(name, str) else None
    return found[1].casefold() if found else ""


def _rows(value: Any, known: Mapping[str, Claim]) -> list[tuple[str, Any]] | None:
    """(claim id, row) for each row; None = there is no table of rows here."""
    if isinstance(value, dict) and "verdicts" in value:
        value = value["verdicts"]
    elif isinstance(value, dict) and not any(_label(name) in known for name in value):
        return None
    if isinstance(value, dict):
        return [(_label(name), row) for name, row in value.items()]
    if isinstance(value, list) and all(isinstance(row, dict) for row in value):
        return [(_label(row.get("id")), row) for row in value]
    return None


def _row(row: Any, windows: Sequence[Window], known: set[str]) -> tuple[dict[str, Said], int]:
    if not isinstance(row, dict) or ("supported" not in row and "contradicted" not in row):
        return {}, 0
    mine = {window.label for window in windows}
    quotes = _quotes(row.get("quotes"))
    listed: dict[Verdict, dict[str, str | None]] = {}
    ignored = 0
    for verdict in (Verdict.SUPPORTED, Verdict.CONTRADICTED):
        entries = _entries(row.get(verdict.value, []))
        if entries is None:
            return {}, ignored
        strange = [label for label, _ in entries if label not in known]
        ignored += len(strange)
        listed[verdict] = {label: quote or quotes.get(label) for label, quote in entries if label in mine}
        if strange and not listed[verdict]:
            return {}, ignored
    said: dict[str, Said] = {}
    for label in mine:
        for verdict, quoted in listed.items():
            if label in quoted:
                both = label in said
                said[label] = Said(None, reason="both supported and contradicted") if both else Said(
                    verdict, quoted[label]
                )
        said.setdefault(label, Said(Verdict.MISSING))
    return said, ignored


def _entries(value: Any) -> list[tuple[str, str | None]] | None:
    """(label, quote) of each text in a list; None = not a list of texts."""
    if value is None:
        return []
    entries: list[tuple[str, str | None]] = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            name, quote = item.get("text"), item.get("quote")
        else:
            name, quote = item, None
        if not isinstance(name, str):
            return None
        entries.append((_label(name), _quote(quote)))
    return entries


def _table(value: Any, labels: Mapping[str, Window]) -> dict[str, Any] | None:
    """Label -> word; None = there is no such table here."""
    if not isinstance(value, dict):
        return None
    table = value["verdicts"] if "verdicts" in value else value
    if isinstance(table, list) and all(isinstance(row, dict) for row in table):
        pairs: dict[str, Any] = {}
        for row in table:
            name = str(row.get("text"))
            pairs[name] = CONFLICT if name in pairs and pairs[name] != row.get("verdict") else row.get("verdict")
        return pairs
    if not isinstance(table, dict) or not ("verdicts" in value or any(_label(name) in labels for name in table)):
        return None
    return {name: word for name, word in table.items() if name != "quotes"}


def _quotes(value: Any) -> dict[str, str]:
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(item.get("text"), item.get("quote")) for item in value if isinstance(item, dict)]
    return {_label(name): kept for name, quote in pairs if (kept := _quote(quote)) is not None}


def _quote(value: Any) -> str | None:
    return value[:_QUOTE_CHARS] if isinstance(value, str) and value.strip() else None
