"""Every relative link in the manual, README and ARCHITECTURE leads to a file and a heading that are there."""

import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

PAGES = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CHANGELOG.md"]
PAGES += sorted((ROOT / "examples").rglob("README.md"))
_LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The page without its code, in which a bracket is no link."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(page: Path) -> set[str]:
    """The ids of a page's headings, as GitHub makes them; a second heading of one name gets `-1`."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE):
        name = re.sub(r"[^\w -]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower())
        name = name.replace(" ", "-")
        found.append(name if name not in found else f"{name}-{found.count(name)}")
    return set(found)


def broken(page: Path) -> list[str]:
    """The links of a page that lead nowhere."""
    found = []
    for link in _LINK.findall(prose(page)):
        if re.match(r"https?://|mailto:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_of_a_page_leads_somewhere(page):
    assert broken(page) == []


def test_pages_of_the_manual_link_to_pages_of_the_manual_alone():
    """A link out of docs/ works on GitHub and is dead on the site."""
    outside = [
        (page.name, link)
        for page in (ROOT / "docs").glob("*.md")
        for link in _LINK.findall(prose(page))
        if link.startswith("../")
    ]
    assert outside == []


def test_a_dead_file_and_a_dead_anchor_are_found(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "# One two\n\n[a](#one-two) [b](#three) [c](b.md) [d](a.md#one-two) `[e](f.md)`\n", encoding="utf-8"
    )
    assert broken(page) == ["#three", "b.md"]
