"""Dense arm, index: inverted lists around k-means centroids; only the nearest lists are searched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .embed import Vector


class Ivf:
    """Centroids trained once; rows are assigned to lists when they are written."""

    def __init__(self, vectors: Vector, n_lists: int, seed: int, rounds: int = 12) -> None:
        start = np.random.default_rng(seed).permutation(len(vectors))[:n_lists]
        self.centroids = vectors[start].copy()
        for _ in range(rounds):
            nearest = np.argmax(vectors @ self.centroids.T, axis=1)
            for number in range(n_lists):
                members = vectors[nearest == number]
                if len(members):
                    mean = members.mean(axis=0)
                    self.centroids[number] = mean / max(float(np.linalg.norm(mean)), 1e-12)

    def list_of(self, vector: Vector) -> int:
        """The list a row belongs to."""
        return int(np.argmax(self.centroids @ vector))

    def wrong_list_of(self, vector: Vector) -> int:
        """The list farthest from a row: where a broken bulk load puts it."""
        return int(np.argmin(self.centroids @ vector))

    def search(
        self, query: Vector, rows: Sequence[tuple[int, int, Vector]], limit: int, nprobe: int
    ) -> list[tuple[int, float]]:
        """Best rows as (row, cosine). Further lists are opened until `limit` rows were seen.

        Args:
            query: unit vector.
            rows: (row, list, vector) of every row that the filter lets through.
            limit: how many to return.
            nprobe: how many lists are always searched.
        """
        order = [int(number) for number in np.argsort(-(self.centroids @ query), kind="stable")]
        opened: list[tuple[int, float]] = []
        for position, number in enumerate(order):
            if position >= nprobe and len(opened) >= limit:
                break
            opened.extend((row, float(vector @ query)) for row, member, vector in rows if member == number)
        return sorted(opened, key=lambda pair: (-round(pair[1], 6), pair[0]))[:limit]
