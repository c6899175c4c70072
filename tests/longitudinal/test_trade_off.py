"""The trade-off of composed answers: the distribution of all of them, enumerated."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedhh.longitudinal.audit import Answers, TradeOff
from fedhh.longitudinal.audit.trade_off import fewest_answers
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


@pytest.mark.parametrize(
    ("stated", "epsilons"),
    [
        (((1.0, 1),), [1.0]),
        (((0.7, 5),), [0.7] * 5),
        (((2.0, 2), (1.0, 3)), [2.0] * 2 + [1.0] * 3),
        (((0.5, 2), (0.75, 2), (0.5, 0)), [0.5] * 2 + [0.75] * 2),
    ],
)
def test_the_power_is_that_of_the_likeliest_outcomes(stated, epsilons):
    trade_off = TradeOff(tuple(Answers(epsilon=e, times=k) for e, k in stated))
    assert trade_off.epsilon == pytest.approx(sum(epsilons))
    for false_alarm in (1e-6, 0.003, 0.1, 0.31, 0.8, 1.0):
        expected = enumerated(epsilons, false_alarm)
        found = float(trade_off.power([false_alarm])[0])
        assert expected <= found <= expected + 1e-7


def test_an_epsilon_a_hair_above_whole_steps_is_not_rounded_down():
    epsilons = [1.0, 1.5 + 1.4e-9]
    trade_off = TradeOff(tuple(Answers(epsilon=e, times=1) for e in epsilons))
    for false_alarm in (1e-6, 0.003, 0.1, 0.31):
        expected = enumerated(epsilons, false_alarm)
        assert expected <= float(trade_off.power([false_alarm])[0]) <= expected * (1 + 2e-3)


def test_epsilons_without_a_common_measure_are_rounded_up_a_little():
    trade_off = TradeOff(tuple(Answers(epsilon=e, times=2) for e in (1.0, math.pi / 2)))
    for false_alarm in (0.001, 0.1, 0.5):
        expected = enumerated([1.0, 1.0, math.pi / 2, math.pi / 2], false_alarm)
        assert expected <= float(trade_off.power([false_alarm])[0]) <= expected + 0.02


def test_nothing_stated_allows_nothing_and_one_answer_is_pure_privacy():
    assert TradeOff(()).power([0.2])[0] == pytest.approx(0.2)
    one = TradeOff((Answers(epsilon=1.5, times=1),))
    e = math.exp(1.5)
    assert one.power([0.05, 0.9]) == pytest.approx([0.05 * e, 1 - 0.1 / e])


def test_the_fewest_answers_are_where_the_trade_off_begins_to_allow_it():
    for times in (1, 7, 200):
        power = float(TradeOff((Answers(epsilon=0.3, times=times),)).power([0.1])[0])
        assert fewest_answers(0.3, false_alarm=0.1, power=power - 1e-9, most=999) == times
        assert fewest_answers(0.3, false_alarm=0.1, power=power + 1e-9, most=999) == times + 1
    assert fewest_answers(0.3, false_alarm=0.1, power=0.05, most=999) == 0
    assert fewest_answers(0.3, false_alarm=0.0, power=0.9, most=50) == 50


def test_what_cannot_be_computed_is_refused():
    with pytest.raises(InputError, match="audit fewer days"):
        TradeOff((Answers(epsilon=1e-3, times=10**7),)).power([0.1])
    with pytest.raises(InputError, match="epsilon"):
        Answers(epsilon=0.0, times=1)
    assert np.isfinite(TradeOff((Answers(epsilon=8.0, times=2000),)).power([1e-3])).all()
