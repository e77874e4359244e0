"""Every `console` block of the manual runs, in order, and prints what the page shows."""

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.docs.docs_console import agrees, blocks, commands, run_page

PAGES = [
    page
    for page in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")
    if any(block.info.startswith("console") for block in blocks(page.read_text(encoding="utf-8")))
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    shown = sum(len(commands(block)) for block in blocks(text) if block.info.startswith("console"))
    assert run_page(text, tmp_path) == shown


def test_an_output_is_compared_line_by_line_and_three_dots_elide() -> None:
    assert agrees("a\nb\n", "a\nb\n\n")
    assert agrees("a\n...\nd\n", "a\nb\nc\nd\n")
    assert agrees("...\nd\n", "a\nd\n")
    assert agrees("a x...z\n", "a x y z\n")
    assert not agrees("a\nb\n", "a\n\nb\n")
    assert not agrees("b\n", "a\nb\n")
    assert not agrees("a\n", "a\nb\n")


def test_a_wrong_output_a_failing_command_and_a_stray_line_are_found(tmp_path: Path) -> None:
    for n, block in enumerate(("$ echo a\nb\n", "$ exit 3\n", "stray\n$ echo a\n")):
        (tmp_path / str(n)).mkdir()
        with pytest.raises(AssertionError):
            run_page(f"```console\n{block}```\n", tmp_path / str(n))


def test_what_is_not_shown_is_not_compared_and_a_titled_block_is_a_file(tmp_path: Path) -> None:
    page = '```python title="a/b.py"\nprint(41 + 1)\n```\n\n```console\n$ echo x\n$ python a/b.py\n42\n```\n'
    assert run_page(page, tmp_path) == 2
