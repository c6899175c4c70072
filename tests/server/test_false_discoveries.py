"""P-values against exact tails, and the false discovery rate by enumeration of all tallies."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from scipy import stats

from fedhh.oracles import SubsetSelection
from fedhh.server.evidence import benjamini_hochberg, interval_quantile, p_values
from fedhh.testing.oracle_distributions import tally_distribution
from tests.every import every
from tests.thinned import thinned


def p_of_sums(votes, rounds):
    """Return the p-values of votes added up over rounds of n reports with chance q each."""
    reports = sum(n for n, _ in rounds)
    expected = sum(n * q for n, q in rounds)
    of_all = np.ones(len(votes))
    return p_values(votes.astype(float), reports * of_all, expected * of_all)


@every(
    ("n", "q"),
    [(2, 0.3), (7, 0.5), (40, 0.9), (1_000, 0.018), (20_000, 2.5e-4), (10**7, 1e-3), (300, 1e-12)],
)
def test_of_one_round_a_p_value_is_the_exact_tail(n, q):
    last = min(n, int(n * q + 60 * np.sqrt(n * q) + 20))
    votes = np.unique(np.linspace(0, last, 400).astype(np.int64))
    p = p_of_sums(votes, [(n, q)])
    above = votes >= max(n * q + 1, 1)
    assert above.any()
    np.testing.assert_allclose(p[above], stats.binom.sf(votes[above] - 1, n, q), rtol=1e-9)
    assert (p[~above] == 1).all()


def exact_tail(votes, rounds):
    """P(at least so many votes), by convolution of the rounds' binomial distributions."""
    last = int(votes.max())
    distribution = reduce(
        np.convolve, (stats.binom.pmf(np.arange(n + 1), n, q)[: last + 1] for n, q in rounds)
    )
    return np.array([distribution[v:].sum() for v in votes])


@pytest.mark.parametrize(
    ("rounds", "at_most"),
    [
        # Layers of one run, whose q differ by little; and much wilder ones than any run has.
        ([(400, 0.019), (900, 0.0184), (2_000, 0.0182)], 1.01),
        ([(3_000, 3e-4), (1_000, 6e-4)], 1.1),
        ([(30, 0.5), (300, 0.02)], np.inf),
        ([(5, 0.9), (50, 0.01), (7, 0.3)], np.inf),
    ],
)
def test_over_rounds_a_p_value_is_at_least_the_exact_tail_and_close(rounds, at_most):
    expected = sum(n * q for n, q in rounds)
    votes = np.arange(int(expected) + 2, sum(n for n, _ in rounds) + 1)
    tail = exact_tail(votes, [(n, q) for n, q in rounds])
    seen = tail > 1e-9
    ratio = p_of_sums(votes[seen], rounds) / tail[seen]
    assert seen.sum() >= 5
    assert ratio.min() >= 1 - 1e-6
    assert ratio.max() <= at_most
    # The control: as a distribution of the same trials with the smallest q, the tail is too small.
    least = min(q for _, q in rounds)
    alone = stats.binom.sf(votes[seen] - 1, sum(n for n, _ in rounds), least)
    assert (alone < tail[seen] * (1 - 1e-6)).any()


def test_below_one_above_its_expectation_a_sum_claims_nothing():
    # Hoeffding's theorem says nothing there: of (5, .9) and (5, .1), half of the ten are votes.
    rounds = [(5, 0.9), (5, 0.1)]
    p = p_of_sums(np.arange(11), rounds)
    assert (p[:6] == 1).all()
    assert (np.diff(p[5:]) < 0).all()
    tail = stats.binom.sf(np.arange(11) - 1, 10, 0.5)
    assert tail[5] < exact_tail(np.array([5, 10]), rounds)[0]


def test_words_that_nobody_was_asked_about_have_no_evidence():
    zeros = np.zeros(3)
    assert (p_values(zeros, zeros, zeros) == 1).all()
    # Without noise, a vote is proof.
    assert p_values(np.array([1.0]), np.array([9.0]), np.array([0.0]))[0] == 0


PRINTED = (
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
    *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0),
)


