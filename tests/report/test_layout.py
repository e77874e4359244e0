import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.report.layout import cells, cut, flow, heading, pad, wrap


def test_wrapping_keeps_words_and_indents():
    assert wrap("one two three four", 10, first="> ", rest="  ") == ["> one two", "  three", "  four"]


def test_a_word_longer_than_a_line_is_split():
    assert wrap("abcdefghij", 6, first="- ", rest="  ") == ["- abcd", "  efgh", "  ij"]


def test_parts_that_belong_together_stay_on_one_line():
    assert flow(["arm:dense #3 ->", "fused #2"], 16) == ["arm:dense #3 ->", "fused #2"]


def test_wide_characters_take_two_cells():
    assert (cells("返金"), cells("e\u0301"), pad("返金", 6), cut("返金ポリシー", 7)) == (4, 1, "返金  ", "返金...")


def test_a_heading_fills_its_line():
    assert heading("Why", 20) == "-- Why -------------"


@pytest.mark.parametrize("width", [12, 40, 80])
@given(text=st.text(alphabet="ab 返 é\u0301", max_size=200))
def test_no_wrapped_line_is_wider_than_asked(width, text):
    assert all(cells(line) <= width for line in wrap(text, width, first=" - ", rest="   "))


@given(st.text(alphabet="ab返\u0301", max_size=30), st.integers(0, 20))
def test_padding_gives_exactly_the_width(text, width):
    assert cells(pad(text, width)) == width
