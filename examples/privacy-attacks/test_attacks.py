"""Attacks on tiny oracles: what no choice of the server exceeds, and claims that are refuted."""

import itertools
import math
from functools import cache

import numpy as np
import pytest
from attacks import (
    STRATEGIES,
    Pools,
    Success,
    TooManyKindsError,
    allowed_success,
    evidence,
    exact_pools,
    exact_repeated,
    exact_trie,
    followed_by,
    infer_pool,
    infer_word,
    main,
    of_kinds,
    success_of,
)
from scipy import stats

from fedhh.oracles import OracleSpec, make_oracle
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned
from tests.wrong_oracles import SupportsItsValue

CLIENTS = 20_000


def oracle_of(name="ss", epsilon=2.0, domain_size=6):
    params = {"num_cells": 4, "num_hashes": 4} if name in {"cms", "hcms"} else {}
    return make_oracle(OracleSpec(name=name, epsilon=epsilon, params=params), domain_size)


def chances_of(oracle, values):
    space = oracle.report_space()
    return np.exp([oracle.log_prob(space, value) for value in values])


def best_success(oracle, words, rounds):
    """Success of the best adaptive choice of tries, over every map from words to values."""
    chances = chances_of(oracle, range(oracle.domain_size))
    values = range(min(words + 1, oracle.domain_size))
    maps = [list(each) for each in itertools.product(values, repeat=words)]

    @cache
    def best(weights: tuple[float, ...], left: int) -> float:
        if not left:
            return max(weights)
        return max(
            sum(
                best(tuple(np.multiply(weights, of_report).round(14).tolist()), left - 1)
                for of_report in chances[each].T
            )
            for each in maps
        )

    return best((1 / words,) * words, rounds)


def follows(success, exact):
    law = stats.binom(success.clients, exact)
    return law.ppf(1e-9) <= success.right <= law.isf(1e-9)


@pytest.mark.parametrize(
    ("name", "epsilon", "size"),
    [("grr", 1.0, 3), ("ss", 1.0, 4), ("ss", 0.3, 5), ("ss", 3.0, 3), ("oue", 1.0, 3)],
)
def test_no_choice_of_tries_tells_more_than_the_stated_epsilon_allows(name, epsilon, size):
    oracle = oracle_of(name, epsilon, size)
    for words, rounds in ((2, 1), (2, 2), (3, 1)):
        best = best_success(oracle, words, rounds)
        assert best <= allowed_success(epsilon, words, rounds) * (1 + 1e-9)
        # Negative control: a third of the epsilon allows less than the best choice reaches.
        assert best > allowed_success(epsilon / 3, words, rounds)
        # No strategy beats the best choice.
        for strategy in STRATEGIES if words < size else ():
            found = exact_trie(oracle, strategy, words=words, rounds=rounds)[-1]
            assert found <= best * (1 + 1e-9)


@every("size", [6, 28])
@every("strategy", STRATEGIES)
def test_a_trie_about_one_of_two_words_has_a_closed_form_over_all_rounds(size, strategy):
    oracle = oracle_of(domain_size=size)
    d, s, p = oracle.d, oracle.domain_size, oracle.p
    right, wrong = p * (s - d) / (s - 1), (1 - p) * d / (s - 1)
    found = exact_trie(oracle, strategy, words=2, rounds=5)
    assert found[0] == pytest.approx((1 + oracle.p - oracle.q) / 2, rel=1e-9)
    steps = np.array([wrong, 1 - right - wrong, right])
    total = np.ones(1)
    for rounds in range(1, 6):
        total = np.convolve(total, steps)
        success = total[rounds + 1 :].sum() + total[rounds] / 2
        assert found[rounds - 1] == pytest.approx(success, rel=1e-9)


@pytest.mark.parametrize("words", [3, 5])
def test_words_below_candidates_of_their_own_have_a_closed_form(words):
    oracle = oracle_of(domain_size=9, epsilon=1.5)
    others = stats.hypergeom(oracle.domain_size - 1, words - 1, oracle.d - 1)
    named = sum(others.pmf(j) / (j + 1) for j in range(words))
    none = stats.hypergeom(oracle.domain_size - 1, words - 1, oracle.d).pmf(0) / words
    found = exact_trie(oracle, "each", words=words, rounds=1)[0]
    assert found == pytest.approx(oracle.p * named + (1 - oracle.p) * none, rel=1e-9)


@pytest.mark.parametrize("name", thinned(["ss", "grr", "oue", "cms"]))
def test_guesses_by_a_chosen_trie_follow_the_exact_chance(name):
    rng = np.random.default_rng([5, len(name)])
    found = infer_word(oracle_of(name), words=4, rounds=3, num_clients=CLIENTS, rng=rng)
    assert len(found) == 9
    for each in found:
        assert not each.refuted(1e-4)
        assert follows(each, each.exact)
        # A control in each direction.
        assert not follows(each, each.exact - 0.04)
        assert not follows(each, each.exact + 0.04)


