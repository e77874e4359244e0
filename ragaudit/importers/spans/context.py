"""What holds for a trace as a whole: question, id, session, models, filters, answer; each with how it was come by."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragaudit.importers.cells import ids_in
from ragaudit.importers.draft import Draft
from ragaudit.importers.predicates import clauses_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans.span import Span, iso_time
from ragaudit.importers.spans.stages import Placed
from ragaudit.importers.spans.step import Kind, Step, as_count, as_object
from ragaudit.importers.spans.tree import Tree
from ragaudit.importers.stage import Stage
from ragaudit.model.texts import folded

_SESSION = ("session.id", "gen_ai.conversation.id", "langfuse.session.id")
_USER = ("user.id", "enduser.id", "langfuse.user.id")
_QUERY_ID = ("query.id", "query_id", "ai.observability.record_id")
_TOKENS = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")


@dataclass(frozen=True)
class Whole:
    """A trace: its spans and steps, parents before children, and what its metadata says (the root's word first)."""

    trace_id: str
    spans: Sequence[Span]
    steps: Sequence[Step]
    tree: Tree
    metadata: Mapping[str, Any]

    @classmethod
    def of(cls, spans: Iterable[Span], steps: Iterable[Step]) -> "Whole":
        """Sort what belongs to one trace."""
        every = list(spans)
        tree = Tree(every)
        order = {span.span_id: (span.start, tree.depth(span.span_id)) for span in every}
        every.sort(key=lambda span: order[span.span_id])
        sorted_steps = sorted(steps, key=lambda step: order[step.span.span_id])
        own = {step.span.span_id: step.metadata for step in sorted_steps}
        metadata: dict[str, Any] = {}
        for span in every:
            said = own[span.span_id] if span.span_id in own else as_object(span.attributes.get("metadata"))
            metadata = {**said, **metadata}
        return cls(every[0].trace_id, every, sorted_steps, tree, metadata)

    def attribute(self, *names: str) -> Any:
        """The first value under one of the names, from the root down."""
        return next((span.attributes[n] for span in self.spans for n in names if span.attributes.get(n)), None)


def question_of(whole: Whole) -> str | None:
    """What the user asked: the input of the outermost step that shows one.

    Where that input is an object, out of which the question was guessed, the text that all searches agree on counts
    more.
    """
    outer = next((step for step in whole.steps if step.query is not None), None)
    if outer is None:
        return None
    searches = {step.query for step in whole.steps if step.kind in (Kind.RETRIEVER, Kind.STORE) and step.query}
    is_plain = any(value == outer.query for value in outer.span.attributes.values())
    return next(iter(searches)) if not is_plain and len(searches) == 1 else outer.query


def fill(draft: Draft, whole: Whole, report: ImportReport, place: str) -> None:
    """Set what the whole trace says: session, time, access, revision."""
    said = whole.metadata
    session = whole.attribute(*_SESSION) or said.get("session_id")
    draft.observed("session_id", None if session is None else str(session))
    draft.observed("timestamp", iso_time(next((span.start for span in whole.spans if span.start), 0)))
    acl = ids_in(said.get("user_acl"))
    if acl is not None:
        draft.observed("user_acl", acl)
    elif whole.attribute(*_USER) is not None:
        report.note("a user id says nothing about what the user may read: log user_acl", place)
    if said.get("index_revision") is not None:
        draft.observed("index_revision", str(said["index_revision"]))
    draft.observed("k_final", as_count(said.get("k_final")))
    draft.observed("prompt_tokens", as_count(whole.attribute(*_TOKENS)))


def query_id_of(whole: Whole) -> str:
    """The id of the query by convention, else that of the trace."""
    found = whole.metadata.get("query_id") or whole.attribute(*_QUERY_ID)
    return str(found) if isinstance(found, str | int) and found != "" else whole.trace_id


def fill_searches(draft: Draft, placed: Sequence[Placed], whole: Whole, report: ImportReport, place: str) -> None:
    """Set what the searches say: rewrite, filters, embedding model, what each arm was asked."""
    question = folded(str(draft.get("query_text")))
    arms = [each for each in placed if each.stage is Stage.ARM]
    asked = list(dict.fromkeys(each.listed.step.query for each in arms if each.listed.step.query))
    rewrites = [text for text in asked if folded(text) != question]
    if rewrites:
        draft.derived("query_rewrite", rewrites[0] if len(asked) == 1 else asked)
    _filters(draft, arms, whole, report, place)
    model = next((s.model for s in whole.steps if s.kind is Kind.EMBEDDING and s.model), None)
    draft.observed("embedding_model", model or _text(whole.metadata.get("embedding_model")))
    draft.derived("embedding_model", next((e.listed.step.model for e in placed if e.listed.step.model), None))
    for name in ("embedding_model", "index_revision"):
        draft.derived(name, _agreed(name, placed, report, place))


def status_of(each: Placed, question: str) -> dict[str, Any]:
    """What one arm did, as `arm_status` has it."""
    step, hits = each.listed.step, each.listed.hits
    limit = step.top_k or as_count(step.metadata.get("top_k"))
    status: dict[str, Any] = {"status": "errored" if step.span.error is not None else "ran"}
    if step.span.error is not None:
        status["error"] = step.span.error
    if step.query is not None and folded(step.query) != folded(question):
        status["query_text"] = step.query
    if (clauses := clauses_of(_filter_of(step))) is not None:
        status["filter"] = clauses
    if limit is not None:
        status["limit"] = limit
    if hits is not None:
        status["returned"] = len(hits)
    return status


def _filters(draft: Draft, arms: Sequence[Placed], whole: Whole, report: ImportReport, place: str) -> None:
    raw = [_filter_of(each.listed.step) for each in arms]
    clauses = [clauses_of(value) for value in raw]
    if any(value and found is None for value, found in zip(raw, clauses, strict=True)):
        report.note("filters that cannot be written as {field: value}: left out", place)
    if arms and all(found is not None and found == clauses[0] for found in clauses):
        draft.observed("filters_applied", clauses[0])
    elif any(found is not None for found in clauses):
        report.note("the arms did not all use the same filter: each has its own in arm_status", place)
    draft.observed("filters_applied", clauses_of(whole.metadata.get("filters")) if not any(raw) else None)


def _filter_of(step: Step) -> Any:
    return step.filters or step.metadata.get("filters")


def _agreed(name: str, placed: Iterable[Placed], report: ImportReport, place: str) -> str | None:
    """What the metadata of all hits says alike."""
    said = {
        str(hit["metadata"][name])
        for each in placed
        for hit in each.listed.hits or ()
        if hit.get("metadata", {}).get(name) is not None
    }
    if len(said) > 1:
        report.note(f"hits come from several values of {name}: left out", place)
    return next(iter(said)) if len(said) == 1 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
