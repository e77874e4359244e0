"""Which parts of a trace may be left out when they cannot be read, and which cost the whole line."""

from typing import Any

from pydantic import ValidationError

from ragaudit.model.faults import Path, first_fault
from ragaudit.model.trace import Trace
from ragaudit.readers.fields import path_of, walkable

_NEEDED = frozenset(
    {
        *("query_id", "query_text", "k_final"),
        # an absent list is a step that is not there, or that nobody logged; this one is
        *("arms", "fused", "after_filter", "after_threshold", "rerank_input", "after_rerank"),
        *("final_context_ids", "prompt_ids"),
        # what is relevant; without one of these other gold would count, or none
        *("gold_ids", "gold", "gold_groups", "gold_mode", "id_map"),
        # absent = nothing departs from [pipeline], everything was observed
        *("config", "provenance"),
        # unknown access would count gold that the user may not read, and hide no text
        "user_acl",
        # without its clauses another's row is no leak, and its text is shown
        "filters_applied",
    }
)
_NEEDED_OF_AN_ARM = frozenset({"status", "filter"})
"""An arm that failed would pass for one that ran, a filtered one for one without a filter."""


def can_drop(path: Path) -> bool:
    """Whether the trace says less, and nothing else, without what stands here: absent must not read as observed."""
    if path[0] == "arm_status":
        return len(path) > 2 and path[2] not in _NEEDED_OF_AN_ARM
    return path[0] in Trace.model_fields and path[0] not in _NEEDED


def drop(error: ValidationError, values: dict[str, Any]) -> str | None:
    """Take the innermost field that cannot be read out of the values, and name it; None when it is needed.

    Of a list the whole list is taken: a shorter one would be another observation.
    """
    loc = first_fault(error, lambda path: walkable(path, values)).path
    path = loc[: next((n for n, part in enumerate(loc) if isinstance(part, int)), len(loc))]
    if not path or not can_drop(path):
        return None
    table: Any = values
    for part in path[:-1]:
        table = table[part]
    if path[-1] not in table:
        return None
    del table[path[-1]]
    return path_of(path)
