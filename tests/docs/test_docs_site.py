"""The documentation site builds without a warning, holds every page, and loads nothing from elsewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")
    return folder


def test_every_page_of_the_manual_is_on_the_site(site):
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} == {page.stem for page in site.glob("*.html")} - {"404"}


def test_every_page_stands_in_the_navigation():
    listed = re.findall(r"^ +- .+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_a_page_loads_nothing_from_elsewhere(site):
    loaded = re.compile(r"<(?:script|img|iframe|source)[^>]+src=\"?([^\" >]+)|<link[^>]+href=\"?([^\" >]+)")
    for page in site.glob("*.html"):
        for src, href in loaded.findall(page.read_text(encoding="utf-8")):
            assert not re.match(r"(https?:)?//", src or href), (page.name, src or href)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", style.read_text(encoding="utf-8")), style.name


def test_the_program_that_writes_the_tables_is_not_on_the_site(site):
    assert list(site.rglob("*.py")) == []
