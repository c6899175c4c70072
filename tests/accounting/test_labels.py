"""The blanket split by labels: below no exact divergence, for clients whose words differ."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from fedhh.accounting.bounds.label_domains import label_blanket, reachable_label_blanket
from fedhh.accounting.bounds.labels import LabelBlanket, fewest_of_label
from fedhh.accounting.bounds.selection import Selection
from tests.accounting.brute_force import (
    hockey_stick,
    multiset_distribution,
    subset_selection_distribution,
)

OWN = pytest.mark.parametrize("own_dummies", [False, True])


def label_pair(bound: LabelBlanket) -> tuple[np.ndarray, np.ndarray]:
    """Distributions of a label's numbers of subsets with v only, v' only, neither, enumerated."""
    growth, n = math.exp(bound.local_epsilon), bound.num_reports
    others = (bound.one * bound.first, bound.one * bound.second, bound.neither * bound.rest)
    counts = np.zeros((n + 1,) * 3)
    counts[0, 0, 0] = 1.0
    for _ in range(n - 1):
        counts = add(counts, others) + counts * (1 - sum(others))
    own = (growth * bound.one, bound.one, bound.neither)
    assert sum(own) == pytest.approx(1)
    return add(counts, own), add(counts, (own[1], own[0], own[2]))


def add(counts: np.ndarray, chances: tuple[float, ...]) -> np.ndarray:
    return sum(chance * np.roll(counts, 1, axis=axis) for axis, chance in enumerate(chances))


@OWN
@pytest.mark.parametrize("case", [(1.0, 9, 3, 2), (2.0, 12, 2, 3), (3.0, 40, 2, 2), (2.0, 3, 1, 2)])
def test_a_labels_delta_is_that_of_all_its_reports(case, own_dummies):
    local_epsilon, size, members, max_items = case
    for num_reports in (2, 5, 14):
        (bound,) = label_blanket(
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            max_items=max_items,
            domains=[(size, members)],
            own_dummies=own_dummies,
        ).bounds
        first, second = label_pair(bound)
        for epsilon in (0.0, 0.1, 0.5, 1.0, 1.8):
            exact = max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
            assert exact * (1 - 1e-9) - 1e-15 <= bound.delta(epsilon) <= exact * 1.1 + 1e-12


def labels_of(subset, own, dummy, even, labels):
    """Probability of each label for a blanket subset, by the rule in the module's docstring."""
    uniform = np.full(labels, 1 / labels)
    held = [word for word in own if word in subset]
    if not held or dummy in subset:
        return uniform
    of_words = np.zeros(labels)
    for word in held:
        of_words[own[word]] += 1 / len(held)
    return (1 - even) * of_words + even * uniform


def even_share(size, members, max_items):
    """The share of labels that are drawn evenly, by the hypergeometric distribution."""
    marked = min(2 * max_items - 2, size - 2)
    none = float(marked == 0)
    if members <= size - 2:
        none = stats.hypergeom.pmf(0, size - 2, marked, members)
    return min(max((0.3 - none) / max(1 - none, 1e-12), 0.02), 1.0)


@OWN
@pytest.mark.parametrize(
    ("size", "members", "max_items"),
    [(2, 1, 3), (3, 1, 2), (4, 2, 2), (5, 1, 2), (5, 2, 2), (6, 2, 3), (7, 3, 3), (4, 3, 4),
     (3, 2, 5), (9, 1, 4), (8, 2, 3)],
)  # fmt: skip
def test_a_label_has_what_the_rule_gives_it_for_every_change(size, members, max_items, own_dummies):
    (bound,) = label_blanket(
        local_epsilon=1.5,
        num_reports=10,
        max_items=max_items,
        domains=[(size, members)],
        own_dummies=own_dummies,
    ).bounds
    of_size = Selection(local_epsilon=1.5, domain_size=size, subset_size=members)
    both = math.exp(1.5) * of_size.blanket * of_size.uniform_pattern(True, True)
    stated = bound.one * bound.first, bound.one * bound.second, bound.neither * bound.rest
    # The client's own report, given that the reader is not told that it contains both.
    assert bound.neither == pytest.approx(
        of_size.blanket * of_size.uniform_pattern(False, False) / (1 - both), abs=1e-8
    )
    dummy = None if own_dummies else 0
    words = range(size) if own_dummies else range(1, size)
    even = even_share(size, members, max_items)
    subsets = list(itertools.combinations(range(size), members))
    chance = of_size.blanket / len(subsets)
    checked = 0
    # Words before and after, with the dummy where one has fewer.
    for before, after in itertools.product(range(max_items + 1), repeat=2):
        unequal = own_dummies and before != after
        if unequal or not 0 < before + after <= len(words):
            continue
        old, new = words[:before], words[before : before + after]
        pairs = list(itertools.zip_longest(old, new, fillvalue=dummy))
        own = {word: i for i, pair in enumerate(pairs) for word in pair if word != dummy}
        given = {each: labels_of(each, own, dummy, even, max_items) for each in subsets}
        for i, (v, w) in enumerate(pairs):
            found = [
                max_items * chance * sum(given[s][i] for s in subsets if (v in s, w in s) == held)
                for held in ((True, False), (False, True), (False, False))
            ]
            checked += 1
            assert min(stated[:2]) <= min(found[:2]) * (1 + 1e-9)
            assert max(stated[:2]) <= max(found[:2]) * (1 + 1e-9)
            assert stated[2] <= found[2] * (1 + 1e-9)
            assert len(pairs) <= bound.changes
    assert checked


