"""The replies of the second call: which verdicts they hold on what was asked, and nothing else."""

import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ragaudit.judge.matrix import NOTHING, RELEVANCE, VERDICTS, Rows, Said
from ragaudit.judge.parse import CONFLICT, Conflict, Unreadable, read_exactly, read_json
from ragaudit.judge.tokens import p_of_word
from ragaudit.model.judgement import Reply, Verdict

BOTH = "both supported and contradicted"
TWO_VERDICTS = "given two different verdicts"
_QUOTE_CHARS = 600
_LISTS = [(verdict.value, verdict) for verdict in (Verdict.SUPPORTED, Verdict.CONTRADICTED)]
_Entries: TypeAlias = list[tuple[str, str | None]]
"""(label, quote) of each text in a list."""
_Lists: TypeAlias = list[tuple[Verdict, _Entries | None]]
"""The lists of a row, as far as they are lists of texts: None ends it."""
_LABEL = re.compile(r"[\W_]*([a-z]+[0-9]*)(?::[0-9a-f]+)?[\W_]*", re.IGNORECASE)


class _Listed(msgspec.Struct, forbid_unknown_fields=True):
    text: str
    quote: str


class _Row(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    supported: list[_Listed]
    contradicted: list[_Listed]


class _Table(msgspec.Struct, forbid_unknown_fields=True):
    """What the prompt `matrix` asks for."""

    verdicts: list[_Row]


_TABLE = msgspec.json.Decoder(_Table)


class Answered(NamedTuple):
    """What a reply answers, claim id -> label -> verdict, and how many of its verdicts were about nothing we asked."""

    said: dict[str, dict[str, Said]]
    ignored: int


def read_matrix(text: str, rows: Rows) -> Answered | str:
    """The rows of a reply for the claims that were asked about; or what is wrong with all of it.

    A row accounts for all of its texts: one that stands in neither list is missing. A row that is not there, has
    neither list, or supports the claim by nothing but texts that do not exist is not answered.
    """
    table = read_exactly(text, _TABLE, _keys)
    if table is not None:
        found_rows = [(_label(row.id), _lists_of(row)) for row in table.verdicts]
    else:
        read = read_json(text, lambda value: _rows(value, rows))
        if isinstance(read, Unreadable):
            return read.problem
        found_rows = [(claim_id, _lists(row)) for claim_id, row in read.value]
    known = set[str]().union(*rows.values())
    said: dict[str, dict[str, Said]] = {}
    ignored = 0
    for claim_id, lists in found_rows:
        mine = rows.get(claim_id)
        if mine is None:
            ignored += 1
            continue
        found, strange = _row(lists, mine, known)
        ignored += strange
        if found:
            said[claim_id] = _both(said[claim_id], found) if claim_id in said else found
    return Answered(said, ignored)


def read_words(
    reply: Reply, row: str, labels: Collection[str], *, relevance: bool = False, cut: float | None = None
) -> Answered | str:
    """The words of a reply for each text; a word outside of the closed set is no answer.

    Args:
        reply: The reply.
        row: The claim's id, or QUERY_ROW.
        labels: The texts that were asked about.
        relevance: The words are relevant and irrelevant.
        cut: From which P(supported) on a text supports the claim; None = its word says so.
    """
    words = RELEVANCE if relevance else VERDICTS
    read = read_json(reply.text, lambda value: _table(value, labels))
    if isinstance(read, Unreadable):
        return read.problem
    table, quotes = read.value
    said: dict[str, Said] = {}
    ignored = 0
    for name, word in table.items():
        label = _label(name)
        if label not in labels:
            ignored += 1
        elif isinstance(word, Conflict) or label in said:
            said[label] = Said(None, reason=TWO_VERDICTS)
        elif isinstance(word, str) and (verdict := words.get(word.strip().casefold())) is not None:
            p = p_of_word(reply, name, word, words, yes=Verdict.SUPPORTED)
            said[label] = Said(_by_cut(verdict, p, cut), quotes.get(label), p_supported=p)
    return Answered({row: said}, ignored)


def _both(earlier: dict[str, Said], later: dict[str, Said]) -> dict[str, Said]:
    """What two rows for the same claim agree on."""
    return {
        label: one if one.verdict is later[label].verdict else Said(None, reason=TWO_VERDICTS)
        for label, one in earlier.items()
    }


def _by_cut(verdict: Verdict, p: float | None, cut: float | None) -> Verdict:
    if p is None or cut is None:
        return verdict
    if p >= cut:
        return Verdict.SUPPORTED
    return Verdict.MISSING if verdict is Verdict.SUPPORTED else verdict


def _label(name: object) -> str:
    """`c2` also of `C2`, `<c2:1f0a9b3c>` and `c2.`; anything else is no label of ours."""
    if not isinstance(name, str):
        return ""
    if name.isalnum():
        return name.casefold()
    found = _LABEL.fullmatch(name)
    return found[1].casefold() if found else ""


def _rows(value: Any, known: Rows) -> list[tuple[str, Any]] | None:
    """(claim id, row) for each row; None = there is no table of rows here."""
    is_named = isinstance(value, dict) and "verdicts" in value
    rows = value["verdicts"] if is_named else value
    if isinstance(rows, dict) and (is_named or any(_label(name) in known for name in rows)):
        return [(_label(name), row) for name, row in rows.items()]
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        return [(_label(row.get("id")), row) for row in rows] if is_named or any("id" in row for row in rows) else None
    return None


def _keys(table: _Table) -> int:
    return 1 + sum(3 + 2 * (len(row.supported) + len(row.contradicted)) for row in table.verdicts)


def _lists_of(row: _Row) -> _Lists:
    return [
        (Verdict.SUPPORTED, [(_label(listed.text), _quote(listed.quote)) for listed in row.supported]),
        (Verdict.CONTRADICTED, [(_label(listed.text), _quote(listed.quote)) for listed in row.contradicted]),
    ]


def _lists(row: Any) -> _Lists:
    if not isinstance(row, dict) or ("supported" not in row and "contradicted" not in row):
        return [(Verdict.SUPPORTED, None)]
    quotes = _quotes(row["quotes"]) if "quotes" in row else {}
    lists: _Lists = []
    for name, verdict in _LISTS:
        listed = row.get(name)
        if listed is None or listed == []:
            continue
        entries = _entries(listed)
        if entries is not None:
            entries = [(label, quote or quotes.get(label)) for label, quote in entries]
        lists.append((verdict, entries))
    return lists


def _row(lists: _Lists, mine: Iterable[str], known: Collection[str]) -> tuple[dict[str, Said], int]:
    """Label -> verdict for all the texts that the claim is held against; {} = the row answers nothing."""
    said = dict.fromkeys(mine, NOTHING)
    ignored = 0
    for verdict, entries in lists:
        if entries is None:
            return {}, ignored
        mine_here = strange = 0
        for label, quote in entries:
            if label in said:
                mine_here += 1
                is_both = said[label].verdict not in (verdict, Verdict.MISSING)
                said[label] = Said(None, reason=BOTH) if is_both else Said(verdict, quote)
            elif label not in known:
                strange += 1
        ignored += strange
        if strange and not mine_here:
            return {}, ignored
    return said, ignored


def _entries(value: Any) -> _Entries | None:
    """None = not a list of texts."""
    entries: _Entries = []
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            name, quote = item.get("text"), item.get("quote")
        else:
            name, quote = item, None
        if not isinstance(name, str):
            return None
        entries.append((_label(name), _quote(quote)))
    return entries


def _table(value: Any, labels: Collection[str]) -> tuple[dict[str, Any], dict[str, str]] | None:
    """(name -> word, label -> quote); None = there is no such table here."""
    if not isinstance(value, dict):
        return None
    table = value.get("verdicts", value)
    quotes = _quotes(value.get("quotes"))
    if isinstance(table, list) and all(isinstance(row, dict) for row in table):
        pairs: dict[str, Any] = {}
        for row in table:
            name = str(row.get("text"))
            pairs[name] = CONFLICT if name in pairs and pairs[name] != row.get("verdict") else row.get("verdict")
        return pairs, quotes
    if not isinstance(table, dict) or not ("verdicts" in value or any(_label(name) in labels for name in table)):
        return None
    return {name: word for name, word in table.items() if name != "quotes"}, quotes


def _quotes(value: Any) -> dict[str, str]:
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(item.get("text"), item.get("quote")) for item in value if isinstance(item, dict)]
    return {_label(name): kept for name, quote in pairs if (kept := _quote(quote)) is not None}


def _quote(value: Any) -> str | None:
    return value[:_QUOTE_CHARS] if isinstance(value, str) and value.strip() else None
