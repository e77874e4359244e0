import time
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.judge.parse import CONFLICT, LONGEST, Read, Unreadable, read_exactly, read_json


def anything(value: Any) -> Any:
    return value


def read(text: str) -> Any:
    found = read_json(text, anything)
    assert isinstance(found, Read), found
    return found.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": [1, true, null, "x"]}', {"a": [1.0, True, None, "x"]}),
        ('```json\n{"a": "b"}\n```', {"a": "b"}),
        ('Sure, here it is:\n{"a": "b"}\nAnything else?', {"a": "b"}),
        ('<think>{"a": "draft"}</think>\n{"a": "final"}', {"a": "final"}),
        ('{"a": ["b", "c",],}', {"a": ["b", "c"]}),
        ("{'a': 'it''s', 'b': True, 'c': None}", {"a": "it''s", "b": True, "c": None}),
        ("{'a': 'don't cut here'}", {"a": "don't cut here"}),
        ('{"a": "he said "yes" to it"}', {"a": 'he said "yes" to it'}),
        ('{a: "b", "c": -1.5e2}', {"a": "b", "c": -150.0}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
        ('{"a": "\\u00fc \\n \\" \\q"}', {"a": 'ü \n " q'}),
        ("{“a”: “b”}", {"a": "b"}),
        ('{"a": "b"} {"a": "b"}', {"a": "b"}),
        ('\ufeff{"a": "日本語"}', {"a": "日本語"}),
        ('{"a": "\\ud83d\\ude00 \\uD83D\\uDE00"}', {"a": "😀 😀"}),
        ('{"a": ["\\ud800", "x\\udc00y", "\\ude00\\ud83d"]}', {"a": ["\ufffd", "x\ufffdy", "\ufffd\ufffd"]}),
    ],
)
def test_json_is_found_in_what_models_write(text: str, value: Any) -> None:
    assert read(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": ' + "9" * 5_000 + "}",
        '{"a" "b"}',
        '{"a": __import__("os").system("true")}',
        "[" * 100_000,
        '{"a":' * 3_000 + "1" + "}" * 3_000,
        "[" * 13 + "]" * 13,
    ],
)
def test_what_is_no_plain_data_is_unreadable(text: str) -> None:
    assert read_json(text, lambda value: value if isinstance(value, dict) and "a" in value else None) in (
        Unreadable("it holds no JSON"),
        Unreadable("the JSON has not the form that was asked for"),
    )


def test_a_reply_without_end_is_not_read() -> None:
    assert read_json("{" + " " * LONGEST, anything) == Unreadable("it is far too long")


def test_brackets_without_end_cost_little() -> None:
    started = time.process_time()
    assert isinstance(read_json('{"a": ["' * 12_000, lambda value: None), Unreadable)
    assert time.process_time() - started < 5


def test_two_values_that_differ_are_not_chosen_between() -> None:
    assert read_json('{"a": 1} no, {"a": 2}', anything) == Unreadable(
        "it holds more than one JSON value, and they differ"
    )
    assert read_json('{"a": 1} no, {"b": 2}', lambda value: value if "b" in value else None) == Read({"b": 2.0})


def test_a_key_that_is_given_twice_with_two_values_has_neither() -> None:
    assert read('{"a": "x", "a": "y", "b": "z", "b": "z"}') == {"a": CONFLICT, "b": "z"}
    assert read('so: {"a": "x", "a": "y",}') == {"a": CONFLICT}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            '{"verdicts": [{"id": "r1", "supported": []}, {"id": "r2", "supp',
            {"verdicts": [{"id": "r1", "supported": []}]},
        ),
        (
            '{"verdicts": [{"id": "r1", "supported": []}, {"id": "r2", "supported": [{"text": "c1"',
            {"verdicts": [{"id": "r1", "supported": []}]},
        ),
        ('[{"id": "r1", "supported": []}, {"id": "r2", "supported": []', [{"id": "r1", "supported": []}]),
        ('{"r1": {"supported": []}, "r2": {"supported": ["c1"', {"r1": {"supported": []}}),
        ('{"verdicts": {"r1": {"supported": []}, "r2": {"supported": ["c1"', {"verdicts": {"r1": {"supported": []}}}),
        ('{"verdicts": {"c1": "missing", "c2": "suppo', {"verdicts": {"c1": "missing"}}),
        ('{"verdicts": {"c1": "missing", "c2": tru', {"verdicts": {"c1": "missing"}}),
        ('{"a": 12', {}),
    ],
)
def test_of_a_reply_that_ends_within_only_what_is_finished_is_kept(text: str, value: Any) -> None:
    assert read_json(text, anything) == Read(value, complete=False)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=12,
    ).filter(lambda value: isinstance(value, dict | list))
)
def test_json_comes_back_as_it_was_also_through_the_tolerant_reader(value: Any) -> None:
    import json

    for text in (json.dumps(value), "```\n" + json.dumps(value, ensure_ascii=False, indent=1) + "\n```"):
        assert read(text) == value


@given(st.text(alphabet=st.sampled_from("{}[]\",:\\'ab1.eNtrufls \n"), max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert isinstance(read_json(text, anything), Read | Unreadable)


class Form(msgspec.Struct, forbid_unknown_fields=True):
    a: str


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": "b"}', Form("b")),
        (' {"a" : "b: \\"c\\" d"} ', Form('b: "c" d')),
        ('{"a": "b", "a": "c"}', None),
        ('{"a": "b", "a" : "b"}', None),
        ('{"a": "b", "c": "d"}', None),
        ('{"a": 1}', None),
        ('{"a": "\\u0062"}', None),
        ('{"a": "\ud83d"}', None),
        ('Here: {"a": "b"}', None),
        ('{"a": "b"', None),
        ('{"a": "' + "b" * LONGEST + '"}', None),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_reply_is_read_exactly_only_when_it_is_the_form_with_each_key_once(text: str, found: Form | None) -> None:
    assert read_exactly(text, msgspec.json.Decoder(Form), lambda _: 1) == found
