"""A user's contributions that differ: bounds against exact divergences, and what they rest on."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting import NotApplicable, account_user, user_level_epsilon
from fedhh.accounting.bounds.selection import paper_subset_size
from tests.accounting.brute_force import add_report, subset_selection_distribution


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


@pytest.mark.parametrize(("local_epsilon", "members"), [(1.0, 1), (2.0, 1), (3.0, 1), (0.7, 2)])
@pytest.mark.parametrize("others", ["dummies", "words", "both"])
def test_labels_are_above_every_client_among_many(local_epsilon, members, others):
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
        contributions_differ=True,
    )
    distributions = shuffles(distribution, held, contributions)
    for i, first in enumerate(distributions):
        for second in distributions[:i]:
            assert exact_delta(first, second, found.labels) <= delta
    # The check can fail.
    worst = max(exact_delta(a, b, 0.2 * found.labels) for a in distributions for b in distributions)
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


@pytest.mark.parametrize(
    ("own_dummies", "weights", "before", "after", "at_least"),
    [
        (False, [10] + [0] * 10 + [-1] * 10, [DUMMY] * 10, NEW, 2.7),
        (True, [0] + [1] * 10 + [-1] * 10, OLD, NEW, 1.03),
    ],
)
def test_labels_are_above_what_a_score_tells(own_dummies, weights, before, after, at_least):
    found = user_level_epsilon(
        bound="blanket",
        **CASE,
        max_items=10,
        domain_size=200,
        contributions_differ=True,
        own_dummies=own_dummies,
    )
    told = score_epsilon(**CASE, size=200, weights=weights, before=before, after=after)
    assert at_least < told < found.labels < 1.8 * told
    assert found.labels < 0.9 * min(found.groups, found.slots)
    assert found.method == "labels"
    assert found.epsilon == found.labels


def test_labels_do_not_hold_for_a_client_that_repeats_a_word():
    found = user_level_epsilon(
        bound="blanket",
        **CASE,
        max_items=10,
        domain_size=200,
        contributions_differ=True,
        own_dummies=True,
    )
    told = score_epsilon(**CASE, size=200, weights=[1, -1], before=[0] * 10, after=[1] * 10)
    assert found.labels < told < found.slots


def test_without_different_words_there_are_no_labels():
    asked = {"local_epsilon": 4.0, "num_clients": 500, "delta": 1e-6}
    for more in (
        {"bound": "blanket", "max_items": 10, "domain_size": 200},
        {"bound": "clones", "max_items": 10, "contributions_differ": True},
        {"bound": "blanket", "max_items": 1, "domain_size": 200, "contributions_differ": True},
    ):
        found = user_level_epsilon(**asked, **more)
        assert isinstance(found.labels, NotApplicable)
        assert found.epsilon == min(found.groups, found.slots)
    few = user_level_epsilon(
        bound="blanket", local_epsilon=4.0, num_clients=2, max_items=3, delta=1e-6,
        domain_size=9, contributions_differ=True,
    )  # fmt: skip
    assert isinstance(few.labels, NotApplicable)
    both = account_user(**asked, max_items=10, domain_size=200, contributions_differ=True)
    assert both.to_dict()["bounds"]["blanket"]["method"] == "labels"
    assert both.to_dict()["bounds"]["clones"]["labels"] is None


def test_a_window_of_collections_costs_more_than_one_and_less_than_its_sum():
    asked = {"local_epsilon": 3.0, "num_clients": 5000, "max_items": 4, "domain_size": 300}
    epsilons = [
        account_user(**asked, delta=1e-6, contributions_differ=True, rounds=rounds)
        .bounds["blanket"]
        .labels
        for rounds in (1, 7)
    ]
    assert 2 * epsilons[0] < epsilons[1] < 7 * epsilons[0]
    told = account_user(**asked, delta=1e-6, rounds=7).to_dict()
    assert told["rounds"] == 7
    assert told["local_epsilon_of_all_contributions"] == 84.0
