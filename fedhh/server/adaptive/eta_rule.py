"""How many prefixes are worth keeping in a layer: a rule from clients, epsilon and B."""

from __future__ import annotations

import math

from fedhh.oracles import OracleSpec, make_pure_oracle

_LARGE_DOMAIN = 100_000
"""The noise of Subset Selection hardly depends on the domain beyond so many values."""

_DETECTABLE = 2.5
_PREFIXES_PER_WORD = 0.15
_FEWEST_PREFIXES, _MOST_PREFIXES = 2_000, 30_000


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
    words and most are held by more; and between 2,000 and 30,000.

    Args:
        spec: The randomizer of a report.
        max_items: B, reports of a client.
        num_clients: Clients of all layers.
    """
    noise = share_noise(spec, max_items=max_items, num_clients=num_clients)
    wanted = round(_PREFIXES_PER_WORD * max_items / (_DETECTABLE * noise))
    return min(max(wanted, _FEWEST_PREFIXES), _MOST_PREFIXES)