@every("name", ["grr", "ss", "oue", "cms"])
@every("values", [(0, 1), (0, 1, 3)])
def test_kinds_of_reports_guess_as_well_as_whole_reports(name, values):
    oracle = oracle_of(name, 1.5, 4)
    chances = chances_of(oracle, values)
    one = evidence(oracle, values)
    assert one.sum(axis=1) == pytest.approx(1)
    assert success_of(one) == pytest.approx(success_of(chances), abs=1e-12)
    two = followed_by(one, one)
    pairs = (chances[:, :, None] * chances[:, None, :]).reshape(len(values), -1)
    assert success_of(two) == pytest.approx(success_of(pairs), abs=1e-9)
    assert two.shape[1] <= one.shape[1] ** 2


@pytest.mark.parametrize("size", [2, 5, 7])
def test_subsets_of_values_have_the_chances_that_enumeration_has(size):
    oracle = oracle_of("ss", 1.2, size)
    for number in range(2, size + 1):
        closed, listed = (
            evidence(oracle, range(number)),
            of_kinds(chances_of(oracle, range(number))),
        )
        assert closed.shape == listed.shape
        assert success_of(closed) == pytest.approx(success_of(listed), abs=1e-12)


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 28), (4.0, 28), (10.0, 1_000_001)])
def test_two_words_and_one_report_of_subset_selection_have_a_closed_form(epsilon, size):
    oracle = oracle_of("ss", epsilon, size)
    found = success_of(evidence(oracle, (0, 1)))
    assert found == pytest.approx((1 + oracle.p - oracle.q) / 2, rel=1e-12)


@every("name", ["grr", "ss", "oue", "hcms", "cms", "hr"])
@every("epsilon", [0.5, 3.0])
def test_no_stated_distribution_tells_more_than_is_allowed(name, epsilon):
    oracle = oracle_of(name, epsilon, 4)
    for number in (2, 3, 4):
        found = exact_repeated(evidence(oracle, range(number)), (1, 2, 3))
        for reports, success in enumerate(found, start=1):
            assert success <= allowed_success(epsilon, number, reports) * (1 + 1e-9)
            # Negative control; sketches of few cells tell less, where values share cells.
            if name not in {"hcms", "cms"}:
                assert success > allowed_success(epsilon / 4, number, reports)


def test_what_is_allowed_is_reached_by_randomized_responses():
    for epsilon in (0.3, 2.0, 9.0):
        one = evidence(oracle_of("grr", epsilon, 2), (0, 1))
        for reports, success in enumerate(exact_repeated(one, range(1, 7)), start=1):
            assert success == pytest.approx(allowed_success(epsilon, 2, reports), rel=1e-8)
    # Of one report among many hypotheses, too.
    many = evidence(oracle_of("grr", 2.0, 6), range(6))
    assert success_of(many) == pytest.approx(allowed_success(2.0, 6))
    assert allowed_success(800.0, 2) == 1
    assert allowed_success(50.0, 9, reports=40) == 1


@every("name", ["grr", "ss", "cms"])
@every("polarization", [1.0, 0.6])
def test_exact_success_is_that_of_every_sequence_of_draws_and_reports(name, polarization):
    pools = Pools(num_pools=2, pool_size=2, polarization=polarization)
    oracle = oracle_of(name, 1.0, 4)
    given_value = chances_of(oracle, range(4))
    given_pool = np.zeros((2, given_value.shape[1]))
    for pool, on_purpose, first, second in itertools.product(
        range(2), (True, False), *[range(2)] * 2
    ):
        # On purpose the draw's pool is the client's, otherwise that of a fair coin.
        chance = polarization if on_purpose else 1 - polarization
        drawn = 2 * (pool if on_purpose else first) + second
        given_pool[pool] += chance / 4 * given_value[drawn]
    assert given_pool.sum(axis=1) == pytest.approx(1)
    one, two = exact_pools(oracle, pools, (1, 2))
    assert one == pytest.approx(given_pool.max(axis=0).sum() / 2, rel=1e-9)
    pairs = given_pool[:, :, None] * given_pool[:, None, :]
    assert two == pytest.approx(pairs.max(axis=0).sum() / 2, rel=1e-8)


@pytest.mark.parametrize("name", thinned(["cms", "ss", "grr"]))
def test_guesses_of_a_pool_follow_the_exact_chance(name):
    pools = Pools(num_pools=2, pool_size=2, polarization=0.8)
    rng = np.random.default_rng(4)
    found = infer_pool(
        oracle_of(name, 1.5, 4), pools, reports=(1, 2, 5), num_clients=CLIENTS, rng=rng
    )
    for each in found:
        assert follows(each, each.exact)
        assert not follows(each, each.exact - 0.04)
        assert not follows(each, each.exact + 0.04)


