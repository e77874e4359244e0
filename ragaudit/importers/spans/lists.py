"""The lists of documents in a trace: each once, whatever number of instrumentations saw it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from ragaudit.importers.formats import Options
from ragaudit.importers.passages import documents_in, hits_of
from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans.dialects import ORDER
from ragaudit.importers.spans.step import LISTS, Kind, Step, parsed
from ragaudit.importers.spans.tree import Tree

_OUTPUTS = (
    "output.value",
    "traceloop.entity.output",
    "mlflow.spanOutputs",
    "haystack.component.output",
    "langfuse.observation.output",
    "input.value",
    "traceloop.entity.input",
    "mlflow.spanInputs",
    "haystack.component.input",
    "langfuse.observation.input",
)

Hits = list[dict[str, Any]]


@dataclass(frozen=True)
class Listed:
    """A step that made a list. `hits` is None when none was logged, or when what was logged is no ranking."""

    step: Step
    hits: Hits | None
    inputs: Hits | None = None

    @property
    def ids(self) -> list[str] | None:
        """The ids in order."""
        return None if self.hits is None else [hit["id"] for hit in self.hits]


def lists_of(steps: Iterable[Step], tree: Tree, options: Options, report: ImportReport, place: str) -> list[Listed]:
    """The lists in the order in which they were complete, each retrieval once."""
    found = {}
    for step in steps:
        is_named = any(name in options.stages for name in (step.span.name, step.name))
        if step.kind not in LISTS and not is_named and "stage" not in step.metadata and "arm" not in step.metadata:
            continue
        if step.unusable is not None:
            report.note(f"a list is not used: {step.unusable}", f"{place}, {step.name}")
        documents = step.documents if step.kind in LISTS or step.documents is not None else _documents_of(step)
        if step.kind not in LISTS and documents is None and not is_named:
            continue
        found[step.span.span_id] = Listed(
            step,
            _hits(documents, options, report, place),
            _hits(step.inputs, options, report, place),
        )
    _without_stores(found, tree)
    _without_twins(found, tree)
    _without_echoes(found, tree, report, place)
    return sorted(found.values(), key=lambda each: each.step.span.end or each.step.span.start)


def _hits(documents: list[Any] | None, options: Options, report: ImportReport, place: str) -> Hits | None:
    return None if documents is None else hits_of(documents, report, place, texts=options.texts)


def _documents_of(step: Step) -> list[Any] | None:
    """Documents in the output, else the input, of a step that is no retriever but was said to hold a list."""
    for name in _OUTPUTS:
        documents = documents_in(parsed(step.span.attributes.get(name)))
        if documents and all(isinstance(each, dict) for each in documents):
            return documents
    return None


def _without_stores(found: dict[str, Listed], tree: Tree) -> None:
    """A store under a retriever is the same search seen from below: its filter and limit go to the retriever."""
    for span_id in [each for each, listed in found.items() if listed.step.kind is Kind.STORE]:
        above = tree.nearest(span_id, found)
        if above is None:
            continue
        store, upper = found.pop(span_id), found[above]
        found[above] = Listed(
            replace(
                upper.step,
                filters=upper.step.filters or store.step.filters,
                top_k=upper.step.top_k or store.step.top_k,
            ),
            upper.hits if upper.hits is not None else store.hits,
            upper.inputs,
        )


def _without_twins(found: dict[str, Listed], tree: Tree) -> None:
    """A step whose method calls another method of itself leaves two spans: the outer one stays, with what is known."""
    for span_id in list(found):
        above = tree.nearest(span_id, found)
        if above is None:
            continue
        inner, outer = found[span_id], found[above]
        same = inner.step.name == outer.step.name and inner.step.kind is outer.step.kind
        if same and (inner.hits is None or outer.hits is None or inner.ids == outer.ids):
            hits = outer.hits if outer.hits is not None else inner.hits
            step = replace(outer.step, query=outer.step.query or inner.step.query)
            found[above] = Listed(step, hits, outer.inputs if outer.inputs is not None else inner.inputs)
            del found[span_id]


def _without_echoes(found: dict[str, Listed], tree: Tree, report: ImportReport, place: str) -> None:
    """Where two instrumentations saw one retrieval, the lists of the one that says less go."""
    said = {listed.step.dialect for listed in found.values()}
    if len(said) < 2:
        return
    best = min(said, key=ORDER.index)
    kept = {span_id: each for span_id, each in found.items() if each.step.dialect == best}
    for span_id, listed in list(found.items()):
        if span_id in kept:
            continue
        nested = tree.nearest(span_id, kept) is not None or any(span_id in tree.above(each) for each in kept)
        if nested or any(listed.ids is not None and listed.ids == each.ids for each in kept.values()):
            report.note(f"a retrieval was traced twice: what {best} says is used", place)
            del found[span_id]
