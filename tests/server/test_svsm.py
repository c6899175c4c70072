from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.clients.clients import Clients
from fedhh.server.svsm import Svsm, likely_sets
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from fedhh.words.lexicon import Lexicon

WORDS = ["".join(pair) for pair in itertools.product("abcdef", repeat=2)]


@pytest.mark.parametrize("seed", range(4))
def test_likely_sets_are_those_with_the_largest_products(seed):
    counts = np.sort(np.random.default_rng(seed).exponential(size=9))[::-1]
    values = 0.9 * counts / counts[0]
    every = [*itertools.combinations(range(9), 2), *itertools.combinations(range(9), 3)]
    best = sorted(every, key=lambda each: -np.prod(values[list(each)]))[:25]
    rows = likely_sets(counts, 25).tolist()
    assert {tuple(p for p in row if p >= 0) for row in rows} == set(best)
    assert len(likely_sets(counts, 1_000)) == len(every)
    assert likely_sets(counts[:1], 5).shape == (0, 3)


@pytest.fixture(scope="module")
def baskets():
    """20,000 clients: two words that go together, three that do, and words by themselves."""
    rng = np.random.default_rng(0)
    held = rng.random((20_000, len(WORDS))) < 0.02
    together = [(0.5, (0, 1)), (0.3, (2, 3, 4))]
    for chance, words in together:
        held[np.ix_(rng.random(20_000) < chance, words)] = True
    owners, words = np.nonzero(held)
    return Clients.from_rows(
        name="baskets", lexicon=Lexicon(words=WORDS), clients=owners, word_ids=words,
        num_clients=20_000,
    )  # fmt: skip


def test_frequent_sets_are_found_with_their_shares(baskets):
    protocol = Svsm(candidates=Candidates(WORDS), alphabet="abcdef", keep=24, local_epsilon=4.0)
    settled = protocol.settle(num_clients=20_000, seed=0)
    last = list(fedhh.rounds(protocol, baskets, seed=0))[-1]
    sets = settled.frequent_sets(last.state)
    assert len(sets) == 24
    found = {frozenset(each.words): each for each in sets}
    shares = {
        frozenset(WORDS[i] for i in each): share
        for each, share in (((0, 1), 0.51), ((2, 3, 4), 0.3), ((2, 3), 0.31), ((0,), 0.51))
    }
    assert set(shares) <= set(found)
    for words, share in shares.items():
        assert found[words].share == pytest.approx(share, abs=5 * found[words].std_error + 0.02)
    assert sum(settled.group_sizes) == 20_000
    assert [each.layer for each in last.state.history] == [1, 2, 3, 4, 5]
    assert set(settled.discoveries(last.state).words) >= {WORDS[i] for i in range(5)}


def test_a_domain_of_one_word_has_no_sets(baskets):
    one = Svsm(candidates=Candidates(WORDS[:1]), alphabet="abcdef")
    *_, last = fedhh.rounds(one, baskets, seed=0)
    assert len(last.state.history) == 3


def test_what_svim_refuses_is_refused():
    with pytest.raises(InputError, match="candidate_share"):
        Svsm(candidates=Candidates(WORDS), candidate_share=0.95)
    with pytest.raises(InputError, match="keep"):
        replace(Svsm(candidates=Candidates(WORDS)), keep=10_000)
