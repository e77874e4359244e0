"""What `ragaudit redact` says it did: counts by kind and field, never a value."""

from collections import Counter
from typing import Any

from ragaudit.model.counting import counted
from ragaudit.redact.fields import Walker
from ragaudit.redact.run import Outcome
from ragaudit.report.clean import for_terminal


def summary_text(outcome: Outcome, walker: Walker) -> str:
    """For people."""
    counts = walker.tally.counts
    kinds: Counter[str] = Counter()
    for (_, _, kind), n in counts.items():
        kinds[kind] += n
    said = ", ".join(f"{kind} {n:,}" for kind, n in kinds.most_common()) or "nothing found"
    lines = [f"Replaced: {said}."]
    for file, _ in outcome.files:
        tally = outcome.problems.tally(file)
        lines += ["", f"-- {for_terminal(file)}: {counted(tally.rows, 'row')}, {tally.set_aside:,} set aside"]
        places = sorted((place, kind, n) for (name, place, kind), n in counts.items() if name == file)
        lines += [f"   {n:>9,}  {kind:<7} {for_terminal(place)}" for place, kind, n in places]
    lines += ["", f"Not looked for: {'; '.join(not_looked_for(walker))}."]
    if outcome.skipped:
        lines += ["", "Not looked at, and not copied:"]
        lines += [f"   {for_terminal(name)}: {for_terminal(why)}" for name, why in outcome.skipped]
    if outcome.problems.messages:
        lines += ["", "Set aside or repaired:"]
        lines += [f"   {for_terminal(text)}" for text in outcome.problems.texts()]
    return "\n".join(lines) + "\n"


def as_document(outcome: Outcome, walker: Walker, *, fresh: bool) -> dict[str, Any]:
    """`redact --json`."""
    rows = [{"file": f, "field": p, "kind": k, "n": n} for (f, p, k), n in sorted(walker.tally.counts.items())]
    tallies = {file: outcome.problems.tally(file) for file, _ in outcome.files}
    return {
        "schema": "ragaudit.redact/1",
        "key": "fresh" if fresh else "file",
        "text": walker.mode.value,
        "files": [
            {"name": name, "written_as": out, "rows": tallies[name].rows, "set_aside": tallies[name].set_aside}
            for name, out in outcome.files
        ],
        "replaced": rows,
        "not_looked_for": not_looked_for(walker),
        "not_looked_at": [{"name": name, "why": why} for name, why in outcome.skipped],
        "problems": list(outcome.problems.texts()),
    }


def not_looked_for(walker: Walker) -> list[str]:
    """What this run did not search, in words."""
    names = [] if walker.redactor.names is not None else ["names of people (--names-file, --names presidio)"]
    ips = [] if walker.redactor.with_ips else ["IP addresses (--ip)"]
    return [*names, *ips, "postal addresses, birth dates, identity numbers", "JSON numbers", "names of files"]
