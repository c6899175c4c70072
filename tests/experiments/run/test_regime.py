from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import fedhh
from fedhh.experiments.report.layer_figures import draw_trie
from fedhh.experiments.run.regime import regime_of_run
from fedhh.testing import LETTERS, small_population


def layers(*rows: tuple[int, int, float], lost: tuple[float, ...] = ()) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["num_candidates", "num_kept", "threshold_z"])
    frame["missed_mass"] = lost or 0.0
    return frame.assign(decides=frame["num_kept"] < frame["num_candidates"])


def test_a_threshold_at_the_noise_quantile_is_all_noise():
    regime = regime_of_run(layers((10_000, 300, norm.isf(300 / 10_000))))
    assert regime.limit == "noise"
    assert regime.noise_share == pytest.approx(1)


def test_a_threshold_that_noise_cannot_reach_is_limited_by_eta():
    regime = regime_of_run(layers((10_000, 300, 6.0)))
    assert regime.limit == "eta_max"
    assert regime.noise_share < 1e-6


def test_deciding_layers_count_by_the_mass_that_they_lost():
    free = (200, 200, -3.0)
    half = (1_000, 100, norm.isf(50 / 1_000))
    clean = (1_000, 300, 9.0)
    weighed = layers(free, half, clean, lost=(0.0, 0.1, 0.4))
    assert regime_of_run(weighed).noise_share == pytest.approx(0.5 * 0.1 / 0.5)
    assert regime_of_run(weighed).limit == "eta_max"
    assert regime_of_run(layers(free, half, clean)).noise_share == pytest.approx(0.25)
    assert regime_of_run(layers(free)).limit == "nothing"


def test_noise_cannot_fill_more_than_all_places():
    assert regime_of_run(layers((1_000, 100, -np.inf))).noise_share == 1


def test_rounds_without_a_threshold_have_no_regime():
    assert regime_of_run(layers((1_000, 100, np.nan))) is None
    # Nor have those that broadcast no prefixes, so that none can be missed.
    assert regime_of_run(layers((3, 3, 2.0), lost=(np.nan,))) is None


@pytest.mark.parametrize("has_threshold", [False, True])
def test_readers_leave_out_a_threshold_that_a_protocol_lacks(has_threshold):
    kind = fedhh.LdpTrieHH if has_threshold else fedhh.AdaptiveTrieHH
    protocol = kind(alphabet=LETTERS, depth=3, eta_max=20, max_items=1)
    result = fedhh.simulate(protocol, small_population(2_000), seed=3)
    assert result.layers["threshold_z"].isna().all() == (not has_threshold)
    assert (regime_of_run(result.layers) is None) == (not has_threshold)
    # Votes have an axis, and thresholds one of their own.
    assert len(draw_trie(result, "The trie").axes) == 1 + has_threshold


@pytest.mark.slow("::test_a_threshold_at_the_noise_quantile_is_all_noise")
@pytest.mark.parametrize(("epsilon", "limit"), [(0.5, "noise"), (12.0, "eta_max")])
def test_runs_are_distinguished(epsilon: float, limit: str):
    population = fedhh.synthetic_population("chat", 20_000, seed=0)
    protocol = fedhh.LdpTrieHH(
        clients_per_layer=4_000, passes=1, depth=4, eta_max=30, max_items=5, local_epsilon=epsilon
    )
    result = fedhh.simulate(protocol, population, seed=0)
    assert regime_of_run(result.layers).limit == limit
