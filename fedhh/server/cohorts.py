"""How many clients each layer asks."""

from __future__ import annotations

import math

import numpy as np

from fedhh.validation import InputError

_FRONT_LOADED = (2.0, 2.0, 2.0, 2.0, 1.5, 1.2, 1.0, 0.7, 0.5, 0.25)
"""Sizes of front-loaded cohorts, relative to each other; the last one is that of all later ones."""


def cohort_sizes(rounds: int, total: int, *, front_loaded: bool) -> tuple[int, ...]:
    """Return the sizes of so many cohorts that together have ``total`` clients.

    Args:
        rounds: Cohorts.
        total: Clients.
        front_loaded: Whether the first cohorts are the largest; otherwise all are alike.

    Raises:
        InputError: There are too few clients.
    """
    weights = np.ones(rounds)
    if front_loaded:
        weights[: len(_FRONT_LOADED)] = _FRONT_LOADED[:rounds]
        weights[len(_FRONT_LOADED) :] = _FRONT_LOADED[-1]
    ends = np.floor(np.cumsum(weights) / weights.sum() * total * (1 + 1e-12)).astype(np.int64)
    sizes = np.diff(ends, prepend=0)
    if sizes.min() < 1:
        raise InputError(
            f"Expected at least {math.ceil(weights.sum() / weights.min())} clients for "
            f"{rounds} layers, got {total}; set front_loaded=false or ask more clients."
        )
    return tuple(sizes.tolist())
