"""A list of public words: which are asked about, when it pays, and what follows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.oracles import SubsetSelection
from fedhh.server.adaptive import adaptive_triehh, public_list
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.adaptive.trie_posterior import LayerEvidence
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, small_population
from fedhh.testing.protocol_trial import run_rounds
from fedhh.words.alphabet import END, Alphabet
from fedhh.words.known_words import KnownWords, named_list

ORACLE = SubsetSelection(epsilon=8.0, domain_size=100_000, subset_size="optimal")
NUM_REPORTS = 400_000
# Of an estimate by eight times as many: the grid's least share has .7 deviations of these votes.
LIMIT = 8 * float(ORACLE.variance(0, NUM_REPORTS)) ** 0.5 / NUM_REPORTS / 8**0.5


def votes_of(limits, rng):
    """Votes for words that so many limits of clients hold each."""
    rate = ORACLE.q + np.asarray(limits) * LIMIT * (ORACLE.p - ORACLE.q)
    votes = rng.binomial(NUM_REPORTS, rate)
    return LayerEvidence.of_votes(
        votes, ORACLE, num_clients=NUM_REPORTS, num_reports=NUM_REPORTS, limit=LIMIT
    )


@pytest.mark.parametrize("share", [0.005, 0.03, 0.3])
@pytest.mark.parametrize("limits", [1.0, 5.0, 60.0])
def test_the_share_of_findable_words_is_estimated_from_votes_alone(share, limits):
    held = np.zeros(20_000)
    held[: int(share * len(held))] = limits
    for seed in range(3):
        seen = votes_of(held, np.random.default_rng(seed))
        # At one limit, a word's votes are 2.8 deviations above chance.
        likely = public_list.findable(seen)
        found = likely.mean()
        assert found == pytest.approx(share, rel=0.05, abs=0.005 if limits == 1 else 0.001)
        assert public_list.pays(likely) == (share > 0.01)
        # Those that are held are distinguished from the others, one by one.
        if limits > 1:
            assert likely[held > 0].min() > 0.99
            assert likely[held == 0].mean() < 1e-3


def test_words_that_nobody_holds_do_not_pay():
    for seed in range(12):
        nothing = public_list.findable(votes_of(np.zeros(20_000), np.random.default_rng(seed)))
        assert nothing.mean() < 0.006
        assert not public_list.pays(nothing)
    nothing = public_list.findable(votes_of(np.zeros(0), np.random.default_rng(0)))
    assert len(nothing) == 0
    assert not public_list.pays(nothing)


def test_the_estimate_is_the_likeliest_distribution():
    """No share of the grid could have more weight: the derivative is at most one everywhere."""
    held = np.zeros(5_000)
    held[:500] = np.geomspace(0.3, 8, 500)
    seen = votes_of(held, np.random.default_rng(4))
    ratios = np.concatenate([np.ones((len(seen.logs), 1)), np.exp(seen.logs)], axis=1)
    weights = public_list.likeliest_distribution(seen)
    assert weights.sum() == pytest.approx(1)
    gradient = (ratios / (ratios @ weights)[:, None])[seen.which].mean(axis=0)
    assert gradient.max() < 1.01
    assert gradient[weights > 0.02] == pytest.approx(1, abs=0.02)


def test_a_list_is_spelled_in_the_alphabet_and_sampled_evenly():
    words = frozenset({"abba", "cab", "dad", "daß", "fed up", "bed", "deaf", "a", "decade"})
    listed = public_list.listed_words(words, Alphabet.named(LETTERS), 5)
    assert Alphabet.named(LETTERS).decode(listed) == ["a", "abba", "bed", "cab", "dad", "deaf"]
    many = np.zeros((100, 4), dtype=np.uint16)
    many[:, 0] = np.arange(1, 101)
    many[::2, 1] = 1
    sample = public_list.sample_of(many, longer_than=1)
    assert sample.tolist() == many[::2][::8].tolist()
    assert len(public_list.sample_of(many, longer_than=0)) == 13
    assert len(public_list.sample_of(many, longer_than=2)) == 0


def named(name, words):
    return KnownWords(name=name, words=frozenset(words))


PROTOCOL = AdaptiveTrieHH(
    alphabet=LETTERS,
    depth=6,
    eta_max=12,
    max_items=4,
    local_epsilon=6.0,
    skip_free_layers=False,
    known_words=named_list("none"),
    least_cohort=1,
)


@pytest.fixture(scope="module")
def clients():
    return small_population(20_000, num_words=600)


def play(monkeypatch, clients, public, seed=0, **change):
    """Return the settled protocol and its rounds, where so many words are public."""
    monkeypatch.setattr(adaptive_triehh, "language_list", lambda _: named("mine", public))
    settled = replace(PROTOCOL, **change).settle(num_clients=clients.num_clients, seed=seed)
    executor = InProcessExecutor(ClientWorker(clients, seed=seed))
    return settled, list(run_rounds(settled, executor))


def nobodys(clients, num):
    rng, held = np.random.default_rng(3), set(clients.lexicon.words)
    words = ("".join(rng.choice(list(LETTERS), size=rng.integers(3, 7))) for _ in range(4 * num))
    return sorted(set(words) - held)[:num]


def test_a_list_that_clients_hold_is_asked_about_after_the_first_layer(monkeypatch, clients):
    public = clients.lexicon.words[::2]
    settled, done = play(monkeypatch, clients, public)
    first, second = done[0], done[1]
    listed = public_list.listed_words(frozenset(public), settled.symbols, settled.depth + 1)
    sample = public_list.sample_of(listed, longer_than=1)
    asked = {word.tobytes() for word in first.question.names.finished}
    assert {word.tobytes() for word in sample} <= asked
    assert len(asked) == len(first.question.names.finished)
    assert {word.tobytes() for word in listed} <= {
        w.tobytes() for w in second.question.names.finished
    }
    for each in done:
        assert len(np.unique(each.question.names.finished, axis=0)) == len(
            each.question.names.finished
        )
    # Nothing is heard of them before, the sample's own votes included.
    fresh = second.before.found
    assert (second.before.own.evidence.num_reports == 0).all()
    assert (fresh.num_clients[-len(listed) // 2 :] == 0).all()
    # What is returned is held, is nothing twice, and is more than without.
    words = settled.discoveries(done[-1].after).words
    assert len(set(words)) == len(words)
    assert np.mean([word in set(clients.lexicon.words) for word in words]) > 0.85
    # Where devices know the list, nothing is asked about it; these clients hold it all the same.
    monkeypatch.setattr(AdaptiveTrieHH, "unknown_of", lambda _, found: found)
    _, without = play(monkeypatch, clients, public, known_words=named("mine", public))
    assert len(words) > 1.1 * len(settled.discoveries(without[-1].after).words)


def test_a_list_that_nobody_holds_is_left_after_the_sample(monkeypatch, clients):
    public = nobodys(clients, 4_000)
    for seed in range(3):
        _, done = play(monkeypatch, clients, public, seed)
        sample = done[0].question.names.finished
        assert len(sample) > 300
        # By chance a few of the sample seem likely; the rest of the list is not asked about.
        sampled = {word.tobytes() for word in sample}
        longer = [word for word in done[1].question.names.finished if word[1] != END]
        assert len(longer) <= 0.01 * len(sample)
        assert {word.tobytes() for word in longer} <= sampled


def test_the_first_query_asks_about_the_list_only_if_the_settings_say_so(monkeypatch, clients):
    monkeypatch.setattr(
        adaptive_triehh, "language_list", lambda _: named("mine", clients.lexicon.words)
    )
    asked = {}
    for change in ({}, {"false_discovery_rate": 0.0}):
        settled = replace(PROTOCOL, **change).settle(num_clients=clients.num_clients, seed=0)
        asked[str(change)] = len(settled.next_question(settled.initialize()).names.finished)
    first, other = asked.values()
    assert first > 0
    assert other == 0


def test_words_of_the_list_are_asked_about_only_if_the_settings_say_so(monkeypatch, clients):
    for change in (
        {"known_words": named("mine", clients.lexicon.words)},
        {"false_discovery_rate": 0.0},
    ):
        _, done = play(monkeypatch, clients, clients.lexicon.words, **change)
        assert len(done[0].question.names.finished) == 0


def test_a_list_stays_within_the_plan(monkeypatch, clients):
    settled, done = play(monkeypatch, clients, clients.lexicon.words)
    planned = settled.plan.layers
    for each, layer in zip(done, planned, strict=True):
        assert layer.smallest_domain <= each.question.domain_size <= layer.largest_domain
    assert planned[0].smallest_domain == done[0].question.domain_size
