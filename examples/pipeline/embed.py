"""Dense arm, vectors: hashed words and character n-grams, TF-IDF, projected to a small dense space.

The main model is a truncated SVD fitted on the corpus (latent semantic analysis). It reads the Latin script only.
The other models project the same features with a seeded random matrix: same shape, another space.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .tokens import words

Vector = NDArray[np.float64]
BUCKETS = 8192
_LATIN = re.compile(r"[a-z0-9äöüßé.-]+")


class Embedder:
    """A model: name, width, and how many tokens of its input it reads."""

    def __init__(self, name: str, idf: Vector, projection: Vector, max_tokens: int | None) -> None:
        self.name = name
        self.dim = int(projection.shape[1])
        self.max_tokens = max_tokens
        self._idf = idf
        self._projection = projection

    def embed(self, text: str) -> Vector:
        """The unit vector of a text; zero when the model can read nothing in it."""
        read = text if self.max_tokens is None else _cut(text, self.max_tokens)
        vector = (_features(read) * self._idf) @ self._projection
        norm = float(np.linalg.norm(vector))
        return vector / norm if norm > 0 else vector


def fit_lsa(name: str, texts: Sequence[str], dim: int, max_tokens: int | None) -> Embedder:
    """Fit the projection on a corpus by eigendecomposition of its Gram matrix."""
    counts = np.stack([_features(text) for text in texts])
    idf = _idf(counts)
    weighted = counts * idf
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-12)
    values, left = np.linalg.eigh(weighted @ weighted.T)
    order = np.argsort(values)[::-1][:dim]
    projection = weighted.T @ (left[:, order] / np.sqrt(np.maximum(values[order], 1e-12)))
    return Embedder(name, idf, np.asarray(projection * values[order] ** 0.1), max_tokens)


def random_model(name: str, texts: Sequence[str], dim: int, seed: int, max_tokens: int | None) -> Embedder:
    """A model whose projection is random: close texts stay close, but in a space of its own."""
    counts = np.stack([_features(text) for text in texts])
    projection = np.random.default_rng(seed).standard_normal((BUCKETS, dim))
    return Embedder(name, _idf(counts), projection, max_tokens)


def windows(text: str, size: int) -> list[str]:
    """A text in consecutive pieces of at most `size` tokens: what the model can read at once."""
    pieces = re.findall(r"\s*(?:\w+|[^\w\s])", text)
    return ["".join(pieces[start : start + size]) for start in range(0, len(pieces), size)] or [""]


def _idf(counts: Vector) -> Vector:
    present = (counts > 0).sum(axis=0)
    return np.where(present > 0, np.log((1 + len(counts)) / (1 + present)) + 1.0, 0.0)


def _features(text: str) -> Vector:
    found: Counter[int] = Counter()
    for token in words(unicodedata.normalize("NFC", text)):
        if not _LATIN.fullmatch(token):
            continue
        found[_bucket("w:" + token)] += 2
        padded = f"<{token}>"
        for size in (3, 4, 5):
            for start in range(len(padded) - size + 1):
                found[_bucket(padded[start : start + size])] += 1
    vector = np.zeros(BUCKETS)
    for bucket, n in found.items():
        vector[bucket] = 1 + np.log(n)
    return vector


def _bucket(feature: str) -> int:
    return zlib.crc32(feature.encode("utf-8")) % BUCKETS


def _cut(text: str, max_tokens: int) -> str:
    return windows(text, max_tokens)[0]
