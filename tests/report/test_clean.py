import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ragaudit.report.clean import (
    Html,
    Markdown,
    code,
    fenced,
    for_html,
    for_markdown,
    for_terminal,
    for_workflow,
    for_xml,
)
from ragaudit.report.layout import cells


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "<U+001B>[31mred<U+001B>[0m"),
        ("a\x9b2Jb", "a<U+009B>2Jb"),
        ("safe\u202egnp.exe", "safe<U+202E>gnp.exe"),
        ("\u2066x\u2069\u200e\u200f", "<U+2066>x<U+2069><U+200E><U+200F>"),
        ("one\u2028two\u2029", "one<U+2028>two<U+2029>"),
        ("over\rwritten", "over<U+000D>written"),
        ("bell\x07 null\x00 del\x7f", "bell<U+0007> null<U+0000> del<U+007F>"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("half \ud800", "half <U+D800>"),
        ("two\r\nlines\tand a tab ", "two lines and a tab"),
        ("返金ポリシー é 🙂", "返金ポリシー é 🙂"),
    ],
)
def test_what_acts_instead_of_showing_is_shown_by_its_code(text, shown):
    assert for_terminal(text) == shown


def test_line_breaks_may_be_kept():
    assert for_terminal("a\r\nb\n\tc\x1b", lines=True) == "a\nb\n    c<U+001B>"


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("refund window", 13, "refund window"),
        ("refund window", 9, "refund..."),
        ("返金ポリシー", 8, "返金..."),
        ("abc", 2, ".."),
    ],
)
def test_text_is_cut_to_terminal_cells(text, width, shown):
    assert for_terminal(text, width) == shown
    assert cells(shown) <= width


@given(st.text())
def test_nothing_that_acts_gets_through_to_a_terminal(text):
    shown = for_terminal(text)
    assert "\n" not in shown
    assert not re.search("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a | b", r"a \| b"),
        ("`rm -rf`", r"\`rm -rf\`"),
        ("<script>alert(1)</script>", "&lt;script>alert(1)&lt;/script>"),
        ("[click](javascript:x)", r"\[click\](javascript:x)"),
        ("![img](http://evil.example/x)", r"!\[img\](http\://evil.example/x)"),
        ("www.evil.example", r"www\.evil.example"),
        ("**bold** _em_ ~~x~~", r"\*\*bold\*\* \_em\_ \~\~x\~\~"),
        ("# heading", r"\# heading"),
        ("> quote", r"\> quote"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("---", r"\---"),
        ("===", r"\==="),
        ("&amp; &#x3c;", "&amp;amp; &amp;#x3c;"),
        ("back\\slash", r"back\\slash"),
        ("$math$", r"\$math\$"),
        ("two\nlines\n\n# heading", "two lines # heading"),
        ("top_n d118#4 0.812", "top_n d118#4 0.812"),
        ("\x1b[0m\u202e", r"<U+001B>\[0m<U+202E>".replace("<", "&lt;")),
    ],
)
def test_markup_shows_as_text_in_markdown(text, shown):
    assert for_markdown(text) == shown


def test_long_text_is_cut_with_a_count():
    assert for_markdown("x" * 1_410, limit=400) == "x" * 400 + "... (1,010 more characters)"


def test_markdown_of_ours_is_left_alone():
    assert for_markdown(Markdown("**ours**")) == "**ours**"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("d118#4", "`d118#4`"),
        ("<b>", "`<b>`"),
        ("a|b", r"a\|b"),
        (r"a\|b", r"a\\\|b"),
        ("a`b", r"a\`b"),
        ("", "(empty)"),
        ("a\nb", "`a b`"),
    ],
)
def test_ids_are_code_unless_they_could_leave_the_span(text, shown):
    assert code(text) == shown


@given(st.text(alphabet=r"`|\<>[]*_#-+=1.) ab&" + "\n\x1b"))
def test_a_table_cell_cannot_be_left(text):
    for shown in (for_markdown(text), code(text)):
        assert "\n" not in shown
        assert not re.search(r"(?<!\\)(?:\\\\)*\|", shown)
        if not (shown.startswith("`") and shown.endswith("`")):
            assert not re.search(r"(?<!\\)(?:\\\\)*`", shown)
            assert "<" not in shown
        else:
            assert shown.count("`") == 2


# --- HTML and code blocks --------------------------------------------------------------------------------------------


def test_html_shows_as_written():
    assert for_html("<script>\"x\" & 'y'</script>\x1b[2J\u202e") == (
        "&lt;script&gt;&quot;x&quot; &amp; &#x27;y&#x27;&lt;/script&gt;&lt;U+001B&gt;[2J&lt;U+202E&gt;"
    )
    assert for_html("one\ntwo\tthree") == "one two three"
    assert for_html("one\ntwo", lines=True) == "one\ntwo"
    assert for_html(Html("<b>ours</b>")) == "<b>ours</b>"


@given(st.text())
def test_no_html_holds_markup(text):
    assert not set(for_html(text, lines=True)) & set("<>\"'\x1b\x00\u202e")


@pytest.mark.parametrize("text", ["```\n# out\n```", "````", "~~~\n<script>", "    ```\n", "a ` b", "", "\r```\r"])
def test_nothing_ends_a_code_block_from_within(text):
    tokens = MarkdownIt().parse(f"before\n\n{fenced(text)}\n\nafter")
    paragraph = ["paragraph_open", "inline", "paragraph_close"]
    assert [token.type for token in tokens] == [*paragraph, "fence", *paragraph]


@given(st.text(alphabet="`~\n\r #<a\t"))
def test_no_text_ends_its_code_block(text):
    tokens = MarkdownIt().parse(f"{fenced(text)}\nafter")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == for_terminal(text, lines=True) + "\n"


# --- XML and workflow commands ---------------------------------------------------------------------------------------


def test_xml_shows_as_written_in_ascii_without_a_character_that_xml_forbids():
    assert for_xml("<a b=\"c\"> & 'd' ]]> \x00\x1b\ufffe\ud800") == (
        "&lt;a b=&quot;c&quot;&gt; &amp; &#x27;d&#x27; ]]&gt; &lt;U+0000&gt;&lt;U+001B&gt;&lt;U+FFFE&gt;&lt;U+D800&gt;"
    )
    assert for_xml("返金") == "&#36820;&#37329;"
    assert for_xml("one\ntwo") == "one two"
    assert for_xml("one\ntwo", lines=True) == "one\ntwo"
    assert for_xml("abcdef", 3) == "abc... (3 more characters)"


@given(st.text())
def test_every_text_is_one_attribute_of_xml(text):
    element = ElementTree.fromstring(f'<a b="{for_xml(text)}">{for_xml(text, lines=True)}</a>')
    assert element.get("b") == for_terminal(text)
    assert len(element) == 0


def test_a_workflow_command_is_neither_ended_nor_begun():
    assert for_workflow("a%b\n::error::c\rd") == "a%25b ::error::c<U+000D>d"
    assert for_workflow("x,file=y::z%0A", key=True) == "x%2Cfile=y%3A%3Az%250A"
    assert for_workflow("abcdef", 3) == "abc... (3 more characters)"
