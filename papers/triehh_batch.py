"""TrieHH's batch sizes: m = floor(n (e^(eps/L) - 1) / (theta e^(eps/L))), as its paper has them.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, the corollary of its privacy theorem.
"""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from fedhh.experiments.config.labels import value_text
from fedhh.experiments.study.text_table import TextTable
from fedhh.plans.sampled_threshold import triehh_epsilon
from papers.reproduction import Reproduction, Say, published
from papers.triehh_theorem import (
    stated_delta,
    stated_epsilon,
    stated_parameters,
)

EPSILON = 4.0


def reproduce(*, quick: bool, seed: int, say: Say) -> Reproduction:
    """Return each published batch next to the formula's; nothing is drawn."""
    setting = published()["triehh"]
    rounds, delta = setting["rounds"], setting["delta"]
    rows = [_row(stated, rounds=rounds, delta=delta) for stated in published()["triehh_batch"]]
    summary = TextTable(
        title="Batch sizes of TrieHH (Zhu et al. 2020)",
        columns=(
            "clients", "theta", "published m", "fedhh's m", "before rounding", "its epsilon",
            "epsilon of the published m", "proven epsilon", "clients that give the published m",
        ),
        rows=tuple(
            (
                f"{row['clients']:,}",
                str(row["threshold"]),
                f"{row['published']:,}",
                f"{row['sample']:,}",
                f"{row['exact']:,.3f}",
                value_text(EPSILON),
                f"{row['published_epsilon']:.6f}",
                f"{row['proven_epsilon']:.3f}",
                f"{row['fewest_clients']:,} to {row['most_clients']:,}",
            )
            for row in rows
        ),
        note=(
            f"L = {rounds} rounds, central epsilon {EPSILON:g}, delta {delta:g}: theta = "
            f"{rows[0]['least_threshold']} is the least threshold whose delta "
            f"({stated_delta(rows[0]['least_threshold']):.3g}) is not above it. "
            "Epsilons are the paper's, but the proven one: fedhh's, of the published m at that "
            "delta. Arithmetic: nothing is drawn."
        ),
        labels=2,
        records=tuple(rows),
    )  # fmt: skip
    return Reproduction(
        results=pd.DataFrame(rows),
        summary=summary,
        figures={},
        findings=tuple(_finding(row) for row in rows),
    )


def _row(stated: dict[str, int], *, rounds: int, delta: float) -> dict[str, Any]:
    clients, threshold, sample = stated["clients"], stated["threshold"], stated["sample"]
    ours = stated_parameters(num_clients=clients, epsilon=EPSILON, delta=delta, num_rounds=rounds)
    share = -math.expm1(-EPSILON / rounds) / threshold
    return {
        "clients": clients,
        "threshold": threshold,
        "published": sample,
        "least_threshold": ours.threshold,
        "sample": ours.sample_size,
        "exact": clients * share,
        "published_epsilon": stated_epsilon(
            num_clients=clients, sample_size=sample, threshold=threshold, num_rounds=rounds
        ),
        "proven_epsilon": triehh_epsilon(
            num_clients=clients,
            sample_size=sample,
            threshold=threshold,
            num_rounds=rounds,
            delta=delta,
        ),
        "fewest_clients": math.ceil(sample / share),
        "most_clients": math.ceil((sample + 1) / share) - 1,
    }


def _finding(row: dict[str, Any]) -> str:
    clients = f"{row['clients']:,} clients"
    if row["sample"] == row["published"]:
        return f"{clients}: reproduces exactly, {row['sample']:,}."
    nearest = round(row["exact"]) == row["published"]
    return (
        f"{clients}: the formula gives {row['exact']:,.2f}, rounded down {row['sample']:,}; the "
        f"published {row['published']:,} is "
        + ("that rounded to the nearest number, " if nearest else "not that, ")
        + f"or the formula's for {row['fewest_clients']:,} to {row['most_clients']:,} clients. Its "
        f"epsilon is {row['published_epsilon']:.6f}, above {EPSILON:g}."
    )
