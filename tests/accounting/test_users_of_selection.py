"""Users of Subset Selection: groups and slots against exact divergences, for different words."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from fedhh.accounting import account_user
from fedhh.accounting.bounds.selection import paper_subset_size
from tests.accounting.brute_force import add_report, subset_selection_distribution
from tests.accounting.users import user_level_epsilon
from tests.thinned import thinned


def shuffles(distribution, others, own):
    """Distributions of the counts of all reports, for each of some contributions of a client."""
    kinds, size = distribution.shape[1], len(others) + len(own[0]) + 1
    counts = np.zeros((size,) * (kinds - 1))
    counts[(0,) * (kinds - 1)] = 1.0
    for value in others:
        counts = add_report(counts, distribution[value])
    found = []
    for values in own:
        one = counts
        for value in values:
            one = add_report(one, distribution[value])
        found.append(one)
    return found


def exact_delta(first, second, epsilon):
    x = math.exp(epsilon)
    return max(float(np.maximum(a - x * b, 0).sum()) for a, b in ((first, second), (second, first)))


@pytest.mark.parametrize(
    ("local_epsilon", "members"), thinned([(1.0, 1), (2.0, 1), (3.0, 1), (0.7, 2)])
)
@pytest.mark.parametrize("others", ["dummies", "words", "both"])
def test_bounds_are_above_every_client_among_many(local_epsilon, members, others):
    # Values: the dummy 0, the words 1 and 2. 80 clients with two contributions each.
    num_clients, delta = 80, 1e-4
    distribution = subset_selection_distribution(local_epsilon, 3, members)
    held = {"dummies": [0] * 158, "words": [1] * 79 + [2] * 79, "both": [0, 1] * 79}[others]
    contributions = [(0, 0), (0, 1), (0, 2), (1, 2)]
    found = user_level_epsilon(
        bound="blanket",
        local_epsilon=local_epsilon,
        num_clients=num_clients,
        max_items=2,
        delta=delta,
        domain_size=3,
        subset_size=members,
    )
    distributions = shuffles(distribution, held, contributions)
    for i, first in enumerate(distributions):
        for second in distributions[:i]:
            assert exact_delta(first, second, found.epsilon) <= delta
    # The check can fail.
    worst = max(
        exact_delta(a, b, 0.2 * found.epsilon) for a in distributions for b in distributions
    )
    assert worst > delta


def score_epsilon(*, local_epsilon, num_clients, size, weights, before, after, delta):
    """The exact epsilon of a sum of integer scores of all reports: below that of all reports.

    All other clients hold one value that scores nothing. A report scores the sum of weights of the
    values in it.

    Args:
        weights: Of values 0, 1, ...; those left out score 0.
        before, after: What the client contributes.
    """
    growth, d = math.exp(local_epsilon), paper_subset_size(local_epsilon, size)
    span = sum(abs(w) for w in weights)
    # By members and score: the numbers of subsets of the values that score.
    subsets = np.zeros((len(weights) + 1, 2 * span + 1))
    subsets[0, span] = 1.0
    with_value = {}
    for value, weight in enumerate(weights):
        rest = np.zeros_like(subsets)
        rest[0, span] = 1.0
        for other, of_other in enumerate(weights):
            if other != value:
                rest[1:] += np.roll(rest[:-1], of_other, axis=1)
        with_value[value] = np.roll(rest, weight, axis=1)
        subsets[1:] += np.roll(subsets[:-1], weight, axis=1)

    def law(value):
        held = with_value.get(value)
        free = size - len(weights) - (held is None)
        whole = np.array([ways(free, d - k) for k in range(len(weights) + 1)])
        less = np.array([ways(free, d - 1 - k) for k in range(len(weights) + 1)])
        if held is None:
            total = growth * less @ subsets + whole @ subsets
        else:
            total = (growth - 1) * less @ held + whole @ subsets
        return total / total.sum()

    def ways(n, k):
        if not 0 <= k <= n:
            return 0.0
        log = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
        return math.exp(
            log - math.lgamma(size + 1) + math.lgamma(d + 1) + math.lgamma(size - d + 1)
        )

    others = law(size - 1)
    reports = (num_clients - 1) * len(before)
    places = np.arange(2 * span + 1) - span
    variance = float(others @ places**2 - (others @ places) ** 2)
    length = 1 << math.ceil(math.log2(30 * math.sqrt(reports * variance) + 40 * span**2))

    def total(values):
        spectrum = np.fft.rfft(others, length) ** reports
        for value in values:
            spectrum = spectrum * np.fft.rfft(law(value), length)
        # Rounding of the transforms is no probability.
        found = np.fft.irfft(spectrum, length)
        return np.where(found > 1e-14, found, 0.0)

    first, second = total(before), total(after)
    low, high = 0.0, 60.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (
            (middle, high) if exact_delta(first, second + 1e-14, middle) > delta else (low, middle)
        )
    return low


CASE = {"local_epsilon": 4.0, "num_clients": 500, "delta": 1e-6}
DUMMY, OLD, NEW = 0, list(range(1, 11)), list(range(11, 21))


@pytest.mark.slow("::test_bounds_are_above_every_client_among_many")
@pytest.mark.parametrize(
    ("weights", "before", "after", "at_least"),
    [
        # Dummies turn into different words.
        ([10] + [0] * 10 + [-1] * 10, [DUMMY] * 10, NEW, 2.7),
        # Words turn into other words.
        ([0] + [1] * 10 + [-1] * 10, OLD, NEW, 1.03),
        # One word, B times, turns into another.
        ([1, -1], [0] * 10, [1] * 10, 3.5),
    ],
)
def test_bounds_are_above_what_a_score_tells(weights, before, after, at_least):
    found = user_level_epsilon(bound="blanket", **CASE, max_items=10, domain_size=200)
    told = score_epsilon(**CASE, size=200, weights=weights, before=before, after=after)
    assert at_least < told < found.epsilon


# A client turns B dummies into B different words, and readers know more than the shuffle: some of
# the other reports, those that are blanket, have a number from 1 to B, drawn by the value in them,
# and the client's i-th report has number i.
BLANKET_OF_WORDS = {"local_epsilon": 3.0, "size": 20, "max_items": 5}
EVEN = 0.02
"""A word of the client has the number of its own report, but with this probability any."""


def cells_of_number(*, local_epsilon, size, max_items, others, one_density):
    """What a report with one number may be: chance, and density if the client has v, or v'.

    Args:
        others: Other words that the client may have: their reports mostly have other numbers.
        one_density: Whether readers are taken to see only whether a report is v, v' or neither.
    """
    growth = math.exp(local_epsilon)
    one = 1 / (size - 1 + growth)
    own = max_items * (1 - EVEN) + EVEN
    rest = [(others, EVEN), (size - 2 - others, 1.0)]
    if one_density:
        mean = sum(count * share for count, share in rest) / (size - 2)
        rest = [(size - 2, mean)]
    return [
        (one, growth, 1.0),
        (own * one, 1 / own, growth / own),
        *((count * share * one, 1 / share, 1 / share) for count, share in rest),
    ]


def number_delta(cells, num_reports, epsilon):
    """(4) of one number, exactly: the mean over all counts of its reports' kinds."""
    x = math.exp(epsilon)
    chances = [chance for chance, _, _ in cells]
    chances.append(1 - sum(chances))
    delta = 0.0
    for counts in compositions(num_reports, len(chances)):
        excess = sum(
            count * (h - x * other) for count, (_, h, other) in zip(counts, cells, strict=False)
        )
        if excess > 0:
            log = math.lgamma(num_reports + 1) + sum(
                count * math.log(chance) - math.lgamma(count + 1)
                for count, chance in zip(counts, chances, strict=True)
            )
            delta += math.exp(log) * excess
    return delta / num_reports


def compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in compositions(total - first, parts - 1):
            yield (first, *rest)


def test_one_density_for_all_subsets_without_both_values_is_below_what_numbers_tell():
    # Why the item-level bound is not asked for each of B different words among all N B reports:
    # with numbers drawn by what a report contains, readers see which of all other values it has.
    told = number_delta(cells_of_number(**BLANKET_OF_WORDS, others=4, one_density=False), 10, 1.5)
    assert told == pytest.approx(0.04241, abs=5e-6)
    # With eight other words, as if the client had five words before, too.
    averaged = number_delta(
        cells_of_number(**BLANKET_OF_WORDS, others=8, one_density=True), 10, 1.5
    )
    assert averaged == pytest.approx(0.03574, abs=5e-6)
    assert told > averaged
    # The smallest case: two words of a client, one report of others, four values.
    smallest = {"local_epsilon": 3.0, "size": 4, "max_items": 2, "others": 1}
    told, averaged = (
        number_delta(cells_of_number(**smallest, one_density=one), 2, 1.5) for one in (False, True)
    )
    assert told > 1.005 * averaged


def whole_shuffle(values, *, local_epsilon, apart, size):
    """Distribution of how many of all reports are each of the values ``apart``, and all others."""
    growth = math.exp(local_epsilon)
    counts = {(0,) * len(apart): 1.0}
    for value in values:
        longer: dict[tuple[int, ...], float] = {}
        for found, chance in counts.items():
            for place, kind in enumerate(apart):
                one = (*found[:place], found[place] + 1, *found[place + 1 :])
                of_kind = growth if kind == value else 1.0
                longer[one] = longer.get(one, 0.0) + chance * of_kind / (size - 1 + growth)
            rest = (size - len(apart)) / (size - 1 + growth)
            longer[found] = longer.get(found, 0.0) + chance * rest
        counts = longer
    return counts


