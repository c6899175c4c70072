"""Claims as trade-offs: the distribution of composed answers, enumerated, and their levels."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import special

from fedhh.audit import Answers, EpsilonDelta
from fedhh.audit.claim import least
from fedhh.validation import InputError


def enumerated(epsilons, false_alarm):
    """The most powerful test between all true and all false answers of randomized responses."""
    outcomes = []
    for truths in itertools.product((True, False), repeat=len(epsilons)):
        one = other = 1.0
        for truth, epsilon in zip(truths, epsilons, strict=True):
            p = 1 / (1 + math.exp(-epsilon))
            one *= p if truth else 1 - p
            other *= 1 - p if truth else p
        outcomes.append((one / other, one, other))
    power = 0.0
    for _, one, other in sorted(outcomes, reverse=True):
        share = min(1.0, false_alarm / other)
        power += share * one
        false_alarm -= share * other
    return power


@pytest.mark.parametrize(("each", "times"), [(1.0, 1), (0.7, 5), (2.0, 4), (0.05, 8)])
def test_the_power_of_answers_is_that_of_the_likeliest_outcomes(each, times):
    claim = Answers(each=each, times=times)
    assert claim.epsilon == pytest.approx(each * times)
    for false_alarm in (1e-6, 0.003, 0.1, 0.31, 0.8, 1.0):
        expected = enumerated([each] * times, false_alarm)
        found = float(claim.power([false_alarm])[0])
        assert expected * (1 - 1e-15) <= found <= expected + 1e-9


def test_no_answers_allow_nothing_and_one_is_pure_privacy():
    assert Answers(each=1.0, times=0).power([0.2]) == pytest.approx([0.2])
    shares = np.linspace(0, 1, 41)
    one, pure = Answers(each=1.5, times=1), EpsilonDelta(epsilon=1.5)
    assert one.power(shares) == pytest.approx(pure.power(shares))
    e = math.exp(1.5)
    assert pure.power([0.05, 0.9]) == pytest.approx([0.05 * e, 1 - 0.1 / e])


def test_a_shift_of_a_gaussian_touches_its_epsilon_and_delta():
    # A unit shift of a standard normal is (epsilon, delta)-private with this delta exactly.
    epsilon = 1.5
    delta = special.ndtr(0.5 - epsilon) - math.exp(epsilon) * special.ndtr(-0.5 - epsilon)
    alarms = np.logspace(-6, -1e-3, 400)
    power = special.ndtr(special.ndtri(alarms) + 1)
    assert (power <= EpsilonDelta(epsilon=epsilon, delta=delta).power(alarms) + 1e-12).all()
    less = EpsilonDelta(epsilon=epsilon, delta=0.99 * delta)
    assert (power > less.power(alarms)).any()
    assert less.power([0.0, 1.0]) == pytest.approx([less.delta, 1.0])


def test_the_least_answers_are_where_the_trade_off_begins_to_allow_it():
    def fewest(power, false_alarm):
        kind = Answers(each=0.3, times=0)
        return least(kind, lambda each: power <= each.power([false_alarm])[0])

    for times in (1, 7, 200):
        power = float(Answers(each=0.3, times=times).power([0.1])[0])
        assert fewest(power - 1e-9, 0.1) == times
        assert fewest(power + 1e-9, 0.1) == times + 1
    assert fewest(0.05, 0.1) == 0
    assert fewest(0.9, 0.0) is None


def test_the_least_epsilon_is_the_log_ratio_of_an_event_or_of_its_contrary():
    def smallest(power, false_alarm, delta=0.0):
        kind = EpsilonDelta(epsilon=0.0, delta=delta)
        return least(kind, lambda each: power <= each.power([false_alarm])[0])

    assert smallest(0.3, 0.1) == pytest.approx(math.log(3))
    assert smallest(0.3, 0.1, delta=0.1) == pytest.approx(math.log(2))
    assert smallest(0.99, 0.9) == pytest.approx(math.log(10))
    assert smallest(0.1, 0.1) == 0
    assert smallest(0.5, 0.0) is None


def test_wrong_claims_are_refused():
    for make, message in (
        (lambda: Answers(each=0.0, times=1), "each=0.0"),
        (lambda: Answers(each=1.0, times=-1), "times=-1"),
        (lambda: EpsilonDelta(epsilon=-1.0), "epsilon=-1.0"),
        (lambda: EpsilonDelta(epsilon=math.nan), "epsilon=nan"),
        (lambda: EpsilonDelta(epsilon=1.0, delta=1.0), "0 <= delta < 1"),
    ):
        with pytest.raises(InputError, match=message):
            make()
    assert np.isfinite(Answers(each=8.0, times=2000).power([1e-3])).all()
    assert EpsilonDelta(epsilon=math.inf).power([0.0, 1e-300, 0.5]).tolist()[1:] != [0, 0]
