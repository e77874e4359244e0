"""Laws of redaction, on texts that hypothesis makes of values, separators and noise."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from redact_builders import KEY, walker
from test_finding import CARDS, EMAILS, IBANS, NOTHING, PHONES, SECRETS

from ragaudit.evidence.spans import find
from ragaudit.model.texts import content_hash
from ragaudit.redact.pseudonyms import PSEUDONYM, Kind, Pseudonyms
from ragaudit.redact.shadow import Form, shadow
from ragaudit.redact.text import Redactor

REDACTOR = Redactor(Pseudonyms(KEY), with_ips=True)
PIECES = [
    *EMAILS,
    *PHONES,
    *CARDS,
    *IBANS,
    *SECRETS,
    *(text for text in NOTHING if len(text) < 60),
    " ",
    "\n",
    "、",
    "&",
    "\\",
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=8).map("".join)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["text", "id", "acl", "metadata", "answer", "config", "x"]), inner, max_size=3),
    ),
    max_leaves=8,
)


@given(TEXTS, st.sampled_from(Form), st.booleans())
@settings(max_examples=150)
def test_redacting_twice_is_redacting_once(text: str, form: Form, exact: bool) -> None:
    once = REDACTOR.redact(text, form=form, exact=exact)
    assert REDACTOR.redact(once, form=form, exact=exact) == once


@given(TEXTS)
@settings(max_examples=150)
def test_nothing_that_is_found_is_left(text: str) -> None:
    assert REDACTOR.find(shadow(REDACTOR.redact(text))) == []


@given(st.sampled_from([*EMAILS, *PHONES, *CARDS, *IBANS, *SECRETS]), TEXTS, TEXTS)
@settings(max_examples=150)
def test_a_value_between_other_texts_is_gone(value: str, before: str, after: str) -> None:
    (found,) = REDACTOR.find(shadow(value))
    start, end = shadow(value).original(found.start, found.end)
    made = REDACTOR.redact(f"{before.replace(value[start:end], '')}\n{value}\n{after.replace(value[start:end], '')}")
    assert value[start:end] not in made


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value]
    return "a string" if isinstance(value, str) else value


@given(JSON)
@settings(max_examples=100)
def test_the_shape_of_json_and_everything_that_is_no_string_stay(value: Any) -> None:
    assert shape(walker().row(value, "f")) == shape(value)


@given(JSON)
@settings(max_examples=60)
def test_a_row_redacted_twice_is_as_redacted_once(value: Any) -> None:
    once = walker().row(value, "f")
    assert walker().row(once, "f") == once


@given(st.sampled_from([*EMAILS, *PHONES, *CARDS, *IBANS]), TEXTS)
@settings(max_examples=60)
def test_a_value_has_one_pseudonym_in_every_text(value: str, text: str) -> None:
    alone = PSEUDONYM.findall(shadow(REDACTOR.redact(value)).text)
    assert len(alone) == 1
    assert alone[0] in shadow(REDACTOR.redact(f"{text}\n {value} \n{text}")).text


def test_pseudonyms_are_pinned_to_the_key() -> None:
    assert REDACTOR.redact("ana@example.com") == Redactor(Pseudonyms(KEY)).redact("ana@example.com")
    assert REDACTOR.redact("ana@example.com") != Redactor(Pseudonyms(KEY[::-1])).redact("ana@example.com")
    assert PSEUDONYM.fullmatch(REDACTOR.redact("ana@example.com")) is not None


def test_spellings_are_one_value_in_a_text_and_stay_apart_where_they_are_compared() -> None:
    one, two = "ana@example.com", "Ana@Example.com"
    assert REDACTOR.redact(one) == REDACTOR.redact(two)
    exact = [REDACTOR.redact(text, exact=True) for text in (one, two)]
    assert exact[0] != exact[1]
    assert exact[0].casefold() == exact[1].casefold()
    spaced = [REDACTOR.redact(text, exact=True) for text in ("+491701234567", "+49 170 1234567")]
    assert spaced[0].casefold() != spaced[1].casefold()


def test_a_quote_is_found_in_its_text_as_it_was_before() -> None:
    for quote, text in (
        ("mail ana@example.com", "Please mail  Ana@example.com now"),
        ("mail ana@example.com", "Please mail a\u00adna@example.com now"),
        ("mail ana@example.com", "Please mail bob@example.com now"),
    ):
        assert find(REDACTOR.redact(quote), REDACTOR.redact(text)) == find(quote, text)


def test_two_values_of_a_kind_or_two_kinds_of_a_value_never_share_a_pseudonym_here() -> None:
    pseudonyms = Pseudonyms(KEY)
    made = {pseudonyms.of(kind, str(n), str(n)) for kind in Kind for n in range(500)}
    assert len(made) == len(Kind) * 500


def test_equal_content_hashes_stay_equal_and_follow_the_text() -> None:
    text = "Call +49 170 1234567 now"
    row = {"chunk_id": "c1", "text": text, "content_hash": content_hash(text)}
    made = walker().row(row, "f")
    assert made["content_hash"] == content_hash(made["text"]) != row["content_hash"]
    stale = {"chunk_id": "c1", "text": text, "content_hash": "sha256:old"}
    other = {"source_hash": "sha256:old", "indexed_hash": "sha256:new"}
    assert walker().row(stale, "f")["content_hash"] == walker().row(other, "f")["source_hash"]
    assert len(set(walker().row(other, "f").values())) == 2
