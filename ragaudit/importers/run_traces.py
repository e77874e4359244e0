"""The runs of one trace -> rows of traces.jsonl, one for each retrieval in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragaudit.importers.conventions import OBJECTS, K, query_id_in, set_by_convention
from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Options
from ragaudit.importers.labels import set_gold
from ragaudit.importers.passages import hits_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_values import Labels, decoded, decoded_map, labels_in
from ragaudit.importers.runs import LAST, Kind, Retrieval, Run, retrievals, root_of
from ragaudit.importers.stage import LISTS, Stage, stage_of_word
from ragaudit.model.texts import packed

SESSION_KEYS = ("session_id", "thread_id", "conversation_id")

Hits = list[dict[str, Any]]


@dataclass(frozen=True)
class About:
    """What is known of a trace beside its runs; None = look at the runs."""

    trace_id: str
    question: str | None = None
    answer: str | None = None
    timestamp: str | None = None
    session_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    labels: Labels = field(default_factory=Labels)


@dataclass(frozen=True)
class _Whole:
    """All of one trace, and what the user said about the input."""

    runs: Sequence[Run]
    root: Run
    about: About
    metadata: Mapping[str, Any]
    options: Options
    report: ImportReport
    is_one: bool
    """There is one retrieval in it."""


class TraceRows:
    """Makes the rows of one trace after the other; no query id comes twice."""

    def __init__(self, options: Options, report: ImportReport) -> None:
        self._options, self._report = options, report
        self._query_ids: set[str] = set()
        self._unmatched = set(options.stages)

    def of(self, runs: Sequence[Run], about: About) -> Iterator[dict[str, Any]]:
        """One row for each retrieval. With several in one trace the ids get `~1`, `~2`; each keeps its own lists."""
        self._unmatched -= {run.name for run in runs}
        root = root_of(runs)
        found = retrievals(runs, self._options.stages, self._report)
        metadata = _metadata(runs, root, about)
        whole = _Whole(runs, root, about, metadata, self._options, self._report, len(found) == 1)
        if not found:
            self._report.skip("no retrieval in the trace", root.place)
            return
        query_id = self._free(query_id_in(metadata) or about.trace_id, about.trace_id, root.place)
        if len(found) > 1:
            self._report.note(
                "several retrievals in one trace, apart by their text: a row each, id~1, id~2", root.place
            )
        for number, each in enumerate(found, start=1):
            until = found[number].start if number < len(found) else None
            draft = _draft(query_id if len(found) == 1 else f"{query_id}~{number}", each, until, whole)
            if draft is None:
                continue
            if len(found) > 1:
                asked = about.question or root.query
                draft.observed("notes", f"retrieval {number} of {len(found)} of the trace; asked: {asked}")
            if until is None:
                _answered(draft, whole)
            draft.settle(self._options.k)
            yield draft.row()

    def done(self, place: str) -> None:
        """Say which names of `--stage` no run had."""
        for name in sorted(self._unmatched):
            self._report.note(f"--stage {name}: no run has this name", place)

    def _free(self, query_id: str, trace_id: str, place: str) -> str:
        if query_id in self._query_ids:
            self._report.note("a query id came again: the trace's id is added to it", place)
            query_id = f"{query_id}~{trace_id}"
        self._query_ids.add(query_id)
        return query_id


def _draft(query_id: str, retrieval: Retrieval, until: str | None, whole: _Whole) -> Draft | None:
    """The trace of one retrieval; the next one begins at `until`. None = it cannot be used, and that is said."""
    about, options, report = whole.about, whole.options, whole.report
    outer = retrieval.outer
    asked = about.question or whole.root.query
    question = asked if asked is not None and whole.is_one else outer.query or asked
    if question is None:
        report.skip("no text of the query was logged", outer.place)
        return None
    lists = {stage: hits for stage, run in retrieval.lists.items() if (hits := _hits(run, options, report)) is not None}
    arms = {name: hits for name, run in retrieval.arms.items() if (hits := _hits(run, options, report)) is not None}
    steps = [*retrieval.arms.values(), *retrieval.lists.values()]
    if not lists and not arms and not any(run.error for run in steps):
        why = "content missing: the retrieval was logged without its output"
        report.skip(why if any(run.is_finished for run in steps) else "the retrieval never ended", outer.place)
        return None
    draft = Draft(query_id, question)
    draft.derived("query_rewrite", _rewrite(retrieval, question))
    draft.derived("arms", arms or None)
    draft.observed("arm_status", _statuses(retrieval.arms, question) or None)
    reranker = retrieval.lists.get(Stage.AFTER_RERANK)
    if reranker is not None and reranker.given is not None:
        lists.setdefault(Stage.RERANK_INPUT, hits_of(reranker.given, report, reranker.place, texts=options.texts))
    for stage in LISTS:
        draft.derived(stage.value, lists.get(stage))
    _handed_over(draft, lists)
    _same_text(retrieval, arms, lists, report)
    _by_convention(draft, retrieval, whole)
    _by_documents(draft, [*arms.values(), *lists.values()], report, outer.place)
    merged = next((lists[stage] for stage in LAST if stage in lists), None)
    calls = [run for run in whole.runs if run.start >= retrieval.start and (until is None or run.start < until)]
    _packed(draft, merged if merged is not None else [hit for hits in arms.values() for hit in hits], calls, report)
    draft.observed("timestamp", about.timestamp)
    draft.derived("k_final", _k(retrieval, draft))
    models = {run.model for run in whole.runs if run.kind is Kind.EMBEDDING and run.model}
    draft.derived("embedding_model", models.pop() if len(models) == 1 else None)
    _labelled(draft, about.labels | labels_in(_named_labels(whole.metadata)), options, report, outer.place)
    return draft


def _k(retrieval: Retrieval, draft: Draft) -> int | None:
    """The limit of the reranker; that of another last step only where no prompt shows what was taken of its list."""
    reranker = retrieval.lists.get(Stage.AFTER_RERANK)
    if reranker is not None and reranker.limit is not None:
        return reranker.limit
    return retrieval.last.limit if retrieval.last is not None and draft.get("final_context_ids") is None else None


def _hits(run: Run, options: Options, report: ImportReport) -> Hits | None:
    if run.documents is None:
        what = "failed" if run.error else "gave no output" if run.is_finished else "never ended"
        report.note(f"steps that {what}: their lists are absent", run.place)
        return None
    return hits_of(run.documents, report, run.place, texts=options.texts)


def _statuses(arms: Mapping[str, Run], question: str) -> dict[str, dict[str, Any]]:
    """What each arm was asked, where the log says it."""
    statuses = {}
    for name, run in arms.items():
        if not run.is_finished and run.error is None:
            continue
        said: dict[str, Any] = {"status": "errored" if run.error else "ran"}
        for key, value in (("error", run.error), ("filter", run.filter), ("limit", run.limit)):
            if value is not None:
                said[key] = value
        if run.query is not None and run.query != question:
            said["query_text"] = run.query
        if run.documents is not None:
            said["returned"] = len(run.documents)
        statuses[name] = said
    return statuses


def _handed_over(draft: Draft, lists: Mapping[Stage, Hits]) -> None:
    """The list that is said to go into the prompt, with the texts that differ from those of the lists before."""
    final = lists.get(Stage.FINAL)
    if final is None:
        return
    draft.derived("final_context_ids", list(dict.fromkeys(hit["id"] for hit in final)))
    before = {hit["id"]: hit.get("text") for hits in lists.values() if hits is not final for hit in hits}
    texts = {hit["id"]: hit["text"] for hit in final if "text" in hit and before.get(hit["id"]) != hit["text"]}
    draft.derived("context_texts", texts or None)


def _packed(draft: Draft, hits: Hits, runs: Sequence[Run], report: ImportReport) -> None:
    """The final context out of the last prompt that holds a candidate's text; where it is known, what is left of it."""
    texts = [(hit["id"], hit["text"]) for hit in hits if hit.get("text")]
    kinds = (Kind.LLM,) if any(run.kind is Kind.LLM and run.prompt for run in runs) else (Kind.PROMPT,)
    prompts = [run for run in sorted(runs, key=lambda run: run.start) if run.kind in kinds and run.prompt]
    found = [(ids, run.place) for run in prompts if (ids := packed(texts, run.prompt or ""))]
    if found:
        ids, place = found[-1]
        draft.derived("prompt_ids", ids)
        draft.derived("final_context_ids", ids)
        report.note("final context: found by text in the prompt", place)
        if len(found) > 1:
            report.note("several prompts hold chunks: the last one counts", place)
    elif prompts and texts:
        report.note("final context: no candidate's text stands in a prompt, so it is assumed", prompts[-1].place)


