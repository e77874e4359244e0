import json

import pytest

from ragaudit.importers.cells import id_text, ids_in, joined_texts, listed, listing, plain


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("['a', \"b's\"]", ["a", "b's"]),
        ("('a', 1)", ["a", 1]),
        ("['a' 'b']", ["a", "b"]),
        ("['a'\n 'b, c']", ["a", "b, c"]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("[\"it's one text, 'quoted'\"]", ["it's one text, 'quoted'"]),
        ("[]", []),
        ("", None),
        ("no list", None),
        ("__import__('os')", None),
        ("[" * 3000, None),
        (None, None),
    ],
)
def test_a_list_as_python_or_numpy_printed_it(cell, found):
    assert listed(cell) == found


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', 'b']", ["a", "b"]),
        ("[kb-1, 0012]", ["kb-1", "0012"]),
        ("a|b c|", ["a", "b c"]),
        ("a;b", ["a", "b"]),
        ("kb-1, kb-2", ["kb-1", "kb-2"]),
        ("one text, with a comma", ["one text, with a comma"]),
        ("0012", ["0012"]),
        (12, [12]),
        (("a",), ["a"]),
        ({"a": 1}, None),
        (None, None),
    ],
)
def test_a_list_out_of_a_cell_however_it_is_written(cell, found):
    assert listing(cell) == found


def test_a_comma_parts_no_texts():
    assert joined_texts("yes,no|b") == ["yes,no", "b"]
    assert joined_texts('["a|b"]') == ["a|b"]


@pytest.mark.parametrize(
    ("value", "found"), [("0012", "0012"), (12, "12"), (12.0, None), (True, None), ("", None), (None, None), ([], None)]
)
def test_an_id_is_text_or_a_whole_number(value, found):
    assert id_text(value) == found


def test_a_list_with_something_that_is_no_id_has_no_ids():
    assert ids_in("a|b") == ["a", "b"]
    assert ids_in([1, "b"]) == ["1", "b"]
    assert ids_in([12.0, "b"]) is None
    assert ids_in(None) is None


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("8", 8),
        ("true", True),
        ("True", True),
        ("{'a': 'b'}", {"a": "b"}),
        (json.dumps({"a": 1}), {"a": 1}),
        ("text", "text"),
        (8, 8),
    ],
)
def test_a_cell_as_the_value_it_stands_for(cell, value):
    assert plain(cell) == value
