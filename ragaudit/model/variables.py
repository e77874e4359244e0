"""The variables of a configuration: each value of `[pipeline]` under its dotted key."""

from collections.abc import Mapping
from typing import Any

WHOLE = ("pipeline.fusion.weights",)
"""Tables that are one variable: only the ratio of the weights counts."""

THRESHOLDS = "pipeline.thresholds"


def flat(table: Mapping[str, Any], prefix: str = "pipeline") -> dict[str, Any]:
    """A configuration by dotted key. Absent, null and empty tables are the same: nothing was said."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = f"{prefix}.{key}"
        if isinstance(value, Mapping) and name not in WHOLE:
            found |= flat(value, name)
        elif value not in (None, {}, [], ()):
            found[name] = value
    return found
