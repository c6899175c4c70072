"""Which n-grams occur at a position, and which two occur together: EM on patterns of noisy bits.

Source: Fanti, Pihur, Erlingsson (2016), "Building a RAPPOR with the unknown: privacy-preserving
learning of associations and data dictionaries", PoPETs, sections 3 and 4.

N-grams are known to the reports by their bit in each cohort, one of k. A record's two patterns are
independent given both n-grams, and each bit is independent of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from fedhh.arrays import Bools, Floats, Ints
from fedhh.oracles.bloom import BitResponse


@dataclass(frozen=True, kw_only=True, eq=False)
class BitChannel:
    """How a report's pattern follows from the one bit that its n-gram sets.

    Attributes:
        num_bits: k.
        response: What happens to each bit.
    """

    num_bits: int
    response: BitResponse

    @property
    def spread(self) -> float:
        """q: the chance that a report has the bit of an n-gram that it is not about.

        Over the draw of the hash functions, by which that may be the bit of its own.
        """
        return (self.response.one + (self.num_bits - 1) * self.response.zero) / self.num_bits

    @property
    def unit(self) -> float:
        """Variance per report of an n-gram's estimated count, where no client holds it."""
        return self.spread * (1 - self.spread) / (self.response.one - self.spread) ** 2

    def chances(self) -> Floats:
        """Return ``(k, 2**k)``: the chance of each pattern, bit i as 2**i, for each set bit."""
        patterns = np.arange(2**self.num_bits)
        bits = patterns[:, None] >> np.arange(self.num_bits) & 1
        zero, one = self.response.zero, self.response.one
        unset = np.where(bits, zero, 1 - zero)
        own = np.where(bits, one, 1 - one)
        return np.asarray((unset.prod(axis=1)[:, None] / unset * own).T)

    def ones(self, counts: Ints) -> Ints:
        """Return ``(m, k)``: reports with each bit, of ``(m, 2**k)`` reports by pattern."""
        bits = np.arange(2**self.num_bits)[:, None] >> np.arange(self.num_bits) & 1
        return np.asarray(counts @ bits)


def frequent_ngrams(ones: Ints, bits: Ints, *, noise_kept: float, most: int) -> Ints:
    """Return the n-grams at a position that noise does not explain, most votes first.

    The hash functions send an n-gram that no client holds to a uniform bit of each cohort. So its
    votes, the reports that have its bit, have the mean and the variance of a sum of one uniform bit
    per cohort, and their distribution is near a normal one, if skewed by what is frequent. Kept is
    what lies z deviations above, where z is the normal quantile of 1 - noise_kept / c.

    Args:
        ones: ``(m, k) int64``: reports with each bit, by cohort.
        bits: ``(c, m) int64``: each n-gram's bit in each cohort.
        noise_kept: About how many n-grams that no client holds are kept.
        most: Most n-grams kept.

    Returns:
        ``int64`` numbers of n-grams.
    """
    votes = ones[np.arange(len(ones)), bits].sum(axis=1)
    deviation = np.sqrt(ones.var(axis=1).sum())
    least = float(-ndtri(min(noise_kept / max(len(votes), 1), 1.0)))
    kept = np.flatnonzero(votes - ones.mean(axis=1).sum() > least * deviation)
    return kept[np.argsort(-votes[kept], kind="stable")][:most]


def joint_shares(
    counts: Ints, first: Ints, second: Ints, channel: BitChannel, *, iterations: int
) -> Floats:
    """Return the likeliest joint shares of n-grams at two positions, by expectation maximization.

    An iteration multiplies each pair's share by the mean, over all records, of its likelihood over
    that of the whole mixture: the posterior, averaged (section 3). All that is not among the
    candidates of a position is one more n-gram, whose bit is uniform. Cost per iteration
    O(a b m k + m 4**k), whatever the number of records.

    Args:
        counts: ``(m, 2**k, 2**k) int64``: records by cohort and both patterns.
        first: ``(a, m) int64``: the bits of the first position's candidates.
        second: ``(b, m) int64``: those of the second's.
        channel: What happens to bits.
        iterations: How many.

    Returns:
        ``(a + 1, b + 1) float64`` that sum to 1; the last row and column are all other n-grams.
    """
    here, there = (_bit_shares(bits, channel.num_bits) for bits in (first, second))
    cohorts, size = here.shape[1:]
    chances = channel.chances()
    total = int(counts.sum())
    shares = np.full((len(here), len(there)), 1 / (len(here) * len(there)))
    flat_here = here.reshape(len(here), -1)
    flat_there = there.reshape(len(there), -1)
    occurring = counts > 0
    for _ in range(iterations if total else 0):
        # (m, k, k): how bits occur together, and (m, 2**k, 2**k) then patterns.
        mixed = (shares @ flat_there).reshape(len(here), cohorts, size)
        together = here.transpose(1, 2, 0) @ mixed.transpose(1, 0, 2)
        expected = chances.T @ together @ chances
        ratio = np.divide(counts, expected, out=np.zeros(counts.shape), where=occurring)
        gain = chances @ ratio @ chances.T
        back = (here.transpose(1, 0, 2) @ gain).transpose(1, 0, 2).reshape(flat_here.shape)
        shares *= back @ flat_there.T / total
    return np.asarray(shares)


def edges(shares: Floats, num_records: int, channel: BitChannel, *, noise_kept: float) -> Bools:
    """Return which candidates of two positions occur together, ``(a, b) bool``.

    An edge is where the estimated count is at least z deviations of the unbiased linear estimate
    for a pair that no client holds, sqrt(n) times the variance of one n-gram's, with z the normal
    quantile of 1 - noise_kept / (a b). EM's estimates vary less than linear ones, so that fewer
    pairs of noise are to be expected than ``noise_kept``; their distribution is not known exactly.
    (The authors' code has a fixed share of 0.04 in place of it.)

    Args:
        shares: What `joint_shares` returned.
        num_records: n, records of the pair of positions.
        channel: What happens to bits.
        noise_kept: Pairs that no client holds to keep.
    """
    inner = shares[:-1, :-1]
    if not inner.size:
        return np.zeros(inner.shape, dtype=np.bool_)
    least = float(-ndtri(min(noise_kept / inner.size, 1.0)))
    deviation = np.sqrt(num_records) * channel.unit
    return np.asarray(inner * num_records > max(least, 0.0) * deviation)


def cliques(numbers: list[int], linked: dict[tuple[int, int], Bools], most: int) -> Ints:
    """Return all choices of one n-gram for each position of which any two have an edge.

    They grow position by position along the edges to the last n-gram, and are pruned with the
    others; no more than the first ``most`` are kept at each position, in the order of the n-grams.

    Args:
        numbers: How many n-grams each position has.
        linked: Edges by pair of positions, the first one less.
        most: Most choices to go on with.

    Returns:
        ``(c, positions) int64``.
    """
    chosen = np.arange(numbers[0])[:, None]
    for position in range(1, len(numbers)):
        agrees = np.ones((len(chosen), numbers[position]), dtype=np.bool_)
        for before in range(position):
            agrees &= linked[before, position][chosen[:, before]]
        rows, added = np.nonzero(agrees)
        chosen = np.column_stack([chosen[rows], added])[:most]
    return chosen


def _bit_shares(bits: Ints, num_bits: int) -> Floats:
    """Return ``(c + 1, m, k)``: where each candidate's bit is; the last, of all others, is even."""
    shares = np.full((len(bits) + 1, bits.shape[1], num_bits), 1 / num_bits)
    shares[:-1] = bits[:, :, None] == np.arange(num_bits)
    return shares
