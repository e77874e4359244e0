"""Where the thresholds of a run are written, and whether they hold."""

import os
from dataclasses import dataclass
from pathlib import Path

from ragaudit.compare.baselines import load_side
from ragaudit.compare.gates import rules
from ragaudit.compare.gating import hold
from ragaudit.config import load_settings

CONFIG = "ragaudit.toml"


@dataclass(frozen=True)
class Held:
    """What the gates say of a run, as far as they can without a baseline."""

    path: Path
    fired: tuple[str, ...]
    held: tuple[str, ...]
    unchecked: tuple[str, ...]
    """Gates that are measured against a baseline."""
    leaking: int

    @property
    def are_met(self) -> bool:
        """Every gate was looked at and holds, and no query leaks."""
        return bool(self.held) and not (self.fired or self.unchecked or self.leaking)


def gates_file(audit: Path, given: Path | None = None) -> Path | None:
    """The settings file: the one named, else the one here, else the one beside the audit file."""
    if given is not None:
        return given
    return next((path for path in (Path(CONFIG), audit.parent / CONFIG) if path.is_file()), None)


def gates_held(audit: Path) -> Held | None:
    """Hold a run against its gates; None when nobody wrote any.

    Raises:
        ConfigError: The settings file or a gate in it is wrong.
    """
    path = gates_file(audit)
    written = None if path is None else load_settings(path, env=os.environ, flags={}).gates
    if path is None or not written:
        return None
    asked = rules(written, path.name)
    run, _ = load_side(str(audit))
    report = hold(run, [rule for rule in asked if not rule.relative])
    fired = {gate.gate for gate in report.fired}
    return Held(
        path,
        tuple(gate.gate for gate in report.gates if gate.gate in fired),
        tuple(gate.gate for gate in report.gates if gate.gate not in fired),
        tuple(rule.gate for rule in asked if rule.relative),
        sum(bool(query.leaks) for query in run.queries),
    )
