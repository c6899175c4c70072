"""Noisy bits of values, of all of them or of a few: unary encodings and dBitFlip."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from annotated_types import Ge

from fedhh.arrays import Floats
from fedhh.kernels.reports import WORD_BITS, add_vectors, noisy_vectors
from fedhh.oracles.attack import bits_with, random_subsets, subsets_with
from fedhh.oracles.base import PureOracle, Reports, Tally, Values, require_countable
from fedhh.oracles.families import (
    CellOracle,
    Moments,
    SampledAggregates,
    ScoredOracle,
    Table,
    sum_of_bits,
)
from fedhh.random import kernel_state


@dataclass(frozen=True, kw_only=True)
class IndependentValues(SampledAggregates):
    """An oracle whose report treats each value independently of all others.

    Sums of different values are then independent, and a histogram gives them all.
    """

    def _add_values(self, values: Values, out: Tally, *, rng: np.random.Generator) -> None:
        # O(n), and what sampling from the histogram takes.
        counts = np.bincount(values, minlength=self.domain_size)
        out += self.sample_aggregate(counts, rng=rng)

    @property
    def report_draws(self) -> int:
        return self.domain_size


@dataclass(frozen=True, kw_only=True)
class IndependentSupport(IndependentValues, PureOracle):
    """A pure oracle whose report supports each value independently of all others.

    Its counts are then independent binomials, and are drawn as such.
    """

    def sample_aggregate(self, counts: Tally, *, rng: np.random.Generator) -> Tally:
        counts = self._check_counts(counts)
        return sum_of_bits(counts, int(counts.sum()), one=self.p, zero=self.q, rng=rng)


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(IndependentSupport):
    """What unary encodings share: the bit of the client's value is 1 with probability p, others q.

    Formal guarantees:
        * epsilon-local differential privacy: p (1-q) / (q (1-p)) is exactly e**epsilon.
        * The estimate is unbiased; V0 = q(1-q) / (p-q)**2.
        * The counts of different values are independent, so `sample_aggregate` is exact.

    Cost: O(s) per report that is made; O(n + s) for a tally of any number of reports. A report is
    ``(s,) uint8`` of 0 and 1.

    References:
        Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
        estimation", USENIX Security, section 4.
    """

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        values = self._check_values(values)
        bits = rng.random((len(values), self.domain_size)) < self.q
        bits[np.arange(len(values)), values] = rng.random(len(values)) < self.p
        return bits.view(np.uint8)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=self.domain_size)
        return np.array(list(itertools.product((0, 1), repeat=self.domain_size)), dtype=np.uint8)

    @property
    def report_bits(self) -> float:
        return float(self.domain_size)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        out += reports.sum(axis=0, dtype=np.int64)

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        if not sign:
            return rng.integers(2, size=(count, self.domain_size), dtype=np.uint8)
        # As many ones as an honest report expects, as Cao, Jia, Gong (2021) pad; more if wanted.
        ones, bit = int(self.p + (self.domain_size - 1) * self.q), int(sign > 0)
        return bits_with(self.domain_size, values, bit=bit, ones=ones, count=count, rng=rng)


@dataclass(frozen=True, kw_only=True)
class SymmetricUnaryEncoding(UnaryEncoding):
    """Symmetric unary encoding: a vector of s bits, each flipped with the same probability.

    With h = e**(epsilon/2), the bit of the client's value is 1 with probability p = h / (h + 1),
    each other bit with probability q = 1 / (h + 1). It is basic one-time RAPPOR, and what a Count
    Mean Sketch does to the cells of a row.

    V0 = h / (h - 1)**2, larger than optimized unary encoding's by (h + 1)**2 / (4 h): 2.4 times at
    epsilon 4, 38 times at epsilon 10. Guarantees and costs are those of `UnaryEncoding`.

    References:
        Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
        ordinal response", CCS, section 2, without Bloom filter and permanent response.
    """

    @property
    def p(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    def q(self) -> float:
        return math.exp(-self.epsilon / 2) * self.p

    def log_prob(self, reports: Reports, value: int | Values) -> Floats:
        own = reports[np.arange(len(reports)), value].astype(np.int64)
        flips = reports.sum(axis=1, dtype=np.int64) - 2 * own + 1
        # ln q = ln p - epsilon / 2.
        return np.asarray(self.domain_size * math.log(self.p) - flips * (self.epsilon / 2))


@dataclass(frozen=True, kw_only=True)
class PackedUnaryEncoding(SymmetricUnaryEncoding, CellOracle):
    """Symmetric unary encoding whose reports are ``(ceil(s / 64),) int64``.

    Bit i, counted from the lowest of the first word, is value i's. 64 coins are drawn at once.
    """

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        flip, state = np.uint64(round(self.q * 2.0**64)), kernel_state(rng)
        return np.asarray(noisy_vectors(values, self.domain_size, flip, state).view(np.int64))

    def log_prob(self, reports: Reports, value: int | Values) -> Floats:
        octets = np.ascontiguousarray(reports).astype("<i8").view(np.uint8)
        bits = np.unpackbits(octets, axis=1, bitorder="little", count=self.domain_size)
        return super().log_prob(bits, value)

    def report_space(self) -> Reports:
        return self._packed(super().report_space())

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        return self._packed(super()._craft(values, sign, count, rng))

    def _packed(self, bits: Reports) -> Reports:
        padding = (0, 0), (0, -self.domain_size % WORD_BITS)
        octets = np.packbits(np.pad(bits, padding), axis=1, bitorder="little")
        return octets.view("<i8").astype(np.int64)

    def add_rows(self, rows: Values, reports: Reports, table: Table) -> None:
        add_vectors(rows, reports, table)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        self.add_rows(np.zeros(len(reports), dtype=np.int64), reports, out[None])


@dataclass(frozen=True, kw_only=True)
class OptimizedUnaryEncoding(UnaryEncoding):
    """Optimized unary encoding: a vector of s bits, each drawn independently.

    With E = e**epsilon, the bit of the client's value is 1 with probability p = 1/2, each other
    bit with probability q = 1 / (E + 1). V0 = 4 E / (E - 1)**2. Guarantees and costs are those of
    `UnaryEncoding`.
    """

    @property
    def p(self) -> float:
        return 0.5

    @property
    def q(self) -> float:
        return math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon))

    def log_prob(self, reports: Reports, value: int) -> Floats:
        others = reports.sum(axis=1, dtype=np.int64) - reports[:, value]
        # ln q = ln(1-q) - epsilon.
        log_zero = -math.log1p(math.exp(-self.epsilon))
        log_others = (self.domain_size - 1) * log_zero - others * self.epsilon
        return np.asarray(log_others - math.log(2), dtype=np.float64)


_ONE = 2**20


@dataclass(frozen=True, kw_only=True)
class DBitFlip(ScoredOracle):
    """dBitFlip (Ding, Kulkarni, Yekhanin 2017, section 4), one report.

    The client draws d of the s values without replacement and sends which, each with a bit: with
    h = e**(epsilon/2), 1 with probability h / (h + 1) if the value is its own, otherwise
    1 / (h + 1). The paper's estimate of a count is (s / d) times the sum, over the reports that
    drew the value, of (bit (h + 1) - 1) / (h - 1). Scores are whole numbers: a drawn bit scores
    2**20 (bit - 1 / (h + 1)), rounded, which keeps the estimate exactly unbiased and its variance
    that of the paper's within one part in 10**8 up to epsilon 20.

    In the paper a client draws its values once for all its reports, and remembers its bits: that
    guards against repeated collection, and is up to a protocol.

    Formal guarantees:
        * epsilon-local differential privacy; e**epsilon is reached wherever two values are both
          drawn. Hence d is at least 2: with one bit, half of epsilon would be unused.
        * The estimate is unbiased; V0 = (s / d) h / (h - 1)**2: symmetric unary encoding's, of
          which it sends a part, times s / d.

    Report size: log2 C(s, d) + d bits. Cost: O(d) per report, on the client and in the tally.
    A report is ``(d,) int64``: twice a value's number and its bit, ascending.

    Attributes:
        num_bits: d, at least 2; s if that is smaller.

    References:
        Ding, Kulkarni, Yekhanin (2017), "Collecting telemetry data privately", NIPS, section 4.
    """

    num_bits: Annotated[int, Ge(2)] = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        require_countable(self.domain_size, "dbitflip")

    @property
    def d(self) -> int:
        """Number of bits in a report."""
        return min(self.num_bits, self.domain_size)

    @property
    def keep_probability(self) -> float:
        return 1 / (1 + math.exp(-self.epsilon / 2))

    @property
    def flip_probability(self) -> float:
        return math.exp(-self.epsilon / 2) * self.keep_probability

    @property
    def _scores(self) -> tuple[int, int]:
        """Scores of a 0 and of a 1."""
        zero = -round(_ONE * self.flip_probability)
        return zero, _ONE + zero

    def _moments(self, one: float, zero: float) -> Moments:
        """Return moments of a score, by the chances of the bits if the value is drawn."""
        if_zero, if_one = self._scores
        drawn = self.d / self.domain_size
        mean = drawn * (one * if_one + zero * if_zero)
        square = drawn * (one * if_one**2 + zero * if_zero**2)
        return Moments(mean=mean, variance=square - mean**2)

    @property
    def held(self) -> Moments:
        return self._moments(self.keep_probability, self.flip_probability)

    @property
    def other(self) -> Moments:
        return self._moments(self.flip_probability, self.keep_probability)

    def privatize(self, values: Values, *, rng: np.random.Generator) -> Reports:
        """Return ``(n, d) int64`` reports; rows ascend, so the order of drawing leaks nothing."""
        values = self._check_values(values)
        positions = random_subsets(self.domain_size, self.d, len(values), rng=rng)
        flips = rng.random(positions.shape) < self.flip_probability
        return np.sort(2 * positions + ((positions == values[:, None]) ^ flips), axis=1)

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        # O(n d + s).
        entries = np.bincount(reports.ravel(), minlength=2 * self.domain_size)
        out += entries.reshape(-1, 2) @ np.array(self._scores, dtype=np.int64)

    def _craft(self, values: Values, sign: int, count: int, rng: np.random.Generator) -> Reports:
        # As many of the values as fit, and others with bits of values that the client lacks.
        inside = min(len(values), self.d)
        own, others = subsets_with(self.domain_size, values, inside, self.d, count, rng=rng)
        bits = rng.random(others.shape) < (self.flip_probability if sign else 0.5)
        entries = [2 * own + (sign > 0), 2 * others + bits]
        return np.sort(np.concatenate(entries, axis=1), axis=1)

    def log_prob(self, reports: Reports, value: int) -> Floats:
        bits, positions = reports & 1, reports >> 1
        flips = (bits != (positions == value)).sum(axis=1)
        logs = self.d * math.log(self.keep_probability) - flips * (self.epsilon / 2)
        return np.asarray(logs - self._log_choices, dtype=np.float64)

    @property
    def _log_choices(self) -> float:
        """Logarithm of C(s, d)."""
        s, d = self.domain_size, self.d
        return math.lgamma(s + 1) - math.lgamma(d + 1) - math.lgamma(s - d + 1)

    def report_space(self) -> Reports:
        self._check_report_space(self.report_bits, width=self.d)
        sets = list(itertools.combinations(range(self.domain_size), self.d))
        bits = list(itertools.product((0, 1), repeat=self.d))
        return np.array(
            [
                [2 * v + b for v, b in zip(drawn, each, strict=True)]
                for drawn in sets
                for each in bits
            ],
            dtype=np.int64,
        )

    @property
    def report_bits(self) -> float:
        return self._log_choices / math.log(2) + self.d
