"""Lexical arm: BM25 (Robertson and Zaragoza, 2009) over a tokenizer that can be exchanged."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

Tokenizer = Callable[[str], Sequence[str]]
K1 = 1.2
B = 0.75


class Bm25:
    """An index over texts; row numbers are the positions in the list that was given."""

    def __init__(self, texts: Sequence[str], tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._counts = [Counter(tokenizer(text)) for text in texts]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._mean_length = sum(self._lengths) / max(1, len(self._lengths))
        self._frequency: Counter[str] = Counter()
        for counts in self._counts:
            self._frequency.update(counts.keys())

    def terms(self, query: str) -> tuple[str, ...]:
        """The distinct query terms in order."""
        return tuple(dict.fromkeys(self._tokenizer(query)))

    def known_terms(self, query: str) -> tuple[str, ...]:
        """The query terms that occur in some text."""
        return tuple(term for term in self.terms(query) if self._frequency[term])

    def score(self, query: str, row: int, operator: str = "or") -> float:
        """Score of one text; 0 when no term matches, or under "and" when one is absent."""
        counts = self._counts[row]
        terms = self.terms(query)
        if operator == "and" and not all(counts[term] for term in terms):
            return 0.0
        length = K1 * (1 - B + B * self._lengths[row] / self._mean_length)
        return sum(
            self._idf(term) * counts[term] * (K1 + 1) / (counts[term] + length) for term in terms if counts[term]
        )

    def _idf(self, term: str) -> float:
        n_with = self._frequency[term]
        return math.log(1 + (len(self._counts) - n_with + 0.5) / (n_with + 0.5))
