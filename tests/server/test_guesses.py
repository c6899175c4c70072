"""Guessed words against every word that live prefixes can go on to."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from fedhh.oracles import SubsetSelection
from fedhh.server.adaptive import guesses as module
from fedhh.server.adaptive.guesses import Guesses
from fedhh.server.adaptive.trie_posterior import LayerEvidence, TriePosterior, inherited_shares
from fedhh.words.alphabet import END
from fedhh.words.trie import PrefixTrie

SIZE, WIDTH = 4, 6
TRIE = PrefixTrie.all_of_length_one(SIZE).extend(np.array([1, 6, 7, 11]))


def belief():
    rng = np.random.default_rng(1)
    shares = rng.dirichlet(np.r_[np.full(14, 1.0), np.full(14, 0.05)], size=TRIE.width)
    return TriePosterior(held=rng.uniform(0.2, 1, TRIE.width), shares=shares)


def distribution(spelled):
    """A distribution that depends on the last two symbols."""
    tables = np.random.default_rng(2).dirichlet(np.full(SIZE, 0.5), size=(SIZE, SIZE))
    return tables[spelled[:, -2].astype(int), spelled[:, -1].astype(int)].copy()


def by_enumeration():
    """The chance of every word of at most two symbols more than a prefix's child, one by one."""
    believed, chances = belief(), {}
    for number, prefix in enumerate(TRIE.spell(np.arange(TRIE.width) * SIZE)[:, :-1].tolist()):
        for num in range(1, WIDTH - TRIE.length):
            for symbols in itertools.product(range(1, SIZE), repeat=num):
                word = [*prefix, *symbols]
                chance = believed.held[number] * believed.num_children[number]
                for at in range(len(prefix), len(word) + 1):
                    after = distribution(np.array([word[:at]], dtype=np.uint16))[0]
                    chance *= after[word[at] if at < len(word) else END]
                chances[tuple(word)] = (number, chance)
    return chances


def guessed(known=(), most=10_000):
    codes = np.zeros((len(known), WIDTH), dtype=np.uint16)
    for row, word in enumerate(known):
        codes[row, : len(word)] = word
    found = Guesses.after(TRIE, belief(), distribution, most=most, known=codes)
    words = [tuple(row[row != END].tolist()) for row in found.codes]
    assert len(set(words)) == len(words)
    return dict(zip(words, zip(found.prefix, found.prior, strict=True), strict=True))


def test_all_likely_words_are_guessed_with_their_chance():
    expected = {w: c for w, c in by_enumeration().items() if c[1] > module._LEAST}
    found = guessed()
    assert 20 < len(expected) < len(by_enumeration())
    assert found.keys() == expected.keys()
    for word, (prefix, chance) in expected.items():
        assert found[word][0] == prefix
        assert found[word][1] == pytest.approx(min(chance, 0.9))


def test_no_more_are_guessed_than_allowed_and_none_that_is_known():
    everything = guessed()
    known = sorted(everything, key=lambda word: -everything[word][1])[:3]
    assert guessed(known).keys() == everything.keys() - set(known)
    few = guessed(most=1)
    assert 0 < len(few) <= module.GUESSES_PER_PREFIX
    assert few.keys() <= everything.keys()
    assert len(everything) / module._MOST_SYMBOLS > module._LONGER_PER_PREFIX


def test_votes_decide_by_bayes_rule():
    words = Guesses.after(
        TRIE, belief(), distribution, most=10_000, known=np.zeros((0, WIDTH), dtype=np.uint16)
    )
    votes = np.random.default_rng(3).poisson(40, size=len(words.prefix))
    oracle = SubsetSelection(epsilon=3.0, domain_size=100)
    seen = LayerEvidence.of_votes(votes, oracle, num_clients=400, num_reports=800, limit=0.01)
    held = words.held(belief(), seen)
    inherited = inherited_shares(belief().shares, length=1)
    for each, (prefix, prior) in enumerate(zip(words.prefix, words.prior, strict=True)):
        ratio = float(inherited[prefix] @ np.exp(seen.logs[seen.which[each]]))
        assert held[each] == pytest.approx(prior * ratio / (prior * ratio + 1 - prior))
    assert held.min() < 0.1 * words.prior.max()
