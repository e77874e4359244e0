"""The order of the questions about one query, and what follows from the replies. No network, no clock, no tape."""

from collections.abc import Generator, Iterable, Sequence

from msgspec.structs import replace

from ragaudit.judge.asking import ask
from ragaudit.judge.claims import Part, numbered
from ragaudit.judge.fence import key_for
from ragaudit.judge.how import HowToJudge
from ragaudit.judge.matrix import CHUNK, QUERY_ROW, REFERENCE_COLUMN, Window, cells_of, rows_of, windows_of
from ragaudit.judge.prompts import PromptSet
from ragaudit.judge.score import NOT_ASKED, asks_relevance, has_answer, has_reference, score, supported_by
from ragaudit.judge.tasks import ClaimsTask, Drafts, MatrixTask, Verdicts
from ragaudit.model.judgement import (
    ANSWER_COLUMN,
    Cell,
    Claim,
    Failure,
    FoundEvidence,
    JudgeCall,
    Judgement,
    JudgeSample,
    Reply,
    Request,
    SampleChunk,
    Side,
    Verdict,
)

__all__ = ["HowToJudge", "judge"]

_NO_TEXT = f"{NOT_ASKED}: the chunk has no text"


def judge(
    sample: JudgeSample, prompts: PromptSet, how: HowToJudge
) -> Generator[list[Request], list[Reply | Failure], Judgement]:
    """Judge one query: yields requests, is sent what came back for each of them in order, returns the judgement.

    The requests of one batch do not depend on each other and may run at the same time. `Judgement.calls` has one entry
    for each request, in the order in which they were yielded; `key` and `from_tape` are the runner's to fill in.
    Nothing is asked where there is nothing to ask: no context logged, an empty context without candidates, no text.

    Args:
        sample: The query; every chunk in it may be read by its user.
        prompts: What to ask with.
        how: Model, parameters and limits.
    """
    judging = _Judging(sample, prompts, how)
    drafts = Drafts()
    yield from ask(judging.claims_tasks(drafts), judging.calls)
    claims, abstained = judging.claims_of(drafts)
    cells: list[Cell] = []
    found: list[FoundEvidence] = []
    if claims:
        verdicts = Verdicts()
        windows = judging.windows(claims, abstained=bool(abstained))
        yield from ask(judging.matrix_tasks(claims, windows, verdicts), judging.calls)
        cells = judging.cells(claims, windows, verdicts)
        for batch in judging.candidate_batches():
            lost = judging.without_evidence(claims, cells, found)
            if not lost:
                break
            verdicts = Verdicts()
            yield from ask(judging.matrix_tasks(lost, batch, verdicts, purpose="evidence"), judging.calls)
            more_cells, more_found = judging.evidence(lost, batch, verdicts)
            cells += more_cells
            found += more_found
    if asks_relevance(sample, abstained=bool(abstained)):
        verdicts = Verdicts()
        windows = judging.packed_windows()
        yield from ask(judging.relevance_tasks(windows, verdicts), judging.calls)
        cells += cells_of(rows_of((), windows), verdicts.said, verdicts.unsaid)
        cells += judging.blank_cells([QUERY_ROW])
    scores = score(sample, claims, cells, abstained=abstained, failed=drafts.failed)
    return Judgement(
        query_id=sample.query_id,
        abstained=abstained,
        claims=claims,
        cells=tuple(cells),
        found=tuple(found),
        metrics=scores.metrics,
        states=scores.states,
        reasons=scores.reasons,
        calls=tuple(judging.calls),
    )


