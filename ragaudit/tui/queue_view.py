"""A row of the queue: what state it is in, its id, where it was lost, and the query."""

from collections.abc import Collection

from ragaudit.model.diagnosis import Stage
from ragaudit.report.clean import for_terminal
from ragaudit.report.diagnosis_text import MARKS
from ragaudit.report.layout import pad
from ragaudit.store.reader import Row
from ragaudit.tui.diagnosis_view import ROLES
from ragaudit.tui.lines import Line, Role, line

WIDE = 60
"""From this many cells on there is room for the stage and the cause."""

LEGEND = "X failing  ? undecided  . passing  !! leak  x reviewed  * marked"


def queue_row(row: Row | None, width: int, marks: Collection[str]) -> Line:
    """One row; None = it went away while the list was drawn."""
    if row is None:
        return line(("  ...", Role.DIM))
    leak = row.seq < 0
    state = "x" if row.verdict is not None else MARKS[row.outcome]
    mark = "*" if row.query_id in marks else " "
    state_role = Role.LEAK if leak else Role.DIM if row.verdict is not None else ROLES[row.outcome]
    name = pad(for_terminal(row.query_id), 8 if width < WIDE else 12)
    where = ""
    if width >= WIDE:
        stage = "" if row.stage is Stage.NONE else row.stage.value
        cause = row.causes[0].replace("_", " ") if row.causes else ""
        said = row.verdict.value.replace("_", " ") if row.verdict is not None else ""
        where = f"{pad(stage, 12)} {pad(f'({said})' if said else cause, 20)} "
    text = for_terminal(row.query_text, 300)
    return line(
        (mark, Role.STRONG), ("!!" if leak else f"{state} ", state_role), f" {name} ", (where, Role.PLAIN), text
    )
