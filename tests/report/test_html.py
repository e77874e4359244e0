import re
from html.parser import HTMLParser

import pytest
from hostile_run import BAD, bad_beside, bad_results, bad_summary
from report_builders import CAUSES, RESULTS, STAGE_NOTES, failing, leaking, quiet_summary, summary, undecided

from ragaudit.errors import ConfigError
from ragaudit.report.before import Against
from ragaudit.report.facts import Fact
from ragaudit.report.html import html
from ragaudit.report.markdown import markdown
from ragaudit.report.narrative import Narrative, Sentence
from ragaudit.report.templating import style_hash
from ragaudit.report.view import Beside

TAGS = set(
    [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "header",
        "nav",
        "main",
        "section",
        "footer",
        "h1",
        "h2",
        "h3",
        "h4",
        "p",
        "ul",
        "li",
        "dl",
        "dt",
        "dd",
        "div",
        "span",
        "small",
        "strong",
        "b",
        "code",
        "pre",
        "br",
        "a",
        "table",
        "caption",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "figure",
        "figcaption",
        "details",
        "summary",
        "svg",
        "desc",
        "defs",
        "pattern",
        "g",
        "text",
        "rect",
        "line",
        "circle",
    ]
)
"""Every element that our templates write."""


class Page(HTMLParser):
    """The elements of a page with their attributes, and the text as it shows."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.shown, self._style = [], "", False
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._style = tag == "style"

    def handle_data(self, data):
        self.shown += "" if self._style else data
        self._style = False

    def all(self, name):
        return [attrs[name] for _, attrs in self.elements if name in attrs]


def written(run=None, results=RESULTS, **options):
    return html(run or summary(), results, CAUSES, STAGE_NOTES, **options)


def headings(text):
    return re.findall(r"<h2>([^<]*)</h2>", text)


def test_the_verdict_comes_first_and_a_leak_stands_above_it():
    text = written()
    assert text.index("LEAK: 1 chunk") < text.index("3 of 6 queries fail") < text.index("<nav") < text.index("<h2>")
    assert headings(text) == [
        "Security finding: leaked chunks",
        "What to do next",
        "Losses by stage",
        "Failing queries",
        "Worked diagnoses",
        "Metrics",
        "Slices",
        "Not retrieval",
        "Access rules",
        "Not decided, and what to log",
        "Method",
        "Cost",
        "Preflight",
        "Configuration",
    ]


def test_a_clean_run_has_no_alarming_section():
    assert headings(written(quiet_summary(), [])) == [
        "What to do next",
        "Losses by stage",
        "Metrics",
        "Not retrieval",
        "Access rules",
        "Method",
        "Cost",
        "Preflight",
        "Configuration",
    ]


def test_one_page_has_what_a_decision_needs_and_nothing_else():
    text = written(one_page=True)
    assert headings(text) == ["What to do next", "Losses by stage", "Metrics at K = 8", "Not decided"]
    assert "LEAK: 1 chunk" in text and "0.812 [0.780, 0.840]" in text and "<code>after_filter</code>" in text


@pytest.mark.parametrize("one_page", [False, True])
def test_the_policy_lets_in_the_one_style_by_its_hash_and_nothing_else(one_page):
    text = written(one_page=one_page)
    style = re.search(r"<style>(.*)</style>", text, flags=re.DOTALL)[1]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy == f"default-src 'none'; style-src {style_hash(style)}; base-uri 'none'; form-action 'none'"
    page = Page(text)
    assert not page.all("style") and not page.all("src")
    assert "@import" not in style and "url(" not in style
    assert set(page.all("href")) <= {f"#{name}" for name in page.all("id")}


@pytest.mark.parametrize("one_page", [False, True])
def test_every_plot_has_a_name_and_a_description(one_page):
    page = Page(written(one_page=one_page, beside=bad_beside()))
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    plots = [attrs for tag, attrs in page.elements if tag == "svg"]
    assert plots
    for plot in plots:
        name, description = plot["aria-labelledby"].split()
        assert plot["role"] == "img" and name.endswith("-title") and description.endswith("-desc")
        assert {name, description} <= set(ids)


@pytest.mark.parametrize("one_page", [False, True])
@pytest.mark.parametrize("with_text", [False, True])
def test_hostile_text_shows_as_text_everywhere(one_page, with_text):
    text = written(bad_summary(), bad_results(), with_text=with_text, one_page=one_page, beside=bad_beside())
    page = Page(text)
    assert {tag for tag, _ in page.elements} <= TAGS
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert all(target.startswith("#") for target in page.all("href"))
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
    assert "{{ 7*7 }}" in page.shown
    shown = " ".join(BAD.replace("\x1b", "<U+001B>").replace("\u202e", "<U+202E>").split())[:24]
    assert shown in page.shown


def test_the_same_hostile_run_is_inert_in_markdown():
    for one_page in (False, True):
        text = markdown(
            bad_summary(),
            bad_results(),
            CAUSES,
            STAGE_NOTES,
            with_text=True,
            one_page=one_page,
            beside=bad_beside(),
        )
        outside_code = re.sub(r"`[^`\n]*`", "", text.split("json\n{")[0])
        assert not re.search(r"<(?!U\+)[a-z/!]", outside_code)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
        assert [line for line in text.splitlines() if line.startswith("# ")] == [text.splitlines()[0]]


def test_no_text_of_a_query_unless_asked_for():
    results = [failing(), leaking(), undecided()]
    assert "refund window?" not in written(results=results)
    assert "<code>q1</code> refund window?" in written(results=results, with_text=True)


def test_the_failure_table_is_capped_and_counts_the_rest():
    text = written(results=[failing(f"q{n}") for n in range(30)], max_rows=4)
    assert re.findall(r'class="first"><span><code>(q\d+)', text) == ["q0", "q1", "q2", "q3"]
    assert "and 26 more of 30 queries" in text


def test_one_failing_query_of_each_stage_is_worked_and_its_journey_drawn():
    text = written()
    section = text[text.index('<section id="worked">') : text.index('<section id="metrics">')]
    assert re.findall(r"<summary>.*?<code>(\w+)</code>", section) == ["q1", "q0", "q2"]
    assert section.count("<details open>") == 1
    assert '<title id="journey-0-0-title">Journey of c9, gold of q1</title>' in section


def test_a_refused_comparison_shows_every_reason_and_no_number():
    refusal = "a and b: cannot be compared.\n  - K differs: 5 -> 8\nAudit a candidate that differs in one variable."
    text = written(beside=Beside(against=Against("a", refusal=refusal)))
    section = text[text.index('<section id="change">') : text.index('<section id="losses">')]
    assert re.findall("<li>(.*)</li>", section) == [
        "a and b: cannot be compared.",
        "K differs: 5 -&gt; 8",
        "Audit a candidate that differs in one variable.",
    ]
    assert "<table" not in section and "<svg" not in section


def test_templates_and_style_of_the_user_replace_ours(tmp_path):
    (tmp_path / "report.html.jinja").write_text("<style>{{ style }}</style>{{ style_hash }} {{ run.name }}")
    (tmp_path / "report.css").write_text("p { color: red }")
    mine = "p { color: red }"
    assert written(templates=tmp_path) == f"<style>{mine}</style>{style_hash(mine)} support-kb"
    with pytest.raises(ConfigError, match="absent: no such folder"):
        written(templates=tmp_path / "absent")
    (tmp_path / "report.html.jinja").write_text("{{ nothing }}")
    with pytest.raises(ConfigError, match=r"report\.html\.jinja: 'nothing' is undefined"):
        written(templates=tmp_path)


@pytest.mark.parametrize("print_", [html, markdown])
def test_a_narrative_stands_before_what_to_do_and_names_its_facts(print_):
    told = Narrative(
        (Sentence("Rerank loses <most>.", ("f2",)),), (Fact("f2", "Rerank <lost> 3."),), "m/1", "narrative@1", {"x": 2}
    )
    text = print_(summary(), RESULTS, CAUSES, STAGE_NOTES, beside=Beside(narrative=told))
    section = text[text.index("In words") : text.rindex("What to do next")]
    assert "Rerank loses &lt;most" in section and "f2" in section and "2 of its sentences were dropped" in section
    assert "In words" not in print_(summary(), RESULTS, CAUSES, STAGE_NOTES, beside=Beside(narrative=None))
