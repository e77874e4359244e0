"""The account of an inventory for a terminal: what was read, whether it is complete, what an audit can decide now."""

from collections.abc import Mapping
from typing import Any

from ragaudit.inventories.account import Account
from ragaudit.report.clean import for_terminal
from ragaudit.report.layout import WIDTH, heading, wrap

_COMPLETE = {True: "yes", False: "NO", None: "not known"}


def inventory_text(done: Account, width: int = WIDTH) -> str:
    """What `ragaudit inventory` prints."""
    chunks = "" if done.chunks == done.rows else f", {done.chunks:,} chunks"
    lines = [
        heading(for_terminal(f"Inventory: {done.store} {done.collection}", width - 4), width),
        f"  rows       {done.rows:,}{chunks} of {done.sources:,} sources",
    ]
    for arm, facts in done.index.get("arms", {}).items():
        lines += _wrapped(_arm(facts), width, f"  {for_terminal(arm, 10):<10} ")
    lines += _wrapped(_COMPLETE[done.complete], width, "  complete   ")
    for reason in done.why:
        lines += _wrapped(reason, width, "           - ")
    said = [f"{n:,} x {what} (first: {first})" for what, (n, first) in done.notes.items()]
    for word, text in zip(["  noted      "] + ["             "] * 99, [*said, *done.remarks], strict=False):
        lines += _wrapped(text, width, word)
    lines += ["", "  With this an audit can decide:"]
    for each in done.decides:
        lines += _wrapped(each.why, width, f"    {'yes' if each.can else 'no ':<4} {each.stage:<10} ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _wrapped(text: str, width: int, first: str) -> list[str]:
    return wrap(for_terminal(text), width, first=first, rest=" " * len(first))


def _arm(facts: Mapping[str, Any]) -> str:
    said = [f"{facts['chunks']:,} rows"] if facts.get("chunks") is not None else []
    said += [str(facts[name]) for name in ("metric", "ann") if facts.get(name)]
    if facts.get("dims"):
        said.append("dims " + ", ".join(_counted(facts["dims"])))
    if facts.get("models"):
        said.append("models " + ", ".join(_counted(facts["models"])))
    if facts.get("norm_p50") is not None:
        said.append(f"lengths {facts['norm_p5']:g} to {facts['norm_p95']:g} (p5, p95)")
    return "; ".join(said) or "nothing is known of it"


def _counted(counts: Mapping[str, int]) -> list[str]:
    """The names alone when there is one, else with their rows."""
    return list(counts) if len(counts) == 1 else [f"{name} ({n:,})" for name, n in list(counts.items())[:4]]
