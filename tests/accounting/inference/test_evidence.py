"""Kinds of reports, their chances, and how often a guess may be right."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from fedhh.accounting.inference import Evidence, GuessesMade, Success, allowed_success
from fedhh.accounting.inference.evidence import TooManyKindsError
from fedhh.oracles import FrequencyOracle, OracleSpec, make_oracle
from fedhh.validation import InputError
from tests.every import every

NAMES = ("grr", "ss", "oue", "olh", "hcms", "cms", "hr")


def oracle_of(name, epsilon=1.5, domain_size=4):
    params = {"cms": {"num_cells": 4, "num_hashes": 4}, "hcms": {"num_cells": 4, "num_hashes": 4}}
    return make_oracle(
        OracleSpec(name=name, epsilon=epsilon, params=params.get(name, {})), domain_size
    )


def by_sequences(oracle, values, reports):
    """Success of the best guess, over every sequence of reports."""
    space = oracle.report_space()
    chances = np.exp([oracle.log_prob(space, value) for value in values])
    total = 0.0
    for sequence in itertools.product(range(len(space)), repeat=reports):
        total += chances[:, sequence].prod(axis=1).max()
    return total / len(values)


@every("name", ["grr", "ss", "oue", "cms"])
@every("values", [(0, 1), (0, 1, 3)])
def test_kinds_of_reports_guess_as_well_as_whole_reports(name, values):
    oracle = oracle_of(name)
    one = Evidence.of_oracle(oracle, values)
    assert one.chances.sum(axis=1) == pytest.approx(1)
    assert one.success == pytest.approx(by_sequences(oracle, values, 1), abs=1e-12)
    two = one.followed_by(one)
    assert two.chances.shape[1] <= one.chances.shape[1] ** 2
    assert two.success == pytest.approx(by_sequences(oracle, values, 2), abs=1e-9)


@pytest.mark.parametrize("size", [2, 5, 7])
def test_subsets_of_values_have_the_chances_that_enumeration_has(size):
    oracle = oracle_of("ss", 1.2, size)
    for number in range(2, size + 1):
        values = range(number)
        listed = np.exp([oracle.log_prob(oracle.report_space(), value) for value in values])
        closed, listed = Evidence.of_oracle(oracle, values), Evidence.of_chances(listed)
        assert closed.chances.shape == listed.chances.shape
        assert closed.success == pytest.approx(listed.success, abs=1e-12)
        assert closed.total_variation == pytest.approx(listed.total_variation, abs=1e-12)


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 28), (4.0, 28), (10.0, 1_000_001)])
def test_two_words_and_one_report_of_subset_selection_have_a_closed_form(epsilon, size):
    oracle = oracle_of("ss", epsilon, size)
    found = Evidence.of_oracle(oracle, (0, 1))
    assert found.total_variation == pytest.approx(oracle.p - oracle.q, rel=1e-9)
    assert found.success == pytest.approx((1 + oracle.p - oracle.q) / 2, rel=1e-12)


@every("name", NAMES)
def test_all_probabilities_at_once_are_those_of_each_value(name):
    oracle = oracle_of(name)
    reports = oracle.privatize(np.repeat(np.arange(4), 20), rng=np.random.default_rng(3))
    values = np.array([3, 0, 2])
    found = oracle.log_probs(reports, values)
    assert found == pytest.approx(FrequencyOracle.log_probs(oracle, reports, values), abs=1e-9)


@pytest.mark.slow("::test_all_probabilities_at_once_are_those_of_each_value")
def test_all_probabilities_of_a_long_report():
    oracle = make_oracle(
        OracleSpec(name="cms", epsilon=4.0, params={"num_cells": 200, "num_hashes": 64}), 500
    )
    reports = oracle.privatize(np.arange(500), rng=np.random.default_rng(3))
    values = np.arange(0, 500, 7)
    found = oracle.log_probs(reports, values)
    assert found == pytest.approx(FrequencyOracle.log_probs(oracle, reports, values), rel=1e-9)
    assert np.unique(found[:, 0]).size > 1


@every("name", [name for name in NAMES if name != "olh"])
@every("epsilon", [0.5, 3.0])
def test_no_stated_distribution_tells_more_than_is_allowed(name, epsilon):
    oracle = oracle_of(name, epsilon)
    for number in (2, 3, 4):
        evidence = one = Evidence.of_oracle(oracle, range(number))
        for reports in (1, 2, 3):
            allowed = allowed_success(local_epsilon=epsilon, hypotheses=number, reports=reports)
            assert evidence.success <= allowed * (1 + 1e-9)
            # Negative control; sketches of few cells tell less, where values share cells.
            if name not in {"hcms", "cms"}:
                assert evidence.success > allowed_success(
                    local_epsilon=epsilon / 4, hypotheses=number, reports=reports
                )
            evidence = evidence.followed_by(one)
    assert Evidence.of_oracle(oracle, (0, 1)).total_variation <= math.tanh(epsilon / 2) + 1e-12


def test_what_is_allowed_is_reached_by_randomized_responses():
    for epsilon, reports in itertools.product((0.3, 2.0, 9.0), (1, 2, 3, 6)):
        one = Evidence.of_oracle(oracle_of("grr", epsilon, 2), (0, 1))
        evidence = one
        for _ in range(reports - 1):
            evidence = evidence.followed_by(one)
        allowed = allowed_success(local_epsilon=epsilon, hypotheses=2, reports=reports)
        assert evidence.success == pytest.approx(allowed, rel=1e-8)
    # Of one report among many hypotheses, too.
    many = Evidence.of_oracle(oracle_of("grr", 2.0, 6), range(6))
    assert many.success == pytest.approx(allowed_success(local_epsilon=2.0, hypotheses=6))
    assert allowed_success(local_epsilon=800.0, hypotheses=2) == 1
    assert allowed_success(local_epsilon=50.0, hypotheses=9, reports=40) == 1


def test_mixtures_of_values_are_hypotheses():
    oracle = oracle_of("grr", 2.0)
    weights = np.array([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]])
    found = Evidence.of_oracle(oracle, range(4)).mixed(weights)
    listed = weights @ np.exp([oracle.log_prob(oracle.report_space(), v) for v in range(4)])
    assert found.success == pytest.approx(listed.max(axis=0).sum() / 2)
    assert found.chances.shape == (2, 2)


def test_what_differs_in_too_many_ways_is_refused():
    with pytest.raises(TooManyKindsError):
        Evidence.of_oracle(oracle_of("oue", 1.0, 30), (0, 1))
    with pytest.raises(TooManyKindsError):
        Evidence.of_oracle(oracle_of("ss", 1.0, 30), range(11))
    one = Evidence.of_oracle(oracle_of("ss", 1.0, 30), range(10))
    with pytest.raises(TooManyKindsError):
        one.followed_by(one)


def test_simulated_guesses_have_bounds_of_their_own():
    made = GuessesMade(right=90, clients=100)
    assert made.at_least(0.01) == pytest.approx(stats.beta.ppf(0.01, 90, 11))
    found = Success(attack="a", reports=2, hypotheses=3, stated=4.0, exact=0.5, made=made)
    at_least = special.logit(made.at_least(0.01)) + math.log(2)
    assert found.epsilon_at_least(0.01) == pytest.approx(at_least)
    assert not found.is_refuted(0.01)
    nothing = Success(
        attack="a", reports=1, hypotheses=2, stated=1.0, exact=None,
        made=GuessesMade(right=0, clients=9),
    )  # fmt: skip
    assert nothing.epsilon_at_least(0.01) == 0
    too_exact = Success(attack="a", reports=1, hypotheses=2, stated=1.0, exact=0.8, made=made)
    assert too_exact.is_refuted(1e-12)
    with pytest.raises(InputError, match="hypotheses"):
        allowed_success(local_epsilon=1.0, hypotheses=1)
