"""The hits of one list, in order, with what they were before, and the gold that this list no longer holds."""

from dataclasses import dataclass

from ragaudit.model.diagnosis import State
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import pad
from ragaudit.tui.funnel_view import list_label
from ragaudit.tui.lines import Line, Role, line
from ragaudit.tui.query_view import PACKED, QueryView

SNIPPET_CELLS = 200
ROOMY = 60
"""From this many cells on the score has a column, and ids are longer."""


@dataclass(frozen=True)
class HitRow:
    """One line of the list. `chunk_id` None = a rule between parts."""

    text: Line
    chunk_id: str | None = None


def hit_rows(view: QueryView, list_name: str | None, width: int) -> list[HitRow]:
    """The hits of a list, best first; for the packed context also what stood below the cut."""
    if list_name is None or list_name not in view.lists:
        return [HitRow(line(("No list of hits was logged for this query.", Role.UNSCORED)))]
    hits = view.lists[list_name]
    before = _before(view, list_name)
    ranks = {hit.id: n for n, hit in enumerate(view.lists[before], 1)} if before else {}
    roomy = width >= ROOMY
    rows = [HitRow(line((_columns("rk", "was", "score", "chunk", "", roomy), Role.DIM)))]
    rows += [_hit(view, n, hit.id, hit.value, ranks.get(hit.id), roomy) for n, hit in enumerate(hits, 1)]
    if not hits:
        rows.append(HitRow(line(("  (empty: this step ran and returned nothing)", Role.UNSCORED))))
    held = {hit.id for hit in hits}
    gone = [i for i in view.gold_ids if i not in held and view.place(i, list_name)[0] is State.ABSENT]
    if gone:
        where = f"not in {list_label(list_name)}" if list_name != PACKED else f"cut: not in the packed {len(hits)}"
        rows.append(HitRow(line((f"-- {where} ".ljust(46, "-"), Role.LOST))))
        rows += [_hit(view, None, i, None, ranks.get(i), roomy) for i in gone]
    return rows


def first_of_interest(rows: list[HitRow], chunk_id: str | None) -> int:
    """The row of a chunk, else the first hit."""
    ids = [row.chunk_id for row in rows]
    if chunk_id in ids:
        return ids.index(chunk_id)
    return min(1, len(rows) - 1)


def _before(view: QueryView, list_name: str) -> str | None:
    """The list that this one was made from; an arm has none."""
    names = [name for name in view.lists if not name.startswith("arm:")]
    if list_name not in names:
        return None
    place = names.index(list_name)
    arms = [name for name in view.lists if name.startswith("arm:")]
    return names[place - 1] if place else (arms[0] if len(arms) == 1 else None)


def _hit(view: QueryView, rank: int | None, chunk_id: str, score: float | None, was: int | None, roomy: bool) -> HitRow:
    gold = view.gold(chunk_id)
    leaked = chunk_id in view.diagnosis.leaks
    mark = "!!" if leaked else (f"G{gold.grade:g}" if gold is not None and gold.grade != 1 else "G" if gold else "")
    role = Role.LEAK if leaked else Role.GOLD if gold is not None else Role.PLAIN
    shown = view.texts.chunk(chunk_id)
    snippet = for_terminal(shown.text or "", SNIPPET_CELLS) if shown.text else f"({shown.why})"
    columns = _columns(
        "-" if rank is None else str(rank),
        "" if was is None else str(was),
        _score(score),
        for_terminal(chunk_id),
        mark,
        roomy,
    )
    return HitRow(line((columns, role), (snippet, Role.DIM if shown.text is None else Role.PLAIN)), chunk_id)


def _columns(rank: str, was: str, score: str, chunk: str, mark: str, roomy: bool) -> str:
    middle = f"{pad(score, 8)} {pad(chunk, 20)}" if roomy else pad(chunk, 14)
    return f"{rank:>3} {was:>4}  {middle} {pad(mark, 3)} "


def _score(score: float | None) -> str:
    return "-" if score is None else f"{score:.4g}"
