"""What is written from the app: texts only when asked for and readable, hostile text as text, labels that read back."""

import io
import json
import re
import tracemalloc
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragaudit.diagnosis import causes as registered  # noqa: F401 - importing it registers every cause
from ragaudit.diagnosis.registry import CAUSES, STAGE_NOTES
from ragaudit.errors import ConfigError
from ragaudit.model.diagnosis import Basis, Stage
from ragaudit.model.experiment import Basis as How
from ragaudit.model.experiment import Experiment
from ragaudit.model.review import Patch, ReviewVerdict
from ragaudit.model.trace import Gold
from ragaudit.readers.problems import Problems
from ragaudit.readers.qrels import read_qrels
from ragaudit.report.export import ExportFormat, Selection, Written, export, file_name, format_of
from ragaudit.report.labels import qrels_lines
from ragaudit.report.templating import styled
from ragaudit.store import AuditReader, Reviews
from ragaudit.store.filters import exactly, parse_filter
from tests.tui.builders import bare, inventory, lost_at_pack, passed, write

AGREE, DISAGREE, GOLD_WRONG, UNSURE = ReviewVerdict
NOON = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
HOSTILE = "</pre><script>alert(1)</script>\n# heading\n```\n<img src=x onerror=y>|`w`\x1b[2J\u202e[a](javascript:b)"
TEXTS = {"c9": "within 30 days", "c1": "Renewal is yearly.", "c4": "SECRET salary bands"}
STAFF = {"c9": ("staff",), "c1": ("staff",), "c4": ("board",)}


def rows(**fields):
    return [lost_at_pack("q1", **fields), passed("q2"), bare("q3")]


def exported(path, form, where="", *, reviewed=(), **options):
    out = io.StringIO()
    with AuditReader.open(path) as reader, Reviews.open(path, clock=lambda: NOON) as reviews:
        for query_id, patch in reviewed:
            reviews.apply([query_id], patch)
        selection = options.pop("selection", None) or Selection(parse_filter(where), name=where or "all queries")
        written = export(out, reader, ExportFormat(form), selection, CAUSES, STAGE_NOTES, reviews=reviews, **options)
    return out.getvalue(), written


ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "code", "main", "details", "summary", "span"),
    *("ul", "li", "div", "table", "tr", "th", "td", "pre", "strong", "br", "dl", "dt", "dd"),
}


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.values, self.text = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.values += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        self.text += data


# --- the written diagnosis -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["markdown", "html"])
def test_a_written_query_says_outcome_evidence_journey_cause_change_and_the_persons_word(tmp_path, form):
    experiment = Experiment.model_validate(
        {
            "lever": "pack",
            "variable": "pipeline.k_final",
            "from": 2,
            "to": 4,
            "why": "",
            "stage": Stage.RERANK,
            "queries": ("q1",),
            "basis": How.REPLAYED,
            "keeps": 1,
            "of": 1,
            "loses": 0,
        }
    )
    path = write(tmp_path / "run.audit", rows(), experiments=(experiment,))
    said = Patch(verdict=DISAGREE, tags=("short",), note="the floor cut it", stage=Stage.FUSE, gold=("c9", "c8"))
    text, written = exported(path, form, reviewed=[("q1", said)])
    shown = Page(text).text if form == "html" else text.replace("\\", "")
    for part in (
        "FAIL at Rerank/pack",
        "c9: rank 2 in fused, not in the final 2",
        "registered yes -> arm:dense #3 -> fused #2 CUT -> packed -",
        CAUSES["top_n_cut"].summary,
        CAUSES["top_n_cut"].remedy,
        "Next experiment: pipeline.k_final: 2 -> 4, keeps 1 of 1, loses 0 (replayed)",
        "Reviewed 2026-01-02 12:00 UTC:",
        "disagree",
        "Fuse/threshold",
        "c9 c8",
        "the floor cut it",
        "Not decided: it could be Fuse/threshold or Rerank/pack",
    ):
        assert part in shown, part
    assert written == Written(queries=3)
    assert shown.index("q1") < shown.index("q2") < shown.index("q3")


