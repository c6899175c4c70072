import itertools
import math

import numpy as np
import pytest
from marginals import HadamardMarginals

from fedhh.testing.statistics import follows_distribution, rows
from fedhh.validation import InputError

TINY = HadamardMarginals(epsilon=1.2, num_attributes=3, order=2)
EVERY = np.array(list(itertools.product([False, True], repeat=3)))


def report_distribution(marginals, row):
    """Return the probability of each report of a client, from the definition."""
    distribution = {}
    for place, chosen in enumerate(marginals.coefficients.tolist()):
        sign = (-1) ** sum(bit for i, bit in enumerate(row.tolist()) if chosen >> i & 1)
        for sent in (0, 1):
            kept = sign == (1 if sent else -1)
            chance = marginals.p if kept else 1 - marginals.p
            distribution[place, sent] = chance / marginals.num_coefficients
    return distribution


def test_there_is_a_coefficient_for_every_set_of_up_to_k_attributes():
    assert sorted(TINY.coefficients.tolist()) == [0b001, 0b010, 0b011, 0b100, 0b101, 0b110]
    assert HadamardMarginals(epsilon=1, num_attributes=8, order=3).num_coefficients == 92


def test_reports_have_their_distribution_and_exactly_epsilon():
    worst = 0.0
    for row, other in itertools.product(EVERY, repeat=2):
        one, two = report_distribution(TINY, row), report_distribution(TINY, other)
        worst = max(worst, *(math.log(one[each] / two[each]) for each in one))
    assert worst == pytest.approx(1.2)
    for row in EVERY:
        reports = TINY.privatize(np.tile(row, (5_000, 1)), rng=np.random.default_rng(2))
        assert follows_distribution(rows(reports), report_distribution(TINY, row))
        assert not follows_distribution(rows(reports), report_distribution(TINY, ~row))


@pytest.mark.parametrize("attributes", [[0], [2], [0, 1], [2, 0], [1, 2]])
def test_marginals_are_unbiased(attributes):
    # The expected counts of 6000 clients, 750 p or 750 (1 - p) parts of each set, as they are.
    people = EVERY[[0, 1, 1, 3, 6, 7, 7, 7]]
    counts = np.zeros((TINY.num_coefficients, 2))
    for row in people:
        for (place, sent), chance in report_distribution(TINY, row).items():
            counts[place, sent] += chance
    truth = np.zeros(2 ** len(attributes))
    for row in people:
        truth[sum(int(row[each]) << i for i, each in enumerate(attributes))] += 1 / len(people)
    assert TINY.estimate(counts * 1e6) == pytest.approx(
        [np.mean([(-1) ** (row[[i for i in range(3) if a >> i & 1]].sum() % 2) for row in people])
         for a in TINY.coefficients.tolist()]
    )  # fmt: skip
    assert TINY.marginal(counts * 1e6, attributes) == pytest.approx(truth)
    if len(attributes) == 2:
        swapped = TINY.marginal(counts * 1e6, attributes[::-1])
        assert swapped == pytest.approx(truth[[0, 2, 1, 3]])
        assert swapped != pytest.approx(truth)


def test_the_variance_is_the_stated_one_where_a_coefficient_is_zero():
    # Half of the clients have the attribute, so its coefficient is 0.
    people = np.zeros((400, 3), dtype=bool)
    people[:200, 0] = True
    reports = [TINY.privatize(people, rng=np.random.default_rng(seed)) for seed in range(400)]
    counts = [TINY.aggregate(each) for each in reports]
    scores = [TINY.estimate(each)[0] / math.sqrt(TINY.variance(each)[0]) for each in counts]
    # The mean square of 400 numbers of variance 1 is off by 0.32 but once in 10^5.
    assert np.mean(np.square(scores)) == pytest.approx(1, abs=0.32)
    assert np.isinf(TINY.variance(np.zeros((6, 2), dtype=np.int64))).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": 4}, "order <= num_attributes"),
        ({"num_attributes": 63}, "num_attributes <= 62"),
        ({"num_attributes": 60, "order": 30}, "coefficients"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 1e-300}, "epsilon"),
        ({"epsilon": 1e300}, "epsilon"),
    ],
)
def test_settings_that_mean_nothing_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        HadamardMarginals(**{"epsilon": 1.0, "num_attributes": 3, "order": 2, **settings})


def test_attributes_that_do_not_belong_are_refused():
    counts = np.ones((6, 2), dtype=np.int64)
    for attributes in ([], [0, 0], [3], [0, 1, 2]):
        with pytest.raises(InputError):
            TINY.marginal(counts, attributes)
    with pytest.raises(InputError, match="rows of 3 attributes"):
        TINY.privatize(np.zeros((5, 4), dtype=bool), rng=np.random.default_rng(0))
