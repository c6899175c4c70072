import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from fedhh.oracles import SubsetSelection
from fedhh.testing import (
    follows_distribution,
    report_distribution,
)
from fedhh.validation import InputError
from tests.every import every

# Independently computed reference: s, epsilon, d, p, q, p - q, blanket probability, noise of the
# ceiling, noise of the floor, best d of the two.
REFERENCE = [
    (5, 0.5, 2, 0.5236161377769489, 0.36909596555576274, 0.1545201722211862,
     0.7939731037050851, 9.752865515729507, 11.046310108520666, 2),
    (28, 2.0, 4, 0.5518728164505036, 0.1277084142055369, 0.42416440224496665,
     0.5228150474744125, 0.6191740690238609, 0.5998501055707824, 3),
    (101, 1.0, 28, 0.5104347519566532, 0.27489565248043346, 0.23553909947621976,
     0.6773436993476442, 3.5928770847191567, 3.590313022918961, 27),
    (1351, 4.0, 25, 0.5072379079009833, 0.018142786734888162, 0.48909512116609516,
     0.5020524784508081, 0.07446731055977664, 0.0744227729237128, 24),
    (1351, 7.0, 2, 0.6191703617595361, 0.0010228367690670102, 0.6181475249904691,
     0.3813942485269583, 0.0026740998682135593, 0.0020373281190677783, 1),
    (1351, 10.0, 1, 0.9422496107046295, 4.277806614471886e-05, 0.9422068326384848,
     0.057793167361515185, 4.818480107300684e-05, 4.818480107300684e-05, 1),
    (100001, 10.0, 5, 0.5241193774859509, 4.4758806225140496e-05, 0.5240746186797258,
     0.47590441749697404, 0.00016295691784702724, 0.0001609918337130592, 4),
    (1000001, 8.0, 336, 0.5004839143798981, 0.0003354995160856201, 0.5001484148638126,
     0.4996839792692427, 0.0013407517565530802, 0.0013407478837705966, 335),
    (1000001, 10.0, 46, 0.5032939122317912, 4.549670608776821e-05, 0.5032484155257034,
     0.496728937276474, 0.0001796368221249382, 0.00017961052480766892, 45),
    (1000001, 14.0, 1, 0.5459919844933934, 4.540080155066066e-07, 0.5459915304853779,
     0.4540084695146221, 1.5229705711440618e-06, 1.5229705711440618e-06, 1),
]  # fmt: skip

TINY = [(2, 1.0), (4, 0.3), (5, 0.5), (6, 2.0), (7, 4.0)]


def blanket_of(oracle: SubsetSelection) -> float:
    """The weight of the uniform subset in a report's distribution, seen as a mixture."""
    return math.exp(-oracle.epsilon) / (
        oracle.d / oracle.domain_size * -math.expm1(-oracle.epsilon) + math.exp(-oracle.epsilon)
    )


def noise(epsilon: float, s: int, d: int) -> float:
    p = d * math.exp(epsilon) / (d * math.exp(epsilon) + s - d)
    q = (d - p) / (s - 1)
    return q * (1 - q) / (p - q) ** 2


@every("row", REFERENCE)
def test_parameters_equal_the_reference(row):
    s, epsilon, d, p, q, gap, blanket, ceiling, floor, best = row
    oracle = SubsetSelection(epsilon=epsilon, domain_size=s)
    assert oracle.d == d
    assert oracle.p == pytest.approx(p, rel=1e-12)
    assert oracle.q == pytest.approx(q, rel=1e-10)
    assert oracle.p - oracle.q == pytest.approx(gap, rel=1e-12)
    assert blanket_of(oracle) == pytest.approx(blanket, rel=1e-12)
    assert oracle.variance(0, 1) == pytest.approx(ceiling, rel=1e-9)
    optimal = SubsetSelection(epsilon=epsilon, domain_size=s, subset_size="optimal")
    assert optimal.d == best
    assert optimal.variance(0, 1) == pytest.approx(min(ceiling, floor), rel=1e-9)


@every("s", [2, 3, 5, 17, 100, 101])
@every("epsilon", [0.1, 0.7, 1.5, 3.0, 4.6, 6.0])
def test_optimal_subset_size_is_the_best_of_all(s, epsilon):
    chosen = SubsetSelection(epsilon=epsilon, domain_size=s, subset_size="optimal").d
    best = min(noise(epsilon, s, d) for d in range(1, s))
    assert noise(epsilon, s, chosen) == pytest.approx(best, rel=1e-12)


