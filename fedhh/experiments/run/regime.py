"""What limits a run: how many prefixes it may keep, or the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ndtr

MOSTLY_NOISE = 0.5
"""From this share of noise on, a run is limited by noise."""


@dataclass(frozen=True, kw_only=True)
class Regime:
    """What limits a run.

    Attributes:
        limit: "eta_max", "noise", or "nothing": no layer decided.
        noise_share: About how much of what layers kept is noise, on average over the layers in
            which words were lost.
        advice: What to change.
    """

    limit: str
    noise_share: float
    advice: str


def regime_of_run(layers: pd.DataFrame) -> Regime | None:
    """Return what limits a run, from the layers that dropped a candidate.

    If no client held any of s candidates, the eta-th best would stand at the normal quantile of
    1 - eta/s. A threshold z above it says that held prefixes pushed it up: s (1 - Phi(z))
    candidates pass it by noise alone, which is eta at that quantile, and almost none where held
    prefixes fill all of the eta places. Layers count by the mass of words that they lost: the last
    ones, which have few words left and keep mostly noise, must not hide the others.

    Args:
        layers: One row per round with num_candidates, num_kept, threshold_z, decides and
            missed_mass, as in `run.RunResult.layers`.

    Returns:
        None for protocols that broadcast no trie, or keep prefixes by another rule, and where more
        was lost below a threshold that noise hardly reaches than to the number of prefixes kept.
    """
    if "kept_by" in layers:  # Results of before there was another way lack it.
        lost_to = layers["missed_mass"].groupby(layers["kept_by"]).sum()
        by_threshold = lost_to.get("threshold", 0.0) > lost_to.get("votes", 0.0)
        if by_threshold or (layers["kept_by"] == "posterior").any():
            return None
        layers = layers[layers["kept_by"] == "votes"]
    deciding = layers[layers["decides"]]
    if deciding.empty:
        if layers["missed_mass"].isna().all():
            return None
        return Regime(
            limit="nothing",
            noise_share=0.0,
            advice="no layer had more than eta_max candidates; lower eta_max",
        )
    z = deciding["threshold_z"].to_numpy(dtype=np.float64)
    lost = deciding["missed_mass"].to_numpy(dtype=np.float64)
    if (np.isnan(z) | np.isposinf(z) | np.isnan(lost)).any():
        return None
    kept = deciding["num_kept"].to_numpy()
    by_noise = np.minimum(deciding["num_candidates"].to_numpy() * ndtr(-z), kept)
    weights = lost if lost.sum() > 0 else np.ones(len(lost))
    share = float(np.average(by_noise / kept, weights=weights))
    if share >= MOSTLY_NOISE:
        advice = "ask more clients, raise epsilon, or lower eta_max for precision"
        return Regime(limit="noise", noise_share=share, advice=advice)
    advice = "raise eta_max, or add a pass"
    return Regime(limit="eta_max", noise_share=share, advice=advice)
