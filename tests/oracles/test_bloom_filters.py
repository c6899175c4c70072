import itertools
import math

import numpy as np
import pytest

from fedhh.oracles.bloom import NOTHING, BitResponse, BloomFilters, BloomReports
from fedhh.testing.statistics import follows_distribution, rows
from fedhh.validation import InputError
from tests.every import every
from tests.thinned import thinned

PAPER = BitResponse(f=0.5, p=0.5, q=0.75)
TINY = BloomReports(
    filters=BloomFilters(num_bits=3, num_hashes=2, num_cohorts=2, hash_seed=5),
    response=BitResponse(f=0.4, p=0.2, q=0.9),
)
KEYS = np.array([NOTHING, 0, 1, 2, 3])


def report_distribution(reports, key):
    """Return the probability of each report (cohort, bits), by the two steps of the paper."""
    distribution = {}
    f, p, q = reports.response.f, reports.response.p, reports.response.q
    for cohort in range(reports.filters.num_cohorts):
        held = reports.filters.filters(np.array([cohort]), np.array([key]))[0]
        for bits in itertools.product((0, 1), repeat=reports.filters.num_bits):
            chance = 1 / reports.filters.num_cohorts
            for bit, sent in zip(held, bits, strict=True):
                kept_one = f / 2 + (1 - f) * bit
                one = kept_one * q + (1 - kept_one) * p
                chance *= one if sent else 1 - one
            distribution[cohort, *bits] = chance
    return distribution


@pytest.mark.parametrize("num_hashes", [1, 2])
def test_what_p_and_q_alone_give_is_the_bound_of_a_report(num_hashes):
    # Without a permanent step a bit's odds are 3 to 1: .75 (1 - .5) over .5 (1 - .75).
    alone = num_hashes * math.log(3)
    close = BitResponse.of_one_report(alone * (1 - 1e-6), num_hashes=num_hashes, p=0.5, q=0.75)
    assert 0 < close.f < 1e-5
    assert close.epsilon_of_one_report(num_hashes) <= alone * (1 - 1e-6)
    for epsilon in (alone, alone + 1):
        with pytest.raises(InputError, match=rf"Expected epsilon < {alone:.4g}, which p=0\.5 and"):
            BitResponse.of_one_report(epsilon, num_hashes=num_hashes, p=0.5, q=0.75)


def test_the_papers_probabilities_and_epsilons():
    assert PAPER.zero == pytest.approx(0.5625)
    assert PAPER.one == pytest.approx(0.6875)
    assert PAPER.bit_variance == pytest.approx(15.75)
    assert PAPER.epsilon_of_one_report(2) == pytest.approx(1.0743, abs=5e-5)
    assert PAPER.epsilon_of_all_reports(2) == pytest.approx(4.394, abs=5e-4)


@every(("p", "q"), [(0.0, 1.0), (0.5, 0.75), (0.1, 0.95)])
@every("hashes", [1, 2, 4])
@every("epsilon", [1e-6, 0.3, 1.0])
def test_a_response_made_for_an_epsilon_has_it(epsilon, hashes, p, q):
    response = BitResponse.of_one_report(epsilon, num_hashes=hashes, p=p, q=q)
    assert response.epsilon_of_one_report(hashes) == pytest.approx(epsilon, rel=1e-4)
    assert response.epsilon_of_one_report(hashes) < epsilon
    assert response.epsilon_of_all_reports(hashes) >= epsilon * (1 - 1e-4)


def test_with_one_step_one_report_tells_as_much_as_all():
    response = BitResponse.of_one_report(3.0, num_hashes=2)
    assert response.f == pytest.approx(2 / (1 + math.exp(3.0 / 4)))
    assert response.epsilon_of_all_reports(2) == pytest.approx(3.0)


def test_an_epsilon_beyond_the_second_step_is_refused():
    with pytest.raises(InputError, match=r"Expected epsilon < 2\.197, .* got epsilon=8\.0"):
        BitResponse.of_one_report(8.0, num_hashes=2, p=0.5, q=0.75)
    with pytest.raises(InputError, match="p < q"):
        BitResponse(f=0.5, p=0.75, q=0.5)


