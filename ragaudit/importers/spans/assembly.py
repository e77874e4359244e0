"""The spans of one trace -> the rows of its queries."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragaudit.importers.draft import Draft
from ragaudit.importers.formats import Options
from ragaudit.importers.prompt import packed
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans import genai, native_haystack
from ragaudit.importers.spans.context import (
    Whole,
    fill,
    fill_searches,
    query_id_of,
    question_of,
    status_of,
)
from ragaudit.importers.spans.lists import Hits, lists_of
from ragaudit.importers.spans.stages import Placed, rounds, stages_of
from ragaudit.importers.spans.step import LISTS, Kind, Step
from ragaudit.importers.stage import Stage
from ragaudit.model.trace import Provenance

_SINGLE = (Stage.FUSED, Stage.AFTER_FILTER, Stage.AFTER_THRESHOLD, Stage.AFTER_RERANK)
_SUPPRESSED = (
    "one list of the GenAI conventions: its instrumentation hides the searches inside, so that which stage made it is "
    "not known. It is taken as the final context; if it is one search, pass --stage retrieval=arm:NAME"
)
_SILENT = (
    "content capture was off: set OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only and "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental"
)


def rows_of(
    whole: Whole, options: Options, report: ImportReport, place: str, given: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows for traces.jsonl: one, or one for each retrieval where several do not feed each other.

    `given` holds fields that the file says outside the spans. A trace without a question or a list is skipped.
    """
    lists = lists_of(whole.steps, whole.tree, options, report, place)
    placed = stages_of(lists, whole.tree, options.stages, report, place)
    question = question_of(whole)
    if not any(each.listed.hits is not None for each in placed):
        report.skip(_why_no_list(whole, placed), place)
        return
    if question is None:
        report.skip("no question in the trace: log it as the input of its root span", place)
        return
    apart = rounds(placed, lists, whole.tree)
    for number, each in enumerate(apart, start=1):
        is_last = number == len(apart)
        own = next((p.listed.step.query for p in each if p.listed.step.query), None)
        text = question if is_last and len(apart) == 1 else own or question
        query_id = str((given or {}).get("query_id") or query_id_of(whole))
        draft = Draft(query_id if len(apart) == 1 else f"{query_id}~{number}", text)
        for name, value in (given or {}).items():
            draft.observed(name, value)
        if len(apart) > 1:
            report.note("several retrievals in one trace, apart by their text: a row each, id~1, id~2", place)
            draft.observed("notes", f"retrieval {number} of {len(apart)} of the trace; asked: {question}")
        fill(draft, whole, report, place)
        _lists(draft, each, text, report, place)
        fill_searches(draft, each, whole, report, place)
        _final_context(draft, each, whole, report, place)
        if is_last and (answer := _answer(each, whole)) is not None:
            draft.observed("answer", {"text": answer})
        is_seen = draft.get("final_context_ids") is not None
        draft.settle(options.k)
        if draft.get("final_context_ids") is None:
            report.note("what the prompt held is not known: it shows no chunk or was not logged", place)
        elif not is_seen:
            report.note("the prompt shows no chunk or was not logged: the last list is taken for what it held", place)
        if draft.get("k_final") is None:
            report.note("how many chunks the prompt may hold is not known: pass --k", place)
        yield draft.row()


def _lists(draft: Draft, placed: Sequence[Placed], question: str, report: ImportReport, place: str) -> None:
    """Set arms, merged lists and what the reranker was given."""
    for stage in _SINGLE:
        found = [each for each in placed if each.stage is stage and each.listed.hits is not None]
        if len(found) > 1:
            report.note(f"several lists for {stage.value}: the last one is taken", place)
        if found:
            _set(draft, found[-1].how, stage.value, found[-1].listed.hits)
    _merged_by_joiner(draft, placed)
    arms, how = _arms(placed, report, place)
    hits: dict[str, Hits] = {name: each.listed.hits for name, each in arms.items() if each.listed.hits is not None}
    merged = {hit["id"] for hit in draft.get("fused") or ()}
    if hits and merged - {hit["id"] for each in hits.values() for hit in each}:
        report.note("the merged list holds what no logged arm returned: an arm is not logged", place)
        how = Provenance.ASSUMED
    _without_overwritten_scores(hits, draft.get("fused"), report, place)
    _set(draft, how, "arms", hits or None)
    draft.observed("arm_status", {name: status_of(each, question) for name, each in arms.items()} or None)
    _rerank_input(draft, placed)
    draft.derived(
        "k_final", next((p.listed.step.top_k for p in reversed(placed) if p.stage is Stage.AFTER_RERANK), None)
    )


def _arms(placed: Iterable[Placed], report: ImportReport, place: str) -> tuple[dict[str, Placed], Provenance]:
    """Arms by name; a name that comes again gets a number, unless it is the same answer to the same text."""
    found: dict[str, Placed] = {}
    for each in placed:
        if each.stage is not Stage.ARM:
            continue
        name, number = each.arm, 1
        while name in found and not _is_repeat(found[name], each):
            number += 1
            name = f"{each.arm} #{number}"
        if name in found:
            report.note("an arm was asked again and answered alike: kept once", f"{place}, {name}")
            continue
        if number > 1:
            report.note("an arm was asked several times in one query: each is an arm, NAME #2", f"{place}, {name}")
        found[name] = each
    ways = {each.how for each in found.values()}
    weakest = next((way for way in (Provenance.ASSUMED, Provenance.DERIVED) if way in ways), Provenance.OBSERVED)
    return found, weakest


def _is_repeat(one: Placed, other: Placed) -> bool:
    return (one.listed.step.query, one.listed.ids) == (other.listed.step.query, other.listed.ids)


