"""The reports that are compared byte for byte. `python -m tests.report.goldens` writes them again; a change is read.

The example as it is, whole and on one page; and as it would be with a smaller budget, compared with what it was.
"""

import sys
import tempfile
from pathlib import Path

from ragaudit.cli.against import compared
from ragaudit.report.written import Wanted, written
from ragaudit.store import AuditReader

HERE = Path(__file__).parent
PLAIN = {
    "golden_demo.md": Wanted("md"),
    "golden_demo.html": Wanted("html"),
    "golden_demo_page.md": Wanted("md", one_page=True),
    "golden_demo_page.html": Wanted("html", one_page=True),
}
AGAINST = {
    "golden_before.md": Wanted("md", max_rows=5),
    "golden_before.html": Wanted("html", max_rows=5),
    "golden_before_page.md": Wanted("md", one_page=True),
    "golden_before_page.html": Wanted("html", one_page=True),
}


def report(name: str, demo: Path, smaller: Path) -> str:
    """The report of this name, made anew."""
    if name in PLAIN:
        with AuditReader.open(demo) as reader:
            return written(reader, PLAIN[name])
    with AuditReader.open(smaller) as reader:
        return written(reader, AGAINST[name], compared(reader, str(demo)))


def main() -> None:
    """Write every golden report."""
    sys.path.insert(0, str(HERE))
    from demo_audits import demo_audit, smaller_budget

    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        demo, smaller = demo_audit(Path(first)), smaller_budget(Path(second))
        for name in (*PLAIN, *AGAINST):
            (HERE / name).write_text(report(name, demo, smaller), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
