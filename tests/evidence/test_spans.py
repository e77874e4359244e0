"""How an answer's words stand in a text, and the identity of a text."""

import unicodedata

import pytest
from evidence_builders import evidence, gold, inventory, trace
from hypothesis import given
from hypothesis import strategies as st

from ragaudit.evidence.spans import find, squeezed
from ragaudit.model.texts import content_hash, folded
from ragaudit.model.trace import SpanFound, SpanIn

SOFT_HYPHEN, ZERO_WIDTH, HYPHEN = "\u00ad", "\u200b", "\u2010"
PRESENTED = "\ufee3\ufeae\ufea3\ufe92\ufe8e"  # مرحبا in presentation forms
LOGICAL = "\u0645\u0631\u062d\u0628\u0627"


@pytest.mark.parametrize(
    ("span", "text", "expected"),
    [
        ("within 30 days", "a refund within 30 days of delivery", True),
        ("Within 30  Days", "a refund within\n30\tdays of delivery", True),
        ("STRASSE", "die straße", True),
        ("caf\u00e9", "the cafe\u0301 is open", True),
        ("30 天内退款", "客户可以在30 天内退款。", True),
        ("30天内退款", "客户可以在 30 天 内 退 款。", "normalised"),
        (LOGICAL, PRESENTED, "normalised"),
        ("\uff12\uff10\uff12\uff16", "in 2026", "normalised"),
        ("x\u00b2", "x2", "normalised"),
        ("refundable", f"re{SOFT_HYPHEN}fund{SOFT_HYPHEN}able", "normalised"),
        ("refundable", f"re{ZERO_WIDTH}fundable", "normalised"),
        ("refundable", "refund-\nable", "normalised"),
        ("refundable", f"refund{HYPHEN}\n   able", "normalised"),
        ("within 30 days", "with in 30 da ys", "normalised"),
        ("within 30 days of the delivery", "a refund within 30 days", "partial"),
        ("within 30 days of the delivery", "days of the delivery, in writing", "partial"),
        ("within 30 days of the delivery", "a refund within a week", False),
        ("within 30 days", "", False),
        ("", "anything", None),
        ("  \n", "anything", None),
        (ZERO_WIDTH, "anything", None),
        ("42", "the 43 of it", False),
    ],
)
def test_find_says_how_much_folding_it_took(span: str, text: str, expected: SpanFound) -> None:
    assert find(span, text) is expected or find(span, text) == expected


@given(st.text(), st.text(), st.text(min_size=1).filter(lambda span: bool(span.strip())))
def test_a_text_that_contains_the_span_holds_it(before: str, after: str, span: str) -> None:
    assert find(span, before + span + after) is True


@given(st.text(alphabet=st.characters(codec="utf-8"), min_size=1).filter(lambda text: bool(text.strip())))
def test_a_text_holds_itself_in_any_composition_and_spacing(text: str) -> None:
    for form in ("NFC", "NFD"):
        assert find(text, unicodedata.normalize(form, text)) is True
    assert find(text, f"  {text}\n") is True


@given(st.text(), st.text())
def test_what_is_found_word_for_word_is_found_after_folding_more(span: str, text: str) -> None:
    found = find(span, text)
    if found is False:
        assert folded(span) not in folded(text)
    if found in ("partial", False):
        assert squeezed(span) not in squeezed(text)


def test_a_content_hash_is_that_of_the_text_with_whitespace_collapsed() -> None:
    known = "sha256:b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
    assert content_hash("hello world") == known
    assert content_hash("  hello\n\tworld ") == known
    assert content_hash("Hello world") != known
    assert content_hash("cafe\u0301") == content_hash("caf\u00e9")


@given(st.text())
def test_a_hash_is_always_made_and_does_not_see_composition(text: str) -> None:
    assert content_hash(text).startswith("sha256:")
    assert content_hash(unicodedata.normalize("NFD", text)) == content_hash(text)


# --- where a label's span stands --------------------------------------------------------------------------------

SPAN = "within 30 days"
HAS, LACKS = "Refunds within 30 days.", "Refunds in two weeks."


def spans(chunk: str | None, *siblings: str | None, source: dict[str, str] | None = None, **label: object):
    rows: list[dict[str, object]] = [{"chunk_id": "g", "source_id": "s", "text": chunk}]
    rows += [{"chunk_id": f"g{n}", "source_id": "s", "text": text} for n, text in enumerate(siblings, 2)]
    held = inventory(*rows, sources=({"source_id": "s", **(source or {})},))
    found = evidence(trace(gold=gold("g", source_id="s", span=SPAN, **label)), held).gold[0].span
    return found.source, found.extracted, found.chunk, found.elsewhere


def test_the_span_is_looked_for_in_source_extraction_and_chunk() -> None:
    assert spans(HAS, source={"text": HAS, "extracted_text": HAS}) == (True, True, True, None)
    assert spans(LACKS, source={"text": HAS, "extracted_text": LACKS}) == (True, False, False, None)


def test_a_chunk_that_holds_the_span_shows_that_extraction_kept_it() -> None:
    assert spans(HAS) == (None, True, True, None)


def test_a_sibling_that_holds_the_span_is_named() -> None:
    assert spans(LACKS, HAS) == (None, None, False, "g2")


def test_absence_from_the_chunks_needs_every_sibling_s_text() -> None:
    assert spans(LACKS, LACKS) == (None, None, False, None)
    assert spans(LACKS, None) == (None, None, None, None)


def test_without_the_gold_s_own_text_siblings_show_survival_and_never_loss() -> None:
    assert spans(None, HAS) == (None, True, True, None)
    assert spans(None, LACKS) == (None, None, None, None)


def test_values_given_with_the_label_win_over_the_texts() -> None:
    given_in = SpanIn(source=True, extracted=False, chunk="partial")
    assert spans(HAS, source={"text": LACKS, "extracted_text": HAS}, span_in=given_in) == (
        True,
        False,
        "partial",
        None,
    )
