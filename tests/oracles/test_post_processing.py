from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import norm

from fedhh.oracles import ORACLES, OracleSpec, make_oracle
from fedhh.oracles.consistency import (
    MISTAKES,
    POST_PROCESSING,
    base_cut,
    norm_sub,
    post_process,
    significance_threshold,
)
from fedhh.validation import InputError
from tests.every import every


@every("seed", range(20))
def test_norm_sub_has_the_total_and_nothing_negative(seed):
    rng = np.random.default_rng(seed)
    estimates = rng.normal(0, 100, size=rng.integers(1, 60))
    total = float(rng.choice([0.0, 1.0, 1e3, 1e6]))
    counts = norm_sub(estimates, total=total)
    assert counts.sum() == pytest.approx(total, rel=1e-12, abs=1e-9)
    assert (counts >= 0).all()
    # One constant for all that stay; what went was below it.
    stay = counts > 0
    shift = (counts - estimates)[stay]
    assert np.ptp(shift) < 1e-8 if stay.any() else total == 0
    if stay.any():
        assert (estimates[~stay] + shift[0] <= 1e-8).all()


def test_norm_sub_is_the_closest():
    estimates, total = np.array([5.0, 1.0, -3.0]), 4.0
    best = np.sum((norm_sub(estimates, total=total) - estimates) ** 2)
    steps = np.linspace(0, total, 81)
    others = [
        np.array([a, b, total - a - b])
        for a, b in itertools.product(steps, steps)
        if a + b <= total
    ]
    assert best <= min(np.sum((each - estimates) ** 2) for each in others) + 1e-12


def test_norm_sub_leaves_counts_alone_and_order_as_it_is():
    counts = np.array([4.0, 0.0, 6.0])
    assert norm_sub(counts, total=10.0).tolist() == counts.tolist()
    estimates = np.random.default_rng(0).normal(0, 5, 50)
    kept = norm_sub(estimates, total=30.0)
    assert (np.diff(kept[np.argsort(estimates)]) >= 0).all()


def test_base_cut_leaves_what_is_above_the_threshold_and_nothing_else():
    std, many = 7.0, 1_000
    threshold = significance_threshold(many, std=std)
    assert many * norm.sf(threshold / std) == pytest.approx(MISTAKES, rel=1e-9)
    estimates = np.zeros(many)
    estimates[:3] = [threshold, np.nextafter(threshold, 0), -2 * threshold]
    cut = base_cut(estimates, std=std)
    assert cut[0] == threshold
    assert not cut[1:].any()


def test_names():
    estimates = np.array([50.0, 20.0, -30.0])
    assert post_process("none", estimates, total=40.0, std=10.0) is estimates
    by_name = {how: post_process(how, estimates, total=40.0, std=10.0) for how in POST_PROCESSING}
    assert by_name["norm-sub"].tolist() == [35.0, 5.0, 0.0]
    assert by_name["base-cut"].tolist() == [50.0, 0.0, 0.0]
    # What is missing of the total is another value's.
    with_rest = post_process("norm-sub", estimates, total=100.0, std=10.0, has_rest=True)
    assert with_rest.tolist() == [40.0, 10.0, 0.0]
    assert post_process("norm-sub", np.array([30.0]), total=100.0, std=1.0, has_rest=True) == 30.0
    with pytest.raises(InputError, match="norm_sub"):
        post_process("norm_sub", estimates, total=1.0, std=1.0)
    for how in POST_PROCESSING:
        assert not len(post_process(how, np.zeros(0), total=5.0, std=1.0))


@every("name", [each for each in ORACLES if each != "none"])
def test_every_oracles_estimates_can_be_processed(name):
    oracle = make_oracle(OracleSpec(name=name, epsilon=2.0), 20)
    rng = np.random.default_rng(2)
    held = np.repeat(np.arange(20), [400, 200, 100, *[0] * 17])
    estimates = oracle.estimate(oracle.support(oracle.aggregate(values=held, rng=rng)), 700)
    std = float(oracle.variance(0, 700)) ** 0.5
    true = np.bincount(held, minlength=20)
    raw = np.sum((estimates - true) ** 2)
    for how in POST_PROCESSING[1:]:
        counts = post_process(how, estimates, total=700.0, std=std)
        assert (counts >= 0).all()
    assert np.sum((norm_sub(estimates, total=700.0) - true) ** 2) < raw