def test_labels_have_no_more_reports_than_there_are():
    for size, members, max_items in ((3, 1, 60), (2, 1, 60), (5, 4, 30), (200, 40, 60)):
        for own_dummies in (False, True):
            (bound,) = label_blanket(
                local_epsilon=0.5,
                num_reports=100,
                max_items=max_items,
                domains=[(size, members)],
                own_dummies=own_dummies,
            ).bounds
            assert bound.one * (bound.first + bound.second) + bound.neither * bound.rest <= 1


@OWN
def test_labels_together_are_above_every_shuffle_enumerated(own_dummies):
    # Two to four clients with two contributions each, all data. Labels are independent given how
    # many reports of others each has, and the mean over these numbers is above the shuffle.
    checked, closest = 0, 0.0
    for num_clients, size, members, local_epsilon in (
        (2, 4, 1, 2.0), (2, 4, 2, 2.0), (3, 4, 1, 1.0), (3, 4, 2, 2.5), (3, 3, 1, 2.0),
        (4, 3, 1, 3.0),
    ):  # fmt: skip
        others = 2 * (num_clients - 1)
        distribution = subset_selection_distribution(local_epsilon, size, members)
        if own_dummies:
            contributions = list(itertools.combinations(range(size), 2))
        else:
            words = range(1, size)
            contributions = [(0, 0), *((0, v) for v in words), *itertools.combinations(words, 2)]
        pairs = [label_alone(local_epsilon)]
        for count in range(1, others + 1):
            (bound,) = label_blanket(
                local_epsilon=local_epsilon,
                num_reports=count + 1,
                max_items=2,
                domains=[(size, members)],
                own_dummies=own_dummies,
            ).bounds
            pairs.append(label_pair(bound))
        shuffles = [
            [multiset_distribution(distribution, (*own, *rest)) for own in contributions]
            for rest in itertools.combinations_with_replacement(range(size), others)
        ]
        for epsilon in (0.2, 0.7, 1.5):
            stated = sum(
                math.comb(others, count) / 2**others * both_labels(
                    pairs[count], pairs[others - count], epsilon
                )
                for count in range(others + 1)
            )  # fmt: skip
            for of_rest in shuffles:
                for first, second in itertools.permutations(of_rest, 2):
                    exact = hockey_stick(first, second, epsilon)
                    assert exact <= stated * (1 + 1e-9)
                    checked, closest = checked + 1, max(closest, exact / stated)
    assert checked > 1000
    # A bound that is half as large would be refuted.
    assert closest > 0.5


def label_alone(local_epsilon: float) -> tuple[np.ndarray, np.ndarray]:
    """A label without reports of others: the client's own tells the most that it may."""
    growth = math.exp(local_epsilon)
    return np.array([growth, 1.0]) / (growth + 1), np.array([1.0, growth]) / (growth + 1)


def both_labels(one, other, epsilon):
    """Divergence of two labels, both ways round."""
    return max(
        hockey_stick(
            np.multiply.outer(one[way], other[way]),
            np.multiply.outer(one[1 - way], other[1 - way]),
            epsilon,
        )
        for way in (0, 1)
    )


@OWN
def test_a_range_of_domains_is_dominated(own_dummies):
    for local_epsilon, smallest, largest, max_items in (
        (1.0, 2, 40, 3), (3.0, 5, 400, 5), (4.5, 28, 3000, 2), (5.0, 300, 900, 10),
        (1.5, 4000, 10**15, 4), (2.0, 8000, 10**6, 20),
    ):  # fmt: skip
        asked = {
            "local_epsilon": local_epsilon,
            "num_reports": 3000,
            "max_items": max_items,
            "own_dummies": own_dummies,
        }
        whole = reachable_label_blanket(**asked, smallest_domain=smallest, largest_domain=largest)
        closest = 0.0
        for size in np.unique(np.geomspace(smallest, largest, 25).astype(int)).tolist():
            best = size / (math.exp(local_epsilon) + 1)
            for members in {math.floor(best), math.ceil(best)}:
                d = min(max(members, 1), size - 1)
                alone = label_blanket(**asked, domains=[(size, d)])
                for epsilon in (0.0, 0.1, 0.3):
                    # Far below any target, chords are off by more than the two bounds differ.
                    if alone.delta(epsilon) < 1e-20:
                        continue
                    ratio = alone.delta(epsilon) / whole.delta(epsilon)
                    assert ratio <= 1 + 2e-3
                    closest = max(closest, ratio)
        assert closest > 0.5


def test_fewest_of_label_is_a_binomial_quantile():
    assert fewest_of_label(1000, 1, chance=1e-3) == 1000
    for reports, labels, chance in ((1000, 10, 1e-6), (60 * 30_000, 60, 1e-12), (20, 5, 1e-3)):
        found = fewest_of_label(reports, labels, chance=chance)
        assert labels * stats.binom.cdf(found - 1, reports, 1 / labels) <= chance
        assert labels * stats.binom.cdf(found, reports, 1 / labels) > chance
