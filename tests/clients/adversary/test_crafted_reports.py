"""Fake answers to questions that a local randomizer answers: what they support, and how far."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.oracles import OracleSpec, make_oracle
from fedhh.oracles.attack import maximal_gain
from fedhh.questions.matching import WordMatcher
from fedhh.testing import follows_distribution
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import PrefixTrie
from tests import questions_of_each_kind as ask
from tests.questions_of_each_kind import ALPHABET, LONGEST, Fakes
from tests.thinned import thinned

WORDS = ["abc", "acd", "fee", "xyz"]
PURE = ["ss", "grr", "oue", "sue", "the", "olh", "blh", "pgr", "cms", "hcms", "hashtogram", "flh"]
SMALL = {
    "cms": {"num_hashes": 16, "num_cells": 64},
    "hcms": {"num_hashes": 16, "num_cells": 64},
    "hashtogram": {"num_hashes": 16, "num_cells": 64},
    "flh": {"num_hashes": 64},
}


def spec(name: str, epsilon: float = 2.0) -> OracleSpec:
    return OracleSpec(name=name, epsilon=epsilon, params=SMALL.get(name, {}))


def add(question, targets, num_clients, *, goal="promote", seed=1, words=WORDS):
    tally = np.zeros(question.tally_size, dtype=np.int64)
    rng = np.random.default_rng(seed)
    counts = Fakes(question, words).add(targets, num_clients, goal=goal, rng=rng, tally=tally)
    return counts, tally


def candidates(question, words) -> list[int]:
    return (
        WordMatcher(Lexicon(words=words)).prefix_values(question.names, question.alphabet).tolist()
    )


def test_all_b_reports_of_each_fake_support_the_targets_path_and_further_targets():
    question = ask.votes()
    counts, tally = add(question, [0, 1, 2], 50)
    oracle = make_oracle(question.channel.oracle, question.domain_size)
    values = candidates(question, ["abc", "acd", "fee"])
    assert oracle.d >= 3
    assert tally[values].tolist() == [150] * 3
    assert tally.sum() == 150 * oracle.d
    assert counts.num_clients_with_items == 50
    _, against = add(question, [0, 1, 2], 50, goal="demote")
    assert not against[values].any()
    assert against.sum() == 150 * oracle.d


@pytest.mark.parametrize("name", thinned(PURE, keep=3))
def test_the_servers_estimate_rises_by_the_maximal_gain(name):
    question = ask.votes(oracle=spec(name), max_items=4)
    _, tally = add(question, [0, 2], 25)
    oracle = make_oracle(question.channel.oracle, question.domain_size)
    values = candidates(question, ["abc", "fee"])
    gain = oracle.estimate(oracle.support(tally)[values], 100).sum() / 100
    most = maximal_gain(oracle, values, share=1.0)
    # By a search, local hashing finds a function that has both in one cell.
    assert gain == pytest.approx(most, rel=1e-12)
    _, against = add(question, [0, 2], 25, goal="demote")
    lowest = -2 * oracle.q / (oracle.p - oracle.q)
    assert oracle.estimate(oracle.support(against)[values], 100).sum() / 100 == pytest.approx(
        lowest, abs=1e-9
    )


def test_targets_without_a_live_path_get_random_reports():
    trie = PrefixTrie(
        alphabet_size=ALPHABET.size, levels=(ALPHABET.encode(["a"], width=1)[0].astype(np.int64),)
    )
    question = ask.votes(trie=trie, oracle=spec("grr"))
    # Only "a" was kept: "fee" has no candidate, and "abc" has one.
    assert candidates(question, ["fee", "abc"])[0] == -1
    counts, tally = add(question, [2], 2000)
    assert counts.num_reports == 6000
    draws = np.repeat(np.arange(len(tally)), tally)
    assert follows_distribution(draws, dict.fromkeys(range(len(tally)), 1 / len(tally)))
    # The control: together with a target that lives, that one has all reports.
    _, lives = add(question, [2, 0], 2000)
    assert lives[candidates(question, ["abc"])].tolist() == [6000]


def test_words_that_were_found_before_are_no_targets_any_more():
    excluded = ALPHABET.encode(["abc"], width=LONGEST + 1)
    question = ask.votes(excluded=excluded, oracle=spec("grr"))
    _, tally = add(question, [0, 2], 100)
    assert tally[candidates(question, ["fee"])].tolist() == [300]


def test_what_is_supported_follows_from_targets_and_query_alone():
    question = ask.votes(oracle=spec("oue"))
    values = candidates(question, ["abc", "acd", "fee"])
    for seed in range(3):
        _, tally = add(question, [0, 1, 2], 20, seed=seed)
        assert tally[values].tolist() == [60] * 3
    # A layer on, with "ab" alone kept after "a", the first target has all support.
    first, second = ALPHABET.encode(["ab"], width=2)[0].tolist()
    levels = (np.array([first]), np.array([second]))
    trie = PrefixTrie(alphabet_size=ALPHABET.size, levels=levels)
    deeper = ask.votes(layer=2, oracle=spec("oue"), trie=trie)
    live = [v for v in candidates(deeper, ["abc", "acd", "fee"]) if v >= 0]
    assert len(live) == 1
    _, tally = add(deeper, [0, 1, 2], 20)
    assert tally[live].tolist() == [60]


def test_random_reports_are_uniform_over_the_report_space():
    question = ask.votes(oracle=spec("grr", 20.0))
    crafter = Fakes(question, WORDS)
    tally = np.zeros(question.tally_size, dtype=np.int64)
    crafter.add_random_reports(3000, rng=np.random.default_rng(2), tally=tally)
    draws = np.repeat(np.arange(len(tally)), tally)
    assert len(draws) == 9000
    assert follows_distribution(draws, dict.fromkeys(range(len(tally)), 1 / len(tally)))
    # An honest report has q ones for each value that is not held; a random one has a half.
    unary = ask.votes(oracle=spec("oue", 5.0))
    oracle = unary.channel.randomizer
    crafter = Fakes(unary, WORDS)
    random = np.zeros(unary.tally_size, dtype=np.int64)
    crafter.add_random_reports(1000, rng=np.random.default_rng(2), tally=random)
    half = 3000 * unary.domain_size / 2
    assert half > 6000 * (oracle.p + (unary.domain_size - 1) * oracle.q)
    assert abs(random.sum() - half) < 6.2 * math.sqrt(half)


@pytest.mark.parametrize("name", ["cms", "hashtogram", "olh"])
def test_prefixes_that_no_query_lists_are_supported_by_their_keys(name):
    question = ask.strings(oracle=spec(name))
    oracle = question.channel.pure
    keys = question.names.keys_of(ALPHABET.encode(["abc", "fee"], width=3))
    for goal, expected in (("promote", [60, 60]), ("demote", [0, 0])):
        counts, tally = add(question, [0, 2], 20, goal=goal)
        if name == "olh":
            assert counts.messages is not None
            assert counts.messages.shape == (60, 4)
            support = oracle.support(reports=counts.messages, candidates=keys)
        else:
            assert counts.messages is None
            support = oracle.support(tally, keys)
        assert support.tolist() == expected


def test_a_word_that_is_too_long_has_no_prefix_to_support():
    question = ask.strings(longest_word=3)
    long_and_short = ["abcdef", "fee"]
    _, both = add(question, [0, 1], 20, words=long_and_short)
    _, short = add(question, [1], 20, words=long_and_short)
    assert np.array_equal(both, short)


def test_fakes_support_candidates_all_of_whose_words_are_targets():
    question = ask.members(itemsets=np.array([[0, -1], [2, -1], [0, 2], [0, 1]], dtype=np.int64))
    counts, tally = add(question, [0, 2], 30)
    # "abc" and "fee" are words 0 and 2, and "abd" is no target.
    assert counts.num_reports == 30
    assert tally[:3].tolist() == [30] * 3
    assert tally[3] < 30
    _, against = add(question, [0, 2], 30, goal="demote")
    assert not against[:3].any()


def test_fakes_support_the_size_of_the_targets_set_or_of_an_empty_one():
    question = ask.sizes(oracle_name="grr")
    assert question.choice.largest_size(question.names) == 4
    _, tally = add(question, [0, 2, 3], 30)
    assert tally.tolist() == [0, 0, 30, 0, 0]
    _, against = add(question, [0, 2, 3], 30, goal="demote")
    assert against.tolist() == [30, 0, 0, 0, 0]
    _, bounded = add(ask.sizes(oracle_name="grr", largest=1), [0, 2], 30)
    assert bounded.tolist() == [0, 30]