def test_the_largest_log_ratio_of_two_reports_is_epsilon_where_filters_are_disjoint():
    filters = BloomFilters(num_bits=4, num_hashes=2, num_cohorts=1, hash_seed=0)
    reports = BloomReports(filters=filters, response=TINY.response)
    keys = np.arange(40)
    masks = filters.filters(np.zeros(40, dtype=np.int64), keys)
    worst = 0.0
    for one, other in itertools.product(range(40), repeat=2):
        disjoint = (
            masks[one].sum() == masks[other].sum() == 2 and not (masks[one] & masks[other]).any()
        )
        distributions = [report_distribution(reports, key) for key in (one, other)]
        ratio = max(
            math.log(distributions[0][each] / distributions[1][each]) for each in distributions[0]
        )
        assert ratio <= reports.epsilon + 1e-12
        if disjoint:
            worst = max(worst, ratio)
            break
    assert worst == pytest.approx(reports.epsilon)


@pytest.mark.parametrize("key", KEYS.tolist())
def test_reports_have_the_distribution_of_both_steps(key):
    rng = np.random.default_rng(8)
    cohorts, bits = TINY.privatize(np.full(20_000, key), rng=rng)
    draws = rows(np.column_stack([cohorts, bits]))
    assert follows_distribution(draws, report_distribution(TINY, key))
    louder = BloomReports(filters=TINY.filters, response=BitResponse(f=0.45, p=0.2, q=0.9))
    assert not follows_distribution(draws, report_distribution(louder, key))


@pytest.mark.parametrize("draws", thinned([300, 4_000]))
def test_sums_without_reports_have_the_distribution_of_sums_of_reports(draws):
    # One cohort, so that the whole tally of three clients has few outcomes.
    filters = BloomFilters(num_bits=2, num_hashes=1, num_cohorts=1, hash_seed=1)
    reports = BloomReports(filters=filters, response=TINY.response)
    keys = np.array([0, 0, NOTHING])
    distributions = [report_distribution(reports, key) for key in keys.tolist()]
    distribution = {}
    for outcome in itertools.product(*distributions):
        tally = (*np.sum([each[1:] for each in outcome], axis=0).tolist(), len(keys))
        chance = math.prod(one[each] for one, each in zip(distributions, outcome, strict=True))
        distribution[tally] = distribution.get(tally, 0.0) + chance

    def one_by_one(seed):
        out = np.zeros(reports.tally_size, dtype=np.int64)
        reports.add_reports(keys, rng=np.random.default_rng(seed), out=out)
        return tuple(out.tolist())

    def at_once(seed):
        rng = np.random.default_rng(seed)
        counts = np.zeros(reports.tally_size, dtype=np.int64)
        reports.add_noise_free_counts(keys, rng=rng, out=counts)
        return tuple(reports.sample_aggregate(counts, rng=rng).tolist())

    for draw in (one_by_one, at_once):
        assert follows_distribution([draw(seed) for seed in range(draws)], distribution)


def test_noise_free_counts_count_a_bit_once_where_functions_agree():
    keys = np.arange(500)
    counts = np.zeros(TINY.tally_size, dtype=np.int64)
    TINY.add_noise_free_counts(keys, rng=np.random.default_rng(3), out=counts)
    ones, reports = TINY.split(counts)
    cohorts = np.random.default_rng(3).integers(2, size=500)
    masks = TINY.filters.filters(cohorts, keys)
    for cohort in range(2):
        assert ones[cohort].tolist() == masks[cohorts == cohort].sum(axis=0).tolist()
        assert reports[cohort] == np.count_nonzero(cohorts == cohort)
    assert masks.sum() < 1_000


def test_estimates_of_bits_are_unbiased_and_have_the_stated_variance():
    key, distribution = 2, report_distribution(TINY, 2)
    mean = np.zeros((2, 3))
    square = np.zeros((2, 3))
    for (cohort, *bits), chance in distribution.items():
        tally = np.zeros(TINY.tally_size, dtype=np.int64)
        ones, reports = TINY.split(tally)
        ones[cohort], reports[cohort] = bits, 1
        estimate = TINY.estimate_bits(tally)
        mean += chance * estimate
        square += chance * 2 * (estimate * (np.arange(2)[:, None] == cohort)) ** 2
    held = TINY.filters.filters(np.arange(2), np.full(2, key))
    assert mean == pytest.approx(held / 2)
    response = TINY.response
    for bit, chance in ((False, response.zero), (True, response.one)):
        stated = chance * (1 - chance) / (response.one - response.zero) ** 2
        assert (square - held)[held == bit] == pytest.approx(stated)
    assert response.bit_variance == pytest.approx(
        response.zero * (1 - response.zero) / (response.one - response.zero) ** 2
    )


def test_cells_are_the_bits_of_every_cohort():
    cells = TINY.filters.cells(np.arange(4))
    assert cells.shape == (4, 2, 2)
    for cohort in range(2):
        positions = TINY.filters.positions(np.full(4, cohort), np.arange(4))
        assert (cells[:, cohort] == positions + cohort * 3).all()