@pytest.mark.parametrize("form", ["markdown", "html", "jsonl", "labels", "qrels"])
def test_no_text_of_a_query_chunk_or_answer_unless_asked_for(tmp_path, form):
    path = write(tmp_path / "run.audit", rows(), inventory(TEXTS))
    text, _ = exported(path, form, reviewed=[("q1", Patch(note="mine"))])
    assert not [part for part in ("refund window?", "within 30 days", "within 14 days", "yearly") if part in text]


@pytest.mark.parametrize("form", ["markdown", "html", "jsonl"])
def test_with_text_shows_what_the_querys_user_may_read_and_the_hash_of_the_rest(tmp_path, form):
    path = write(tmp_path / "run.audit", rows(), inventory(TEXTS, STAFF))
    text, _ = exported(path, form, with_text=True)
    for part in ("refund window?", "within 30 days", "Renewal is yearly.", "within 14 days", "may not read it"):
        assert part in text.replace("&#x27;", "'"), part
    assert "salary" not in text
    assert re.search(r"sha256:[0-9a-f]{16}", text)


@pytest.mark.parametrize("form", ["markdown", "html", "jsonl"])
def test_what_is_withheld_for_a_leak_or_as_gold_is_never_written(tmp_path, form):
    leaking = lost_at_pack("q1", leaks=("c4",))
    withheld = lost_at_pack("q2", gold_id="c4", eligible=False)
    path = write(tmp_path / "run.audit", [leaking, withheld], inventory(TEXTS))
    text, _ = exported(path, form, with_text=True)
    assert "salary" not in text
    first = exported(path, form, with_text=True, selection=Selection(exactly("q1")))[0]
    assert "within 14 days" not in first, "the answer to a prompt that leaked may repeat the leak"
    assert "LEAK" in first or '"severity": "leak"' in first


def test_the_html_is_one_closed_page_without_script(tmp_path):
    path = write(tmp_path / "run.audit", rows(text=HOSTILE, gold_id="c<9>"), inventory({"c<9>": HOSTILE}))
    text, _ = exported(path, "html", with_text=True, reviewed=[("q1", Patch(note=HOSTILE, tags=("<b>",)))])
    page = Page(text)
    assert set(page.tags) <= ALLOWED
    policy = next(value for tag, name, value in page.values if name == "content" and "default-src" in value)
    assert policy == f"default-src 'none'; style-src {styled()['style_hash']}; base-uri 'none'; form-action 'none'"
    assert not [name for _, name, _ in page.values if name in ("src", "href", "style") or name.startswith("on")]
    assert "url(" not in text and "@import" not in text
    assert page.text.count("<script>alert(1)</script>") == 3, "query, chunk and note show as written"
    assert "\x1b" not in text and "\u202e" not in text


def test_hostile_markdown_shows_as_text(tmp_path):
    path = write(tmp_path / "run.audit", rows(text=HOSTILE, gold_id="c<9>|x"), inventory({"c<9>|x": HOSTILE}))
    text, _ = exported(path, "markdown", with_text=True, reviewed=[("q1", Patch(note=HOSTILE, tags=("<b>",)))])
    tokens = MarkdownIt().enable("table").parse(text)
    inner = [child for token in tokens for child in token.children or []]
    assert not [
        token for token in (*tokens, *inner) if token.type in ("html_block", "html_inline", "link_open", "image")
    ]
    assert sum(token.type == "heading_open" for token in tokens) == 4, "ours: the title and one a query"
    assert sum(token.type == "th_open" for token in tokens) == 5
    assert "\x1b" not in text and "\u202e" not in text


