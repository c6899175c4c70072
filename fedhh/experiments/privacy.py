"""From what took part in a run to what it can claim, and what its discoveries show of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from fedhh.accounting import (
    LayerRecord,
    NotApplicable,
    PrivacyReport,
    account_run,
    account_triehh,
)
from fedhh.protocol import DiscoveryProtocol, RoundSummary
from fedhh.server.triehh import TrieHH

DEFAULT_DELTA = 1e-10
"""The paper's delta."""

DEFAULT_ALPHA = 0.95
"""The paper's alpha."""

MEASURED_ANONYMITY = ("fewest_holders", "fewest_holders_significant", "share_held_by_fewer_than_k")
"""What `measured_anonymity` returns; part of a run's metrics."""


def privacy_of_run(
    protocol: DiscoveryProtocol[Any, Any],
    summaries: Sequence[RoundSummary],
    *,
    num_clients: int,
    delta: float = DEFAULT_DELTA,
    alpha: float = DEFAULT_ALPHA,
) -> PrivacyReport:
    """Return what a run can claim, from the reports that each of its rounds counted.

    Args:
        protocol: The run's settings: the randomizer, B, padding, whether clients serve again.
        summaries: What each round received; a round with fewer answers has a smaller cohort.
        num_clients: Clients of the population, from which central TrieHH samples.
        delta: Of the central guarantees.
        alpha: Of approximate k-anonymity.
    """
    if isinstance(protocol, TrieHH):
        return account_triehh(
            num_clients=num_clients,
            sample_size=protocol.clients_per_layer,
            threshold=protocol.threshold,
            num_rounds=protocol.num_rounds,
        )
    expected = protocol.answers_expected // max(protocol.rounds_expected, 1)
    return account_run(
        oracle=protocol.randomizer,
        layers=[
            LayerRecord(
                pass_index=summary.pass_index + 1,
                layer=summary.layer,
                num_clients=summary.num_clients,
                num_reports=summary.num_reports,
                domain_size=summary.domain_size,
                num_kept=summary.num_kept,
                decides=summary.decides,
                subset_size=summary.subset_size or None,
                lost_clients=max(0, expected - summary.num_clients),
            )
            for summary in summaries
        ],
        local_epsilon=protocol.contribution_epsilon,
        max_items=protocol.contributions_per_client,
        delta=delta,
        alpha=alpha,
        padded=protocol.pads_reports,
        rounds_per_client=len(summaries) if protocol.reuses_clients else 1,
    )


def local_epsilon(report: PrivacyReport, unit: str) -> float:
    """Return the local epsilon of a unit over all rounds of its client, infinite if none."""
    return _smallest_epsilon(report, unit, "local")


def central_epsilon(report: PrivacyReport, unit: str) -> float:
    """Return the smallest valid central epsilon of a unit, infinite if there is none."""
    return _smallest_epsilon(report, unit, "central")


def _smallest_epsilon(report: PrivacyReport, unit: str, trust: str) -> float:
    epsilon = report.best(unit, trust).epsilon
    return math.inf if isinstance(epsilon, NotApplicable) else epsilon


def claimed_k(report: PrivacyReport) -> int | None:
    """Return k of the tight bound over the whole run, or None where there is none."""
    for claim in report.anonymity:
        if claim.variant == "tight" and claim.layer is None:
            return None if isinstance(claim.k, NotApplicable) else claim.k
    return None


def measured_anonymity(discoveries: pd.DataFrame, k: int | None) -> dict[str, Any]:
    """Return how many clients really hold the discovered words, which only a simulator knows.

    Args:
        discoveries: See `metrics.discoveries_table`.
        k: What the run claims, or None.

    Returns:
        ``fewest_holders`` of a discovered word and of a significant one (0 for invented words),
        and ``share_held_by_fewer_than_k`` of all discoveries, None without a claim.
    """
    holders = discoveries["true_clients"]
    significant = holders[discoveries["is_significant"]]
    return {
        "fewest_holders": None if holders.empty else int(holders.min()),
        "fewest_holders_significant": None if significant.empty else int(significant.min()),
        "share_held_by_fewer_than_k": (
            None if k is None or holders.empty else float((holders < k).mean())
        ),
    }
