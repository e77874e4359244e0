"""Events of LlamaIndex's instrumentation -> runs by query. Events have no parents: who contains whom is inferred.

A retriever stands inside another that began before and ended after it, when the outer one can have made its list of the
inner one's: by its class, or because it gave nothing that the inner ones did not.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ragaudit.importers.report import ImportReport
from ragaudit.importers.run_values import answer_in
from ragaudit.importers.runs import Kind, Run

_WRAPS = re.compile(r"Fusion|Router|Transform|Recursive|AutoMerging|Ensemble|Hybrid|MultiQuery|SubQuestion|Selector")
_SPAN = re.compile(r"^(?P<owner>.*?)\.(?P<method>[^.]*?)-(?P<uuid>[0-9a-f-]{36})$", re.DOTALL)
SOURCE_NODES = "source_nodes"
"""Name of the run that stands for the nodes of the response: the list that goes into the prompt."""


@dataclass
class Query:
    """One query engine's call, or one retrieval outside of any."""

    id: str
    place: str
    text: str | None
    timestamp: str | None
    tags: dict[str, Any] = field(default_factory=dict)
    steps: dict[str, "_Step"] = field(default_factory=dict)
    prompts: list[str] = field(default_factory=list)
    prompted: int = 0
    """Number of the first event with a prompt."""
    answer: str | None = None
    source_nodes: list[Any] | None = None
    """What the synthesizer got, after all postprocessing."""
    sourced: int = 0
    model: str | None = None
    is_alone: bool = False
    """A retriever that was called without a query engine."""

    @property
    def is_running(self) -> bool:
        """A step of it has begun and not ended."""
        return any(step.end is None for step in self.steps.values())


@dataclass
class _Step:
    """A retriever or reranker between its two events; `begin` and `end` number the events."""

    span: str
    kind: Kind
    place: str
    begin: int
    query: str | None = None
    end: int | None = None
    nodes: list[Any] | None = None
    given: list[Any] | None = None
    limit: int | None = None


class Events:
    """Collects events in the order of the file, and hands out each query when it is over.

    Several queries at a time are told apart by their texts: events do not say to which query they belong.
    """

    def __init__(self, report: ImportReport) -> None:
        self._report = report
        self._open: dict[str, Query] = {}
        self._owners: dict[str, Query] = {}
        """Span of an unfinished step -> its query."""
        self._number = 0

    def take(self, event: Mapping[str, Any], place: str) -> Iterator[Query]:
        """Take one event; gives the query that is over with it, if one is. Events of other steps are passed over."""
        self._number += 1
        name, span, text = str(event["class_name"]), str(event.get("span_id") or ""), _asked(event)
        match name:
            case "QueryStartEvent":
                yield from self._over(None)
                self._begin_query(event, span, text, place)
            case "RetrievalStartEvent":
                yield from self._over(text)
                self._begin(Kind.RETRIEVER, event, span, text, place)
            case "ReRankStartEvent":
                self._begin(Kind.RERANKER, event, span, text, place)
            case "RetrievalEndEvent" | "ReRankEndEvent":
                self._end(event, span, place)
            case "EmbeddingStartEvent":
                self._embedding(event)
            case "LLMCompletionStartEvent" | "LLMChatStartEvent":
                self._prompt(event)
            case "SynthesizeEndEvent":
                self._answer(event, self._current(text))
            case "QueryEndEvent":
                query = self._open.get(span)
                self._answer(event, query or self._current(text))
                if query is not None:
                    yield self._open.pop(span)

    def rest(self) -> Iterator[Query]:
        """What is still open at the end of the file."""
        for query in self._open.values():
            if not query.is_alone or query.is_running:
                self._report.note("queries that never ended", query.place)
            yield query

    def _over(self, text: str | None) -> Iterator[Query]:
        """A retrieval outside of a query engine has no end of its own: it is over when another one begins."""
        for span, query in list(self._open.items()):
            if query.is_alone and not query.is_running and (query.text != text or query.prompts):
                yield self._open.pop(span)

    def _begin_query(self, event: Mapping[str, Any], span: str, text: str | None, place: str) -> None:
        around = self._current(None)
        if around is not None and around.text == text:
            return  # a query engine around another one, with the same question
        if around is not None:
            self._report.note("queries overlap: their events are told apart by the text of the query", place)
        self._open[span] = _query(event, span, text, place, is_alone=False)

    def _begin(self, kind: Kind, event: Mapping[str, Any], span: str, text: str | None, place: str) -> None:
        query = self._current(text)
        if query is None:
            query = self._open[span] = _query(event, span, text, place, is_alone=True)
        step = _Step(span, kind, place, self._number, text)
        if kind is Kind.RERANKER:
            step.given = _nodes(event)
            step.limit = event.get("top_n") if isinstance(event.get("top_n"), int) else None
        query.steps[span] = step
        self._owners[span] = query

    def _end(self, event: Mapping[str, Any], span: str, place: str) -> None:
        query = self._owners.pop(span, None)
        if query is None:
            self._report.skip("the end of a step whose start is not in the file", place)
            return
        query.steps[span].end, query.steps[span].nodes = self._number, _nodes(event)

    def _embedding(self, event: Mapping[str, Any]) -> None:
        model, query = event.get("model_dict"), self._current(None)
        if query is not None and isinstance(model, Mapping) and isinstance(model.get("model_name"), str):
            query.model = query.model or model["model_name"]

    def _prompt(self, event: Mapping[str, Any]) -> None:
        """A prompt after the search; one before it, or of a reranker that asks a model, holds no context."""
        prompt, messages = event.get("prompt"), event.get("messages")
        if prompt is None and isinstance(messages, list):
            prompt = "\n".join(_message(each) for each in messages)
        if not isinstance(prompt, str):
            return
        named = [query for query in self._open.values() if query.text and query.text in prompt]
        query = named[-1] if named else self._current(None)
        if query is not None and query.steps and not query.is_running:
            query.prompts.append(prompt)
            query.prompted = query.prompted or self._number

    def _answer(self, event: Mapping[str, Any], query: Query | None) -> None:
        response = event.get("response")
        if query is None or not isinstance(response, Mapping):
            return
        query.answer = answer_in({"response": response.get("response")}) or query.answer
        if isinstance(response.get("source_nodes"), list):
            query.source_nodes, query.sourced = response["source_nodes"], self._number

    def _current(self, text: str | None) -> Query | None:
        """The open query with this text, else the one that began last."""
        queries = list(self._open.values())
        same = [query for query in queries if text is not None and query.text == text]
        return same[-1] if same else queries[-1] if queries else None