class _Judging:
    """What is known about one sample while it is judged."""

    def __init__(self, sample: JudgeSample, prompts: PromptSet, how: HowToJudge) -> None:
        self.sample = sample
        self.prompts = prompts
        self.how = how
        self.calls: list[JudgeCall] = []
        self.packed = _distinct(sample.chunks or ())

    def claims_tasks(self, drafts: Drafts) -> list[ClaimsTask]:
        """Split the texts whose claims anything depends on. Empty context: only if evidence can still be found."""
        sample = self.sample
        finds_evidence = has_reference(sample) and bool(sample.candidates)
        if sample.chunks is None or not (sample.chunks or finds_evidence):
            return []
        parts: list[Part] = []
        if sample.reference is not None and has_reference(sample):
            parts.append(Part(Side.REFERENCE, sample.reference.strip()))
        if sample.answer is not None and has_answer(sample) and sample.abstained is not True:
            parts.append(Part(Side.ANSWER, sample.answer.strip()))
        # The chunks have no part in this key: the same answer to the same question is split once.
        key = key_for([sample.query, *(part.text for part in parts)])
        groups = [(part,) for part in parts] if self.how.mode == "per_claim" else [tuple(parts)]
        return [ClaimsTask(sample, group, key, self.how, self.prompts, drafts) for group in groups if group]

    def claims_of(self, drafts: Drafts) -> tuple[tuple[Claim, ...], bool | None]:
        """The numbered claims, and whether the answer declines. Claims of an answer that declines are none."""
        abstained = self.sample.abstained
        if abstained is None and drafts.declines and Side.ANSWER not in drafts.failed:
            abstained = all(drafts.declines.values())
        claims: list[Claim] = []
        for side, text in ((Side.REFERENCE, self.sample.reference), (Side.ANSWER, self.sample.answer)):
            if side in drafts.failed:
                continue
            claims += numbered(side, drafts.of(side), text or "")
        return tuple(claims), abstained

    def windows(self, claims: Iterable[Claim], *, abstained: bool) -> tuple[Window, ...]:
        """The packed chunks, and answer and reference for the claims of the other one."""
        sides = {claim.side for claim in claims}
        limit = self.how.max_chunk_chars
        windows = list(self.packed_windows())
        if self.sample.answer and Side.REFERENCE in sides and has_answer(self.sample) and not abstained:
            windows += windows_of("answer", [(ANSWER_COLUMN, self.sample.answer)], limit, side=Side.REFERENCE)
        if self.sample.reference and Side.ANSWER in sides and has_reference(self.sample):
            windows += windows_of("reference", [(REFERENCE_COLUMN, self.sample.reference)], limit, side=Side.ANSWER)
        return tuple(windows)

    def packed_windows(self) -> tuple[Window, ...]:
        """The packed chunks that have a text."""
        return windows_of(CHUNK, _texts(self.packed), self.how.max_chunk_chars)

    def matrix_tasks(
        self, claims: Sequence[Claim], windows: Sequence[Window], verdicts: Verdicts, purpose: str = "matrix"
    ) -> list[MatrixTask]:
        """Every claim against every window, in as few calls as the limits allow."""
        if self.how.mode == "matrix":
            return self._matrix_tasks(claims, windows, purpose, verdicts, size=self.how.max_claims, most=None)
        # Side by side: what is asked about the reference then does not change with the answer, and is not asked again.
        return [
            task
            for side in Side
            for task in self._matrix_tasks(
                [claim for claim in claims if claim.side is side],
                [window for window in windows if window.side in (None, side)],
                purpose,
                verdicts,
                size=1,
                most=self.how.max_texts,
            )
        ]

    def _matrix_tasks(
        self,
        claims: Sequence[Claim],
        windows: Sequence[Window],
        purpose: str,
        verdicts: Verdicts,
        *,
        size: int,
        most: int | None,
    ) -> list[MatrixTask]:
        key = key_for([*(window.text for window in windows), *(claim.text for claim in claims)])
        tasks = []
        for some in _batches(windows, self.how.max_batch_chars, most):
            rows = rows_of(claims, some)
            asked = [claim for claim in claims if rows[claim.id]]
            for start in range(0, len(asked), size):
                group = tuple(asked[start : start + size])
                tasks.append(self._task(group, some, purpose, key, verdicts))
        return tasks

    def relevance_tasks(self, windows: Sequence[Window], verdicts: Verdicts) -> list[MatrixTask]:
        """Which chunks help to answer the question."""
        key = key_for([self.sample.query, *(window.text for window in windows)])
        return [
            self._task((), some, "relevance", key, verdicts) for some in _batches(windows, self.how.max_batch_chars)
        ]

    def cells(self, claims: Sequence[Claim], windows: Sequence[Window], verdicts: Verdicts) -> list[Cell]:
        """The matrix that was heard, claim by claim."""
        rows = rows_of(claims, windows)
        return [*cells_of(rows, verdicts.said, verdicts.unsaid), *self.blank_cells(rows)]

    def blank_cells(self, rows: Iterable[str]) -> list[Cell]:
        """No verdicts on chunks without text: whether they were empty or their text was not logged is not known."""
        blank = [chunk.id for chunk in self.packed if not chunk.text.strip()]
        return [Cell(row, chunk_id, None, _NO_TEXT) for row in rows for chunk_id in blank]

    def candidate_batches(self) -> list[tuple[Window, ...]]:
        """The chunks outside the context, as they are looked at."""
        packed = {chunk.id for chunk in self.packed}
        texts = _texts(chunk for chunk in _distinct(self.sample.candidates) if chunk.id not in packed)
        size = self.how.max_candidates
        return [
            windows_of(CHUNK, texts[start : start + size], self.how.max_chunk_chars)
            for start in range(0, len(texts), size)
        ]

    def without_evidence(
        self, claims: Sequence[Claim], cells: Iterable[Cell], found: Iterable[FoundEvidence]
    ) -> list[Claim]:
        """Reference claims that no packed chunk supports, as far as it is known, and no candidate so far."""
        packed = [chunk.id for chunk in self.packed]
        supported = supported_by((claim.id for claim in claims), packed, cells)
        done = {evidence.claim_id for evidence in found}
        return [
            claim
            for claim in claims
            if claim.side is Side.REFERENCE and claim.id not in done and supported[claim.id] is False
        ]

    def evidence(
        self, claims: Sequence[Claim], windows: Sequence[Window], verdicts: Verdicts
    ) -> tuple[list[Cell], list[FoundEvidence]]:
        """The candidates that support a claim in words that stand in them; without such words they are refused."""
        where = {chunk.id: chunk.where for chunk in self.sample.candidates}
        cells: list[Cell] = []
        found: list[FoundEvidence] = []
        for cell in cells_of(rows_of(claims, windows), verdicts.said, verdicts.unsaid):
            if cell.verdict is Verdict.MISSING:
                continue
            if cell.verdict is Verdict.SUPPORTED and cell.quote is None:
                reason = f"refused as evidence: {cell.reason or 'no words are quoted'}"
                cells.append(replace(cell, verdict=None, reason=reason))
                continue
            cells.append(cell)
            if cell.verdict is Verdict.SUPPORTED:
                place = where.get(cell.chunk_id)
                found.append(
                    FoundEvidence(claim_id=cell.claim_id, chunk_id=cell.chunk_id, where=place, quote=cell.quote)
                )
        return cells, found

    def _task(
        self, claims: tuple[Claim, ...], windows: tuple[Window, ...], purpose: str, key: str, verdicts: Verdicts
    ) -> MatrixTask:
        return MatrixTask(self.sample.query, claims, windows, purpose, key, self.how, self.prompts, verdicts)


def _distinct(chunks: Iterable[SampleChunk]) -> tuple[SampleChunk, ...]:
    """Each id once, where it first stands."""
    first: dict[str, SampleChunk] = {}
    for chunk in chunks:
        first.setdefault(chunk.id, chunk)
    return tuple(first.values())


def _texts(chunks: Iterable[SampleChunk]) -> list[tuple[str, str]]:
    return [(chunk.id, chunk.text) for chunk in chunks if chunk.text.strip()]


def _batches(windows: Iterable[Window], chars: int, most: int | None = None) -> list[tuple[Window, ...]]:
    """The windows in order, cut where their text or their number would pass the limit."""
    batches: list[list[Window]] = []
    size = 0
    for window in windows:
        if not batches or size + len(window.text) > chars or len(batches[-1]) == most:
            batches.append([])
            size = 0
        batches[-1].append(window)
        size += len(window.text)
    return [tuple(batch) for batch in batches]
