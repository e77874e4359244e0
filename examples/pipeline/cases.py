"""Queries: the question, who asks, the gold, and the fault that is switched on."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class GoldSpan:
    """The words that answer a query, and the source that holds them.

    `header` is a table's header row that must stand in the same chunk for the row to mean anything.
    """

    source: str
    span: str
    grade: int = 1
    header: str = ""
    label_id: str = ""

    @property
    def words(self) -> str:
        """The evidence as one string."""
        return f"{self.header}\n{self.span}" if self.header else self.span


@dataclass(frozen=True)
class Case:
    """One query of the demo, as it stands in queries.jsonl."""

    query_id: str
    question: str
    user_acl: tuple[str, ...]
    reference: str
    family: str
    language: str
    gold: tuple[GoldSpan, ...] = ()
    gold_mode: str = "all"
    gold_groups: tuple[tuple[int, ...], ...] = ()
    filters: dict[str, str | int] = field(default_factory=dict)
    fault: str | None = None
    fault_config: dict[str, Any] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    dense_error: str = ""
    probes: tuple[tuple[str, str], ...] = ()
    drop: tuple[str, ...] = ()
    log_raw_arms: bool = False
    log_span_in: bool = False
    standalone: str = ""
    plain_question: str = ""
    previous: str = ""
    memory: str = ""
    answerable: bool = True
    outcome: str = ""
    acceptable: tuple[str, ...] = ()
    gap: str = ""
    why: str = ""


def load_cases(path: Path) -> list[Case]:
    """Read queries.jsonl; unknown keys are refused."""
    return [_case(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _case(row: dict[str, Any]) -> Case:
    row["gold"] = tuple(GoldSpan(**gold) for gold in row.get("gold", ()))
    row["gold_groups"] = tuple(tuple(group) for group in row.get("gold_groups", ()))
    row["probes"] = tuple(tuple(probe) for probe in row.get("probes", ()))
    for key in ("user_acl", "drop", "acceptable"):
        row[key] = tuple(row.get(key, ()))
    return Case(**row)
