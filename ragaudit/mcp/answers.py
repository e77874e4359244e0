"""What each tool answers: the functions that the commands call, their result cleaned and bounded. No protocol here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ragaudit.audit import run
from ragaudit.audit.proposals import proposed_again
from ragaudit.compare.baselines import load_side
from ragaudit.compare.gating import regressions
from ragaudit.compare.pairing import compare
from ragaudit.config import load_settings
from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.errors import ConfigError
from ragaudit.experiments.journal import Journal, refuted
from ragaudit.experiments.propose import is_refuted
from ragaudit.mcp import outside
from ragaudit.mcp.bounds import MAX_CHARACTERS, Page, cut, page, piece
from ragaudit.mcp.folders import Folders
from ragaudit.mcp.results import (
    Audited,
    Checked,
    Compared,
    Proposed,
    QueryLine,
    Result,
    Row,
    Shown,
    Text,
    Written,
)
from ragaudit.model.diagnosis import Severity
from ragaudit.model.experiment import Experiment
from ragaudit.model.result import Finding, Level, QueryResult, Summary
from ragaudit.readers.bundle import Bundle, open_bundle
from ragaudit.report import verdict as say
from ragaudit.report.as_json import query_row
from ragaudit.report.compare_text import compare_text, verdict_sentence
from ragaudit.report.diagnosis_text import diagnosis_text
from ragaudit.report.findings_text import by_weight, findings_text
from ragaudit.report.next_text import next_text
from ragaudit.report.overview_text import summary_text
from ragaudit.report.query_page import answer_text, chunk_texts
from ragaudit.report.written import written
from ragaudit.store import AuditReader
from ragaudit.store.filters import EVERYTHING, FAILING, Filter, parse_filter
from ragaudit.store.reader import Row as StoredRow
from ragaudit.store.texts import ReadableTexts

USERS_TO_GIVE = ("missing_acl_rule", "missing_gates", "missing_index_write")
"""Preflight findings about rules and permissions that only the user can give."""

ROW = MAX_CHARACTERS // 10
"""Characters of one row, so that a page holds several."""
ROWS = MAX_CHARACTERS * 3 // 4
"""Characters of the rows of a page; the rest is for what stands around them."""

Tick = Callable[[int], None]
"""Told how many traces were passed, over all passes; raises to stop."""


class Answer(NamedTuple):
    """One answer in both forms. Each says all of it: some clients show the one, some the other."""

    text: str
    data: Result


@dataclass(frozen=True)
class Desk:
    """What a session may do: its folders, whether texts are shown, and the environment that settings come from."""

    folders: Folders
    env: Mapping[str, str]
    with_text: bool = False

    def check(self, bundle: str, offset: int, limit: int, tick: Tick) -> Answer:
        """Preflight of a bundle."""
        opened = self._opened(bundle)
        findings = by_weight(run.check(opened, progress=tick))
        rows = [outside.values(finding.model_dump(mode="json"), ROW) for finding in findings[offset : offset + limit]]
        kept, which = page(rows, offset, len(findings), ROWS)
        shown = findings[offset : offset + which.returned]
        data = Checked(
            run=outside.value(opened.name),
            blocked=any(finding.severity is Level.BLOCK for finding in findings),
            ask_the_user=_to_ask(findings),
            findings=kept,
            page=which,
        )
        return _answer([findings_text(opened.name, shown), _asking(data.ask_the_user), _more(which, "offset")], data)

    def audit(self, bundle: str, name: str | None, traces: int | None, limit: int, tick: Tick) -> Answer:
        """Audit a bundle without a judge, into a file of the session or of the user's folder."""
        opened = self._opened(bundle)
        path = self.folders.place_for(self.folders.inside(bundle), name)
        watched, diagnosed = _passes(tick, 2)
        summary = run.audit(opened, path, limit=traces, watching=watched, progress=diagnosed)
        kept = (
            f"Kept in {path}."
            if self.folders.keeps
            else f"Kept until this session ends, as {self.folders.handle(path)}. To keep it, the user runs "
            "`ragaudit audit`, or starts `ragaudit mcp` with --write DIR."
        )
        with AuditReader.open(path) as reader:
            queries, which = _queries(reader, parse_filter(FAILING), 0, limit)
        data = Audited(
            audit=self.folders.handle(path),
            kept=kept,
            verdict=outside.value(say.verdict(summary)),
            leak=None if (leak := say.leak_sentence(summary)) is None else outside.value(leak),
            acl=tuple(say.acl_sentences(summary)),
            ask_the_user=_to_ask(summary.preflight),
            run=outside.values(_run(summary), ROW),
            outcomes=outside.values(summary.outcomes),
            stages=outside.values(summary.stages),
            undetermined=outside.values(summary.undetermined, ROW),
            metrics=outside.values({n: m.model_dump(mode="json") for n, m in summary.metrics.items()}, 2 * ROW),
            patterns=tuple(outside.value(pattern.message) for pattern in summary.patterns[: outside.MAX_LIST]),
            queries=queries,
            page=which,
        )
        head = f"audit: {data.audit}\n{kept}"
        rest = "" if which.next_offset is None else f"More failing queries: show, offset {which.next_offset}."
        return _answer([head, summary_text(summary), _asking(data.ask_the_user), _listed(queries), rest], data)

    def queries(self, audit: str, filter_text: str, offset: int, limit: int) -> Answer:
        """The queries of an audit that match a filter."""
        where = self._filter(filter_text)
        with AuditReader.open(self.folders.audit(audit)) as reader:
            queries, which = _queries(reader, where, offset, limit)
        data = Shown(audit=audit, queries=queries, page=which)
        head = f"{which.total:,} queries match {outside.value(filter_text)!r}"
        return _answer([head, _listed(queries), _more(which, "offset")], data)

    def show(self, audit: str, query_id: str, offset: int, texts_offset: int) -> Answer:
        """One query in full; `offset` counts gold ids, `texts_offset` texts."""
        with AuditReader.open(self.folders.audit(audit)) as reader:
            result = _found(reader, query_id)
            summary = reader.summary()
            texts, texts_page = self._texts(reader, summary, result, texts_offset)
        mine = [each for each in summary.experiments if result.diagnosis.query_id in each.queries][:2]
        row = query_row(result)
        golds = [outside.values(gold, ROW) for gold in row.pop("gold")[offset:]]
        kept, which = page(golds, offset, len(result.diagnosis.gold), 4 * ROW)
        data = Shown(
            audit=audit,
            query=outside.values(row, 3 * ROW) | {"gold": kept},
            gold=which,
            experiments=[_experiment(each) for each in mine],
            texts=texts,
            texts_page=texts_page,
        )
        text = diagnosis_text(result, CAUSES, STAGE_NOTES, experiments=mine)
        return _answer([text, _more(which, "offset")], data, texts=_printed(texts, texts_page))

    def next(self, audit: str, filter_text: str | None, journal: str | None, offset: int, limit: int) -> Answer:
        """The experiments of an audit, best first, without what the journal says was tried in vain."""
        known = set() if journal is None else refuted(Journal.read(self.folders.inside(journal)))
        where = EVERYTHING if filter_text is None else self._filter(filter_text)
        with AuditReader.open(self.folders.audit(audit)) as reader:
            summary = reader.summary()
            experiments = summary.experiments
            left_out = sum(is_refuted(each, known) for each in experiments)
            if left_out or where is not EVERYTHING:
                experiments = proposed_again(reader, where=where, refuted=known)
        rows = [_experiment(each) for each in experiments[offset : offset + limit]]
        kept, which = page(rows, offset, len(experiments), ROWS)
        data = Proposed(
            audit=audit, ask_the_user=_to_ask(summary.preflight), refuted=left_out, experiments=kept, page=which
        )
        text = next_text(experiments[offset : offset + which.returned])
        return _answer([text, _asking(data.ask_the_user), _more(which, "offset")], data)

    def compare(self, base: str, candidate: str, tick: Tick) -> Answer:
        """A candidate against a baseline. No exception can be named here: that is the user's decision."""
        sides = []
        for given, passed in zip((base, candidate), _passes(tick, 2), strict=True):
            path = self.folders.audit(given)
            sides.append(load_side(str(path), path.parent, progress=passed))
        (before, frozen), (after, _) = sides
        found = compare(before, after, frozen=frozen)
        data = Compared(
            verdict=outside.value(verdict_sentence(found)),
            worse=tuple(map(outside.value, regressions(found))),
            comparison=outside.values(found.model_dump(mode="json"), ROWS),
        )
        return _answer([compare_text(found)], data)

    def report(self, audit: str, offset: int) -> Answer:
        """The written report from a character on. Never with texts: those come one query at a time, between marks."""
        with AuditReader.open(self.folders.audit(audit)) as reader:
            whole = outside.lines(written(reader))
        text, after = piece(whole, offset)
        data = Written(audit=audit, markdown=text, characters=len(whole), next_offset=after)
        rest = "" if after is None else f"... more of this report: offset {after}."
        return Answer("\n\n".join(filter(None, (outside.NOTE, text, rest))), data)

    def _opened(self, bundle: str) -> Bundle:
        paths = self.folders.bundle(bundle)
        return open_bundle(paths, load_settings(paths.config, env=self.env, flags={}))

    def _filter(self, text: str) -> Filter:
        where = parse_filter(text)
        if not self.with_text and any("query_text" in sql for sql, _ in where.conditions):
            raise ConfigError(
                f"filter {outside.value(text)!r}: words are looked up in query texts, which are not shown here. "
                "Use keys, as stage:rerank; or the user starts `ragaudit mcp` with --with-text."
            )
        return where

    def _texts(
        self, reader: AuditReader, summary: Summary, result: QueryResult, offset: int
    ) -> tuple[list[Text], Page | None]:
        """The texts that the query's user may read, between marks; none without --with-text."""
        if not self.with_text:
            return [], None
        readable = ReadableTexts(reader, summary.run, result)
        found: list[tuple[str, str | None, str]] = [("query", result.query_text, "")]
        for row in chunk_texts(result.diagnosis, readable):
            kind = "gold chunk" if row["gold"] else "chunk"
            why = row["why"] if row["hash"] is None else f"{row['why']} ({row['hash']})"
            found.append((f"{kind} {outside.value(row['id'])}", row["text"], why))
        answer = answer_text(readable)
        found.append(("answer", answer, "" if answer is not None else "none logged, or its prompt held a leak"))
        marked = outside.fenced({what: text for what, text, _ in found[offset:] if text is not None})
        texts = [Text(what=what, text=marked.get(what), why=why) for what, _, why in found[offset:]]
        return page(texts, offset, len(found), MAX_CHARACTERS)


