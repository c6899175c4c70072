"""Sample and threshold: counts of a random sample of words, without noise, from a threshold on.

Source: Bharadwaj, Cormode (2022), "Sample-and-threshold differential privacy: histograms and
applications", AISTATS (numbering not verified). Each client contributes B distinct words at most,
and sends each of them with probability p, all independently; a word of at least tau senders is
published, with their number. The unit is a user; neighbors are replace-one.

**One word, one client more.** Let k clients contribute a word, or k - 1, and s be e**epsilon. The
published count, or that there is none, has divergence

    D_k(s) = max(1 - s, sum over j >= max(tau, q k) of Bin(k, p)(j) - s Bin(k - 1, p)(j)),      (1)

q = 1 - (1 - p) / s, for s > 1 - p; and 1 - s below.

*Proof.* Bin(k, p)(j) / Bin(k - 1, p)(j) = (1 - p) k / (k - j) rises in j; it is above s
from j > q k on. What is not published, j < tau, is one outcome. If its ratio exceeds s, those of
all others do, and the positive parts add up to 1 - s. At s <= 1 - p all ratios exceed s. []

The largest over all k is found among finitely many: for k >= tau / q, (1) is the divergence of
the whole counts, and k + 1 clients add to both sides a coin that is the same, which cannot raise
it. So k up to the first with q k >= tau are enough; below that, all sums begin at tau. Where s is
so close to 1 - p that these are many, the chord from (1 - p, p) is used: the largest divergence is
convex.

**A replacement.** A user's words S lose a client each, the words of S' get one each; counts of
different words are independent. So the replacement is a product of B such pairs and B of them the
other way round, at most, whose divergence at s is 1 - s + s D(1 / s). Privacy losses on a grid
whose divergences are not below these dominate each (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi
2022, Algorithm 1), and 2 B of them together the replacement. The bound is exact for one client more
or less of one word: that is the delta of the literature, which bounds it by relative entropy. With
two words at once, what is lost is the grid, and that the worst k is not the same at every epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.accounting.trusted_aggregator import TrustedAggregatorPlan
from fedhh.arrays import Floats, Ints
from fedhh.privacy_loss.binomial import lower_tail, upper_tail
from fedhh.privacy_loss.distribution import PrivacyLossDistribution
from fedhh.privacy_loss.search import smallest_true
from fedhh.privacy_loss.sums import epsilon_of_sum
from fedhh.validation import InputError, require_at_least, require_inside, require_positive

_MOST_HOLDERS = 4_000
"""Numbers of holders that are looked at."""
_ROUNDING = 1e-10
"""Of a tail, relative; ten times that of the binomial distribution."""
_CELLS = 256
"""Epsilons above 0 of the grid."""
_BEYOND = 1e-3
"""Share of delta that losses beyond the grid may have."""
_AROUND = np.array([0.0, 1.0, 2.0])
"""Numbers of senders near the first that counts, whose rounding does not matter then."""
_LARGEST_EPSILON = 60.0
_RATE_TOLERANCE = 1e-4
"""Of a rate that is looked for, relative."""
_SMALLEST_RATE = 1e-9
_LARGEST_THRESHOLD = 1024
_STEPS = (8, 4, 2, 1)


@dataclass(frozen=True, kw_only=True)
class SampledCounts:
    """Counts of a sample that reach a threshold.

    Attributes:
        rate: p, probability that a contribution is sent, below 1.
        threshold: tau, senders from which a word is published, with their number.
    """

    rate: float
    threshold: int

    def delta_of_one(self, epsilon: float) -> float:
        """Return the largest divergence, if a word loses one contributor: delta of the literature.

        Args:
            epsilon: At least 0.

        >>> f"{SampledCounts(rate=0.1, threshold=20).delta_of_one(1.0):.2e}"
        '2.76e-15'
        """
        return float(self.deltas_of_loss(np.array([epsilon]))[0])

    def deltas_of_loss(self, epsilons: Floats) -> Floats:
        """Return the divergences of a word that loses one contributor, the largest over all k.

        Args:
            epsilons: ``(m,) float64``, at least 0.

        Returns:
            ``(m,) float64``, rounded up.
        """
        nearest = (1 - self.rate) / (1 - self._least_share)
        return self._on_chord(np.exp(epsilons), nearest, 1 - self.rate, self.rate, self._of_loss)

    def deltas_of_gain(self, epsilons: Floats) -> Floats:
        """Return the divergences of a word that gains one contributor; as `deltas_of_loss`."""
        nearest = (1 - self._least_share) / (1 - self.rate)
        return self._on_chord(np.exp(epsilons), nearest, 1 / (1 - self.rate), 0.0, self._of_gain)

    def epsilon_of_replacement(self, items: int, *, delta: float) -> float:
        """Return an epsilon at delta if so many words of a client are replaced, or infinity.

        Args:
            items: At least 1.
            delta: Above 0 and below 1.
        """
        return _epsilon_of_replacement(self, items, delta)

    def release_chance(self, contributors: int) -> float:
        """Return the chance that a word of so many contributors is published."""
        return float(upper_tail(self.threshold, max(contributors, 0), self.rate))

    @property
    def _least_share(self) -> float:
        """Q of (1), from which so many numbers of holders are enough as are looked at."""
        return self.threshold / (self.threshold + _MOST_HOLDERS)

    def _on_chord(
        self,
        s: Floats,
        nearest: float,
        end: float,
        height: float,
        exact: Callable[[Floats], Floats],
    ) -> Floats:
        """Return exact values; between ``nearest`` and ``end``, and beyond, those of the chord."""
        share = (s - nearest) / (end - nearest)
        found = np.empty(len(s))
        found[share <= 0] = exact(s[share <= 0])
        if (share > 0).any():
            (start,) = exact(np.array([nearest]))
            found[share > 0] = start + np.minimum(share[share > 0], 1.0) * (height - start)
        return found

    def _of_loss(self, s: Floats) -> Floats:
        """Return the largest sums of (1), rounded up, for s from the nearest to 1 - p on."""
        share = 1 - (1 - self.rate) / s
        last = np.ceil(self.threshold / share)[:, None]
        # Any sum from some number of senders on is at most the largest.
        first = np.maximum(np.floor(share[:, None] * last) + _AROUND, self.threshold)
        more, less = (upper_tail(first, last - other, self.rate) for other in (0, 1))
        whole = _excess(more, s[:, None], less).max(axis=1)
        return self._largest(s, whole, last, self._upper[1:], self._upper[:-1])

    def _of_gain(self, s: Floats) -> Floats:
        """Return the same of k - 1 against k, for s up to the nearest to 1 / (1 - p)."""
        share = 1 - (1 - self.rate) * s
        last = np.ceil(self.threshold / share)[:, None]
        upto = np.maximum(np.floor(share[:, None] * last) + _AROUND - 1, self.threshold - 1)
        more, less = (lower_tail(upto, last - other, self.rate) for other in (0, 1))
        whole = _excess(less, s[:, None], more).max(axis=1)
        return self._largest(s, whole, last, self._lower[:-1], self._lower[1:])

    def _largest(
        self, s: Floats, whole: Floats, last: Floats, one: Floats, other: Floats
    ) -> Floats:
        """Return the largest of what whole counts have, and of tails of up to ``last`` holders."""
        found = np.maximum(whole, np.maximum(1 - s, 0.0))
        counts = (last[:, 0] - self.threshold + 1).astype(np.int64)
        for place, (each, count) in enumerate(zip(s.tolist(), counts.tolist(), strict=True)):
            most = _excess(one[:count], each, other[:count]).max()
            found[place] = max(found[place], most)
        return found

    @cached_property
    def _upper(self) -> Floats:
        """P(Bin(k, p) >= tau), for k from tau - 1 on."""
        return np.asarray(upper_tail(self.threshold, self._holders, self.rate))

    @cached_property
    def _lower(self) -> Floats:
        """P(Bin(k, p) < tau), for k from tau - 1 on."""
        return np.asarray(lower_tail(self.threshold - 1, self._holders, self.rate))

    @property
    def _holders(self) -> Ints:
        return np.arange(self.threshold - 1, self.threshold + _MOST_HOLDERS + 2)


def _excess(one: Floats, s: npt.ArrayLike, other: Floats) -> Floats:
    """Return ``one - s * other``, rounded up."""
    return np.asarray(one * (1 + _ROUNDING) - np.asarray(s) * other * (1 - _ROUNDING))


@lru_cache(maxsize=4096)
def _epsilon_of_replacement(counts: SampledCounts, items: int, delta: float) -> float:
    require_at_least(1, items=items)
    require_inside(0, 1, delta=delta)
    # Of tau holders, one of which is the client, all may be sampled: then its loss is infinite.
    infinite = counts.rate**counts.threshold
    if items * infinite >= delta:
        return math.inf
    top = 2 * -math.log1p(-counts.rate)
    while counts.delta_of_one(top) > infinite * (1 + _BEYOND) + _BEYOND * delta / items:
        top *= 1.25
        if top > _LARGEST_EPSILON:
            return math.inf
    gap = top / _CELLS
    x: Floats = gap * np.arange(_CELLS + 1, dtype=np.float64)
    lost, gained = counts.deltas_of_loss(x), counts.deltas_of_gain(x)
    parts = [
        (PrivacyLossDistribution.dominating(one, gap=gap, other=other), items)
        for one, other in ((lost, gained), (gained, lost))
    ]
    return epsilon_of_sum(parts, delta=delta)


@lru_cache(maxsize=256)
def sampled_counts(
    *, epsilon: float, delta: float, max_items: int, rate: float | None = None
) -> SampledCounts:
    """Return the rate and the threshold with a privacy that publish most words.

    That is the least tau / p, the contributors of a word that is published in half of all cases:
    the threshold is a local optimum of it, the rate the largest one for that threshold.

    Args:
        epsilon: Central privacy of a user under replace-one, above 0.
        delta: Above 0 and below 1.
        max_items: B, words that a client contributes at most.
        rate: p, where it is given; the threshold is then the least one.

    Raises:
        InputError: No threshold gives this rate such a privacy; with the largest rate that can.

    >>> counts = sampled_counts(epsilon=1.0, delta=1e-10, max_items=1)
    >>> counts.threshold, round(counts.rate, 4)
    (26, 0.2462)
    """
    require_positive(epsilon=epsilon)
    require_inside(0, 1, delta=delta)
    require_at_least(1, max_items=max_items)
    search = _RateSearch(epsilon=epsilon, delta=delta, max_items=max_items)
    if rate is not None:
        require_inside(0, 1, rate=rate)
        return search.with_rate(rate)
    return search.best()


@dataclass(frozen=True, kw_only=True)
class _RateSearch:
    """Looks for the rate and the threshold of a privacy."""

    epsilon: float
    delta: float
    max_items: int

    def best(self) -> SampledCounts:
        """Return the counts none of whose tried neighbors needs fewer contributors."""
        best = self.largest_rate(max(2, math.ceil(-math.log(self.delta))))
        for step in _STEPS:
            while True:
                found = min((self._or_better(best, each) for each in (-step, step)), key=_needed)
                if found is best:
                    break
                best = found
        if not best.rate:
            raise InputError(
                f"Expected a larger central epsilon or delta, got {self.epsilon:g} and "
                f"{self.delta:g} with max_items={self.max_items}: no sample_rate above "
                f"{_SMALLEST_RATE:g} has this privacy at any threshold."
            )
        return best

    def _or_better(self, counts: SampledCounts, step: int) -> SampledCounts:
        """Return the counts of another threshold if they need fewer contributors, else these."""
        threshold = counts.threshold + step
        rate = threshold / _needed(counts)
        if threshold < 1 or rate >= 1:
            return counts
        if rate and not self.is_private(SampledCounts(rate=rate, threshold=threshold)):
            return counts
        return min(counts, self.largest_rate(threshold), key=_needed)

    def largest_rate(self, threshold: int) -> SampledCounts:
        """Return the counts of a threshold with the largest rate that is private, about."""
        low, high = 0.0, 1.0
        while high - low > _RATE_TOLERANCE * high and high > _SMALLEST_RATE:
            middle = (low + high) / 2 if low else high / 2
            if self.is_private(SampledCounts(rate=middle, threshold=threshold)):
                low = middle
            else:
                high = middle
        return SampledCounts(rate=low, threshold=threshold)

    def with_rate(self, rate: float) -> SampledCounts:
        """Return the counts of a rate with the least threshold that is private."""
        low, high = 0, 1
        while not self.is_private(SampledCounts(rate=rate, threshold=high)):
            low, high = high, 2 * high
            if high > _LARGEST_THRESHOLD:
                largest = self.largest_rate(_LARGEST_THRESHOLD).rate
                raise InputError(
                    f"Expected sample_rate <= {largest:.4g}, the largest with central epsilon "
                    f"{self.epsilon:g} and delta {self.delta:g} for max_items={self.max_items} at "
                    f"any threshold up to {_LARGEST_THRESHOLD:,}, got sample_rate={rate:g}."
                )
        least = smallest_true(
            lambda threshold: self.is_private(SampledCounts(rate=rate, threshold=threshold)),
            low=low + 1,
            high=high,
        )
        return SampledCounts(rate=rate, threshold=least)

    def is_private(self, counts: SampledCounts) -> bool:
        return counts.epsilon_of_replacement(self.max_items, delta=self.delta) <= self.epsilon


def _needed(counts: SampledCounts) -> float:
    return counts.threshold / counts.rate if counts.rate else math.inf


@dataclass(frozen=True, kw_only=True)
class SampledHistogram(TrustedAggregatorPlan):
    """One round of plain words, a random part of which is sent: `sample-and-threshold`.

    Attributes:
        counts: Rate and threshold.
    """

    method: ClassVar[str] = "sample and threshold"
    theorem: ClassVar[str] = (
        "sample and threshold under replace-one, by privacy loss distributions; proof in "
        "fedhh.accounting.sample_and_threshold"
    )

    counts: SampledCounts

    @property
    def item_epsilon(self) -> float:
        return self.counts.epsilon_of_replacement(1, delta=self.delta)

    def release_chance(self, contributors: int) -> float:
        return self.counts.release_chance(contributors)