@every(
    ("p", "rate", "rejected"),
    [
        # Benjamini and Hochberg (1995), section 3.2: the first four of fifteen at 5 %.
        (PRINTED, 0.05, [0, 1, 2, 3]),
        # Step up: the third is let through by the fourth.
        ([0.9, 0.04, 0.01, 0.038], 0.05, [2]),
        ([0.04, 0.039, 0.038, 0.05], 0.05, [0, 1, 2, 3]),
        ([0.02, 0.02, 0.02, 0.9], 0.03, [0, 1, 2]),
        ([0.025, 0.9], 0.05, [0]),
        ([0.0250001, 0.9], 0.05, []),
        ([1.0, 1.0], 0.5, []),
        ([0.0, 0.0], 1e-9, [0, 1]),
        ([], 0.05, []),
    ],
)
def test_the_rule_on_worked_examples(p, rate, rejected):
    chosen = benjamini_hochberg(np.array(p, dtype=float), rate)
    assert chosen.dtype == np.bool_
    assert np.flatnonzero(chosen).tolist() == rejected


def test_the_rule_is_that_of_its_definition_whatever_the_order():
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = np.round(rng.random(rng.integers(1, 9)) ** 3, 2)
        rate = float(rng.choice([0.05, 0.2, 0.5]))
        counts = [r for r in range(1, len(p) + 1) if (p <= rate * r / len(p)).sum() >= r]
        bound = rate * max(counts, default=0) / len(p)
        expected = (p <= bound) if counts else np.zeros(len(p), dtype=bool)
        order = rng.permutation(len(p))
        assert np.array_equal(benjamini_hochberg(p[order], rate), expected[order])


def dense_distribution(oracle, counts):
    """Return the joint distribution of the votes for all values but the dummy, as a table."""
    n, others = sum(counts), oracle.domain_size - 1
    space = oracle.report_space()
    table = np.zeros((n + 1,) * others)
    table[(0,) * others] = 1
    for value, count in enumerate(counts):
        chances = np.exp(oracle.log_prob(space, value))
        for _ in range(count):
            after = np.zeros_like(table)
            for report, chance in zip(space, chances, strict=True):
                votes = np.isin(np.arange(others), report).astype(int)
                to = tuple(slice(vote, None) for vote in votes)
                of = tuple(slice(None, n + 1 - vote) for vote in votes)
                after[to] += chance * table[of]
            table = after
    return table


def p_of_votes(oracle, n):
    return p_of_sums(np.arange(n + 1), [(n, oracle.q)])


def attained(oracle, n, highest=0.5):
    """Return the rates at which a rule's outcome changes, where it is worst; and 0.05."""
    others = oracle.domain_size - 1
    rates = others * p_of_votes(oracle, n)[:, None] / np.arange(1, others + 1)
    rates = np.unique(rates) * (1 + 1e-9)
    return [0.05, *rates[(rates >= 0.05) & (rates <= highest)].tolist()]


def exact_rates(oracle, counts, rates, rule=benjamini_hochberg):
    """Return the expected share of false ones among what a rule chooses, at each rate."""
    table = dense_distribution(oracle, counts)
    tallies = np.indices(table.shape).reshape(table.ndim, -1).T
    # The order of the votes does not matter to a rule, only which are whose.
    in_order = np.sort(tallies, axis=1)
    codes = in_order @ (len(table) ** np.arange(table.ndim))
    _, first, which = np.unique(codes, return_index=True, return_inverse=True)
    patterns = in_order[first]
    p = p_of_votes(oracle, sum(counts))
    is_false = np.array(counts[:-1]) == 0
    expected = []
    for rate in rates:
        # Votes from which on a word is chosen, for each pattern; none are if it is infinite.
        least = np.full(len(patterns), np.inf)
        for row, pattern in enumerate(patterns):
            chosen = rule(p[pattern], rate)
            if chosen.any():
                least[row] = pattern[chosen].min()
        chosen = tallies >= least[which][:, None]
        false = (chosen & is_false).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
        expected.append(float(table.ravel() @ false))
    return np.array(expected)


def without_correction(p, rate):
    return p <= rate


def truths(num_candidates, n):
    """All numbers of clients that hold each candidate, up to their order; the rest is dummies."""

    def falling(room, places, most):
        if not places:
            yield ()
            return
        for count in range(min(room, most) + 1):
            for rest in falling(room - count, places - 1, count):
                yield (count, *rest)

    for held in falling(n, num_candidates, n):
        yield (*held, n - sum(held))


