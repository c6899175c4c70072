"""Whom clients have to trust with what they send, by a protocol's plan."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fedhh.protocol import DiscoveryProtocol

LOCAL, CENTRAL = "local", "central"
"""Nobody, since clients randomize what they send; an aggregator that reads it as it is."""

TRUSTED: Mapping[str, str] = {
    LOCAL: "nobody, and a shuffler for this guarantee",
    "secure aggregation": "a secure sum",
    "two servers": "one of two servers",
    "hybrid": "a curator, some of them",
    CENTRAL: "an aggregator",
}
"""Whom clients trust in each model of fedhh's protocols."""


def trust_model_of(settled: DiscoveryProtocol) -> str:
    """Return a protocol's trust model: the one that it states, or what its plan guarantees.

    Args:
        settled: A protocol whose settings are settled.
    """
    return stated_or_guaranteed(settled.trust_model, settled.plan.local_epsilon)


def stated_or_guaranteed(stated: str, local_epsilon: float) -> str:
    """Return the trust model that a protocol states, or what its local epsilon guarantees.

    A plan in which every contribution has a finite local epsilon needs no trust. Its central
    guarantee needs a shuffler, as always.

    Args:
        stated: `DiscoveryProtocol.trust_model`, empty where the plan says it.
        local_epsilon: Of every contribution; infinite where some are not randomized.

    >>> stated_or_guaranteed("", 4.0), stated_or_guaranteed("two servers", float("inf"))
    ('local', 'two servers')
    """
    if stated:
        return stated
    return LOCAL if math.isfinite(local_epsilon) else CENTRAL
