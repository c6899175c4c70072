"""The posterior of a trie's children against Bayes' rule, one child and one share at a time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from fedhh.oracles import SubsetSelection
from fedhh.server.adaptive import trie_posterior
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.adaptive.trie_posterior import (
    CREDIBLE,
    LIKELY,
    PLAUSIBLE,
    Children,
    LayerEvidence,
    TriePosterior,
    likeliest,
)
from fedhh.testing import LETTERS, small_population
from fedhh.words.alphabet import END
from fedhh.words.known_words import named_list
from tests.every import every
from tests.thinned import thinned
from tests.zipf_words import final_state

GRID = [0.25 * 1600 ** (i / 27) for i in range(28)]
NUM_CLIENTS, NUM_REPORTS, LIMIT = 500, 1_000, 0.03
ORACLE = SubsetSelection(epsilon=3.0, domain_size=16)


def by_bayes(held, shares, symbols, votes, *, length, oracle=ORACLE):
    """Each child's probability of being held, and its shares: docs of the module, said slowly."""
    chain = min(0.1 + 0.7 * (length - 1) / 6, 0.8)
    children = []
    for parent, distribution in enumerate(shares):
        # A child has all of the parent's clients, or any smaller share of the grid alike.
        inherited = [
            chain * distribution[i]
            + (1 - chain) * sum(distribution[j] / (j + 1) for j in range(i, 28))
            for i in range(28)
        ]
        mean = sum(share * chance for share, chance in zip(GRID, distribution, strict=True))
        num_children = min(max(mean, 1), 20)
        for symbol, chance in enumerate(symbols[parent]):
            count = votes[parent * len(symbols[parent]) + symbol]
            prior = 1 - (1 - chance) ** num_children
            of_nobody = stats.binom.pmf(count, NUM_REPORTS, oracle.q)
            joint = []
            for i in range(28):
                rate = (
                    oracle.q + GRID[i] * LIMIT * NUM_CLIENTS * (oracle.p - oracle.q) / NUM_REPORTS
                )
                joint.append(
                    inherited[i] * stats.binom.pmf(count, NUM_REPORTS, min(rate, 1 - 1e-12))
                )
            ratio = sum(joint) / of_nobody
            odds_for = held[parent] * prior * ratio
            odds_against = 1 - held[parent] * prior
            children.append(
                (odds_for / (odds_for + odds_against), [each / sum(joint) for each in joint])
            )
    return children


def beliefs(num, seed):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.r_[np.full(12, 0.5), np.full(16, 0.01)], size=num) + 1e-6
    return TriePosterior(
        held=rng.uniform(0.01, 1, num), shares=shares / shares.sum(axis=1, keepdims=True)
    )


def evidence_of(votes, *, oracle=ORACLE, num_clients=NUM_CLIENTS, num_reports=NUM_REPORTS):
    return LayerEvidence.of_votes(
        np.asarray(votes), oracle, num_clients=num_clients, num_reports=num_reports, limit=LIMIT
    )


@pytest.mark.parametrize("length", [1, 3, 7, 12])
def test_the_posterior_is_that_of_bayes_rule(length):
    parents = beliefs(3, seed=length)
    rng = np.random.default_rng(length)
    symbols = rng.dirichlet(np.ones(5), size=3)
    # By chance 29 votes; other candidates than the children may follow.
    votes = np.array([29, 44, 14, 104, 31, 36, 29, 184, 23, 28, 54, 45, 30, 27, 29, 999])
    children = Children.after_votes(parents, evidence_of(votes), symbols, length=length)
    expected = by_bayes(parents.held, parents.shares, symbols, votes, length=length)
    np.testing.assert_allclose(children.held, [held for held, _ in expected], rtol=1e-9)
    some = np.array([1, 3, 7, 14])
    believed = children.posterior(some)
    np.testing.assert_allclose(believed.held, children.held[some])
    np.testing.assert_allclose(
        believed.shares, [expected[child][1] for child in some], rtol=1e-6, atol=1e-12
    )
    worth = [
        expected[child][0]
        * sum(c for share, c in zip(GRID, expected[child][1], strict=True) if share >= 0.8)
        for child in some
    ]
    np.testing.assert_allclose(children.worth(some), worth, rtol=1e-9)
    assert children.extended.tolist() == [i for i in range(15) if i % 5 != END]
    assert children.words.tolist() == [END, 5 + END, 10 + END]


