"""Reports of mean sketches one by one: bits, sums, and what they say of a few values."""

from __future__ import annotations

import numpy as np
import pytest

from fedhh.kernels.reports import noisy_vectors
from fedhh.oracles import CountMeanSketch, HadamardCountMeanSketch
from fedhh.random import kernel_state
from fedhh.testing import follows_distribution

ORACLES = [
    CountMeanSketch(epsilon=2.0, domain_size=50, num_hashes=7, num_cells=70),
    HadamardCountMeanSketch(epsilon=2.0, domain_size=50, num_hashes=7, num_cells=64),
]


@pytest.mark.parametrize("flip", [0.5, 0.3, 0.01])
def test_every_vector_has_its_probability(flip):
    n, cells = 60_000, 4
    rng = np.random.default_rng(1)
    own = np.full(n, 2, dtype=np.int64)
    bits = noisy_vectors(own, cells, np.uint64(round(flip * 2.0**64)), kernel_state(rng))
    found = bits[:, 0].astype(np.int64)

    def distribution(p):
        flips = [(vector ^ 0b0100).bit_count() for vector in range(16)]
        return {vector: p**f * (1 - p) ** (4 - f) for vector, f in enumerate(flips)}

    assert follows_distribution(found, distribution(flip))
    assert not follows_distribution(found, distribution(flip * 0.8))


def test_coins_far_apart_are_independent():
    """Bits of one word share random words, and must not know of each other."""
    rng = np.random.default_rng(2)
    own = np.zeros(100_000, dtype=np.int64)
    bits = noisy_vectors(own, 130, np.uint64(round(0.25 * 2.0**64)), kernel_state(rng))
    assert not (bits[:, 2] >> np.uint64(2)).any()

    def bit(place):
        return (bits[:, place // 64] >> np.uint64(place % 64)) & np.uint64(1)

    for a, b in ((1, 2), (5, 63), (63, 64), (7, 129)):
        pairs = (2 * bit(a) + bit(b)).astype(np.int64)
        assert follows_distribution(pairs, {0: 9 / 16, 1: 3 / 16, 2: 3 / 16, 3: 1 / 16})


@pytest.mark.parametrize("oracle", ORACLES, ids=["cms", "hcms"])
def test_narrow_tables_hold_the_same_sums(oracle):
    reports = oracle.privatize(np.arange(50), rng=np.random.default_rng(5))
    narrow = np.zeros((7, oracle.aggregate_size // 7), dtype=np.int16)
    oracle.add_to_table(reports, narrow)
    assert (narrow.ravel() == oracle.aggregate(reports)).all()
    if isinstance(oracle, CountMeanSketch):
        ones = np.unpackbits(reports[:, 1:].copy().view(np.uint8))
        assert narrow.sum() == ones.sum()
