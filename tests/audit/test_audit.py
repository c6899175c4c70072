"""The one routine of audits: its bounds by hand, and events that other samples choose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from fedhh.audit import Answers, EpsilonDelta, audit, clopper_pearson
from fedhh.audit.audit import bounds, choose
from fedhh.validation import InputError

NOTHING = EpsilonDelta(epsilon=0.0)


def test_equal_distributions_give_no_epsilon_and_gaussians_at_most_theirs():
    rng = np.random.default_rng(5)
    same = audit(*rng.normal(size=(2, 20_000)), NOTHING, confidence=1 - 1e-9)
    assert (same.at_least, same.refuted) == (0.0, False)
    epsilon = 1.5
    delta = special.ndtr(0.5 - epsilon) - math.exp(epsilon) * special.ndtr(-0.5 - epsilon)
    a, b = rng.normal(size=60_000), rng.normal(size=60_000) + 1
    claim = EpsilonDelta(epsilon=epsilon, delta=float(delta))
    found = audit(a, b, claim, confidence=1 - 1e-9)
    assert not found.refuted
    assert 0.8 < found.at_least <= epsilon
    # Allowing less than the truth finds more than epsilon: the audit can say no.
    less = EpsilonDelta(epsilon=epsilon, delta=float(delta) / 20)
    assert audit(a, b, less, confidence=1 - 1e-9).refuted


def test_either_input_may_be_the_likelier_one():
    rng = np.random.default_rng(2)
    rare, common = rng.random(100_000) < 0.01, rng.random(100_000) < 0.3
    forth, back = audit(rare, common, NOTHING), audit(common, rare, NOTHING)
    assert forth.at_least == pytest.approx(back.at_least)
    assert forth.at_least == pytest.approx(math.log(30), rel=0.1)
    assert "second input" in forth.event
    assert "first input" in back.event


def test_what_speaks_for_an_input_may_be_neither_large_nor_small():
    rng = np.random.default_rng(11)
    between, outside = rng.integers(-1, 2, 4_000), 3 * rng.choice([-1, 1], 4_000)
    found = audit(between, outside, NOTHING)
    assert found.at_least > 5
    assert audit(outside, between, NOTHING).at_least > 5


def test_clopper_and_pearson_keep_their_promise():
    assert clopper_pearson(0, 10, error=0.05) == pytest.approx((0.0, 1 - 0.05**0.1))
    assert clopper_pearson(10, 10, error=0.05) == pytest.approx((0.05**0.1, 1.0))
    # Over all outcomes, each side errs with at most the stated probability.
    n, p, error = 30, 0.2, 0.05
    distribution = np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
    low, high = clopper_pearson(np.arange(n + 1), n, error=error)
    for wrong in (low > p, high < p):
        assert 0 < distribution[wrong].sum() <= error


def test_the_bound_shares_its_error_among_both_probabilities_by_hand():
    # An event that always happens under one input, and never under the other.
    a, b = np.ones(200), np.zeros(400)
    # Each of the two bounds may err in 1 %, on the 150 and 300 samples that test the event.
    often, rare = 0.01 ** (1 / 150), 1 - 0.01 ** (1 / 300)
    found = audit(a, b, NOTHING, confidence=0.98)
    assert (found.power, found.false_alarm) == pytest.approx((often, rare))
    assert found.num_samples == 150
    assert found.epsilon == pytest.approx(math.log(often / rare))
    # The contrary of the event says more or less, by the same two probabilities.
    assert found.at_least == pytest.approx(max(found.epsilon, math.log((1 - rare) / (1 - often))))
    assert found.allowed == pytest.approx(rare)
    with_delta = audit(a, b, EpsilonDelta(epsilon=9.0, delta=0.5), confidence=0.98)
    assert not with_delta.refuted
    assert with_delta.epsilon == pytest.approx(math.log((often - 0.5) / rare))


def test_guesses_are_of_as_many_values_as_stated():
    # Named is the value itself, always: of four values, each other one never.
    right, wrong = np.ones(400), np.full(400, np.nan)
    found = audit(right, wrong, NOTHING, confidence=0.98, values=4)
    # At least so often there is a guess, and so large a share of guesses is right.
    often = 0.01 ** (1 / 300)
    assert found.power == pytest.approx(often * often)
    assert found.false_alarm == pytest.approx(often * (1 - often) / 3)
    # Names that say nothing are right one time in four.
    rng = np.random.default_rng(3)
    is_right = rng.random(100_000) < 0.25
    guesses = np.where(is_right, 1, np.nan), np.where(is_right, np.nan, 1)
    assert not audit(*guesses, EpsilonDelta(epsilon=0.01), values=4).refuted
    assert audit(*guesses, EpsilonDelta(epsilon=0.01), values=5).refuted


def test_bounds_on_guesses_keep_their_promise():
    # Over all numbers of right and wrong guesses of 12 outputs, among three values.
    n, error = 12, 0.1
    hits = np.array([(right, wrong) for right in range(n + 1) for wrong in range(n + 1 - right)])
    outcomes = np.column_stack([hits, n - hits.sum(axis=1)])
    for right, wrong in ((0.3, 0.5), (0.6, 0.4), (0.8, 0.1)):
        chances = stats.multinomial(n, [right, wrong, 1 - right - wrong]).pmf(outcomes)
        assert chances.sum() == pytest.approx(1)
        # The true epsilon of either input over the other, where either is above 0.
        for swapped, epsilon in enumerate(
            (math.log(2 * right / wrong), math.log(wrong / right / 2))
        ):
            power, false_alarm = bounds(hits.T, [n, n], error=error, values=3)[swapped]
            refuted = power > EpsilonDelta(epsilon=max(0.0, epsilon)).power(false_alarm)
            assert chances[refuted].sum() <= 2 * error
            # A smaller claim is refuted more often.
            less = power > math.exp(epsilon - 1.5) * false_alarm
            assert chances[less].sum() > chances[refuted].sum()


@pytest.mark.parametrize("trials", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_an_event_is_not_chosen_by_the_samples_that_test_it(trials):
    # Many events on pure noise: one that seems to show something in these very samples is found in
    # most trials, at a confidence of which only a fifth may be wrong.
    rng = np.random.default_rng(9)
    found, same = [], []
    for _ in range(trials):
        a, b = rng.normal(size=(2, 100))
        found.append(audit(a, b, NOTHING, confidence=0.8).refuted)
        event, _ = choose({"statistic": (a, b)}, NOTHING, confidence=0.8)
        hits = [event.hits(each) for each in ((b, a) if event.swapped else (a, b))]
        same.append(
            clopper_pearson(hits[0], 100, error=0.1)[0]
            > clopper_pearson(hits[1], 100, error=0.1)[1]
        )
    assert np.mean(found) < 0.05
    assert np.mean(same) > 0.15


def test_more_answers_than_stated_are_seen_from_where_the_audit_says():
    claim = Answers(each=0.72, times=12)
    few, many = (
        audit(*np.random.default_rng(1).random((2, n)), claim, confidence=0.998).detects_from
        for n in (500, 20_000)
    )
    assert 12 < many < few < 24
    # A single answer of this epsilon is certainty, and so is any number of them.
    sure = audit(*np.random.default_rng(1).random((2, 1000)), Answers(each=30.0, times=2))
    assert sure.detects_from is None
    one = audit(*np.random.default_rng(1).random((2, 90_000)), EpsilonDelta(epsilon=1.0))
    assert 1.0 < one.detects_from < 1.1


def test_wrong_input_is_named():
    with pytest.raises(InputError, match="num_samples >= 4"):
        audit([0, 1, 2], [0, 1, 2, 3], NOTHING)
    with pytest.raises(InputError, match=r"confidence=1\.0"):
        audit([0, 1, 2, 3], [0, 1, 2, 3], NOTHING, confidence=1.0)
