"""The faults that the drill can inject: a name, the stage they stand for, and what breaks a healthy query that way."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from ragaudit.drill.case import Broken, Case
from ragaudit.model.diagnosis import Stage
from ragaudit.model.pipeline import Pipeline

Apply = Callable[[Case], Broken | None]
"""Breaks one healthy query; None when the fault does not apply to it."""

Hide = Callable[[Broken], Broken]
"""Takes the observation away that tells this fault from others."""


@dataclass(frozen=True)
class Fault:
    """One way to break a healthy query."""

    name: str
    stage: Stage
    summary: str
    apply: Apply
    delivers: bool
    """The gold stays in the prompt: the fault is in its text, the answer, or what came in beside it."""
    hide: Hide | None = None
    hides: str = ""
    """What the blind variant does not log."""


FAULTS: dict[str, Fault] = {}
"""Every fault by name, in the order of the stages."""


def fault(
    name: str, stage: Stage, summary: str, *, delivers: bool = False, hide: Hide | None = None, hides: str = ""
) -> Callable[[Apply], Apply]:
    """Register a way to break a query under a name. A second use of a name is refused."""

    def register(apply: Apply) -> Apply:
        if name in FAULTS:
            raise ValueError(f"fault {name!r} is registered twice")
        FAULTS[name] = Fault(name, stage, summary, apply, delivers, hide, hides)
        return apply

    return register


# --- taking observations away -------------------------------------------------------------------------------------


def unlogged(*fields: str) -> Hide:
    """The trace without these fields."""
    empty = {name: () if name == "probes" else None for name in fields}
    return lambda broken: replace(broken, trace=broken.trace.model_copy(update=empty))


def unset(pipeline: Pipeline, *tables: str) -> Pipeline:
    """The configuration without these tables: nothing was said about them."""
    said = pipeline.model_dump(by_alias=True, exclude_unset=True, exclude=set(tables))
    return Pipeline.model_validate(said)
