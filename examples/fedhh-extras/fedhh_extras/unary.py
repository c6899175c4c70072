"""Symmetric unary encoding, also basic RAPPOR: an indicator whose bits are flipped alike."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

from fedhh.oracles import PureOracle


@dataclass(frozen=True, kw_only=True)
class SymmetricUnaryEncoding(PureOracle):
    p = property(lambda self: 1 / (1 + math.exp(-self.epsilon / 2)))
    q = property(lambda self: math.exp(-self.epsilon / 2) * self.p)
    report_bits = property(lambda self: float(self.domain_size))

    def privatize(self, values, *, rng):
        held = self._check_values(values)[:, None] == np.arange(self.domain_size)
        return (held ^ (rng.random(held.shape) < self.q)).astype(np.uint8)

    def log_prob(self, reports, value):
        flipped = (reports != (np.arange(self.domain_size) == value)).sum(axis=1)
        return self.domain_size * math.log(self.p) - flipped * self.epsilon / 2

    def report_space(self):
        return np.array(list(itertools.product((0, 1), repeat=self.domain_size)), dtype=np.uint8)

    def _add_reports(self, reports, out):
        out += reports.sum(axis=0, dtype=np.int64)
