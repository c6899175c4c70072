"""How large a Count Mean Sketch must be: standard deviations by its size, after Apple (2017)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhh.oracles.base import Floats, Values
from fedhh.oracles.count_mean_sketch import CountMeanSketch
from fedhh.oracles.sketch import odds, sample_sketch
from fedhh.random import Stream, generator
from fedhh.validation import require_between, require_epsilon

NUM_CELLS = (16, 64, 256, 1024, 4096)
NUM_HASHES = (16, 256, 2048, 65536)
FROM_RANK = 1000
"""Values beyond this rank are rare: in one drawn sketch, their errors are distributed alike."""

_SIMULATED = ((256, 256), (4096, 256))
"""Sizes (m, k) that are simulated; a sketch is drawn in time k for each value."""
_SMALLEST_DOMAIN, _LARGEST_DOMAIN = 10_000, 1_000_000


@dataclass(frozen=True, kw_only=True)
class SketchErrors:
    """Standard deviations of one value's count, in reports, by the size of the sketch.

    Attributes:
        title: What was asked for.
        count: Reports about the value.
        floor: What no size goes below.
        surface: ``(5, 4) float64``, by Apple's Theorem 4.2, an upper bound: rows are the m of
            `NUM_CELLS`, columns the k of `NUM_HASHES`.
        simulated: Root mean square errors of values beyond rank `FROM_RANK` in one drawn sketch
            each, by (m, k).
    """

    title: str
    count: float
    floor: float
    surface: Floats
    simulated: Mapping[tuple[int, int], float]

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready dictionary."""
        return {
            "unit": "reports",
            "floor": self.floor,
            "surface": [
                {"num_cells": m, "num_hashes": k, "deviation": float(self.surface[i, j])}
                for i, m in enumerate(NUM_CELLS)
                for j, k in enumerate(NUM_HASHES)
            ],
            "simulated": [
                {"num_cells": m, "num_hashes": k, "deviation": value}
                for (m, k), value in self.simulated.items()
            ],
        }


def deviation_surface(
    true_counts: Values,
    value: int,
    *,
    epsilon: float,
    num_hashes: Sequence[int],
    num_cells: Sequence[int],
) -> Floats:
    """Return the standard deviation of a count's estimate for many sketch sizes.

    This is Apple (2017), figure 4b: the square root of Theorem 4.2 over server work (k) and report
    size (m). The published theorem is an upper bound, up to 3 percent above the exact deviation in
    the figure's range; no size goes below `deviation_floor`.

    Args:
        true_counts: ``(c,) int64``: how many clients hold each value.
        value: The value whose estimate is meant.
        epsilon: Privacy of one report.
        num_hashes: The k of each column that is returned.
        num_cells: The m of each row.
    """
    domain_size = len(true_counts)

    def deviation(m: int, k: int) -> float:
        oracle = CountMeanSketch(
            epsilon=epsilon, domain_size=domain_size, num_hashes=k, num_cells=m
        )
        return math.sqrt(oracle.published_variance(true_counts)[value])

    return np.array([[deviation(m, k) for k in num_hashes] for m in num_cells])


def deviation_floor(*, epsilon: float, num_reports: int) -> float:
    """Return the limit of `deviation_surface` for many hash functions and many cells."""
    growth = odds(epsilon / 2)
    return math.sqrt(num_reports * growth) / (growth - 1)


def cms_variance(
    *,
    epsilon: float = 2.0,
    num_reports: int = 100_000_000,
    num_values: int = 100_000,
    rank: int = 10,
    seed: int = 0,
    simulated: Sequence[tuple[int, int]] | None = None,
) -> SketchErrors:
    """Return standard deviations of a count in a Count Mean Sketch, by its size, and simulations.

    Args:
        epsilon: Local privacy of one report.
        num_reports: Reports in the sketch, from ``num_values`` to 10**12.
        num_values: Values, held by Zipf's law (1 / rank); 10,000 to 1,000,000.
        rank: Of the value whose count is meant, from 1.
        seed: Of what is simulated.
        simulated: Sizes (m, k) of sketches that are drawn; (256, 256) and (4096, 256) if None.

    Raises:
        InputError: A value is out of range.
    """
    require_epsilon(epsilon=epsilon)
    require_between(_SMALLEST_DOMAIN, _LARGEST_DOMAIN, values=num_values)
    require_between(1, num_values, rank=rank)
    require_between(num_values, 10**12, reports=num_reports)
    shares = 1 / np.arange(1, num_values + 1)
    counts = num_reports * shares / shares.sum()
    return SketchErrors(
        title=f"rank {rank} of {num_values:,} values, {num_reports:,} reports at epsilon "
        f"{epsilon:g}",
        count=counts[rank - 1],
        floor=deviation_floor(epsilon=epsilon, num_reports=num_reports),
        surface=deviation_surface(
            counts, rank - 1, epsilon=epsilon, num_hashes=NUM_HASHES, num_cells=NUM_CELLS
        ),
        simulated={
            (m, k): _simulate(counts, epsilon=epsilon, num_cells=m, num_hashes=k, seed=seed)
            for m, k in (_SIMULATED if simulated is None else simulated)
        },
    )


def _simulate(
    counts: Floats, *, epsilon: float, num_cells: int, num_hashes: int, seed: int
) -> float:
    """Return the root mean square error of the rare values in one drawn sketch of all reports.

    One sketch has one value of a given rank, but thousands of rare ones, whose errors have the
    same distribution but for what the value's own clients add, which is little.
    """
    whole = np.round(counts).astype(np.int64)
    oracle = CountMeanSketch(
        epsilon=epsilon,
        domain_size=len(whole),
        num_hashes=num_hashes,
        num_cells=num_cells,
        hash_seed=seed,
    )
    rng = generator(seed, Stream.TALLY, num_cells, num_hashes)
    sketch = sample_sketch(oracle, whole, rng=rng)
    rare = np.arange(FROM_RANK, len(whole), 5)
    found = oracle.estimate(oracle.support(sketch, rare), int(whole.sum()))
    return math.sqrt(np.mean((found - whole[rare]) ** 2))
