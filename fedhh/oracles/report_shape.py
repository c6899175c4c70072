"""Tests of the shape of a report: how many of its bits are 1, under the exact honest distribution.

A report of independent noisy bits has a number of ones that is hard to keep when many bits are set
to support many targets. A fake report that sets as many bits as honest ones do is not detected,
whichever bits they are; nor is one of Subset Selection, whose reports all have d members.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from fedhh.oracles.bloom_filters import BloomReports
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.families import PureOracle
from fedhh.oracles.subset_selection import SubsetSelection
from fedhh.oracles.unary_encoding import UnaryEncoding
from fedhh.validation import InputError, require_inside

_Floats = npt.NDArray[np.float64]
_Counts = npt.NDArray[np.int64]
_Bools = npt.NDArray[np.bool_]

ShapedReports = PureOracle | BloomReports
"""What makes the reports whose shape is tested."""


@dataclass(frozen=True, kw_only=True)
class NoisyBits:
    """Reports of bits, each drawn independently: what their numbers of ones are.

    Attributes:
        num_bits: m.
        fewest_set: Bits that a client's value sets at least.
        most_set: At most.
        p: Chance that a set bit is sent as 1.
        q: Chance that another one is.
    """

    num_bits: int
    fewest_set: int
    most_set: int
    p: float
    q: float

    def tails(self, ones: _Counts) -> tuple[_Floats, _Floats]:
        """Return P(at most so many ones) and P(at least so many), of the likeliest honest client.

        Args:
            ones: ``(c,) int64``.
        """
        lower, upper = np.zeros(len(ones)), np.zeros(len(ones))
        for num_set in range(self.fewest_set, self.most_set + 1):
            below, above = np.zeros(len(ones)), np.zeros(len(ones))
            for sent in range(num_set + 1):
                chance = math.comb(num_set, sent) * self.p**sent * (1 - self.p) ** (num_set - sent)
                rest = ones - sent
                below += chance * (1 - _at_least(rest + 1, self.num_bits - num_set, self.q))
                above += chance * _at_least(rest, self.num_bits - num_set, self.q)
            lower, upper = np.maximum(lower, below), np.maximum(upper, above)
        return np.minimum(lower, 1.0), np.minimum(upper, 1.0)


@dataclass(frozen=True, kw_only=True)
class ShapeTest:
    """Rejects reports with fewer ones than `fewest`, or more than `most`.

    Attributes:
        fewest: Ones of an accepted report at least.
        most: At most.
        false_alarm_rate: Bound on the chance that an honest report is rejected, whatever its
            client holds: the sum of both exact tails, at most what was asked for.
    """

    fewest: int
    most: int
    false_alarm_rate: float

    def rejects(self, ones: _Counts) -> _Bools:
        """Return ``(n,) bool``: which reports have too few or too many ``(n,) int64`` ones."""
        return np.asarray((ones < self.fewest) | (ones > self.most))

    def p_value(self, num_rejected: int, num_reports: int) -> float:
        """Return the chance that at least so many of some honest reports are rejected, at most."""
        return float(_at_least(np.array([num_rejected]), num_reports, self.false_alarm_rate)[0])


def shape_test(reports_of: ShapedReports, false_alarm_rate: float) -> ShapeTest:
    """Return the test of the reports of an oracle, or of Bloom filters, at a false alarm rate.

    Each tail has half of the rate. The test of Subset Selection accepts d members and nothing else,
    at a rate of 0; a crafted report has d members, too.

    Args:
        reports_of: Unary encodings, `CountMeanSketch`, `BloomReports`, or `SubsetSelection`.
        false_alarm_rate: Of one report, in (0, 1).

    Raises:
        InputError: Reports of another kind, which have no number of ones.
    """
    require_inside(0, 1, false_alarm_rate=false_alarm_rate)
    if isinstance(reports_of, SubsetSelection):
        return ShapeTest(fewest=reports_of.d, most=reports_of.d, false_alarm_rate=0.0)
    bits = noisy_bits(reports_of)
    numbers = np.arange(bits.num_bits + 1)
    lower, upper = bits.tails(numbers)
    # Tails are monotone: what is rejected is all below the first, or above the last, that is not.
    fewest = int(np.argmax(lower > false_alarm_rate / 2))
    most = bits.num_bits - int(np.argmax(upper[::-1] > false_alarm_rate / 2))
    too_few = float(lower[fewest - 1]) if fewest else 0.0
    too_many = float(upper[most + 1]) if most < bits.num_bits else 0.0
    return ShapeTest(fewest=fewest, most=most, false_alarm_rate=too_few + too_many)


@singledispatch
def noisy_bits(reports_of: ShapedReports) -> NoisyBits:
    """Return the distribution of the bits of reports, of a kind that has such."""
    raise InputError(
        f"Expected reports of noisy bits, or of Subset Selection, got {type(reports_of).__name__}; "
        "use sue, oue, cms, ss, or RAPPOR's Bloom filters."
    )


@noisy_bits.register
def _(reports_of: UnaryEncoding) -> NoisyBits:
    size = reports_of.domain_size
    return NoisyBits(num_bits=size, fewest_set=1, most_set=1, p=reports_of.p, q=reports_of.q)


@noisy_bits.register
def _(reports_of: CountMeanSketch) -> NoisyBits:
    flip = reports_of.flip_probability
    return NoisyBits(num_bits=reports_of.num_cells, fewest_set=1, most_set=1, p=1 - flip, q=flip)


@noisy_bits.register
def _(reports_of: BloomReports) -> NoisyBits:
    # Functions of a cohort may agree, and a client without a value sets no bit.
    return NoisyBits(
        num_bits=reports_of.filters.num_bits,
        fewest_set=0,
        most_set=min(reports_of.filters.num_hashes, reports_of.filters.num_bits),
        p=reports_of.response.one,
        q=reports_of.response.zero,
    )


def _at_least(counts: _Counts, trials: int, chance: float) -> _Floats:
    """Return P(Binomial(trials, chance) >= count) of each ``(c,) int64`` count."""
    inside = np.clip(counts, 1, max(trials, 1)).astype(np.float64)
    tails = betainc(inside, trials - inside + 1, chance)
    return np.where(counts < 1, 1.0, np.where(counts > trials, 0.0, tails))
