"""The validation round's test of k holders: p-values by enumeration, and who passes over runs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy import stats

from fedhh.clients.clients import Clients
from fedhh.oracles import OracleSpec, SubsetSelection, make_pure_oracle
from fedhh.questions.noise import Noise
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.evidence import (
    Evidence,
    Limits,
    benjamini_hochberg,
    p_values,
    p_values_of_rare,
    p_values_of_rounds,
)
from fedhh.server.pem import Pem
from fedhh.testing import LETTERS
from fedhh.testing.oracle_distributions import tally_distribution
from fedhh.words.lexicon import Lexicon
from tests.every import every
from tests.server.test_false_discoveries import dense_distribution, truths
from tests.thinned import thinned
from tests.zipf_words import final_state

RATE = 0.05


def p_of_rounds(votes, rounds, holders):
    """Return the p-values of votes added up over rounds of n reports with chances p and q each."""
    of_all = np.ones(len(votes))
    return p_values_of_rare(
        votes.astype(float),
        sum(n for n, _, _ in rounds) * of_all,
        sum(n * q for n, _, q in rounds) * of_all,
        support=max(p for _, p, _ in rounds) * of_all,
        holders=holders,
    )


def votes_distribution(rounds, held):
    """Return the distribution of the votes of a word with so many reports in each round."""
    distribution = np.ones(1)
    for (n, p, q), reports in zip(rounds, held, strict=True):
        distribution = np.convolve(
            distribution, stats.binom.pmf(np.arange(reports + 1), reports, p)
        )
        distribution = np.convolve(
            distribution, stats.binom.pmf(np.arange(n - reports + 1), n - reports, q)
        )
    return distribution


def highest_ratio(rounds, held, holders):
    """Return the largest P(p-value <= t) / t over all t that a p-value can be."""
    distribution = votes_distribution(rounds, held)
    p = p_of_rounds(np.arange(len(distribution)), rounds, holders)
    attained = np.unique(p[p > 1e-12])
    return max(distribution[p <= t * (1 + 1e-12)].sum() / t for t in attained)


def test_with_no_holder_p_values_are_those_of_the_plain_test_bit_for_bit():
    rng = np.random.default_rng(0)
    n = rng.integers(0, 10_000, 3_000).astype(float)
    votes = np.floor(n * rng.random(3_000) ** 4)
    expected = n * rng.random(3_000) ** 3
    for support in (np.zeros(3_000), rng.random(3_000), np.ones(3_000)):
        ours = p_values_of_rare(votes, n, expected, support=support, holders=0)
        assert np.array_equal(ours, p_values(votes, n, expected))


def test_from_one_vote_above_the_expectation_on_a_p_value_is_below_one():
    # Three fair coins, of which 1.5 come up on average: 2.5 are asked for, and 3 of 4 where 2 do.
    one = {"support": np.array([0.5]), "holders": 0}
    assert p_values_of_rare(np.array([2.0]), np.array([3.0]), np.array([1.5]), **one) == [1.0]
    found = p_values_of_rare(np.array([3.0]), np.array([4.0]), np.array([2.0]), **one)
    assert found == pytest.approx([5 / 16])


@every("spec", ["ss", "grr", "oue", "olh", "none"])
@every("holders", [1, 3, 20])
def test_of_one_round_a_p_value_is_at_least_the_exact_tail_and_close(spec, holders):
    epsilon = np.inf if spec == "none" else 3.0
    oracle = make_pure_oracle(OracleSpec(name=spec, epsilon=epsilon), 200)
    n = 3_000
    distribution = votes_distribution([(n, oracle.p, oracle.q)], [holders])
    tail = np.cumsum(distribution[::-1])[::-1]
    votes = np.arange(n + 1)
    p = p_of_rounds(votes, [(n, oracle.p, oracle.q)], holders)
    assert (p >= tail * (1 - 1e-9)).all()
    # Below one above the expectation of the others' votes, nothing is claimed.
    usual = (tail < 0.05) & (tail > 1e-9)
    assert (p[usual] <= 2 * tail[usual]).all()
    # Without noise, k holders have at most k votes.
    if spec == "none":
        assert p[holders] == 1
        assert p[holders + 1] == 0


ORACLES = [SubsetSelection(epsilon=e, domain_size=s) for e, s in ((1.0, 4), (2.5, 9), (0.7, 3))]


@pytest.mark.parametrize("holders", [0, 1, 2, 4])
def test_whatever_rounds_few_holders_are_in_a_p_value_is_at_least_uniform(holders):
    sizes = (6, 9, 7)
    for used in ([0], [2], [0, 1], [0, 2], [0, 1, 2]):
        rounds = [(sizes[i], ORACLES[i].p, ORACLES[i].q) for i in used]
        for held in product(range(holders + 1), repeat=len(used)):
            if sum(held) <= holders:
                assert highest_ratio(rounds, held, holders) <= 1 + 1e-9
    # The control: the test of no holder is wrong about them, and so is this one about five more.
    rounds = [(60, ORACLES[1].p, ORACLES[1].q)]
    assert highest_ratio(rounds, (holders,), holders) <= 1 + 1e-9
    assert highest_ratio(rounds, (holders + 5,), holders) > 2
    if holders:
        assert highest_ratio(rounds, (holders,), 0) > 1.2


def paths(rounds, held):
    """Return all (votes of each round that takes place, their oracles, chance) of a word.

    Args:
        rounds: For each round, returns its reports and oracle from the votes so far; None if it
            does not take place.
        held: Reports about the word that each round would have.
    """
    found = [((), (), 1.0)]
    for choose, about in zip(rounds, held, strict=True):
        longer = []
        for votes, used, chance in found:
            asked = choose(votes)
            if asked is None:
                longer.append(((*votes, 0), (*used, None), chance))
                continue
            n, oracle = asked
            of_round = votes_distribution([(n, oracle.p, oracle.q)], [min(about, n)])
            longer += [
                ((*votes, count), (*used, asked), chance * one)
                for count, one in enumerate(of_round)
            ]
        found = longer
    return found


def p_by_plan(found, *, planned, limits, holders):
    """Return the p-values of runs by what is planned, as a run computes them."""
    evidence = []
    for votes, used, _ in found:
        one = Evidence.nothing(1, limits)
        for count, asked, most in zip(votes, used, planned, strict=True):
            if asked is None:
                one = one.without_round(most)
            else:
                noise = Noise(oracle=asked[1], num_reports=asked[0])
                counts = np.array([count])
                one = one.with_votes(noise, counts, most)
        evidence.append((one.score[0], one.planned[0]))
    scores, most = np.array(evidence).T
    return p_values_of_rounds(scores, most, limits=limits, holders=holders)


def p_of_what_took_place(found, *, holders):
    """Return the p-values that take the rounds of a run, and their chances, for fixed."""
    rows = []
    for votes, used, _ in found:
        rounds = [each for each in used if each]
        sums = [sum(n for n, _ in rounds), sum(n * oracle.q for n, oracle in rounds)]
        rows.append((sum(votes), *sums, max(oracle.p for _, oracle in rounds)))
    votes, n, expected, support = np.array(rows, dtype=float).T
    return p_values_of_rare(votes, n, expected, support=support, holders=holders)


def worst_ratio(p, found):
    """Return the largest P(p-value <= t) / t over all t that a p-value can be."""
    chances = np.array([chance for _, _, chance in found])
    order = np.argsort(p)
    reached, last = np.cumsum(chances[order]), np.append(np.diff(p[order]) > 0, True)
    return float((reached / p[order])[last & (p[order] > 1e-9)].max())


ALIKE = [ORACLES[1], SubsetSelection(epsilon=2.5, domain_size=6)]


def ends_with(fewest, votes):
    """A second round takes place where the first has fewer votes than these."""
    return None if sum(votes) >= fewest else (40, ORACLES[1])


def chooses_with(fewest, votes):
    """The votes of the first round choose the domain of the second, too."""
    return None if sum(votes) >= fewest else (40, ALIKE[sum(votes) % 2])


@pytest.mark.parametrize("holders", thinned([1, 0, 2]))
def test_whatever_votes_decide_about_later_rounds_a_p_value_is_at_least_uniform(holders):
    limits = Limits.of(ALIKE)
    worst = 0.0
    for rule, fewest, first in product((ends_with, chooses_with), (5, 6, 8), range(holders + 1)):
        rounds = (lambda votes: (30, ORACLES[1]), partial(rule, fewest))
        found = paths(rounds, (first, holders - first))
        p = p_by_plan(found, planned=(30, 40), limits=limits, holders=holders)
        assert worst_ratio(p, found) <= 1 + 1e-9
        # One that ignores the holders, or lets nothing pass, would not do.
        assert p.min() < 1e-3
        worst = max(worst, worst_ratio(p_of_what_took_place(found, holders=holders), found))
    # The control: to take what took place for fixed is wrong.
    assert worst > 1.2


def test_a_round_beyond_its_limits_or_its_plan_counts_as_none():
    limits = Limits.of([ORACLES[1]])
    votes = np.array([0, 7])
    nothing = np.full(2, 30 * limits.chance)
    assert np.array_equal(limits.scores(ORACLES[0], votes, 30, 30), nothing)
    assert np.array_equal(limits.scores(ORACLES[1], votes, 31, 30), nothing)
    inside = limits.scores(ORACLES[1], votes, 30, 30)
    assert (inside > votes).all()
    assert inside[0] < nothing[0] < inside[1]


def test_the_votes_of_a_word_follow_the_distribution_that_is_enumerated():
    oracle = ORACLES[0]
    of_word = np.zeros(6)
    for tally, chance in tally_distribution(oracle, [0, 0, 1, 3, 3]).items():
        of_word[tally[0]] += chance
    np.testing.assert_allclose(
        of_word, votes_distribution([(5, oracle.p, oracle.q)], [2]), atol=1e-12
    )


def returned(oracle, counts, rate, holders):
    """Return the exact probability that each candidate is returned, and the false share."""
    table = dense_distribution(oracle, counts)
    tallies = np.indices(table.shape).reshape(table.ndim, -1).T
    n = sum(counts)
    p = p_of_rounds(np.arange(n + 1), [(n, oracle.p, oracle.q)], holders)
    chosen = np.array([benjamini_hochberg(each, rate) for each in p[tallies]])
    is_false = np.array(counts[:-1]) <= holders
    share = (chosen & is_false).sum(axis=1) / np.maximum(chosen.sum(axis=1), 1)
    return table.ravel() @ chosen, float(table.ravel() @ share)


@pytest.mark.parametrize("epsilon", thinned([1.0, 2.5]))
@pytest.mark.parametrize(("domain_size", "reports"), thinned([(3, 10), (4, 6)]))
@pytest.mark.parametrize("holders", [1, 2])
def test_by_enumeration_few_holders_pass_at_most_with_the_rate(
    domain_size, reports, holders, epsilon
):
    oracle = SubsetSelection(epsilon=epsilon, domain_size=domain_size)
    for rate in (0.05, 0.3):
        for counts in truths(domain_size - 1, reports):
            chance, share = returned(oracle, counts, rate, holders)
            is_false = np.array(counts[:-1]) <= holders
            assert (chance[is_false] <= rate + 1e-12).all(), (counts, chance)
            assert share <= rate + 1e-12, (counts, share)


@pytest.mark.parametrize("holders", [0, 1, 2])
def test_by_enumeration_five_more_holders_pass_more_often(holders):
    oracle = SubsetSelection(epsilon=4.0, domain_size=3)
    for more, passes in ((0, False), (5, True)):
        chance, _ = returned(oracle, (holders + more, 0, 12 - holders - more), RATE, holders)
        assert (chance[0] > 2 * RATE) == passes


NUM_CLIENTS, HOLDERS, NUM_RARE, NUM_COMMON = 4_000, 20, 80, 12
SETTINGS = {"alphabet": LETTERS, "local_epsilon": 8.0, "max_items": 4, "false_discovery_rate": RATE}
PROTOCOLS = {
    "evidence": AdaptiveTrieHH(**SETTINGS, depth=4, eta_max=300, anonymity_k=HOLDERS),
    "validation": Pem(**SETTINGS, length=4, step=1, keep=150, anonymity_k=HOLDERS),
}


@pytest.fixture(scope="module")
def hostile():
    """Clients of whom exactly k hold each of many words; some words are common."""
    rng = np.random.default_rng(7)
    words = rng.permutation(["".join(word) for word in product(LETTERS, repeat=4)])
    counts = [HOLDERS] * NUM_RARE + [NUM_CLIENTS // 8] * NUM_COMMON
    held = [rng.choice(NUM_CLIENTS, count, replace=False) for count in counts]
    return Clients.from_rows(
        name="hostile",
        lexicon=Lexicon(words=words[: len(counts)].tolist()),
        clients=np.concatenate(held),
        word_ids=np.repeat(np.arange(len(counts)), counts),
        counts=np.ones(sum(counts), dtype=np.int64),
        num_clients=NUM_CLIENTS,
    )


def rare_shares(protocol, population, runs):
    """Return, of each run, the share of returned words that at most k clients hold, and of all."""
    common = set(population.lexicon.words[NUM_RARE:])
    shares, passed = [], 0
    for seed in range(runs):
        settled = protocol.settle(num_clients=NUM_CLIENTS, seed=seed)
        words = set(settled.discoveries(final_state(settled, population, seed=seed)).words)
        shares.append(len(words - common) / max(len(words), 1))
        passed += len(words & set(population.lexicon.words[:NUM_RARE]))
        assert len(words & common) >= NUM_COMMON // 2
    return np.array(shares), passed / (runs * NUM_RARE)


@pytest.mark.slow("::test_by_enumeration_few_holders_pass_at_most_with_the_rate")
@pytest.mark.parametrize("name", PROTOCOLS)
def test_where_many_words_have_exactly_k_holders_hardly_any_returns(name, hostile):
    shares, chance = rare_shares(PROTOCOLS[name], hostile, runs=20)
    assert shares.mean() <= RATE + 6 * shares.std() / len(shares) ** 0.5
    assert chance <= RATE
    # The control: a test that anybody holds them returns them.
    shares, chance = rare_shares(replace(PROTOCOLS[name], anonymity_k=0), hostile, runs=5)
    assert shares.mean() > 4 * RATE
    assert chance > 4 * RATE
