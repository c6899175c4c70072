"""Bounds from guesses: the odds of lists enumerated, and bounds that hold as often as stated."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedhh.accounting.value_guesses import RULES, RULES_OF_PAIRS, Guesses, Lists
from fedhh.oracles import OracleSpec, make_oracle
from tests.every import every

TINY = [
    make_oracle(OracleSpec(name=name, epsilon=epsilon), 3)
    for name in ("grr", "ss", "oue")
    for epsilon in (0.5, 2.0)
]


def guesses(made, right):
    return Guesses(made=np.array(made), right=right)


def test_one_right_list_says_nothing_where_lists_differ_in_size():
    # 1 of 10 lists of one value of a thousand, at an error of 5 %: 1 - 0.95^(1 / 10) at least.
    chance = 1 - 0.95**0.1
    alike = guesses([10, *[0] * 998], 1).lower_bound(error=0.05)
    assert alike == pytest.approx(math.log(chance / (1 - chance) * 999))
    # Hoeffding's theorem about unequal chances begins one above the mean, which 1 is not.
    # It needs more: coins of different chances come up once more often than equal ones.
    for made, error in (([5, 5, *[0] * 997], 0.05), ([1, 0, 1], 0.4), ([9, 0, 1], 1e-9)):
        assert guesses(made, 1).lower_bound(error=error) == 0
    assert guesses([5, 5, *[0] * 997], 2).lower_bound(error=0.05) > 0


@every("oracle", TINY)
def test_no_list_of_values_has_better_odds_than_stated_given_any_report(oracle):
    space = oracle.report_space()
    distributions = np.exp([oracle.log_prob(space, value) for value in range(3)])
    worst = 0.0
    for size in (1, 2):
        for on_list in itertools.combinations(range(3), size):
            inside = distributions[list(on_list)].sum(axis=0)
            odds = inside / (distributions.sum(axis=0) - inside)
            worst = max(worst, float((odds * (3 - size) / size).max()))
    assert worst == pytest.approx(math.exp(oracle.epsilon))


@every(("num_values", "made"), [(2, [40]), (5, [0, 30, 0, 0]), (5, [10, 5, 15, 0]), (4, [1, 1, 1])])
@every("error", [0.05, 0.001])
def test_a_bound_exceeds_epsilon_no_more_often_than_stated(num_values, made, error):
    epsilon = 0.7
    distribution = np.ones(1)
    for size, count in enumerate(made, start=1):
        odds = math.exp(epsilon) * size / (num_values - size)
        coins = stats.binom.pmf(np.arange(count + 1), count, odds / (1 + odds))
        distribution = np.convolve(distribution, coins)
    bounds = [guesses(made, k).lower_bound(error=error) for k in range(len(distribution))]
    assert bounds == sorted(bounds)
    wrong = sum(p for p, bound in zip(distribution, bounds, strict=True) if bound > epsilon)
    assert wrong <= error
    if sum(made) > 20:
        # With an error ten times as large some outcome exceeds it: the bound is not idle.
        looser = [guesses(made, k).lower_bound(error=0.4) for k in range(len(distribution))]
        assert (
            sum(p for p, bound in zip(distribution, looser, strict=True) if bound > epsilon) > error
        )


def test_estimates_are_the_epsilon_of_the_share_that_is_right():
    assert guesses([100], 75).estimate == pytest.approx(math.log(3))
    assert guesses([100, 0, 0], 50).estimate == pytest.approx(math.log(3))
    assert guesses([0, 0, 100], 90).estimate == pytest.approx(math.log(3))
    mixed = guesses([50, 50, 0], 60)
    odds = [math.exp(mixed.estimate) * size / (4 - size) for size in (1, 2)]
    assert sum(50 * each / (1 + each) for each in odds) == pytest.approx(60)
    assert guesses([100], 100).estimate == math.inf
    assert guesses([100], 10).estimate == 0.0
    assert guesses([100], 0).lower_bound(error=0.1) == 0.0
    largest = guesses([100], 3).largest_bound(error=0.01)
    assert largest == guesses([100], 100).lower_bound(error=0.01)
    assert largest == pytest.approx(math.log(0.01**0.01 / (1 - 0.01**0.01)))


@pytest.mark.parametrize(
    ("rule", "made", "right"),
    [
        ("upper half", [1, 1], 2),
        ("best", [2, 0], 1),
        ("all but the worst", [0, 2], 2),
    ],
)
def test_rules_list_what_they_say(rule, made, right):
    scores = np.log(np.array([[8.0, 2.0, 1.0], [1.0, 7.0, 9.0], [1.0, 1.0, 1.0]]))
    found = Lists(rule=rule).guesses(scores, np.array([0, 1, 2]))
    assert (found.made.tolist(), found.right) == (made, right)


def test_rules_of_pairs_guess_one_of_two_and_abstain_below_their_gain():
    scores = np.log(np.array([[8.0, 1.0], [2.0, 1.0], [1.0, 3.0]]))
    held = np.array([0, 1, 1])
    counts = {
        rule: (found.num_made, found.right)
        for rule in RULES_OF_PAIRS
        for found in [Lists(rule=rule).guesses(scores, held)]
    }
    assert counts == {"best": (3, 2), "first": (2, 1), "second": (1, 1)}
    assert Lists(rule="best", least_gain=1.0).guesses(scores, held).num_made == 2
    assert set(RULES) - set(RULES_OF_PAIRS) == {"upper half", "all but the worst"}
