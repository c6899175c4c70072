"""Auditing a whole layer: what one contribution changes in what the server publishes."""

from __future__ import annotations

import numpy as np

from fedhh.accounting import AuditResult, audit_epsilon
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.random import Stream, generator
from fedhh.validation import require_at_least


def audit_layer(
    spec: OracleSpec,
    *,
    domain_size: int,
    num_reports: int,
    num_runs: int,
    delta: float,
    confidence: float,
    seed: int,
) -> AuditResult:
    """Return a lower bound on the central epsilon of one layer's votes.

    The layer is run ``num_runs`` times with each of two data sets that differ in one contribution:
    value 0 or value 1; everybody else contributes the dummy. The statistic is the difference of
    the two values' votes, which is all that the swap can show in the tally beside chance.

    Args:
        spec: The randomizer.
        domain_size: Its values, at least 3: two and the dummy.
        num_reports: Reports in the layer.
        num_runs: Runs for each data set; half of them choose the event.
        delta: Allowed beside epsilon.
        confidence: In (0, 1).
        seed: Of all runs.
    """
    require_at_least(3, domain_size=domain_size)
    require_at_least(2, num_reports=num_reports)
    require_at_least(4, num_runs=num_runs)
    oracle = make_oracle(spec, domain_size)
    samples = []
    for victim in (0, 1):
        values = np.full(num_reports, domain_size - 1, dtype=np.int64)
        values[0] = victim
        rng = generator(seed, Stream.RANDOMIZER, victim)
        votes = (oracle.privatize_and_tally(values, rng=rng) for _ in range(num_runs))
        samples.append(np.array([tally[0] - tally[1] for tally in votes], dtype=np.float64))
    return audit_epsilon(samples[0], samples[1], delta=delta, confidence=confidence)
