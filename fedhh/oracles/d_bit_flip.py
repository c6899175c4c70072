"""dBitFlip: noisy indicator bits of a few sampled values, as in Microsoft's telemetry."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from fedhh.kernels.reports import add_sampled_bits, draw_sampled_bits
from fedhh.oracles.base import LARGEST_TALLY, Floats, Reports, Tally, Values
from fedhh.oracles.families import Moments, ScoredOracle
from fedhh.random import kernel_state
from fedhh.validation import InputError, require_at_least

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

    num_bits: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(2, num_bits=self.num_bits)
        if self.domain_size > LARGEST_TALLY:
            raise InputError(
                f"Expected domain_size <= {LARGEST_TALLY} for dbitflip, got "
                f"domain_size={self.domain_size}; use an oracle that hashes, such as olh."
            )

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
        reports = np.empty((len(values), self.d), dtype=np.int64)
        coins = self.keep_probability, self.flip_probability
        draw_sampled_bits(values, self.domain_size, *coins, reports, kernel_state(rng))
        reports.sort(axis=1)
        return reports

    def _add_reports(self, reports: Reports, out: Tally) -> None:
        # O(n d + s).
        entries = np.bincount(reports.ravel(), minlength=2 * self.domain_size)
        out += entries.reshape(-1, 2) @ np.array(self._scores, dtype=np.int64)

    def _add_values(self, values: Values, out: Tally, *, rng: np.random.Generator) -> None:
        # No report is stored.
        values = self._check_values(values)
        coins = self.keep_probability, self.flip_probability
        scores = np.array(self._scores, dtype=np.int64)
        add_sampled_bits(values, self.d, *coins, scores, out, kernel_state(rng))

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
