"""What fake devices gain: data poisoning of frequency oracles.

A fake device controls its reports, and nothing but the oracle's report space limits them. Source of
the attack and its gains: Cao, Jia, Gong (2021), "Data poisoning attacks to local differential
privacy protocols", USENIX Security. Its maximal gain attack sends `FrequencyOracle.craft`, its
random item attack a random wanted value through the honest randomizer. The paper has `grr`, `oue`
and `olh`; the same is done here to all others.

A server estimates the frequencies of r wanted values among n honest and m fake devices. The gain is
by how much their estimates' sum changes, in expectation. Estimates are linear in what reports add
up to, so with beta = m / (n + m) and f the wanted values' share of the honest devices,

    gain = beta (effect - f),

where the effect is the sum of the estimates made of one fake report. Where a report supports c of
the wanted values, it is (c - r q) / (p - q) for a `PureOracle`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.kernels.reports import draw_subsets
from fedhh.oracles.base import FrequencyOracle, Reports, Tally, Values, as_numbers
from fedhh.random import kernel_state
from fedhh.validation import require_between

_BITS_AT_ONCE = 2**25


def expected_gain(
    oracle: FrequencyOracle,
    reports: Reports,
    values: npt.ArrayLike,
    *,
    share: float,
    frequency: float = 0.0,
) -> float:
    """Return the gain of values if fake devices send reports like these: beta (effect - f).

    Args:
        oracle: The randomizer with its estimator.
        reports: What they send, at least one.
        values: ``(r,)`` values.
        share: beta, fake devices among all.
        frequency: f, how many of the honest devices hold one of the values.
    """
    require_between(0, 1, share=share, frequency=frequency)
    return share * (oracle.effect(reports, np.unique(as_numbers(values))) - frequency)


def maximal_gain(
    oracle: FrequencyOracle, wanted: npt.ArrayLike, *, share: float, frequency: float = 0.0
) -> float:
    """Return the largest gain of wanted values by any reports: exact, for the oracle's functions.

    With r wanted values and E = e**epsilon, it is, for beta = ``share`` and f = ``frequency``,

    * beta (1 - f) + beta (s - r) / (E - 1) for generalized randomized response over s values;
    * beta (2 r - f) + 2 beta r / (E - 1) for optimized unary encoding;
    * beta ((min(r, d) - r q) / (p - q) - f) for Subset Selection;
    * beta (r (1 - q) / (p - q) - f) for local hashing, by a function that sends all values to one
      cell. A search among random functions finds less.

    >>> from fedhh.oracles import OracleSpec, make_oracle
    >>> oue = make_oracle(OracleSpec(name="oue", epsilon=1.0), 128)
    >>> round(maximal_gain(oue, range(10), share=0.05), 5)
    1.58198
    """
    best = oracle.best_report(wanted)
    return expected_gain(oracle, best, wanted, share=share, frequency=frequency)


def add_crafted(
    oracle: FrequencyOracle,
    values: Values,
    *,
    sign: int,
    count: int,
    rng: np.random.Generator,
    out: Tally,
) -> None:
    """Add reports that `FrequencyOracle.craft` makes, in parts that fit the memory.

    Args:
        oracle: What they are for.
        values: See there, as ``sign``, ``count`` and ``rng``.
        sign: ...
        count: ...
        rng: ...
        out: ``(aggregate_size,) int64``, changed in place.
    """
    step = max(1, int(_BITS_AT_ONCE // max(oracle.report_bits, 64)))
    for start in range(0, count, step):
        reports = oracle.craft(values, sign=sign, count=min(step, count - start), rng=rng)
        oracle.aggregate(reports, out=out)


# What crafted reports are made of: some values as wanted, the rest at random.


def random_subsets(size: int, members: int, count: int, *, rng: np.random.Generator) -> Values:
    """Return ``(count, members) int64``: uniform subsets of [0, size), in no order."""
    subsets = np.empty((count, members), dtype=np.int64)
    if members == size:
        subsets[:] = np.arange(size)
    elif members:
        # A subset that holds a uniform value and uniform others is uniform.
        first = rng.integers(size, size=count)
        draw_subsets(first, size, np.uint64(0), subsets, kernel_state(rng))
    return subsets


def subsets_with(
    size: int, values: Values, inside: int, members: int, count: int, *, rng: np.random.Generator
) -> tuple[Values, Values]:
    """Return ``(count, inside)`` of ascending values, and ``(count, members - inside)`` others."""
    own = values[random_subsets(len(values), inside, count, rng=rng)]
    numbers = random_subsets(size - len(values), members - inside, count, rng=rng)
    return own, other_values(numbers, values)


def other_values(numbers: Values, taken: Values) -> Values:
    """Return, for numbers from 0, which values these are among those not in ascending ``taken``."""
    before = np.searchsorted(taken - np.arange(len(taken)), numbers.ravel(), side="right")
    return np.asarray(numbers + before.reshape(numbers.shape), dtype=np.int64)


def bits_with(
    size: int, values: Values, *, bit: int, ones: int, count: int, rng: np.random.Generator
) -> Reports:
    """Return ``(count, size) uint8``: this bit at some values, ones elsewhere up to a number."""
    bits = np.zeros((count, size), dtype=np.uint8)
    bits[:, values] = bit
    others = min(max(ones - bit * len(values), 0), size - len(values))
    _, places = subsets_with(size, values, 0, others, count, rng=rng)
    np.put_along_axis(bits, places, 1, axis=1)
    return bits
