"""The run that a report compares an audit with."""

from pathlib import Path

from ragaudit.compare.baselines import FOLDER, load_side
from ragaudit.compare.freeze import freeze
from ragaudit.compare.pairing import compare
from ragaudit.errors import InputError
from ragaudit.report.before import Against
from ragaudit.store import AuditReader


def compared(reader: AuditReader, baseline: str, allow: tuple[str, ...] = (), folder: Path = FOLDER) -> Against:
    """The audit against a baseline. A comparison that is refused is no error here: the report says why.

    Raises:
        InputError: There is no such audit or baseline, or it is damaged.
    """
    before, frozen = load_side(baseline, folder)
    after = freeze(reader)
    try:
        found = compare(before, after, allow=allow, frozen=frozen)
    except InputError as refused:
        return Against(before.name, refusal=str(refused))
    return Against(before.name, found, before.metrics)
