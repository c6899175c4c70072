"""Memoized answers small enough to enumerate, and all reports that they can give."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from fedhh.longitudinal.memoization import dbitflip, one_bit_mean, rappor
from fedhh.oracles.bloom import BitResponse, BloomFilters


@dataclass(frozen=True)
class OwnBits:
    """A bit of its own for each value, as in basic RAPPOR, in place of a filter."""

    num_bits: int
    num_hashes: int = 1
    num_cohorts: int = 1

    def filters(self, cohorts, keys):
        return np.asarray(keys)[:, None] == np.arange(self.num_bits)


PAPER = BitResponse(f=0.5, p=0.5, q=0.75)

# Of each answer, what it is made of.
SETTINGS = {
    "basic-rappor": (rappor, {"filters": OwnBits(num_bits=2), "response": PAPER}),
    "one-time-rappor": (rappor, {"filters": OwnBits(num_bits=3), "response": BitResponse(f=0.5)}),
    "rappor": (
        rappor,
        {
            # Keys 0 and 1 share no bit in either cohort.
            "filters": BloomFilters(num_bits=4, num_hashes=2, num_cohorts=2, hash_seed=50),
            "response": PAPER,
        },
    ),
    "one-bit-mean": (one_bit_mean, {"epsilon": 1.0, "maximum": 4.0, "num_steps": 2}),
    "one-bit-mean-gamma": (
        one_bit_mean,
        {"epsilon": 1.0, "maximum": 4.0, "num_steps": 2, "gamma": 0.2},
    ),
    "dbitflip": (dbitflip, {"epsilon": 1.0, "num_buckets": 4, "num_drawn": 2}),
    "dbitflip-gamma": (dbitflip, {"epsilon": 1.0, "num_buckets": 3, "num_drawn": 2, "gamma": 0.1}),
    "dbitflip-one": (dbitflip, {"epsilon": 1.0, "num_buckets": 3, "num_drawn": 1}),
}
TINY = {name: kind(**settings) for name, (kind, settings) in SETTINGS.items()}


def values_of(name):
    """Return some values, the two that are easiest to distinguish among them."""
    kind, settings = SETTINGS[name]
    if kind is one_bit_mean:
        return [0.0, 4.0, 1.0, 2.5]
    return list(range(settings["num_buckets"])) if kind is dbitflip else [0, 1]


def publics_of(name):
    """Return all that can be public of a device, each as ``(1, w)``."""
    kind, settings = SETTINGS[name]
    if kind is dbitflip:
        return publics_of_buckets(settings["num_buckets"], settings["num_drawn"])
    if kind is rappor:
        return [np.array([[cohort]]) for cohort in range(settings["filters"].num_cohorts)]
    return [np.empty((1, 0), dtype=np.int64)]


def publics_of_buckets(num_buckets, num_drawn):
    """Return all buckets that a device may draw, each as ``(1, d)``."""
    sets = itertools.combinations(range(num_buckets), num_drawn)
    return [np.array([each]) for each in sets]


def all_reports(answer, days):
    """Return ``(2**(t b), t, b) bool``: every sequence of reports."""
    size = days * answer.num_bits
    flat = np.array(list(itertools.product((False, True), repeat=size)))
    return flat.reshape(-1, days, answer.num_bits)


def distribution_of(answer, values, public):
    """Return every sequence of reports, and the log-probability of each."""
    space = all_reports(answer, len(values))
    return space, answer.log_prob(space, values, np.repeat(public, len(space), axis=0))