def test_how_many_children_are_taken_at_once_changes_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    parents, symbols = beliefs(41, seed=0), rng.dirichlet(np.ones(7), size=41)
    evidence = evidence_of(rng.binomial(NUM_REPORTS, ORACLE.q * 1.3, 41 * 7))
    at_once = Children.after_votes(parents, evidence, symbols, length=2)
    for entries in (1, len(evidence.ratios) * 5, len(evidence.ratios) * 40):
        monkeypatch.setattr(trie_posterior, "_AT_ONCE", entries)
        in_parts = Children.after_votes(parents, evidence, symbols, length=2)
        np.testing.assert_allclose(in_parts.held, at_once.held, rtol=1e-12)


def test_children_with_many_votes_live_and_those_without_die():
    # Two prefixes of some five limits each; every symbol follows with one chance in fifty.
    near_five = np.exp(-((np.log(GRID) - np.log(5)) ** 2))
    parents = TriePosterior(held=np.ones(2), shares=np.tile(near_five / near_five.sum(), (2, 1)))
    mean = round(NUM_REPORTS * ORACLE.q)
    votes = [mean, mean + 150, 0, mean, mean, mean]
    children = Children.after_votes(parents, evidence_of(votes), np.full((2, 3), 0.02), length=9)
    assert children.held[1] > 1 - 1e-9
    assert children.held[2] < 0.002
    assert children.held[2] < children.held[3] < 0.05
    assert np.argmax(children.worth(np.arange(6))) == 1
    # Who has no more votes than by chance is believed to be rarer, if held at all.
    believed = children.posterior(np.array([1, 3])).shares @ GRID
    assert believed[0] > 2 * believed[1]


def test_what_earlier_layers_showed_counts():
    # The same few votes: a child of a prefix that is held, and of one that hardly does.
    parents = TriePosterior(held=np.array([0.999, 0.01]), shares=np.full((2, 28), 1 / 28))
    mean = round(NUM_REPORTS * ORACLE.q)
    votes = [mean + 15, mean, mean + 15, mean]
    children = Children.after_votes(parents, evidence_of(votes), np.full((2, 2), 0.5), length=5)
    assert children.held[0] > 0.95 > 0.5 > children.held[2]


@pytest.mark.parametrize("num_clients", [10**4, 10**6, 10**8])
def test_a_very_frequent_prefix_is_worth_no_less_than_a_rare_one(num_clients):
    oracle = SubsetSelection(epsilon=8.0, domain_size=700)
    reports = 2 * num_clients
    limit = 8 * math.sqrt(float(oracle.variance(0, 1)) * 2 / (8 * num_clients))
    shares = limit * np.array([2, 5, 20, 80, 200, 390, 390])
    gain = shares * num_clients * (oracle.p - oracle.q)
    votes = np.round(reports * oracle.q + gain).astype(np.int64)
    votes = np.minimum(votes, reports)
    belief = TriePosterior.before_any_vote(len(votes))
    for length in (1, 2, 3, 4, 5):
        evidence = LayerEvidence.of_votes(
            votes, oracle, num_clients=num_clients, num_reports=reports, limit=limit
        )
        children = Children.after_votes(
            belief, evidence, np.full((len(votes), 1), 0.9), length=length
        )
        belief = children.posterior(np.arange(len(votes)))
        worth = children.worth(np.arange(len(votes)))
        assert (worth[1:] > 1 - 1e-6).all()
        mean = belief.shares @ GRID
        assert mean[:5] == pytest.approx([2, 5, 20, 80, 200], rel=0.3)