def _rerank_input(draft: Draft, placed: Sequence[Placed]) -> None:
    said = [each for each in placed if each.stage is Stage.RERANK_INPUT and each.listed.hits is not None]
    if said:
        _set(draft, said[-1].how, "rerank_input", said[-1].listed.hits)
    draft.observed("rerank_input", _given_to_reranker(placed))


def _merged_by_joiner(draft: Draft, placed: Sequence[Placed]) -> None:
    """A joiner whose span shows no documents: what it made is what the reranker after it was given."""
    if any(each.listed.step.kind is Kind.JOINER and each.listed.hits is None for each in placed):
        draft.derived("fused", _given_to_reranker(placed))


def _given_to_reranker(placed: Iterable[Placed]) -> Hits | None:
    return next(
        (p.listed.inputs for p in placed if p.stage is Stage.AFTER_RERANK and p.listed.inputs is not None), None
    )


def _without_overwritten_scores(arms: dict[str, Hits], fused: Hits | None, report: ImportReport, place: str) -> None:
    """LlamaIndex writes the merged score into the nodes of the arms: such scores say nothing about the arm."""
    merged = {hit["id"]: hit.get("score") for hit in fused or ()}
    if len(arms) < 2:
        return
    for name, hits in arms.items():
        shared = [hit for hit in hits if merged.get(hit["id"]) is not None and "score" in hit]
        if len(shared) > 1 and all(hit["score"] == merged[hit["id"]] for hit in shared):
            report.note("scores of an arm are those of the merged list, written over them: dropped", f"{place}, {name}")
            arms[name] = [{key: value for key, value in hit.items() if key != "score"} for hit in hits]


def _final_context(draft: Draft, placed: Sequence[Placed], whole: Whole, report: ImportReport, place: str) -> None:
    """What stood in the prompt: told, else found there by text, else assumed to be the last list, and said so."""
    told = [each for each in placed if each.stage is Stage.FINAL and each.listed.hits is not None]
    unknown = [each for each in placed if each.stage is Stage.UNKNOWN and each.listed.hits is not None]
    if unknown:
        report.note(_SUPPRESSED, place)
    last = _last_lists(draft, told or unknown)
    found = _in_prompt(last, placed, whole)
    draft.derived("prompt_ids", found)
    if told:
        _set(draft, told[-1].how, "final_context_ids", told[-1].listed.ids)
    elif found is not None:
        draft.derived("final_context_ids", found)
    elif unknown:
        draft.assumed("final_context_ids", list(dict.fromkeys(hit["id"] for hit in last)))


def _in_prompt(last: Hits, placed: Sequence[Placed], whole: Whole) -> list[str] | None:
    """The ids whose text stands in what the model was sent, in that order; None where none does.

    A prompt without any of them was most likely written anew from them, so that it proves nothing.
    """
    lists = (hits for each in placed for hits in (each.listed.hits, each.listed.inputs) if hits is not None)
    texts = {hit["id"]: hit["text"] for hits in lists for hit in hits if "text" in hit}
    candidates = [(hit["id"], texts[hit["id"]]) for hit in last if hit["id"] in texts]
    for kind in (Kind.LLM, Kind.PROMPT):
        prompt = "\n".join(step.prompt for step in _after(placed, whole) if step.kind is kind and step.prompt)
        if prompt and (found := packed(candidates, prompt)):
            return found
    return None


def _last_lists(draft: Draft, known: Sequence[Placed]) -> Hits:
    """The list that was packed: the one that says so, else the last of the journey, else those of all arms."""
    if known:
        return known[-1].listed.hits or []
    for name in ("after_rerank", "after_threshold", "after_filter", "fused"):
        if draft.get(name) is not None:
            found: Hits = draft.get(name)
            return found
    return [hit for hits in (draft.get("arms") or {}).values() for hit in hits]


def _after(placed: Sequence[Placed], whole: Whole) -> Iterator[Step]:
    """The steps after the last list; a model that a reranker asked is none of them."""
    inside = whole.tree.below({each.listed.step.span.span_id: each for each in placed})
    since = max((each.listed.step.span.end for each in placed), default=0)
    for step in whole.steps:
        if (
            step.kind not in LISTS
            and step.span.span_id not in inside
            and (step.span.start >= since or not step.span.start)
        ):
            yield step


def _answer(placed: Sequence[Placed], whole: Whole) -> str | None:
    """The text that was named so, else what the outermost step gave back, else what the last model said."""
    named = [each.listed.step for each in placed if each.stage is Stage.ANSWER]
    roots = [step for step in whole.steps if step.kind is Kind.OTHER and whole.tree.is_root(step.span.span_id)]
    models = [step for step in _after(placed, whole) if step.kind is Kind.LLM]
    return next((s.answer for s in (*reversed(named), *roots, *reversed(models)) if s.answer is not None), None)


def _why_no_list(whole: Whole, placed: Sequence[Placed]) -> str:
    """Why a trace has no list: the reason that a user can do something about first."""
    steps = [step for step in whole.steps if step.kind in LISTS]
    if any(step.dialect == genai.NAME and step.query is None and step.documents is None for step in steps):
        return _SILENT
    if found := next((step.unusable for step in steps if step.unusable), None):
        return found if found == native_haystack.SILENT else f"no list that can be ranked: {found}"
    if placed:
        return "the retriever spans show no documents"
    return "no retrieval in the trace" if whole.steps else "no span of a dialect that is read"


def _set(draft: Draft, how: Provenance, name: str, value: Any) -> None:
    {Provenance.OBSERVED: draft.observed, Provenance.DERIVED: draft.derived}.get(how, draft.assumed)(name, value)
