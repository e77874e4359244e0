"""The commands of other programs that the manual shows: what they name is there. None is run; each says why."""

import re
import tomllib
from importlib.util import find_spec

import pytest

from tests.conftest import ROOT
from tests.docs.docs_console import blocks

PAGES = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "ARCHITECTURE.md"]
PAGES += (ROOT / "examples").rglob("README.md")
WHY = {
    "make test": "it is what runs this test",
    "make demo": "it makes a virtual environment, then runs `ragaudit demo`, which docs/index.md does",
    "make cassettes": "it downloads a judge model of 1.1 GB and asks it",
    "make docs": "it builds the site, which tests/docs/test_docs_site.py does",
    "make docs-tables": "it writes into the manual; tests/docs/test_docs_tables.py compares",
    "make imports": "tests/test_package.py does",
    "make lock": "it asks the package index",
    "make bench": "it takes minutes",
    "pip install": "it asks the package index; tests/test_package.py builds the wheel and runs it",
    "pytest": "tests/test_testing_plugin.py runs the example project",
    "python -m benchmarks": "it takes minutes, and some of it asks a judge model",
    "python -m venv": "a step of `make cassettes`",
    "python examples/local_model/": "a step of `make cassettes`",
    "python examples/make_demo.py": "tests/audit/test_demo_truth.py reads what it wrote",
    "python examples/make_judged.py": "tests/examples/test_judged_bundle.py runs it",
    "python -c": "it writes a secret",
    "python literal_judge.py": "it serves until it is stopped",
}
"""How a command begins -> why no test of the manual runs it."""


def shown(page: str) -> list[str]:
    """Lines of code blocks and words in code that begin with another program's name."""
    without = page
    lines = []
    for block in blocks(page):
        without = without.replace(f"```{block.info}\n{block.text}```", "")
        if block.info in ("", "bash", "sh"):
            lines += [re.split(r" {2,}| # ", line)[0] for line in block.text.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", without)
    return [line for line in dict.fromkeys(lines) if re.match(r"(make|pip|python|pytest)( |$)", line)]


LINES = sorted({(page, line) for page in PAGES for line in shown(page.read_text(encoding="utf-8")) if " " in line})


@pytest.mark.parametrize(("page", "line"), LINES, ids=lambda value: value if isinstance(value, str) else value.name)
def test_what_a_command_names_is_there(page, line):
    assert [start for start in WHY if line.startswith(start)] != [], "say in WHY why no test runs it"
    words = line.split()
    if words[0] == "make":
        assert f"\n{words[1]}:" in (ROOT / "Makefile").read_text(encoding="utf-8")
    elif words[:2] == ["pip", "install"]:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        assert set(re.findall(r"\[(\w+)\]", line)) <= set(extras)
    elif words[:2] == ["python", "-m"]:
        assert find_spec(words[2]) is not None
    elif words[0] == "python" and words[1] != "-c":
        assert (ROOT / words[1]).exists() or (page.parent / words[1]).exists()


def test_every_reason_is_still_needed():
    assert {start for start in WHY if not any(line.startswith(start) for _, line in LINES)} == set()
