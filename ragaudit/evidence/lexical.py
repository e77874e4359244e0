"""A word search over chunk texts, for evidence that no list of the run holds. BM25 as Robertson and Zaragoza (2009)."""

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+", re.UNICODE)
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_K1, _B = 1.2, 0.75


def terms(text: str) -> list[str]:
    """Words, case folded; scripts that are written without spaces give pairs of neighbouring characters."""
    found = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).casefold()):
        at = 0
        for run in _UNSPACED.finditer(word):
            if run.start() > at:
                found.append(word[at : run.start()])
            piece = run.group()
            found += [piece[i : i + 2] for i in range(max(len(piece) - 1, 1))]
            at = run.end()
        if at < len(word):
            found.append(word[at:])
    return found


class LexicalIndex:
    """An inverted index over texts by id, built once for a run."""

    def __init__(self, texts: Iterable[tuple[str, str]]) -> None:
        self._ids: list[str] = []
        self._lengths: list[int] = []
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for chunk_id, text in texts:
            counts = Counter(terms(text))
            number = len(self._ids)
            self._ids.append(chunk_id)
            self._lengths.append(sum(counts.values()))
            for term, n in counts.items():
                self._postings.setdefault(term, []).append((number, n))
        self._mean = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0

    def search(self, text: str, limit: int) -> list[str]:
        """The ids that match the text best, best first; ties in the order the texts came in."""
        scores: dict[int, float] = {}
        total = len(self._ids)
        for term in dict.fromkeys(terms(text)):
            postings = self._postings.get(term, ())
            weight = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, n in postings:
                norm = n + _K1 * (1 - _B + _B * self._lengths[number] / self._mean)
                scores[number] = scores.get(number, 0.0) + weight * n * (_K1 + 1) / norm
        best = sorted(scores, key=lambda number: (-scores[number], number))
        return [self._ids[number] for number in best[:limit]]
