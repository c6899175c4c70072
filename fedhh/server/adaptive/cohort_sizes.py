"""How many clients each layer asks."""

from __future__ import annotations

from itertools import accumulate, pairwise

from fedhh.validation import InputError

_FRONT_LOADED = (40, 40, 40, 40, 30, 24, 20, 14, 10, 5)
"""Sizes of front-loaded cohorts, relative to each other; the last one is that of all later ones."""


def cohort_sizes(rounds: int, total: int, *, front_loaded: bool, least: int = 1) -> tuple[int, ...]:
    """Return the sizes of so many cohorts that together have exactly ``total`` clients.

    The smallest cohort decides what amplification by shuffling gives, so that front-loaded sizes
    have a floor: cohorts below it are raised to it, and the others share the rest by their weights.

    Args:
        rounds: Cohorts.
        total: Clients.
        front_loaded: Whether the first cohorts are the largest; otherwise all are alike.
        least: Fewest clients of a cohort, at least 1.

    Raises:
        InputError: There are too few clients.
    """
    if rounds * least > total:
        raise InputError(
            f"Expected at least {rounds * least:,} clients for {rounds} layers of at least "
            f"{least:,} each, got {total:,}; set least_cohort <= {max(1, total // rounds):,}, or "
            "ask more clients or fewer layers."
        )
    weights = [1] * rounds
    if front_loaded:
        later = [_FRONT_LOADED[-1]] * (rounds - len(_FRONT_LOADED))
        weights = [*_FRONT_LOADED, *later][:rounds]
    raised = 0
    while True:
        # Weights do not increase, so that those to be raised are the last ones.
        shared, rest = weights[: rounds - raised], total - raised * least
        if shared[-1] * rest >= least * sum(shared):
            break
        raised += 1
    ends = [rest * part // sum(shared) for part in accumulate(shared, initial=0)]
    return (*(end - start for start, end in pairwise(ends)), *[least] * raised)
