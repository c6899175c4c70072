"""Memoized answers small enough to enumerate, and all reports that they can give."""

from __future__ import annotations

import itertools

import numpy as np

from fedhh.longitudinal.memoization import (
    MemoizedDBitFlip,
    MemoizedOneBitMean,
    MemoizedRappor,
    OwnBits,
)
from fedhh.oracles.bloom import BitResponse, BloomFilters

PAPER = BitResponse(f=0.5, p=0.5, q=0.75)

TINY = {
    "basic-rappor": MemoizedRappor(filters=OwnBits(num_bits=2), response=PAPER),
    "one-time-rappor": MemoizedRappor(filters=OwnBits(num_bits=3), response=BitResponse(f=0.5)),
    "rappor": MemoizedRappor(
        # Keys 0 and 1 share no bit in either cohort.
        filters=BloomFilters(num_bits=4, num_hashes=2, num_cohorts=2, hash_seed=50),
        response=PAPER,
    ),
    "one-bit-mean": MemoizedOneBitMean(epsilon=1.0, maximum=4.0, num_steps=2),
    "one-bit-mean-gamma": MemoizedOneBitMean(epsilon=1.0, maximum=4.0, num_steps=2, gamma=0.2),
    "dbitflip": MemoizedDBitFlip(epsilon=1.0, num_buckets=4, num_drawn=2),
    "dbitflip-gamma": MemoizedDBitFlip(epsilon=1.0, num_buckets=3, num_drawn=2, gamma=0.1),
    "dbitflip-one": MemoizedDBitFlip(epsilon=1.0, num_buckets=3, num_drawn=1),
    "dbitflip-only-drawn": MemoizedDBitFlip(
        epsilon=1.0, num_buckets=4, num_drawn=2, only_drawn=True
    ),
    "dbitflip-numbers": MemoizedDBitFlip(
        epsilon=1.0, num_buckets=3, num_drawn=2, step=2.0, gamma=0.1
    ),
}


def values_of(answer):
    """Return some values, the two that are easiest to distinguish among them."""
    if isinstance(answer, MemoizedOneBitMean):
        return [0.0, 4.0, 1.0, 2.5]
    if isinstance(answer, MemoizedDBitFlip):
        if answer.step is not None:
            return [0.0, 2.0, 4.0, 3.0]
        return list(range(answer.num_buckets))
    return [0, 1]


def publics_of(answer):
    """Return all that can be public of a device, each as ``(1, w)``."""
    if isinstance(answer, MemoizedDBitFlip):
        sets = itertools.combinations(range(answer.num_buckets), answer.num_drawn)
        return [np.array([each]) for each in sets]
    if isinstance(answer, MemoizedRappor):
        return [np.array([[cohort]]) for cohort in range(answer.filters.num_cohorts)]
    return [np.empty((1, 0), dtype=np.int64)]


def all_reports(answer, days):
    """Return ``(2**(t b), t, b) bool``: every sequence of reports."""
    size = days * answer.num_bits
    flat = np.array(list(itertools.product((False, True), repeat=size)))
    return flat.reshape(-1, days, answer.num_bits)


def distribution_of(answer, values, public):
    """Return every sequence of reports, and the log-probability of each."""
    space = all_reports(answer, len(values))
    return space, answer.log_prob(space, values, np.repeat(public, len(space), axis=0))
