"""Whom clients have to trust with what they send, by a protocol's plan."""

from __future__ import annotations

import math

from fedhh.protocol import AnyProtocol

LOCAL, CENTRAL = "local", "central"
"""Nobody, since clients randomize what they send; an aggregator that reads it as it is."""


def trust_model_of(settled: AnyProtocol) -> str:
    """Return a protocol's trust model: the one that it states, or what its plan guarantees.

    A plan in which every contribution has a finite local epsilon needs no trust. Its central
    guarantee needs a shuffler, as always.

    Args:
        settled: A protocol whose settings are settled.
    """
    if settled.trust_model:
        return settled.trust_model
    return LOCAL if math.isfinite(settled.plan.local_epsilon) else CENTRAL
