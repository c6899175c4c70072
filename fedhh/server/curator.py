"""BLENDER's trusted curator: what it publishes of plain words, with the noise that this takes.

Source: Avent et al. (2017), BLENDER; why it is private stands in `fedhh.mechanisms.opt_in`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.mechanisms.opt_in import head_list_threshold, laplace_scale
from fedhh.random import Stream, generator
from fedhh.server.blending import Floats, Shares, opt_in_shares, with_floor

_Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Curator:
    """What the curator was told to keep to.

    Attributes:
        epsilon: Central privacy of a client who opted in.
        delta: Its delta.
        head_items: Words that a client contributes to finding the list, at most.
        max_items: Words that a client contributes to counting it, at most.
        seed: Of the noise: one fixed draw for each layer of a run.
    """

    epsilon: float
    delta: float
    head_items: int
    max_items: int
    seed: int

    @property
    def threshold(self) -> float:
        """Noisy count that a word of the head list exceeds."""
        return head_list_threshold(epsilon=self.epsilon, delta=self.delta, records=self.head_items)

    @property
    def head_scale(self) -> float:
        """Scale of the Laplace noise on counts of words as the list is made."""
        return laplace_scale(epsilon=self.epsilon, records=self.head_items)

    @property
    def opt_in_scale(self) -> float:
        """Scale of the Laplace noise on counts of the list's words."""
        return laplace_scale(epsilon=self.epsilon, records=self.max_items)

    @property
    def head_noise_std(self) -> float:
        """Standard deviation of that noise on a count as the list is made."""
        return math.sqrt(2) * self.head_scale

    @property
    def opt_in_noise_std(self) -> float:
        """Standard deviation of that noise on a count of the list's words."""
        return math.sqrt(2) * self.opt_in_scale

    def head_list(self, messages: _Ints, *, layer: int, most: int) -> npt.NDArray[np.uint16]:
        """Return the words whose noisy count exceeds the threshold, most frequent first.

        Args:
            messages: ``(m, length + 1) int64``: a word's symbols, and how often a client sends it.
            layer: Of the run.
            most: Words of the list, at most.

        Returns:
            ``(c, length) uint16``.
        """
        words, places = np.unique(messages[:, :-1], axis=0, return_inverse=True)
        counts = np.zeros(len(words), dtype=np.int64)
        np.add.at(counts, places.ravel(), messages[:, -1])
        noisy = counts + self.noise(layer, len(words), self.head_scale)
        order = np.argsort(-noisy, kind="stable")
        kept = order[noisy[order] > self.threshold][:most]
        return words[kept].astype(np.uint16)

    def shares(self, counts: _Ints, *, layer: int, num_clients: int) -> tuple[Shares, float]:
        """Return what the opt-in group says of the list's words, and the least noisy count.

        Args:
            counts: ``(c,) int64``: clients that contributed each word.
            layer: Of the run.
            num_clients: Of the group.
        """
        scale = self.opt_in_scale
        noisy = counts + self.noise(layer, len(counts), scale)
        shares = opt_in_shares(noisy, num_clients=num_clients, scale=scale)
        least = 2 * scale**2 / num_clients**2
        return with_floor(shares, least), float(noisy.min())

    def noise(self, layer: int, size: int, scale: float) -> Floats:
        """Return the noise of a layer: ``(size,) float64``."""
        rng = generator(self.seed, Stream.CURATOR, 0, layer)
        return rng.laplace(scale=scale, size=size)