def _answered(draft: Draft, whole: _Whole) -> None:
    """The answer: of the step that `--stage` names, else of the whole, else of the last call of the model."""
    runs = sorted(whole.runs, key=lambda run: run.start)
    names = {name for name, word in whole.options.stages.items() if stage_of_word(word) is Stage.ANSWER}
    named = [run.answer for run in runs if run.name in names and run.answer is not None]
    last = [run.answer for run in runs if run.kind is Kind.LLM and run.answer]
    answers = [*named[-1:], whole.about.answer, whole.root.answer, *last[-1:]]
    text = next((answer for answer in answers if answer is not None), None)
    draft.observed("answer", {"text": text} if text is not None else None)


def _rewrite(retrieval: Retrieval, question: str) -> str | list[str] | None:
    """What was searched for, where it is not the question: one text, or those of the arms where they differ."""
    asked = [run.query for run in retrieval.arms.values() if run.query is not None and run.query != question]
    texts = list(dict.fromkeys(asked))
    return texts[0] if len(texts) == 1 else texts or None


def _by_convention(draft: Draft, retrieval: Retrieval, whole: _Whole) -> None:
    """The fields that no tool has, where users put them by name; and the filter that the arms were sent."""
    metadata = whole.metadata
    draft.observed("session_id", whole.about.session_id)
    set_by_convention(draft, metadata, whole.report, whole.root.place)
    session = next((metadata[key] for key in SESSION_KEYS if metadata.get(key) is not None), None)
    draft.observed("session_id", None if session is None else str(session))
    for name, types in (("query_rewrite", (str, list, dict)), ("slices", (dict,))):
        value = metadata.get(name)
        draft.observed(name, value if isinstance(value, types) else None)
    sent = [run.filter for run in retrieval.arms.values()]
    if sent and sent[0] is not None and all(each == sent[0] for each in sent):
        draft.derived("filters_applied", sent[0])
    elif any(each is not None for each in sent):
        whole.report.note("the arms did not all use the same filter: each has its own in arm_status", whole.root.place)