def runs_of(query: Query, report: ImportReport) -> Iterator[Run]:
    """The runs of one query, with the tree that their times and nodes show."""
    steps = sorted(query.steps.values(), key=lambda step: step.begin)
    for step in steps:
        outer = _outer(step, steps)
        yield Run(
            id=step.span,
            name=_class(step.span),
            kind=step.kind,
            place=step.place,
            parent=outer.span if outer is not None else None,
            start=f"{step.begin:012}",
            query=step.query,
            documents=_unchanged(step, outer, report),
            given=step.given,
            limit=step.limit,
            is_finished=step.end is not None,
        )
    if query.steps and query.source_nodes is not None:
        nodes, start = query.source_nodes, f"{query.sourced:012}"
        yield Run(SOURCE_NODES, SOURCE_NODES, Kind.OTHER, query.place, start=start, documents=nodes)
    if query.prompts:
        start = f"{query.prompted:012}"
        text = "\n".join(query.prompts)
        yield Run("prompt", "LLM", Kind.LLM, query.place, start=start, prompt=text, answer=query.answer)
    if query.model is not None:
        yield Run("embedding", "Embedding", Kind.EMBEDDING, query.place, model=query.model)


def _outer(step: _Step, steps: list[_Step]) -> _Step | None:
    """The innermost retriever around a step that can have made its list of it."""
    around = [
        each
        for each in steps
        if each.kind is Kind.RETRIEVER
        and each.begin < step.begin
        and (each.end is None or (step.end is not None and step.end < each.end))
    ]
    return next((each for each in reversed(around) if _can_hold(each, steps)), None)


def _can_hold(outer: _Step, steps: list[_Step]) -> bool:
    if _WRAPS.search(_class(outer.span)):
        return True
    if outer.end is None or outer.nodes is None:
        return False
    inner = [s for s in steps if outer.begin < s.begin and s.end is not None and s.end < outer.end and s.nodes]
    from_inside = {_node_id(node) for step in inner for node in step.nodes or ()}
    return bool(outer.nodes) and all(_node_id(node) in from_inside for node in outer.nodes)


def _unchanged(step: _Step, outer: _Step | None, report: ImportReport) -> list[Any] | None:
    """The nodes, without scores that are those of the fused list: fusion writes into the nodes of its arms.

    A handler that keeps the nodes and writes them down later logs the fused scores under the arms.
    """
    if step.nodes is None or outer is None or outer.nodes is None:
        return step.nodes
    fused = {_node_id(node): _score(node) for node in outer.nodes}
    changed = any(_score(node) and fused.get(_node_id(node)) == _score(node) for node in step.nodes)
    if not changed:
        return step.nodes
    report.note("scores of an arm are those of the merged list, written over them: dropped", step.place)
    return [{key: value for key, value in node.items() if key != "score"} for node in step.nodes]


def _query(event: Mapping[str, Any], span: str, text: str | None, place: str, *, is_alone: bool) -> Query:
    tags, time = event.get("tags"), event.get("timestamp")
    own = {str(key): value for key, value in tags.items()} if isinstance(tags, Mapping) else {}
    return Query(_uuid(span), place, text, time if isinstance(time, str) else None, own, is_alone=is_alone)


def _asked(event: Mapping[str, Any]) -> str | None:
    """The text of the query in an event, as text or as a bundle."""
    for key in ("str_or_query_bundle", "query", "query_str"):
        found = event.get(key)
        if isinstance(found, Mapping):
            found = found.get("query_str")
        if isinstance(found, str):
            return found
    return None


def _nodes(event: Mapping[str, Any]) -> list[Any] | None:
    nodes = event.get("nodes")
    return [node for node in nodes if isinstance(node, Mapping)] if isinstance(nodes, list) else None


def _node_id(node: Mapping[str, Any]) -> Any:
    inner = node.get("node")
    return inner.get("id_") if isinstance(inner, Mapping) else node.get("id_")


def _score(node: Mapping[str, Any]) -> Any:
    return node.get("score")


def _message(message: Any) -> str:
    if not isinstance(message, Mapping):
        return ""
    blocks = message.get("blocks")
    if isinstance(blocks, list):
        return "\n".join(str(each.get("text") or "") for each in blocks if isinstance(each, Mapping))
    return str(message.get("content") or "")


def _class(span: str) -> str:
    found = _SPAN.match(span)
    return found["owner"] if found else span


def _uuid(span: str) -> str:
    found = _SPAN.match(span)
    return found["uuid"] if found else span