def test_more_reports_polarization_and_epsilon_tell_more():
    def chance(epsilon, polarization, number):
        pools = Pools(num_pools=2, pool_size=2, polarization=polarization)
        return exact_pools(oracle_of("grr", epsilon, 4), pools, (number,))[0]

    base = chance(2.0, 0.8, 2)
    assert chance(2.0, 0.8, 4) > base + 0.01
    assert chance(2.0, 0.4, 2) < base - 0.05
    assert chance(1.0, 0.8, 2) < base - 0.05
    assert chance(2.0, 0.0, 2) == pytest.approx(0.5)
    for strategy in STRATEGIES:
        few, many = (
            exact_trie(oracle_of(epsilon=epsilon), strategy, words=4, rounds=4)
            for epsilon in (1.0, 2.0)
        )
        assert few == sorted(few)
        assert all(one < other for one, other in zip(few, many, strict=True))


@pytest.mark.parametrize("name", ["grr", "ss"])
def test_twice_the_stated_epsilon_is_refuted(name):
    pools = Pools(num_pools=2, pool_size=1)

    def refuted(oracle, **stated):
        # With two values and a dummy the randomizer nearly reaches what is allowed.
        rng = np.random.default_rng(1)
        words = infer_word(oracle, words=2, rounds=2, num_clients=CLIENTS, rng=rng, **stated)
        liked = infer_pool(oracle, pools, reports=(1, 2), num_clients=CLIENTS, rng=rng, **stated)
        return [any(each.refuted(1e-4) for each in found) for found in (words, liked)]

    honest = oracle_of(name, 1.0, 3)
    assert refuted(honest) == [False, False]
    assert refuted(SupportsItsValue.with_epsilon(honest, 2.0)) == [True, True]
    assert refuted(oracle_of(name, 2.0, 3), stated=1.0) == [True, True]
    assert Success(
        attack="a", reports=1, hypotheses=2, epsilon=1.0, exact=0.8, right=0, clients=9
    ).refuted(1e-12)


def test_draws_follow_the_pools_weights():
    pools = Pools(num_pools=3, pool_size=2, polarization=0.4)
    assert pools.weights.sum(axis=1) == pytest.approx(1)
    assert pools.weights[1, 2] == pytest.approx(0.4 / 2 + 0.6 / 6)
    drawn = pools.draw(np.full(60_000, 1), rng=np.random.default_rng(9))
    counts = np.bincount(drawn, minlength=6)
    assert stats.chisquare(counts, 60_000 * pools.weights[1]).pvalue > 1e-9
    for wrong in (0, 2):
        assert stats.chisquare(counts, 60_000 * pools.weights[wrong]).pvalue < 1e-9


def test_what_differs_in_too_many_ways_is_simulated():
    rng = np.random.default_rng(2)
    wide = oracle_of("oue", 2.0, 40)
    found = infer_word(wide, words=2, rounds=2, num_clients=2_000, rng=rng)
    assert {each.exact for each in found} == {None}
    assert all(each.right > 0.6 * each.clients for each in found)
    assert exact_trie(oracle_of(domain_size=40), "each", words=12, rounds=2) == [None, None]
    assert exact_pools(wide, Pools(num_pools=2, pool_size=3), (1, 4)) == [None, None]
    one = evidence(oracle_of("ss", 1.0, 30), range(10))
    with pytest.raises(TooManyKindsError):
        followed_by(one, one)


@every(
    ("attack", "message"),
    [
        ({"words": 1}, "words=1"),
        ({"words": 6}, "words < domain_size=6"),
        ({"rounds": 0}, "rounds=0"),
        ({"strategies": ["all"]}, "strategy"),
        ({"stated": math.inf}, "local_epsilon=inf"),
        ({"reports": (2, 1)}, "ascending numbers of reports"),
        ({"reports": ()}, "ascending numbers of reports"),
        ({"reports": (1,), "num_clients": 0}, "num_clients=0"),
        ({"reports": (1,), "pools": Pools(num_pools=7, pool_size=1)}, "domain_size=6 values"),
    ],
)
def test_impossible_attacks_are_refused(attack, message):
    asked = {"num_clients": 10, "rng": np.random.default_rng(0)}
    if "reports" in attack:
        asked |= {"pools": Pools(num_pools=2, pool_size=2)}
    else:
        asked |= {"words": 2, "rounds": 1}
    infer = infer_pool if "reports" in attack else infer_word
    with pytest.raises(InputError, match=message):
        [each.allowed for each in infer(oracle_of(), **asked | attack)]


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


def test_a_table_ends_with_a_verdict(capsys):
    words = ["chosen-trie", "--local-epsilon", "2", "--domain-size", "3", "--clients", "4000"]
    assert main(words) == 0
    assert capsys.readouterr().out.endswith("verdict: consistent\n")
    assert main([*words, "--stated-epsilon", "1"]) == 1
    assert "verdict: refuted" in capsys.readouterr().out
    pools = ["pool-inference", "--pools", "2", "--pool-size", "3", "--clients", "300"]
    assert main([*pools, "--reports", "1", "20", "--domain-size", "6"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    with pytest.raises(SystemExit, match="2"):
        main([*pools, "--domain-size", "5"])
    assert "domain_size=5" in capsys.readouterr().err