def _by_documents(draft: Draft, lists: list[Hits], report: ImportReport, place: str) -> None:
    """Index revision and embedding model, where every hit that names one names the same."""
    for name in ("index_revision", "embedding_model"):
        logged = {str(hit["metadata"][name]) for hits in lists for hit in hits if name in hit.get("metadata", {})}
        if len(logged) == 1:
            draft.derived(name, logged.pop())
        elif logged:
            report.note(f"{name}: the hits of one query name several", place)


def _same_text(
    retrieval: Retrieval, arms: Mapping[str, Hits], lists: Mapping[Stage, Hits], report: ImportReport
) -> None:
    """EnsembleRetriever keeps one of the documents with the same text, under the id that came first."""
    run = retrieval.lists.get(Stage.FUSED)
    if run is None or run.name != "EnsembleRetriever" or Stage.FUSED not in lists:
        return
    kept = {hit["id"] for hit in lists[Stage.FUSED]}
    texts = {hit.get("text") for hit in lists[Stage.FUSED]}
    lost = [hit for hits in arms.values() for hit in hits if hit["id"] not in kept and hit.get("text") in texts]
    if lost:
        what = "EnsembleRetriever keeps one id of those with the same text: the other ids are in no later list"
        report.note(what, run.place)


def _metadata(runs: Sequence[Run], root: Run, about: About) -> dict[str, Any]:
    """Of the trace, else of its root, else of its retrievers, but for their own limits and filters."""
    merged: dict[str, Any] = {}
    for run in reversed(runs):
        if run.kind in (Kind.RETRIEVER, Kind.RERANKER) and run is not root:
            merged |= {key: value for key, value in decoded_map(run.metadata).items() if key not in (*K, *OBJECTS)}
    return merged | decoded_map(root.metadata) | decoded_map(about.metadata)


def _named_labels(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Labels that stand in metadata under a name of their own; `answer` and `output` are no labels there."""
    return {key: decoded(value) for key, value in metadata.items() if key not in ("answer", "output")}


def _labelled(draft: Draft, labels: Labels, options: Options, report: ImportReport, place: str) -> None:
    draft.observed("reference", labels.reference)
    ids = None if labels.gold_ids is None else list(labels.gold_ids)
    texts = None if labels.gold_texts is None else list(labels.gold_texts)
    set_gold(draft, ids, texts, options.texts, report, place)