def _passes(tick: Tick, n: int) -> list[Tick]:
    """For passes one after the other, each of which counts from 0: what they tell counts on."""
    counts = [0] * n

    def counted(place: int, done: int) -> None:
        counts[place] = done
        tick(sum(counts))

    return [partial(counted, place) for place in range(n)]


def _answer(parts: Sequence[str], data: Result, texts: str = "") -> Answer:
    """The parts of a text as one that fits; texts between marks come after it, whole."""
    body = outside.lines("\n\n".join(part.strip("\n") for part in parts if part))
    body = cut(f"{body}\n", "ask for fewer rows, or use a filter or an offset.")
    return Answer("\n\n".join(filter(None, (outside.NOTE, body, texts))), data)


def _to_ask(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(outside.value(f"{each.message}. {each.fix}") for each in findings if each.check in USERS_TO_GIVE)


def _asking(missing: Sequence[str]) -> str:
    return "\n".join(["Ask the user first:", *(f"  - {each}" for each in missing)]) if missing else ""


def _more(which: Page, argument: str) -> str:
    if which.next_offset is None:
        return ""
    last = which.offset + which.returned
    return f"{which.offset + 1} to {last} of {which.total:,}; the next with {argument} {which.next_offset}."


def _queries(reader: AuditReader, where: Filter, offset: int, limit: int) -> tuple[list[QueryLine], Page]:
    rows = [_line(row) for row in reader.page(where, offset=offset, limit=limit)]
    return page(rows, offset, reader.count(where), MAX_CHARACTERS // 2)


def _line(row: StoredRow) -> QueryLine:
    return QueryLine(
        query_id=outside.value(row.query_id),
        outcome=row.outcome.value,
        stage=row.stage.value,
        causes=tuple(outside.values(row.causes)),
        leak=row.severity is Severity.LEAK,
    )


def _listed(queries: Sequence[QueryLine]) -> str:
    return "\n".join(
        f"{'! LEAK' if line.leak else '-'} {line.query_id}: {line.outcome}, {line.stage}"
        + (f" ({', '.join(line.causes)})" if line.causes else "")
        for line in queries
    )


def _found(reader: AuditReader, query_id: str) -> QueryResult:
    """The query of this id, as it is in the file or as an answer showed it."""
    result = reader.query(query_id)
    if result is None:
        shown = next((each for each in reader.ids() if outside.value(each) == query_id), None)
        result = None if shown is None else reader.query(shown)
    if result is None:
        first = ", ".join(outside.value(row.query_id) for row in reader.page(limit=3)) or "none"
        raise ConfigError(
            f"{reader.path.name}: no query {outside.value(query_id)!r}. The first are {first}; `show` without a query "
            "lists them."
        )
    return result


def _run(summary: Summary) -> Row:
    names = ("name", "traces", "k_final", "fingerprint", "scope", "acl_rule", "ragaudit")
    return {name: getattr(summary.run, name) for name in names}


def _experiment(experiment: Experiment) -> Row:
    row: Row = outside.values(experiment.model_dump(mode="json", by_alias=True), 2 * ROW)
    return row


def _printed(texts: Sequence[Text], which: Page | None) -> str:
    if which is None:
        return ""
    blocks = [f"{each.what}:\n{each.text if each.text is not None else f'(not shown: {each.why})'}" for each in texts]
    return "\n\n".join(filter(None, (*blocks, _more(which, "texts_offset"))))
