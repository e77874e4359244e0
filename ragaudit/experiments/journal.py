"""The journal of experiments: what was planned, what was expected, what came out; one readable line an event.

The file belongs to the repository of the user. Lines are only ever appended, each by one write of its own, so that
two processes, and two branches that are merged, keep each other's lines.
"""

import json
import os
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ragaudit.errors import ConfigError, InputError
from ragaudit.experiments.conclusion import conclude, refuse_other_change
from ragaudit.experiments.events import Entry, Event, Finished, Planned, Started, Status, proposes
from ragaudit.model.comparison import Comparison
from ragaudit.model.experiment import Experiment
from ragaudit.model.json_line import json_line

DEFAULT = Path("experiments.jsonl")
ID_LENGTH = 6

_KINDS: dict[str, type[Planned] | type[Started] | type[Finished]] = {
    "plan": Planned,
    "start": Started,
    "finish": Finished,
}


class Journal:
    """The entries of one file, in the order in which they were planned."""

    def __init__(self, path: Path, entries: Iterable[Entry] = ()) -> None:
        """Use `read`."""
        self.path = path
        self.entries = tuple(entries)

    @classmethod
    def read(cls, path: Path = DEFAULT) -> "Journal":
        """Read the file; one that does not exist is an empty journal.

        Raises:
            InputError: A line is no event, or belongs to no plan.
        """
        try:
            lines = path.read_text("utf-8").splitlines() if path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read ({error}). Check the file.") from None
        found: dict[str, Entry] = {}
        later: list[tuple[int, Event]] = []
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            event = _event(line, f"{path}:{number}")
            if isinstance(event, Planned):
                if found.setdefault(event.id, Entry(plan=event)).plan != event:
                    raise InputError(f"{path}:{number}: a second plan has the id {event.id!r}. Give one another id.")
            else:
                later.append((number, event))
        for number, event in later:  # a merge may have put a start before its plan
            if event.id not in found:
                raise InputError(f"{path}:{number}: no plan has the id {event.id!r}. Restore the line that planned it.")
            field = "started" if isinstance(event, Started) else "finished"
            if getattr(found[event.id], field) is None:  # two branches may both have finished it: the first stands
                found[event.id] = found[event.id].model_copy(update={field: event})
        return cls(path, found.values())

    def entry(self, given: str) -> Entry:
        """The experiment of this id, or of the only id that starts so.

        Raises:
            ConfigError: There is none, or several.
        """
        exact = [entry for entry in self.entries if entry.plan.id == given]
        near = exact or [entry for entry in self.entries if given and entry.plan.id.startswith(given)]
        if len(near) != 1:
            known = ", ".join(entry.plan.id for entry in (near or self.entries)[-8:]) or "none yet"
            what = "several experiments start so" if near else "no such experiment"
            raise ConfigError(f"{given}: {what} in {self.path}. Ids there: {known}.")
        return near[0]

    def about(self, experiment: Experiment) -> tuple[Entry, ...]:
        """What was planned of this change."""
        return tuple(entry for entry in self.entries if proposes(experiment, *_key(entry.plan)))

    def plan(self, experiment: Experiment, *, moves: str, run: str, fingerprint: str, at: str, **more: Any) -> Planned:
        """Write down a hypothesis.

        Args:
            experiment: The proposed change with its prediction.
            moves: The metric that decides.
            run: The name of the run it was planned on.
            fingerprint: Of that run.
            at: The time, ISO 8601.
            more: `audit`, `hypothesis`.
        """
        identity = json_line([experiment.variable, experiment.after, fingerprint, at])
        event = Planned.model_validate(
            {
                "id": self._new_id(identity),
                "at": at,
                "run": run,
                "fingerprint": fingerprint,
                "lever": experiment.lever,
                "variable": experiment.variable,
                "from": experiment.before,
                "to": experiment.after,
                "hypothesis": experiment.why,
                "moves": moves,
                "watch": experiment.watch,
                "basis": experiment.basis,
                "predicted": experiment.predicted,
                **more,
            }
        )
        append(self.path, event)
        return event

    def start(self, given: str, *, at: str) -> Started:
        """Note that an experiment runs.

        Raises:
            ConfigError: There is no such experiment, or it was started before.
        """
        entry = self.entry(given)
        if entry.status is not Status.PLANNED:
            raise ConfigError(f"{entry.plan.id}: is {entry.status} already. Plan it anew to run it again.")
        event = Started(id=entry.plan.id, at=at)
        append(self.path, event)
        return event

    def finish(self, given: str, comparison: Comparison, *, at: str) -> Finished:
        """Note what came out, with the prediction's error.

        Raises:
            ConfigError: There is no such experiment, or it was finished before.
            InputError: The comparison is of another change than the one planned.
        """
        entry = self.entry(given)
        if entry.status is Status.FINISHED:
            raise ConfigError(f"{entry.plan.id}: is finished already. Plan it anew to run it again.")
        refuse_other_change(entry.plan, comparison)
        event = conclude(entry.plan, comparison, at=at)
        append(self.path, event)
        return event

    def _new_id(self, identity: str) -> str:
        """Of the plan itself, so that plans of two branches do not get the same one."""
        digest = blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        taken = {entry.plan.id for entry in self.entries}
        return next(digest[:n] for n in range(ID_LENGTH, len(digest) + 1) if digest[:n] not in taken)


def append(path: Path, event: Event) -> None:
    """Add one line by one write, and wait until it is on the disk.

    Raises:
        ConfigError: The file cannot be written.
    """
    line = json_line({"event": event.event} | event.model_dump(mode="json", by_alias=True, exclude_defaults=True))
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            size = os.fstat(handle).st_size
            whole = not size or _last_byte(handle, size) == b"\n"  # an editor may have left out the last line end
            text = (line if whole else f"\n{line}") + "\n"
            rest = text.encode("utf-8")
            if os.write(handle, rest) != len(rest):
                raise ConfigError(f"{path}: the disk is full. Free some space, and remove the half line at its end.")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror}). Choose another with --journal.") from error


def tried(journal: Journal) -> set[tuple[str, str]]:
    """What was run, whatever came out: (variable, value as text), "" for no value."""
    return {_key(entry.plan) for entry in journal.entries if entry.status is not Status.PLANNED}


def refuted(journal: Journal) -> set[tuple[str, str]]:
    """What was run and did not do what was expected: the proposer leaves it out."""
    return {_key(entry.plan) for entry in journal.entries if entry.is_refuted}


def _key(plan: Planned) -> tuple[str, str]:
    return plan.variable, "" if plan.after is None else str(plan.after)


def _event(line: str, place: str) -> Event:
    if line.startswith(("<<<<<<<", "=======", ">>>>>>>")):
        raise InputError(f"{place}: an unresolved merge. Keep the lines of both sides and remove the marks.")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({str(error).splitlines()[0]}). Correct the line.") from None
    kind = _KINDS.get(str(found.get("event"))) if isinstance(found, dict) else None
    if kind is None:
        raise InputError(f"{place}: no event of a journal. Each line has event: {', '.join(_KINDS)}.")
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{place}: {where}: {first['msg']}. Correct the line.") from None


def _last_byte(handle: int, size: int) -> bytes:
    os.lseek(handle, size - 1, os.SEEK_SET)
    return os.read(handle, 1)
