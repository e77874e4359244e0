"""Reports in a real browser: at two widths, light and dark, and in print."""

import re

import pytest
from browser import CHROMIUM, Browser
from demo_audits import demo_audit, smaller_budget
from goldens import report
from hostile_run import bad_beside, bad_results, bad_summary
from report_builders import CAUSES, STAGE_NOTES

from ragaudit.report.html import html

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine")

REPORTS = ("golden_demo.html", "golden_demo_page.html", "golden_before.html", "golden_before_page.html")
HOSTILE = ("hostile.html", "hostile_page.html")
PAGES = (*REPORTS, *HOSTILE)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Every page as a file."""
    made = tmp_path_factory.mktemp("pages")
    demo, smaller = demo_audit(tmp_path_factory.mktemp("demo")), smaller_budget(tmp_path_factory.mktemp("smaller"))
    for name in REPORTS:
        (made / name).write_text(report(name, demo, smaller), encoding="utf-8")
    for name in HOSTILE:
        page = html(
            bad_summary(),
            bad_results(),
            CAUSES,
            STAGE_NOTES,
            with_text=True,
            one_page="page" in name,
            beside=bad_beside(),
        )
        (made / name).write_text(page, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_asks_for_nothing_and_complains_of_nothing(browser, folder, name, width, dark):
    browser.open(folder / name, width, dark=dark)
    browser.run("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert browser.asked_for() == [(folder / name).as_uri()]
    assert browser.complaints() == []
    assert browser.run("document.documentElement.scrollWidth <= innerWidth")
    sticking_out = """[...document.querySelectorAll('body *')]
        .filter(each => each.getClientRects().length && !each.closest('thead') && each.tagName != 'title')
        .filter(each => each.getBoundingClientRect().right > innerWidth + 1)
        .map(each => each.outerHTML.slice(0, 80))"""
    assert browser.run(sticking_out) == []
    assert browser.run("getComputedStyle(document.body).color") == ("rgb(226, 229, 232)" if dark else "rgb(26, 32, 39)")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_makes_no_element(browser, folder, name):
    browser.open(folder / name, 1280)
    assert (
        browser.run(
            "document.querySelectorAll('script, img, iframe, a:not([href^=\"#\"]), [onload], [onerror]').length"
        )
        == 0
    )
    assert browser.run("document.body.innerText.includes('<img src=x onerror=alert(1)>')") is True
    assert browser.run("document.title").startswith("RAG audit")


@pytest.mark.parametrize(("name", "pages"), [("golden_demo_page.html", 1), ("golden_before_page.html", 1)])
def test_the_page_for_a_decision_prints_on_one_page(browser, folder, name, pages):
    browser.open(folder / name, 1280)
    assert pages_of(browser.printed()) == pages


def test_the_whole_report_prints_with_its_folded_parts(browser, folder):
    browser.open(folder / "golden_demo.html", 1280)
    printed = browser.printed()
    assert printed.startswith(b"%PDF-") and browser.complaints() == []
    browser.run("document.querySelectorAll('details').forEach(each => { each.remove() })")
    assert pages_of(printed) > pages_of(browser.printed()) > 1


def pages_of(pdf):
    return len(re.findall(rb"/Type ?/Page\b(?!s)", pdf))