@pytest.mark.slow("::test_bounds_are_above_every_client_among_many")
@pytest.mark.parametrize("held", ["dummies", "another word", "new words"])
def test_bounds_hold_for_clients_whose_words_differ(held):
    # Five dummies of one of two clients turn into five words: all ten reports, exactly.
    local_epsilon, size, max_items = 3.0, 20, 5
    before, after = [0] * 5, [1, 2, 3, 4, 5]
    others = {"dummies": [0] * 5, "another word": [6] * 5, "new words": after}[held]
    apart = (0, 1, 2, 3, 4, 5, 6) if held == "another word" else (0, 1, 2, 3, 4, 5)
    shuffled = [
        whole_shuffle([*own, *others], local_epsilon=local_epsilon, apart=apart, size=size)
        for own in (before, after)
    ]
    keys = sorted(shuffled[0])
    first, second = (np.array([each[key] for key in keys]) for each in shuffled)
    assert first.sum() == pytest.approx(1) == second.sum()
    for delta in (0.1, 0.03574, 1e-3):
        found = user_level_epsilon(
            bound="blanket",
            local_epsilon=local_epsilon,
            num_clients=2,
            max_items=max_items,
            delta=delta,
            domain_size=size,
            subset_size=1,
        )
        for epsilon in (found.groups, found.slots):
            assert exact_delta(first, second, epsilon) <= delta
        # The check can fail.
        assert exact_delta(first, second, 0.25 * found.epsilon) > delta


def test_two_collections_of_few_users_cost_more_than_one_and_no_more_than_both():
    asked = {"local_epsilon": 1.0, "num_clients": 10, "max_items": 2, "delta": 1e-2}
    found = [account_user(**asked, rounds=rounds) for rounds in (1, 2)]
    once, twice = (each.best("user", "central").epsilon for each in found)
    assert 1.2 * once < twice <= 2 * once
    assert found[1].best("user", "local").epsilon == 4.0


@pytest.mark.slow("::test_two_collections_of_few_users_cost_more_than_one_and_no_more_than_both")
def test_a_window_of_collections_costs_more_than_one_and_less_than_its_sum():
    asked = {"local_epsilon": 3.0, "num_clients": 5000, "max_items": 4, "delta": 1e-6}
    found = [account_user(**asked, rounds=rounds) for rounds in (1, 7)]
    once, often = (each.best("user", "central").epsilon for each in found)
    assert 2 * once < often < 7 * once
    assert found[1].best("user", "local").epsilon == 84.0
