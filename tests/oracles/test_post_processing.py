from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from fedhh.oracles import ORACLES, OracleSpec, make_oracle
from fedhh.oracles.post_processing import (
    MISTAKES,
    POST_PROCESSING,
    PowerLaw,
    base_cut,
    norm_sub,
    post_process,
    power,
    significance_threshold,
)
from fedhh.validation import InputError


@pytest.mark.parametrize("seed", range(20))
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


@pytest.mark.parametrize(("exponent", "std"), [(0.7, 5.0), (1.3, 20.0), (2.0, 3.0), (2.0, 0.3)])
def test_the_likeliest_power_law_is_the_one_that_was_drawn(exponent, std):
    rng, largest, many = np.random.default_rng(8), 1e5, 40_000
    left = 1 - exponent
    # By the inverse of the distribution function.
    drawn = rng.random(many) * math.expm1(left * math.log1p(largest))
    counts = np.expm1(np.log1p(drawn) / left)
    law = PowerLaw.fitted(counts + rng.normal(0, std, many), largest=largest, std=std)
    assert law.exponent == pytest.approx(exponent, abs=0.04)
    # Another number of values, or none of the noise, does not hide the exponent either.
    few = PowerLaw.fitted(counts[:4_000] + rng.normal(0, std, 4_000), largest=largest, std=std)
    assert few.exponent == pytest.approx(exponent, abs=0.12)


@pytest.mark.parametrize("std", [0.5, 10.0, 400.0])
def test_the_mean_given_an_estimate_is_the_integral(std):
    law = PowerLaw(exponent=1.4, largest=5e4)
    points = np.array([-4, -1, 0, 0.5, 2, 4, 7.9, 8.1, 15]) * std
    means = law.mean_given(points, std=std)
    for point, mean in zip(points, means, strict=True):

        def weight(x, power, point=point):
            z = (point - x) / std
            best = max(0.0, -point / std)
            return x**power * (1 + x) ** -1.4 * math.exp(-0.5 * (z**2 - best**2))

        ends = sorted({0.0, min(1.0, std / 4), max(point - 6 * std, 0.0), max(point, std),
                       max(point, 0.0) + 9 * std})  # fmt: skip
        whole, first = (
            sum(quad(weight, a, b, args=(order,))[0] for a, b in itertools.pairwise(ends))
            for order in (0, 1)
        )
        assert mean == pytest.approx(first / whole, abs=0.02 * std)
    assert (np.diff(means) > 0).all()


def test_the_density_is_one():
    for exponent in (0.3, 1.0, 1.0 + 1e-13, 2.5):
        law = PowerLaw(exponent=exponent, largest=1e3)
        whole = quad(lambda u, law=law: law.density(np.expm1(u)) * math.exp(u), 0, math.log1p(1e3))[
            0
        ]
        assert whole == pytest.approx(1.0, rel=1e-9)


def test_power_has_less_error_than_the_estimates():
    rng = np.random.default_rng(1)
    counts = 20_000 / np.arange(1, 2_001) ** 1.2
    estimates = counts + rng.normal(0, 60, 2_000)
    errors = [
        np.mean((each - counts) ** 2) for each in (estimates, power(estimates, total=1e5, std=60.0))
    ]
    assert errors[1] < errors[0] / 4
    assert power(np.array([-3.0, 5.0]), total=4.0, std=0.0).tolist() == [0.0, 4.0]


def test_names():
    estimates = np.array([50.0, 20.0, -30.0])
    assert post_process("none", estimates, total=40.0, std=10.0) is estimates
    by_name = {how: post_process(how, estimates, total=40.0, std=10.0) for how in POST_PROCESSING}
    assert by_name["norm-sub"].tolist() == [35.0, 5.0, 0.0]
    assert by_name["base-cut"].tolist() == [50.0, 0.0, 0.0]
    assert (by_name["power"] >= 0).all()
    assert by_name["power-ns"].sum() == pytest.approx(40.0)
    # What is missing of the total is another value's.
    with_rest = post_process("norm-sub", estimates, total=100.0, std=10.0, has_rest=True)
    assert with_rest.tolist() == [40.0, 10.0, 0.0]
    assert post_process("norm-sub", np.array([30.0]), total=100.0, std=1.0, has_rest=True) == 30.0
    with pytest.raises(InputError, match="norm_sub"):
        post_process("norm_sub", estimates, total=1.0, std=1.0)
    for how in POST_PROCESSING:
        assert not len(post_process(how, np.zeros(0), total=5.0, std=1.0))


@pytest.mark.parametrize("name", [each for each in ORACLES if each != "none"])
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
