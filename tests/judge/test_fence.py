"""How outside text is shown to a model, and whether words stand in it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.judge.fence import fenced, key_for, one_line, shown
from ragaudit.judge.quotes import is_quoted_from


@given(st.lists(st.text(max_size=40), max_size=5))
def test_the_key_stands_in_no_text_and_is_the_same_for_the_same_texts(texts: list[str]) -> None:
    key = key_for(texts)
    assert key == key_for(list(texts))
    assert len(key) == 8
    assert not any(key in text for text in texts)


def test_a_key_that_stands_in_a_text_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragaudit.judge.fence._CUT", 1)
    assert key_for(["0123456789", "abcde"]) == "f"


def test_keys_tell_apart_where_one_text_ends() -> None:
    assert key_for(["ab", "c"]) != key_for(["a", "bc"]) != key_for(["abc"])


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("plain, with (marks) [1] & <b>tags</b>\n\ttabs", "plain, with (marks) [1] & <b>tags</b>\n\ttabs"),
        ("日本語　全角", "日本語　全角"),
        ("می\u200cخواهم 👩\u200d🔬 ❤\ufe0f", "می\u200cخواهم 👩\u200d🔬 ❤\ufe0f"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\u2028b", "a\nb"),
        ("\u202etxet\u202c", "<U+202E>txet<U+202C>"),
        ("a\x1b[2Kb\x00", "a<U+001B>[2Kb<U+0000>"),
        ("x\U000e0041\U000e0042\U000e0043y", "x<U+E0041 x3>y"),
        ("x\ufe01\ufe02\ufe03y", "x<U+FE01 x3>y"),
        ("half \ud83d pair", "half <U+D83D> pair"),
        ("<|im_start|>system", "< |im_start| >system"),
        ("<\uff5cUser\uff5c>", "< \uff5cUser\uff5c >"),
        ("[INST] do [/INST]", "[ INST] do [ /INST]"),
        ("<<SYS>> x <</SYS>>", "< < SYS>> x < < /SYS>>"),
        ("<start_of_turn>user</s>", "< start_of_turn>user< /s>"),
        ("Human: hi\n\n## Assistant : ok\n- System:", "Human : hi\n\n## Assistant : ok\n- System :"),
        ("The user: a person", "The user: a person"),
    ],
)
def test_what_hides_is_shown_and_roles_are_taken_apart(text: str, visible: str) -> None:
    assert shown(text) == visible


@given(st.text())
def test_shown_text_can_be_written_and_is_shown_as_it_is(text: str) -> None:
    once = shown(text)
    once.encode("utf-8")
    assert "<|" not in once and "|>" not in once
    assert shown(once) == once


def test_a_row_of_a_list_stays_on_its_line() -> None:
    assert one_line("a\nr2: b\u2028r3: c\x85") == "a r2: b r3: c"
    assert fenced("c1", "x", "0a") == "<c1:0a>\nx\n</c1:0a>"


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("30 days", "expire after 30 days."),
        ("Expire  AFTER 30\ndays", "expire after 30 days."),
        ("“expire after 30 days.”", "They expire after 30 days, always."),
        ("expire ... days", "expire after 30 days"),
        ("expire […] always", "They expire after 30 days, always."),
        ("**30** days", "after 30 days"),
        ("30 days", "after **30** days"),
        ("Straße", "STRASSE"),
        ("Schlüssel", "Schlu\u0308ssel"),
        ("３０日後", "30日後に失効します"),
        ("5–7 days", "5-7 days"),
        ("30 days", "not 130 days but 30 days"),
        ("the admin's key", "the admin’s key"),
        ("<U+202E>abc", "\u202eabc"),
        ("< |im_end| >", "say <|im_end|> now"),
    ],
)
def test_a_quote_may_differ_in_what_carries_no_meaning(quote: str, text: str) -> None:
    assert is_quoted_from(quote, text)


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("", "anything"),
        ("...", "anything ..."),
        ("a", "a b c"),
        ("31 days", "expire after 30 days."),
        ("15 GB", "1.5 GB"),
        ("30 days", "after 130 days"),
        ("after 30", "after 300 days"),
        ("-5 degrees", "5 degrees"),
        ("days ... expire", "expire after 30 days"),
        ("expire after thirty days", "expire after 30 days"),
        ("失効しません", "失効します"),
    ],
)
def test_other_words_are_no_quote(quote: str, text: str) -> None:
    assert not is_quoted_from(quote, text)
