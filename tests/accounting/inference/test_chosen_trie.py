"""A server that chooses the trie: what it learns, by exact enumeration, and when it is refuted."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from scipy import stats

from fedhh.accounting.inference import STRATEGIES, allowed_success, infer_word
from fedhh.accounting.inference.chosen_trie import exact_successes
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned
from tests.wrong_oracles import SupportsItsValue


def oracle_of(name="ss", epsilon=2.0, domain_size=6):
    params = {"num_cells": 4, "num_hashes": 4} if name == "cms" else {}
    return make_oracle(OracleSpec(name=name, epsilon=epsilon, params=params), domain_size)


def ways_to_choose(words, domain_size):
    """Every map from words to values, up to the values' names: the last value is the dummy."""
    return list(itertools.product(range(min(words + 1, domain_size)), repeat=words))


def best_success(oracle, words, rounds):
    """Success of the best adaptive choice of tries, over every map from words to values."""
    space = oracle.report_space()
    chances = np.exp([oracle.log_prob(space, value) for value in range(oracle.domain_size)])
    maps = [list(each) for each in ways_to_choose(words, oracle.domain_size)]

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


@pytest.mark.parametrize(
    ("name", "epsilon", "size"),
    [("grr", 1.0, 3), ("ss", 1.0, 4), ("ss", 0.3, 5), ("ss", 3.0, 3), ("oue", 1.0, 3)],
)
def test_no_choice_of_tries_tells_more_than_the_stated_epsilon_allows(name, epsilon, size):
    oracle = oracle_of(name, epsilon, size)
    for words, rounds in ((2, 1), (2, 2), (3, 1)):
        best = best_success(oracle, words, rounds)
        allowed = allowed_success(local_epsilon=epsilon, hypotheses=words, reports=rounds)
        assert best <= allowed * (1 + 1e-9)
        # Negative control: a third of the epsilon allows less than the best choice reaches.
        assert best > allowed_success(local_epsilon=epsilon / 3, hypotheses=words, reports=rounds)
        # No strategy beats the best choice.
        for strategy in STRATEGIES if words < size else ():
            found = exact_successes(oracle, strategy, words=words, rounds=rounds)[-1]
            assert found <= best * (1 + 1e-9)


@every("size", [6, 28])
@every("strategy", STRATEGIES)
def test_a_trie_about_one_of_two_words_has_a_closed_form_over_all_rounds(size, strategy):
    oracle = oracle_of(domain_size=size)
    d, s, p = oracle.d, oracle.domain_size, oracle.p
    right, wrong = p * (s - d) / (s - 1), (1 - p) * d / (s - 1)
    found = exact_successes(oracle, strategy, words=2, rounds=5)
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
    found = exact_successes(oracle, "each", words=words, rounds=1)[0]
    assert found == pytest.approx(oracle.p * named + (1 - oracle.p) * none, rel=1e-9)


@pytest.mark.parametrize("name", thinned(["ss", "grr", "oue", "cms"]))
def test_simulated_guesses_follow_the_exact_chance(name):
    oracle = oracle_of(name)
    found = infer_word(
        oracle, words=4, rounds=3, num_clients=20_000, rng=np.random.default_rng([5, len(name)])
    )
    assert not found.refuted
    assert len(found.successes) == 9
    for each in found.successes:
        law = stats.binom(each.made.clients, each.exact)
        assert law.ppf(1e-9) <= each.made.right <= law.isf(1e-9)
        # A control in each direction.
        for wrong in (each.exact - 0.04, each.exact + 0.04):
            other = stats.binom(each.made.clients, wrong)
            assert not other.ppf(1e-9) <= each.made.right <= other.isf(1e-9)


def test_more_rounds_and_more_epsilon_tell_more():
    for strategy in STRATEGIES:
        few, many = (
            exact_successes(oracle_of(epsilon=epsilon), strategy, words=4, rounds=4)
            for epsilon in (1.0, 2.0)
        )
        assert few == sorted(few)
        assert all(one < other for one, other in zip(few, many, strict=True))


@pytest.mark.parametrize("name", ["ss", "grr"])
def test_twice_the_stated_epsilon_is_refuted(name):
    # With two values and a dummy the randomizer nearly reaches what is allowed.
    honest = oracle_of(name, 1.0, 3)
    asked = {"words": 2, "rounds": 2, "num_clients": 20_000, "confidence": 0.999}
    assert not infer_word(honest, **asked, rng=np.random.default_rng(1)).refuted
    # The code departs from what it states.
    cheat = SupportsItsValue.with_epsilon(honest, 2.0)
    found = infer_word(cheat, **asked, rng=np.random.default_rng(1))
    assert found.refuted
    assert any(
        each.is_refuted(found.error) and each.exact < each.allowed for each in found.successes
    )
    # The code states twice what is claimed.
    twice = infer_word(
        oracle_of(name, 2.0, 3), **asked, stated=1.0, rng=np.random.default_rng(1)
    ).to_dict()
    assert twice["verdict"] == "refuted"
    assert twice["successes"][0]["epsilon_at_least"] > 1.0


def test_what_is_not_exact_is_simulated():
    found = infer_word(
        oracle_of("oue", 2.0, 40), words=2, rounds=2, num_clients=2_000,
        rng=np.random.default_rng(2),
    )  # fmt: skip
    assert {each.exact for each in found.successes} == {None}
    assert all(each.made.share > 0.6 for each in found.successes)
    assert exact_successes(oracle_of(domain_size=40), "each", words=12, rounds=2) == [None, None]


@every(
    ("changed", "message"),
    [
        ({"words": 1}, "words=1"),
        ({"words": 6}, "words < domain_size=6"),
        ({"rounds": 0}, "rounds=0"),
        ({"strategies": ["all"]}, "strategy"),
        ({"confidence": 1.0}, "confidence"),
        ({"stated": math.inf}, "local_epsilon=inf"),
    ],
)
def test_impossible_attacks_are_refused(changed, message):
    asked = {"words": 2, "rounds": 1, "num_clients": 10, **changed}
    with pytest.raises(InputError, match=message):
        infer_word(oracle_of(), **asked, rng=np.random.default_rng(0)).to_dict()
