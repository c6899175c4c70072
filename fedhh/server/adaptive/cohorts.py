"""How Adaptive TrieHH divides its clients, and how many prefixes these are enough for."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.validation import InputError

_FRONT_LOADED = (40, 40, 40, 40, 30, 24, 20, 14, 10, 5)
"""Sizes of front-loaded cohorts, relative to each other; the last one is that of all later ones."""

_LARGE_DOMAIN = 100_000
"""The noise of Subset Selection hardly depends on the domain beyond so many values."""

_DETECTABLE = 2.5
_PREFIXES_PER_WORD = 0.15
_FEWEST_PREFIXES, _MOST_PREFIXES = 1_000, 30_000


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


def share_noise(spec: OracleSpec, *, max_items: int, num_clients: int) -> float:
    """Return the deviation of an estimated share of clients that hold a word, of nobody's word.

    Args:
        spec: The randomizer of a report.
        max_items: B, reports of a client.
        num_clients: Clients whose reports are estimated from.
    """
    oracle = make_pure_oracle(spec, _LARGE_DOMAIN)
    variance = float(oracle.variance(0, 1)) if math.isfinite(oracle.epsilon) else 0.0
    return math.sqrt(max(variance, 1e-9) * max_items / num_clients)


def fitting_eta(spec: OracleSpec, *, max_items: int, num_clients: int) -> int:
    """Return how many prefixes to keep per layer.

    The least share of clients that an estimate by all of them could tell from nothing is 2.5
    standard deviations of its noise. Words of that share, with B of them for each client, would
    be as many as B over the share. A seventh of that is kept, since clients hold less than B
    words and most are held by more; and between 1,000 and 30,000.

    Args:
        spec: The randomizer of a report.
        max_items: B, reports of a client.
        num_clients: Clients of all layers.
    """
    noise = share_noise(spec, max_items=max_items, num_clients=num_clients)
    wanted = round(_PREFIXES_PER_WORD * max_items / (_DETECTABLE * noise))
    return min(max(wanted, _FEWEST_PREFIXES), _MOST_PREFIXES)