@every("whole", range(1, 60))
@every("multiple", [1, 2, 3, 7])
def test_a_whole_subset_size_is_not_rounded_up(whole, multiple):
    # s / (E + 1) is a whole number, which floating point may miss by a hair on either side.
    if multiple * (whole + 1) >= 2 and whole > 1:
        oracle = SubsetSelection(epsilon=math.log(whole), domain_size=multiple * (whole + 1))
        assert oracle.d == multiple


@pytest.mark.parametrize(("s", "epsilon"), TINY)
def test_distribution_is_that_of_the_papers_algorithm(s, epsilon):
    # Algorithm 1 step by step: a coin with probability p, then ordered draws without replacement.
    oracle = SubsetSelection(epsilon=epsilon, domain_size=s)
    value = s - 1
    distribution: dict[tuple[int, ...], float] = defaultdict(float)
    others = [v for v in range(s) if v != value]
    for held, weight in ((True, oracle.p), (False, 1 - oracle.p)):
        draws = list(itertools.permutations(others, oracle.d - held))
        for draw in draws:
            distribution[tuple(sorted((*draw, value) if held else draw))] += weight / len(draws)
    assert report_distribution(oracle, value) == pytest.approx(dict(distribution), abs=1e-12)


@pytest.mark.parametrize(("s", "epsilon"), TINY)
def test_distribution_is_a_mixture_of_the_blanket_and_subsets_with_the_value(s, epsilon):
    oracle = SubsetSelection(epsilon=epsilon, domain_size=s)
    blanket = blanket_of(oracle) / math.comb(s, oracle.d)
    with_value = (1 - blanket_of(oracle)) / math.comb(s - 1, oracle.d - 1)
    mixture = {
        subset: blanket + with_value * (0 in subset)
        for subset in itertools.combinations(range(s), oracle.d)
    }
    assert report_distribution(oracle, 0) == pytest.approx(mixture, abs=1e-12)


def test_ratio_of_any_two_probabilities_is_exact_at_gboards_size():
    oracle = SubsetSelection(epsilon=10.0, domain_size=1_000_001)
    report = np.arange(46)[None, :]
    ratio = oracle.log_prob(report, 3)[0] - oracle.log_prob(report, 500)[0]
    assert ratio == pytest.approx(10.0, abs=1e-11)


def test_report_bits_are_the_log_of_the_number_of_subsets():
    oracle = SubsetSelection(epsilon=10.0, domain_size=1_000_001)
    assert oracle.report_bits == pytest.approx(math.log2(math.comb(1_000_001, 46)), rel=1e-10)


def test_reports_ascend_so_that_the_order_of_drawing_leaks_nothing():
    oracle = SubsetSelection(epsilon=1.0, domain_size=40)
    reports = oracle.privatize(np.full(2_000, 39), rng=np.random.default_rng(0))
    assert reports.shape == (2_000, oracle.d)
    assert (np.diff(reports, axis=1) > 0).all()


def test_reports_at_gboards_size_hold_their_value_with_probability_p():
    oracle = SubsetSelection(epsilon=10.0, domain_size=1_000_001)
    values = np.arange(40_000) * 25
    reports = oracle.privatize(values, rng=np.random.default_rng(1))
    held = (reports == values[:, None]).any(axis=1)
    assert follows_distribution(held.tolist(), {True: oracle.p, False: 1 - oracle.p})
    # The others are uniform: equal numbers in a hundred equal parts of the domain.
    others = reports[reports != values[:, None]] // 10_001
    assert follows_distribution(others.tolist(), dict.fromkeys(range(100), 0.01))


def test_an_epsilon_beyond_floating_point_reports_the_value_itself():
    oracle = SubsetSelection(epsilon=900.0, domain_size=6)
    rng = np.random.default_rng(2)
    assert oracle.privatize(np.arange(6), rng=rng).tolist() == [[v] for v in range(6)]
    assert oracle.aggregate(values=np.array([4, 4]), rng=rng).tolist() == [0, 0, 0, 0, 2, 0]


def test_unknown_subset_size_lists_the_known_ones():
    with pytest.raises(InputError, match=r"did you mean 'optimal'.*Known: optimal, paper"):
        SubsetSelection(epsilon=1.0, domain_size=5, subset_size="optimum")


def test_a_domain_beyond_32_bits_is_refused_with_a_way_out():
    with pytest.raises(InputError, match=r"domain_size <= 4294967295.*olh"):
        SubsetSelection(epsilon=1.0, domain_size=2**32)
