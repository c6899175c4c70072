"""Epsilons at the ends of what floating point can hold: right numbers, or one line."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.oracles import ORACLES, FrequencyOracle, OracleSpec, make_oracle
from fedhh.validation import InputError
from tests.every import every

RANDOMIZERS = [name for name in ORACLES if name != "none"]
SMALL = {
    "cms": {"num_hashes": 2, "num_cells": 4},
    "hcms": {"num_hashes": 2, "num_cells": 4},
    "hashtogram": {"num_hashes": 2, "num_cells": 4},
    "flh": {"num_hashes": 4},
    "bassily-smith": {"num_hashes": 4},
    "dbitflip": {"num_bits": 2},
    "she": {"steps": 1, "reach": 0.0},
    "the": {"steps": 1, "reach": 0.0},
}


def oracle(name: str, epsilon: float) -> FrequencyOracle:
    return make_oracle(OracleSpec(name=name, epsilon=epsilon, params=SMALL.get(name, {})), 5)


@every("name", RANDOMIZERS)
@every("epsilon", [5e-324, 1e-300, 1e-17, 9e-7, 2e9, 1e300])
def test_an_epsilon_that_nothing_can_be_computed_with_is_refused(name, epsilon):
    with pytest.raises(InputError, match=r"^Expected [^\n]*epsilon"):
        oracle(name, epsilon)


@every("name", RANDOMIZERS)
def test_at_the_smallest_epsilon_reports_differ_by_exactly_that(name):
    tiny = oracle(name, 1e-6)
    space = tiny.report_space()
    logs = np.stack([tiny.log_prob(space, value) for value in range(5)])
    assert np.ptp(logs, axis=0).max() == pytest.approx(1e-6, rel=1e-6)
    estimates = tiny.estimate(np.array([0, 10, 20, 30, 40]), 40)
    assert np.isfinite(estimates).all()
    # Estimates of noise are as wide as one over epsilon.
    assert 1e5 < math.sqrt(float(tiny.variance(0, 40))) < 1e9
    assert np.diff(estimates).min() > 0


@every("name", RANDOMIZERS)
@every("epsilon", [700.0, 1000.0, 1e9])
def test_a_huge_epsilon_gives_finite_numbers_or_one_line(name, epsilon):
    if name in {"olh", "pgr", "flh"}:
        # Their fields and cells are as many as e**epsilon.
        with pytest.raises(InputError, match="epsilon <= "):
            oracle(name, epsilon)
        return
    huge = oracle(name, epsilon)
    rng = np.random.default_rng(0)
    values = np.array([0, 1, 1, 2, 2, 2, 2, 4] * 20)
    support = huge.support(huge.aggregate(values=values, rng=rng))
    estimates = huge.estimate(support, len(values))
    assert np.isfinite(estimates).all()
    assert np.isfinite(huge.variance(np.array([0.0, 80.0]), len(values))).all()
    logs = huge.log_prob(huge.privatize(values, rng=rng), 2)
    assert not np.isnan(logs).any()
    assert logs.max() <= 0


@every("epsilon", [800.0, 3000.0, 1e9])
@every("name", ["grr", "ss", "sue", "cms", "hcms", "hashtogram"])
def test_no_report_is_noise_where_the_exponential_is_no_double(name, epsilon):
    values = np.array([0, 3, 3, 7, 7, 7, 7, 15] * 100)
    held = np.bincount(values, minlength=16)
    oracle = make_oracle(OracleSpec(name=name, epsilon=epsilon), 16)
    rng = np.random.default_rng(0)
    support = oracle.support(reports=oracle.privatize(values, rng=rng))
    # A report always supports the value that it was made of; of others, sketches support some.
    assert (support >= held).all()
    assert (oracle.support(oracle.aggregate(values=values, rng=rng)) >= held).all()
    assert support.min() < len(values) / 2