def test_the_distribution_that_is_enumerated_is_that_of_the_oracle():
    oracle = SubsetSelection(epsilon=1.0, domain_size=4)
    table = dense_distribution(oracle, (1, 0, 2, 1))
    distribution = tally_distribution(oracle, [0, 2, 2, 3])
    assert table.sum() == pytest.approx(1)
    for tally, chance in distribution.items():
        assert table[tally[:-1]] == pytest.approx(chance, abs=1e-12)


@pytest.mark.parametrize("epsilon", thinned([0.5, 1.5, 4.0]))
@pytest.mark.parametrize(
    ("domain_size", "reports"), thinned([(3, (4, 11)), (4, (3, 7)), (5, (4,))])
)
def test_whatever_few_clients_hold_the_exact_rate_is_at_most_the_nominal(
    domain_size, reports, epsilon
):
    oracle = SubsetSelection(epsilon=epsilon, domain_size=domain_size)
    highest, tried = 0.0, 0
    for n in reports:
        rates = np.array(attained(oracle, n))
        for counts in truths(domain_size - 1, n):
            exact = exact_rates(oracle, counts, rates)
            assert (exact <= rates).all(), (counts, rates[exact > rates], exact[exact > rates])
            highest = max(highest, float((exact / rates).max()))
            tried += 1
    assert tried >= 10
    # Nor is it far below, so that a rule that let more through would be seen; where a handful of
    # reports has little noise, p-values take few values.
    assert epsilon > 2 or highest > 0.7


@pytest.mark.parametrize(
    ("domain_size", "epsilon", "reports", "rate", "exact"),
    thinned(
        [(3, 0.5, 47, 0.4510, 0.4838), (4, 0.5, 21, 0.4391, 0.4656), (5, 0.5, 19, 0.4784, 0.5017)],
        keep=2,
    ),
)
def test_where_nobody_holds_anything_the_excess_is_below_half_the_square_over_s_minus_one(
    domain_size, epsilon, reports, rate, exact
):
    # The worst cases of a search over epsilons 0.1 to 4 and up to 69, 31 and 24 reports.
    oracles = [
        SubsetSelection(epsilon=epsilon, domain_size=domain_size, subset_size=rule)
        for rule in ("paper", "optimal")
    ]
    nobody = (0,) * (domain_size - 1) + (reports,)
    worst = 0.0
    for oracle in {each.d: each for each in oracles}.values():
        rates = np.array([r for r in attained(oracle, reports) if r < 0.06 or abs(r - rate) < 1e-3])
        found = exact_rates(oracle, nobody, rates)
        assert (found <= rates + rates**2 / (2 * (domain_size - 1))).all()
        worst = max(worst, float((found - rates).max()))
    assert worst == pytest.approx(exact - rate, abs=2e-4)


def test_the_rate_does_not_exceed_the_nominal_where_anybody_holds_one():
    oracle = SubsetSelection(epsilon=0.5, domain_size=3, subset_size="optimal")
    rates = np.array(attained(oracle, 47))
    for held in (1, 10, 25):
        exact = exact_rates(oracle, (held, 0, 47 - held), rates)
        assert (exact <= rates * 0.8).all()


@pytest.mark.parametrize("counts", [(0, 0, 0, 0, 6), (1, 0, 0, 0, 5), (0, 0, 12), (0, 0, 0, 7)])
def test_without_the_correction_the_rate_is_exceeded(counts):
    oracle = SubsetSelection(epsilon=1.0, domain_size=len(counts))
    n = sum(counts)
    rates = p_of_votes(oracle, n)
    rates = rates[(rates > 0.01) & (rates < 0.5)] * (1 + 1e-9)
    skipped = exact_rates(oracle, counts, rates, rule=without_correction)
    assert (skipped > rates * 1.2).any()
    assert (exact_rates(oracle, counts, rates) <= rates).all()


def test_an_interval_reaches_as_far_as_the_choice_demands():
    assert interval_quantile(1, 1, 0.05) == pytest.approx(stats.norm.isf(0.025), rel=1e-12)
    assert interval_quantile(7, 7, 0.2) == pytest.approx(stats.norm.isf(0.1), rel=1e-12)
    assert interval_quantile(20, 1_000, 0.05) == pytest.approx(stats.norm.isf(5e-4), rel=1e-12)
    reach = [interval_quantile(r, 500, 0.05) for r in (1, 5, 50, 500)]
    assert reach == sorted(reach, reverse=True)
