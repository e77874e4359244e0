"""Every key of the app, once: what it does, where it works, what people call it. Screens, help and docs read this."""

from typing import NamedTuple

from textual.binding import Binding, BindingType


class Key(NamedTuple):
    """One key. `id` is what `[tui.keymap]` remaps; a key means one thing in the whole app."""

    id: str
    keys: str
    action: str
    label: str
    """In the footer: a word or two."""
    does: str
    """In the help and the command palette."""
    footer: bool = False


EVERYWHERE = (
    Key("app.overview", "o", "show_screen('overview')", "overview", "Overview: losses, scores, experiments"),
    Key("app.review", "r", "show_screen('review')", "review", "Review: one query at a time"),
    Key("app.experiments", "x", "show_screen('experiments')", "experiments", "Experiments: ranked, with their replay"),
    Key("app.compare", "c", "show_screen('compare')", "compare", "Compare with the other audit, on this query"),
    Key("app.find", "slash", "find", "find", "Find: narrow the queue as you type", True),
    Key("app.filter", "f", "filter", "filter", "Filter the queue", True),
    Key("app.judge", "J", "judge", "judge", "Judge this query or the queue: plan and price first"),
    Key("app.export", "e", "export", "export", "Export this query, the queue or all of them", True),
    Key("app.copy", "y", "copy", "copy", "Copy the selected text, else the query's id"),
    Key("app.copy_json", "Y", "copy_json", "copy JSON", "Copy the query as JSON"),
    Key("app.help", "question_mark", "help", "help", "What the keys do here", True),
    Key("app.quit", "q", "leave", "quit", "Quit; asks only while judging", True),
)

MOVING = (
    Key("review.next", "n", "move(1)", "next", "Next query of the queue", True),
    Key("review.previous", "p", "move(-1)", "previous", "Previous query of the queue"),
    Key("review.pane", "tab", "pane(1)", "pane", "Next pane", True),
    Key("review.pane_back", "shift+tab", "pane(-1)", "pane back", "Previous pane"),
    Key("review.zoom", "z", "zoom", "zoom", "Zoom this pane, again to return"),
    Key("review.stage_after", "right_square_bracket", "stage(1)", "stage", "Hits one stage later"),
    Key("review.stage_before", "left_square_bracket", "stage(-1)", "stage before", "Hits one stage earlier"),
    Key("review.gold_next", "right_parenthesis", "gold(1)", "gold", "Next gold id"),
    Key("review.gold_previous", "left_parenthesis", "gold(-1)", "gold before", "Previous gold id"),
)

REVIEW = (
    *MOVING[:2],
    Key("review.agree", "1", "verdict('agree')", "agree", "Agree with the diagnosis, and go on", True),
    Key("review.disagree", "2", "verdict('disagree')", "disagree", "Disagree with it, and go on", True),
    Key("review.gold_wrong", "3", "verdict('gold_wrong')", "gold wrong", "The gold is wrong, and go on"),
    Key("review.unsure", "4", "verdict('unsure')", "unsure", "Unsure, and go on"),
    Key("review.annotate", "a", "annotate", "note", "Note, tags, the right stage, the right gold, and stay", True),
    Key("review.undo", "u", "undo", "undo", "Take back the last verdict or note"),
    *MOVING[2:],
    Key("review.mark", "m", "mark", "mark", "Mark this query: a verdict is then about all marked ones"),
    Key("review.mark_all", "M", "mark_all", "mark all", "Mark every query of the queue, again to take the marks off"),
    Key("review.sort", "s", "sort", "sort", "Next order of the queue: traces, stage, cause, id"),
    Key("review.wrap", "w", "wrap", "wrap", "Wrap the chunk's lines or not"),
    Key("review.back", "escape", "back", "back", "Leave the zoom, or show all queries"),
)

OVERVIEW = (
    Key("overview.pane", "tab", "app.focus_next", "pane", "Next pane", True),
    Key("overview.pane_back", "shift+tab", "app.focus_previous", "pane back", "Previous pane"),
    Key("overview.pause", "space", "pause", "pause", "Pause or continue judging"),
    Key("overview.stop", "escape", "stop", "stop", "Stop judging, keep what is done"),
)

COMPARE = (
    *MOVING[:2],
    Key("compare.swap", "tilde", "swap", "swap", "Swap A and B", True),
    Key(
        "compare.changed", "equals_sign", "changed", "only diff", "Only the queries that changed, or all of them", True
    ),
    *MOVING[2:],
    Key("compare.freeze", "b", "freeze", "baseline", "Keep B as a baseline; asks first"),
    Key("compare.back", "escape", "back", "back", "Leave the zoom, or go back to the review; stops the comparing"),
)

EXPERIMENTS = (
    Key("experiments.plan", "t", "plan", "plan", "Write this experiment into the journal; changes no pipeline", True),
    *(key for key in MOVING if key.id in ("review.pane", "review.pane_back", "review.zoom")),
    Key("experiments.back", "escape", "back", "back", "Leave the zoom, or go back to the overview"),
)

SCREEN_KEYS = {"overview": OVERVIEW, "review": REVIEW, "experiments": EXPERIMENTS, "compare": COMPARE}
"""Screen -> its keys, beside those that work everywhere."""

NAMES = {
    "slash": "/",
    "question_mark": "?",
    "escape": "esc",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "right_parenthesis": ")",
    "left_parenthesis": "(",
    "tilde": "~",
    "equals_sign": "=",
}
"""Textual's name of a key -> how people write it."""


def bindings(keys: tuple[Key, ...]) -> list[BindingType]:
    """The keys as Textual wants them."""
    return [Binding(key.keys, key.action, key.label, show=key.footer, id=key.id) for key in keys]


def shown(key: str) -> str:
    """A key as people write it: `/`, `?`, `esc`."""
    return ", ".join(NAMES.get(one, one) for one in key.split(","))
