"""What a round says about words that it finds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.found import Found
from fedhh.queries.base import Aggregate, Query
from fedhh.server.noise import Noise
from fedhh.words.trie import Codes


def counted(
    query: Query,
    aggregate: Aggregate,
    noise: Noise,
    *,
    codes: Codes,
    support: npt.NDArray[np.int64],
) -> Found:
    """Return words with what a round says about them.

    Args:
        query: The round.
        aggregate: Its answers.
        noise: What chance does to them.
        codes: ``(h, width) uint16``.
        support: ``(h,) int64``: reports that support each word.
    """
    estimate = noise.oracle.estimate(support, aggregate.num_reports)
    return Found(
        codes=codes,
        pass_index=np.full(len(codes), query.pass_index),
        layer=np.full(len(codes), query.layer),
        estimate=estimate,
        variance=noise.variance(estimate),
        z=noise.z(support),
        num_clients=np.full(len(codes), aggregate.num_clients),
        interval_z=np.full(len(codes), np.nan),
    )


def unheard(query: Query, codes: Codes) -> Found:
    """Return words that become candidates after a round that did not ask about them.

    Args:
        query: The round.
        codes: ``(h, width) uint16``.
    """
    nothing = np.zeros(len(codes))
    return Found(
        codes=codes,
        pass_index=np.full(len(codes), query.pass_index),
        layer=np.full(len(codes), query.layer),
        estimate=nothing,
        variance=nothing,
        z=nothing,
        num_clients=np.zeros(len(codes), dtype=np.int64),
        interval_z=np.full(len(codes), np.nan),
    )
