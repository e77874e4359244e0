"""Evidence that the judge found becomes gold; a passage of a source is the gold of text that is in no chunk."""

import pytest

from ragaudit.audit.judging import complete
from ragaudit.config import JudgeSettings
from ragaudit.model.inventory import Inventory, Source
from ragaudit.model.judgement import Cell, Claim, FoundEvidence, Judgement, Side, Verdict
from ragaudit.model.trace import Gold, Trace

TEXT = "## Keys\n\nFree **keys** expire\nafter 30 days. Paid keys never expire."
INVENTORY = Inventory(sources={"s": Source(source_id="s", registered=True, text=TEXT)})
TRACE = Trace.model_validate({"query_id": "q1", "query_text": "When?", "k_final": 2, "reference": "After 30 days."})


def found(chunk_id: str, *quotes: str | None) -> Judgement:
    """One reference claim a quote, each supported by this text and by nothing that is packed."""
    ids = [f"r{place}" for place, _ in enumerate(quotes, start=1)]
    return Judgement(
        query_id="q1",
        claims=tuple(Claim(claim_id, Side.REFERENCE, claim_id) for claim_id in ids),
        cells=tuple(Cell(claim_id, "c1", Verdict.MISSING) for claim_id in ids),
        found=tuple(FoundEvidence(one, chunk_id, quote=quote) for one, quote in zip(ids, quotes, strict=True)),
    )


def gold_of(judgement: Judgement) -> Gold:
    (gold,) = complete(TRACE, judgement, JudgeSettings(), INVENTORY).trace.gold
    return gold


@pytest.mark.parametrize("quote", ["expire\nafter 30 days", "EXPIRE after 30 days."])
def test_words_of_the_source_are_the_span(quote: str) -> None:
    gold = gold_of(found("source:s#0", quote))
    assert (gold.id, gold.source_id, gold.span) == ("source:s#0", "s", quote)


@pytest.mark.parametrize(
    "quote",
    [
        "Free keys expire after 30 days",  # without the markup
        "Free ... after 30 days",
        "Free **keys** expireafter 30 days",  # found only after all white space is folded
        None,
    ],
)
def test_a_quote_that_is_not_word_for_word_in_the_source_is_no_span(quote: str | None) -> None:
    gold = gold_of(found("source:s#0", quote))
    assert (gold.source_id, gold.span) == ("s", None)


def test_of_two_quotes_the_one_that_stands_in_the_source_is_the_span() -> None:
    assert gold_of(found("source:s#0", "Free keys expire", "Paid keys never expire.")).span == "Paid keys never expire."


def test_a_chunk_has_no_span_and_a_source_without_text_gives_none() -> None:
    assert gold_of(found("c9", "expire after 30 days")) == Gold(id="c9")
    assert gold_of(found("source:gone#3", "expire after 30 days")) == Gold(id="source:gone#3", source_id="gone")
