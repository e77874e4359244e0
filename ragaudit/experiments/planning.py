"""From a lever to the change that is planned: which key, from what, to what, and the audit's prediction, if any."""

from collections.abc import Mapping, Sequence
from typing import Any

from ragaudit.errors import ConfigError
from ragaudit.model.comparison import means
from ragaudit.model.experiment import Basis, Experiment, Lever
from ragaudit.model.variables import THRESHOLDS, flat


def planned_change(
    known: Lever,
    experiments: Sequence[Experiment],
    pipeline: Mapping[str, Any],
    *,
    variable: str | None = None,
    to: tuple[Any] | None = None,
) -> Experiment:
    """What is written into the journal.

    Args:
        known: The lever.
        experiments: The audit's proposals.
        pipeline: The configuration that was audited.
        variable: Which arm or floor, where the lever fits several keys.
        to: The value, in a tuple; None = as proposed.

    Raises:
        ConfigError: The variable is none of the lever's, or it has to be named.
    """
    return _proposed(experiments, known, variable, to) or _unpredicted(
        known, _concrete(known, variable, pipeline), pipeline, None if to is None else to[0]
    )


def keys_of(known: Lever, pipeline: Mapping[str, Any]) -> list[str]:
    """The keys of this configuration that the lever fits: its own, or one an arm or floor."""
    if "*" not in known.variable or known.variable.startswith("embedding."):
        return [known.variable]  # both sides of an embedding change together
    table, _, key = known.variable.partition(".*.")
    held = pipeline.get(table) or {}
    return [f"{table}.{place}.{key}" for place in (range(len(held)) if isinstance(held, list) else held)]


def is_for_any(variable: str) -> bool:
    """Whether a proposal is for any arm or floor, so that one has to be named before it is planned."""
    return "*" in variable and not variable.startswith("pipeline.embedding.")


def _concrete(known: Lever, given: str | None, pipeline: Mapping[str, Any]) -> str:
    """The lever's variable with its arm or floor filled in, where the configuration has just one."""
    if given is not None:
        if not means(known.variable, given):
            raise ConfigError(f"--variable {given}: lever {known.name} changes {known.variable}. Name one of those.")
        return f"pipeline.{given.removeprefix('pipeline.')}"
    names = keys_of(known, pipeline)
    if len(names) != 1:
        which = f"one of {', '.join(names)}" if names else f"which ({known.variable}): [pipeline] does not say"
        raise ConfigError(f"lever {known.name}: fits {len(names) or 'no'} keys. Pass --variable with {which}.")
    return f"pipeline.{names[0]}"


def _proposed(
    experiments: Sequence[Experiment], known: Lever, variable: str | None, to: tuple[Any] | None
) -> Experiment | None:
    """The audit's own proposal of this change, with its prediction; None when it proposed another value, or none.

    A proposal for any arm or floor is none for the one that is meant.
    """
    return next(
        (
            each
            for each in experiments
            if each.lever == known.name
            and not is_for_any(each.variable)
            and (variable is None or each.variable == f"pipeline.{variable.removeprefix('pipeline.')}")
            and (to is None or (each.basis is Basis.REPLAYED and each.after == to[0]))
        ),
        None,
    )


def _unpredicted(known: Lever, variable: str, pipeline: Mapping[str, Any], value: Any) -> Experiment:
    """The change as it is planned. How much it moves is not known before a run."""
    return Experiment.model_validate(
        {
            "lever": known.name,
            "variable": variable,
            "from": _held(variable, pipeline),
            "to": value,
            "why": known.summary,
            "stage": known.stages[0],
            "basis": Basis.NEEDS_A_RUN,
            "frozen": known.frozen,
            "watch": known.watch,
            "authorisation": known.authorisation,
        }
    )


def _held(variable: str, pipeline: Mapping[str, Any]) -> Any:
    """The value that the configuration has now; None when nothing was said."""
    said = flat(pipeline)
    floors = said.pop(THRESHOLDS, ())
    for number, floor in enumerate(floors):
        said |= flat(floor, f"{THRESHOLDS}.{number}")
    return next((value for name, value in said.items() if means(variable, name)), None)