def test_many_queries_are_folded_and_few_are_not(tmp_path):
    few = write(tmp_path / "few.audit", [lost_at_pack(f"q{n}") for n in range(20)])
    many = write(tmp_path / "many.audit", [lost_at_pack(f"q{n}") for n in range(21)])
    assert exported(few, "html")[0].count("<details open>") == 20
    assert exported(many, "html")[0].count("<details>") == 21


def test_a_selection_is_named_and_counted(tmp_path):
    path = write(tmp_path / "run.audit", rows())
    text, written = exported(path, "markdown", "stage:rerank")
    assert "1 query: stage:rerank. ragaudit 0" in text
    assert written.queries == 1
    assert "q2" not in text


def test_an_export_holds_few_queries_at_a_time(tmp_path):
    class Nowhere(io.TextIOBase):
        def write(self, text):
            return len(text)

    peaks = []
    for n in (400, 4_000):
        path = write(tmp_path / f"{n}.audit", [lost_at_pack(f"q{i}") for i in range(n)])
        with AuditReader.open(path) as reader:
            tracemalloc.start()
            written = export(Nowhere(), reader, ExportFormat.HTML, Selection(), CAUSES, STAGE_NOTES)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        assert written.queries == n
    assert peaks[1] < 1.5 * peaks[0], "ten times the queries, the same memory"


def test_progress_may_end_an_export(tmp_path):
    path = write(tmp_path / "run.audit", rows())
    seen = []

    def progress(n):
        seen.append(n)
        if n == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exported(path, "jsonl", progress=progress)
    assert seen == [1, 2]


# --- rows and labels -------------------------------------------------------------------------------------------------


def test_a_row_is_that_of_the_report_with_the_review(tmp_path):
    path = write(tmp_path / "run.audit", rows())
    text, _ = exported(path, "jsonl", reviewed=[("q1", Patch(verdict=AGREE, note="é\u202e"))])
    first, second, third = map(json.loads, text.splitlines())
    assert (first["query_id"], first["stage"], first["gold"][0]["journey"][1]["rank"]) == ("q1", "rerank", 3)
    assert (first["review"]["verdict"], first["review"]["note"]) == ("agree", "é\u202e")
    assert second["review"] is third["review"] is None
    assert "é\\u202e" in text


def test_a_label_says_what_was_said_of_which_diagnosis_and_what_there_is_now(tmp_path):
    path = write(tmp_path / "run.audit", [lost_at_pack("q1"), lost_at_pack("q2")])
    said = Patch(verdict=DISAGREE, tags=("short",), note="no", stage=Stage.FUSE, gold=("c8",))
    exported(path, "labels", reviewed=[("q1", said)])
    changed, trace = lost_at_pack("q1")
    diagnosis = changed.diagnosis.model_copy(update={"stage": Stage.RETRIEVE, "causes": ("weak_match",)})
    write(path, [(changed.model_copy(update={"diagnosis": diagnosis}), trace), lost_at_pack("q2")])
    text, written = exported(path, "labels")
    assert [json.loads(line) for line in text.splitlines()] == [
        {
            "query_id": "q1",
            "verdict": "disagree",
            "tags": ["short"],
            "note": "no",
            "stage": "fuse",
            "gold": ["c8"],
            "about": {"outcome": "fail", "stage": "rerank"},
            "now": {"outcome": "fail", "stage": "retrieve", "causes": ["weak_match"]},
            "at": "2026-01-02T12:00:00+00:00",
        }
    ]
    assert written.queries == 1


def labelled(query_id, *gold):
    result, trace = lost_at_pack(query_id)
    given = tuple(Gold(id=i, grade=grade) for i, grade in gold)
    return result, trace.model_copy(update={"gold": given, "gold_labelled": True})


def read_back(tmp_path, text):
    path = tmp_path / "back.qrels"
    path.write_text(text, encoding="utf-8")
    problems = Problems()
    found = read_qrels(path, "back.qrels", problems)
    assert problems.counts() == {}
    return found


