"""Which pool a client prefers, inferred from many reports: enumerated, simulated, refuted."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from fedhh.accounting.inference import Pools, infer_pool
from fedhh.accounting.inference.pool_inference import exact_successes
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.validation import InputError
from tests.every import every
from tests.wrong_oracles import SupportsItsValue

APPLE_EPSILON = 4.0
"""Of emoji, as published."""


def oracle_of(name="cms", epsilon=APPLE_EPSILON, domain_size=4, num_cells=6):
    params = {"num_cells": num_cells, "num_hashes": 8} if name == "cms" else {}
    return make_oracle(OracleSpec(name=name, epsilon=epsilon, params=params), domain_size)


@every("name", ["grr", "ss", "cms"])
@every("polarization", [1.0, 0.6])
def test_exact_success_is_that_of_every_sequence_of_draws_and_reports(name, polarization):
    pools = Pools(num_pools=2, pool_size=2, polarization=polarization)
    oracle = oracle_of(name, 1.0, num_cells=3)
    space = oracle.report_space()
    given_value = np.exp([oracle.log_prob(space, value) for value in range(4)])
    given_pool = np.zeros((2, len(space)))
    for pool, on_purpose, first, second in itertools.product(
        range(2), (True, False), *[range(2)] * 2
    ):
        # On purpose the draw's pool is the client's, otherwise that of a fair coin.
        chance = polarization if on_purpose else 1 - polarization
        drawn = 2 * (pool if on_purpose else first) + second
        given_pool[pool] += chance / 4 * given_value[drawn]
    assert given_pool.sum(axis=1) == pytest.approx(1)
    one, two = exact_successes(oracle, pools, (1, 2))
    assert one == pytest.approx(given_pool.max(axis=0).sum() / 2, rel=1e-9)
    pairs = given_pool[:, :, None] * given_pool[:, None, :]
    assert two == pytest.approx(pairs.max(axis=0).sum() / 2, rel=1e-8)


@pytest.mark.parametrize("name", ["cms", "ss", "grr"])
def test_simulated_guesses_follow_the_exact_chance(name):
    pools = Pools(num_pools=2, pool_size=2, polarization=0.8)
    oracle = oracle_of(name, 1.5)
    found = infer_pool(
        oracle, pools, reports=(1, 2, 5), num_clients=20_000, rng=np.random.default_rng(4)
    )
    assert not found.refuted
    for each in found.successes:
        law = stats.binom(each.made.clients, each.exact)
        assert law.ppf(1e-9) <= each.made.right <= law.isf(1e-9)
        for wrong in (each.exact - 0.04, each.exact + 0.04):
            other = stats.binom(each.made.clients, wrong)
            assert not other.ppf(1e-9) <= each.made.right <= other.isf(1e-9)


@pytest.mark.parametrize("name", ["grr", "ss", "oue", "cms"])
def test_reports_never_tell_more_than_all_their_epsilons_allow(name):
    pools = Pools(num_pools=2, pool_size=1)
    oracle = oracle_of(name, 0.7, 2)
    found = infer_pool(
        oracle, pools, reports=(1, 3), num_clients=5_000, rng=np.random.default_rng(6)
    )
    for each in found.successes:
        assert each.exact <= each.allowed * (1 + 1e-9)
    assert not found.refuted


def test_more_reports_polarization_and_epsilon_are_more_exact_successes():
    def chance(epsilon, polarization, number):
        pools = Pools(num_pools=2, pool_size=2, polarization=polarization)
        return exact_successes(oracle_of("grr", epsilon), pools, (number,))[0]

    base = chance(2.0, 0.8, 2)
    assert chance(2.0, 0.8, 4) > base + 0.01
    assert chance(2.0, 0.4, 2) < base - 0.05
    assert chance(1.0, 0.8, 2) < base - 0.05
    assert chance(2.0, 0.0, 2) == pytest.approx(0.5)


@pytest.mark.slow("::test_more_reports_polarization_and_epsilon_are_more_exact_successes")
def test_more_reports_polarization_and_epsilon_tell_more():
    rng = np.random.default_rng(7)

    def share(epsilon, polarization, number):
        return infer_pool(
            oracle_of(epsilon=epsilon, domain_size=30, num_cells=64),
            Pools(num_pools=3, pool_size=10, polarization=polarization),
            reports=(number,), num_clients=4_000, rng=rng,
        ).successes[0].made.share  # fmt: skip

    base = share(APPLE_EPSILON, 0.9, 8)
    assert 0.45 < base < 0.9
    assert share(APPLE_EPSILON, 0.9, 24) > base + 0.05
    assert share(APPLE_EPSILON, 0.5, 8) < base - 0.05
    assert share(APPLE_EPSILON / 2, 0.9, 8) < base - 0.05
    # Without polarization there is nothing to learn.
    assert abs(share(APPLE_EPSILON, 0.0, 8) - 1 / 3) < 0.05


@pytest.mark.parametrize("name", ["grr", "ss"])
def test_twice_the_stated_epsilon_is_refuted(name):
    pools = Pools(num_pools=2, pool_size=1)
    asked = {"reports": (1, 2), "num_clients": 20_000, "confidence": 0.999}
    honest = oracle_of(name, 1.0, 2)
    assert not infer_pool(honest, pools, **asked, rng=np.random.default_rng(8)).refuted
    cheat = SupportsItsValue.with_epsilon(honest, 2.0)
    found = infer_pool(cheat, pools, **asked, rng=np.random.default_rng(8))
    assert found.to_dict()["verdict"] == "refuted"
    stated = infer_pool(
        oracle_of(name, 2.0, 2), pools, **asked, stated=1.0, rng=np.random.default_rng(8)
    )
    assert stated.refuted


def test_draws_follow_the_pools_weights():
    pools = Pools(num_pools=3, pool_size=2, polarization=0.4)
    assert pools.weights.sum(axis=1) == pytest.approx(1)
    assert pools.weights[1, 2] == pytest.approx(0.4 / 2 + 0.6 / 6)
    drawn = pools.draw(np.full(60_000, 1), rng=np.random.default_rng(9))
    counts = np.bincount(drawn, minlength=6)
    assert stats.chisquare(counts, 60_000 * pools.weights[1]).pvalue > 1e-9
    for wrong in (0, 2):
        assert stats.chisquare(counts, 60_000 * pools.weights[wrong]).pvalue < 1e-9


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reports": (2, 1)}, "ascending numbers of reports"),
        ({"reports": ()}, "ascending numbers of reports"),
        ({"num_clients": 0}, "num_clients=0"),
        ({"pools": Pools(num_pools=5, pool_size=1)}, "domain_size=4 values"),
    ],
)
def test_impossible_attacks_are_refused(changed, message):
    asked = {
        "pools": Pools(num_pools=2, pool_size=2), "reports": (1,), "num_clients": 10, **changed
    }  # fmt: skip
    with pytest.raises(InputError, match=message):
        infer_pool(oracle_of(), rng=np.random.default_rng(0), **asked)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_pools": 1, "pool_size": 2}, "num_pools=1"),
        ({"num_pools": 2, "pool_size": 0}, "pool_size=0"),
        ({"num_pools": 2, "pool_size": 2, "polarization": 1.1}, "polarization=1.1"),
    ],
)
def test_impossible_pools_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Pools(**settings)
