"""Speed figures. Each module prints a table; none is a timed test, since a shared machine makes those lie.

Contenders run in one process, in an order that is reversed from round to round, and CPU seconds are quoted: ratios
can then be trusted when absolute values cannot.
"""

import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Timing:
    """What one contender took."""

    seconds: float
    """Median of CPU seconds over the rounds."""
    spread: float
    """Slowest round over fastest."""


def race(contenders: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Time each contender once a round, forwards in one round and backwards in the next."""
    spent: dict[str, list[float]] = {name: [] for name in contenders}
    for round_number in range(rounds):
        names = list(contenders)
        for name in names if round_number % 2 == 0 else reversed(names):
            gc.collect()
            start = time.process_time()
            contenders[name]()
            spent[name].append(time.process_time() - start)
    return {name: Timing(median(times), max(times) / max(min(times), 1e-9)) for name, times in spent.items()}


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print aligned columns, the first to the left and the others to the right."""
    cells = [list(header), *[[str(cell) for cell in row] for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    print(f"\n{title}")
    for n, row in enumerate(cells):
        print(
            "  ".join(
                cell.rjust(width) if i else cell.ljust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        )
        if n == 0:
            print("  ".join("-" * w for w in widths))
