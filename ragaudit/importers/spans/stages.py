"""Which list of the journey a step made: told by the user or the span, else by its place in the tree and its name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ragaudit.importers.report import ImportReport
from ragaudit.importers.spans import genai
from ragaudit.importers.spans.lists import Listed
from ragaudit.importers.spans.step import Kind
from ragaudit.importers.spans.tree import Tree
from ragaudit.importers.stage import MERGES, RERANKS, Stage, stage_of_word
from ragaudit.importers.stage import check as check
from ragaudit.model.texts import folded
from ragaudit.model.trace import Provenance

_MERGED = (Stage.FUSED, Stage.AFTER_RERANK, Stage.UNKNOWN)


@dataclass(frozen=True)
class Placed:
    """A list with its stage; `arm` is the name of the arm when it is one."""

    listed: Listed
    stage: Stage
    how: Provenance
    arm: str = ""


def stages_of(
    lists: Sequence[Listed], tree: Tree, told: Mapping[str, str], report: ImportReport, place: str
) -> list[Placed]:
    """A stage for each list, in the order in which they were complete."""
    by_id = {each.step.span.span_id: each for each in lists}
    searched = {above for each in lists if _is_search(each) for above in tree.above(each.step.span.span_id)}
    placed: list[Placed] = []
    for listed in lists:
        found = _told(listed, told) or _by_kind(listed)
        if found is None:
            found = _by_tree(listed, listed.step.span.span_id in searched, placed, by_id, tree, report, place)
        if found.stage is not Stage.IGNORE:
            placed.append(found)
    if not any(each.stage in (Stage.FUSED, Stage.AFTER_RERANK) for each in placed):
        return placed
    if any(each.stage is Stage.UNKNOWN for each in placed):
        report.note("a GenAI retrieval before another list is taken for an arm: it may be merged already", place)
    return [_as_arm(each) if each.stage is Stage.UNKNOWN else each for each in placed]


def rounds(placed: Iterable[Placed], lists: Sequence[Listed], tree: Tree) -> list[list[Placed]]:
    """Retrievals of one query that do not feed each other, apart.

    A new round begins when a search with another text follows a list that was merged or reranked.
    """
    by_id = {each.step.span.span_id: each for each in lists}
    groups: dict[str, list[Placed]] = {}
    for each in placed:
        groups.setdefault(tree.topmost(each.listed.step.span.span_id, by_id), []).append(each)
    found: list[list[Placed]] = [[]]
    asked: set[str] = set()
    is_closed = False
    for group in groups.values():
        searches = [each for each in group if each.stage in (Stage.ARM, Stage.UNKNOWN)]
        texts = {folded(each.listed.step.query) for each in searches if each.listed.step.query}
        if is_closed and texts and asked and not texts & asked:
            found.append([])
            asked, is_closed = set(), False
        found[-1] += group
        asked |= texts
        is_closed = is_closed or any(each.stage in _MERGED for each in group)
    return found


def _told(listed: Listed, told: Mapping[str, str]) -> Placed | None:
    step = listed.step
    named = step.metadata.get("arm")
    for name in (step.span.name, step.name, str(named)):
        if name in told:
            stage = stage_of_word(told[name]) or Stage.IGNORE
            arm = told[name].partition(":")[2] or (named if isinstance(named, str) else step.name)
            return Placed(listed, stage, Provenance.OBSERVED, arm)
    said = step.metadata.get("stage")
    stage_said = stage_of_word(said) if isinstance(said, str) else None
    if stage_said is not None:
        return Placed(listed, stage_said, Provenance.OBSERVED, named if isinstance(named, str) else step.name)
    return Placed(listed, Stage.ARM, Provenance.OBSERVED, named) if isinstance(named, str) and named else None


def _as_arm(unknown: Placed) -> Placed:
    return Placed(unknown.listed, Stage.ARM, Provenance.ASSUMED, unknown.listed.step.name)


def _by_kind(listed: Listed) -> Placed | None:
    how = Provenance.DERIVED if listed.step.guessed else Provenance.OBSERVED
    match listed.step.kind:
        case Kind.RERANKER:
            return Placed(listed, Stage.AFTER_RERANK, how)
        case Kind.JOINER:
            return Placed(listed, Stage.FUSED, how)
        case Kind.RETRIEVER | Kind.STORE:
            if listed.step.dialect == genai.NAME and not listed.step.named:
                return Placed(listed, Stage.UNKNOWN, Provenance.ASSUMED)
            return None
    return Placed(listed, Stage.IGNORE, Provenance.ASSUMED)


def _by_tree(
    listed: Listed,
    has_searches: bool,
    before: Sequence[Placed],
    by_id: Mapping[str, Listed],
    tree: Tree,
    report: ImportReport,
    place: str,
) -> Placed:
    """A retriever above others merges them, or reranks; a leaf is an arm, unless its name and place say otherwise."""
    step = listed.step
    if has_searches:
        if RERANKS.search(step.name):
            return Placed(listed, Stage.AFTER_RERANK, Provenance.DERIVED)
        below = [each for each in before if step.span.span_id in tree.above(each.listed.step.span.span_id)]
        if len(below) == 1 and below[0].listed.ids == listed.ids:
            return Placed(listed, Stage.IGNORE, Provenance.DERIVED)  # it passes on what the one below it found
        return Placed(listed, Stage.FUSED, Provenance.DERIVED)
    beside = [each for each in before if each.stage is Stage.ARM and tree.nearest(step.span.span_id, by_id) is None]
    if beside and RERANKS.search(step.name):
        return Placed(listed, Stage.AFTER_RERANK, Provenance.DERIVED)
    if len(beside) > 1 and MERGES.search(step.name):
        return Placed(listed, Stage.FUSED, Provenance.DERIVED)
    if len(beside) > 1 and _is_drawn_from(listed, beside):
        text = "an arm returned only what other arms had: if it is their merged list, pass --stage NAME=fused"
        report.note(text, f"{place}, {step.name}")
    how = Provenance.OBSERVED if step.named and not step.guessed else Provenance.DERIVED
    return Placed(listed, Stage.ARM, how, step.name)


def _is_search(listed: Listed) -> bool:
    return listed.step.kind in (Kind.RETRIEVER, Kind.STORE)


def _is_drawn_from(listed: Listed, arms: Iterable[Placed]) -> bool:
    known = {chunk_id for each in arms for chunk_id in each.listed.ids or ()}
    longest = max((len(each.listed.ids or ()) for each in arms), default=0)
    return listed.ids is not None and len(listed.ids) > longest and known >= set(listed.ids)