def test_qrels_hold_the_gold_as_corrected_else_as_labelled(tmp_path):
    path = write(
        tmp_path / "run.audit",
        [
            labelled("q1", ("c9", 2), ("c8", 1)),
            labelled("q 2", ("a chunk", 1), ("other", 0)),
            labelled("q3", ("c1", 1)),
            labelled("q4", ("c1", 1)),
            bare("q5"),
        ],
    )
    text, written = exported(
        path,
        "qrels",
        reviewed=[
            ("q1", Patch(verdict=GOLD_WRONG, gold=("c9", "c7"))),
            ("q3", Patch(verdict=GOLD_WRONG, gold=())),
            ("q4", Patch(verdict=GOLD_WRONG)),
        ],
    )
    assert read_back(tmp_path, text) == {
        "q1": {"c9": 2.0, "c7": 1.0, "c8": 0.0},
        "q 2": {"a chunk": 1.0, "other": 0.0},
        "q3": {"c1": 0.0},
    }
    assert (written.queries, dict(written.left_out)) == (3, {"gold said to be wrong and not corrected": 1})


def test_gold_that_a_judge_found_is_no_label_until_a_person_says_so(tmp_path):
    result, trace = labelled("q1", ("c9", 1))
    diagnosis = result.diagnosis.model_copy(update={"basis": Basis.JUDGE})
    path = write(tmp_path / "run.audit", [(result.model_copy(update={"diagnosis": diagnosis}), trace)])
    assert exported(path, "qrels") == ("", Written())
    text, _ = exported(path, "qrels", reviewed=[("q1", Patch(gold=("c3",)))])
    assert text == "q1\t0\tc3\t1\n"


def test_ids_that_no_line_can_hold_are_left_out_and_counted(tmp_path):
    path = write(tmp_path / "run.audit", [labelled("q1", ("c9", 1))])
    bad = ("a\tb", "a\nb", " a", "a\r", "\ufeffa")
    text, written = exported(path, "qrels", reviewed=[("q1", Patch(gold=("c9", *bad)))])
    assert text == "q1\t0\tc9\t1\n"
    assert dict(written.left_out) == {"ids that a line of qrels cannot hold": 5}


@given(st.dictionaries(st.text(min_size=1), st.floats(0, 1e6), min_size=1), st.text(min_size=1))
def test_every_line_of_qrels_reads_back_as_it_was(tmp_path_factory, graded, query_id):
    lines = list(qrels_lines(query_id, graded))
    kept = {key: grade for (key, grade), line in zip(graded.items(), lines, strict=True) if line is not None}
    if kept:
        text = "".join(f"{line}\n" for line in lines if line is not None)
        assert read_back(tmp_path_factory.mktemp("qrels"), text) == {query_id: kept}


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.md", "markdown"),
        ("a.HTML", "html"),
        ("a.jsonl", "jsonl"),
        ("a.labels.jsonl", "labels"),
        ("a.qrels", "qrels"),
        ("qrels.tsv", "qrels"),
    ],
)
def test_the_end_of_a_name_tells_the_format(name, form):
    assert format_of(name) == form


def test_an_end_that_tells_nothing_is_refused():
    with pytest.raises(ConfigError, match=r"a\.txt: its end names no format\. End it in one of \.labels\.jsonl, \.md"):
        format_of("a.txt")


@pytest.mark.parametrize(
    ("about", "name"),
    [
        ("q0007", "q0007.md"),
        ("support-bot, October", "support-bot-October.md"),
        ("../../etc/passwd", "etc-passwd.md"),
        ("-rf *", "rf.md"),
        ("\x1b[2J\u202e", "2J.md"),
        ("返金", "export.md"),
        ("x" * 200, "x" * 60 + ".md"),
    ],
)
def test_an_offered_name_is_a_plain_one_in_this_folder(about, name):
    assert file_name(about, ExportFormat.MARKDOWN) == name