@every("votes", [0, 1, 30, 1_000])
@every(
    "oracle",
    [
        SubsetSelection(epsilon=16.0, domain_size=2),
        SubsetSelection(epsilon=16.0, domain_size=10**6),
        SubsetSelection(epsilon=0.1, domain_size=4),
    ],
)
@every("num_reports", [0, 1_000])
def test_extreme_layers_give_probabilities(oracle, votes, num_reports):
    votes = min(votes, num_reports)
    parents = TriePosterior(held=np.array([0.0, 1e-300, 0.5, 1.0]), shares=beliefs(4, 0).shares)
    symbols = np.array([[1.0, 0.0], [0.5, 0.5], [1e-12, 1 - 1e-12], [0.0, 1.0]])
    evidence = evidence_of([votes, 0] * 4, oracle=oracle, num_clients=500, num_reports=num_reports)
    children = Children.after_votes(parents, evidence, symbols, length=1)
    assert ((children.held >= 0) & (children.held <= 1)).all()
    believed = children.posterior(np.arange(8))
    assert believed.shares.sum(axis=1) == pytest.approx(1)
    assert (believed.shares >= 0).all()
    assert ((children.worth(np.arange(8)) >= 0) & (children.worth(np.arange(8)) <= 1)).all()
    # A second layer goes on from there.
    again = Children.after_votes(children.posterior(np.arange(4)), evidence, symbols, length=2)
    assert np.isfinite(again.held).all()


@pytest.mark.parametrize(
    ("least", "ratios", "found"),
    [
        # The odds are 1 to 49 before any vote; after these, the probabilities 40 / 89 and 50 / 99.
        (LIKELY, [40.0, 50.0], [1]),
        # 20 / 69 and 22 / 71.
        (PLAUSIBLE, [20.0, 22.0], [1]),
        # 0.00198 and 0.00202.
        (CREDIBLE, [0.097, 0.099], [1]),
        (CREDIBLE, [1e9, 0.0], [0]),
    ],
)
def test_words_that_end_before_the_first_layer_are_found_by_their_probability(least, ratios, found):
    seen = LayerEvidence(
        logs=np.log(np.maximum(np.array([1e-9, *ratios]), 1e-9))[:, None] + np.zeros(28),
        which=np.array([0, 0, 0, 1, 2]),
        limit=LIMIT,
    )
    children = Children.after_votes(
        TriePosterior.before_any_vote(1), seen, np.full((1, 3), 0.3), length=1
    )
    chosen = likeliest(children, seen, num_short=2, most_kept=2, least=least)
    assert chosen.words.tolist() == [3 + place for place in found]
    assert (chosen.posterior[3:] > least).tolist() == [place in found for place in range(2)]


@pytest.mark.parametrize("rate", thinned([0.0, 0.05]))
def test_the_limit_is_eight_deviations_of_all_that_clients_say_together(monkeypatch, rate):
    limits = []
    of_votes = LayerEvidence.of_votes

    def noted(*args, limit, **rest):
        limits.append(limit)
        return of_votes(*args, limit=limit, **rest)

    monkeypatch.setattr(LayerEvidence, "of_votes", noted)
    protocol = AdaptiveTrieHH(
        alphabet=LETTERS, depth=6, eta_max=25, max_items=4, local_epsilon=6.0,
        false_discovery_rate=rate, known_words=named_list("none"),
    ).settle(num_clients=4_000, seed=0)  # fmt: skip
    final_state(protocol, small_population(4_000))
    # All clients but a rest of the division: the validation round's, if there is one, too.
    asked = sum(layer.num_clients for layer in protocol.plan.layers)
    assert 3_990 <= asked <= 4_000
    # Of 4 reports each, in a domain so large that its size no longer counts.
    oracle = SubsetSelection(epsilon=6.0, domain_size=100_000)
    deviation = math.sqrt(oracle.variance(0, 4 * asked)) / asked
    assert limits
    assert limits == pytest.approx([8 * deviation] * len(limits), rel=1e-4)
    # Where all answer in each round, five deviations of one round.
    limits.clear()
    final_state(
        replace(protocol, participation="every-round", clients_per_layer=4_000),
        small_population(4_000),
    )
    deviation = math.sqrt(oracle.variance(0, 4 * 4_000)) / 4_000
    assert limits
    assert limits == pytest.approx([5 * deviation] * len(limits), rel=1e-4)
