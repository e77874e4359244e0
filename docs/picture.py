"""Draws the README's picture: `ragaudit show` of one demo query, as an SVG made from the command's real output."""

import re
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.text import Text

QUERY = "q-085"
ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Audit the demo, show one query, write docs/diagnosis.svg."""
    with tempfile.TemporaryDirectory() as folder:
        audit = Path(folder) / "demo.audit"
        _run("audit", str(ROOT / "examples" / "demo"), "-o", str(audit))
        shown = _run("show", str(audit), QUERY)
    console = Console(record=True, width=82, file=StringIO(), force_terminal=True)
    console.print(Text(f"$ ragaudit show demo.audit {QUERY}", style="bold"))
    console.print(Text(shown.rstrip()))
    svg = console.export_svg(title="ragaudit", unique_id="ragaudit")
    # The exporter names a font on a server; a picture must load nothing.
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    (ROOT / "docs" / "diagnosis.svg").write_text(svg, encoding="utf-8")


def _run(*words: str) -> str:
    command = [sys.executable, "-m", "ragaudit.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
