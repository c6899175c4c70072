from __future__ import annotations

import math

import numpy as np
import pytest

import fedhh
from fedhh.testing import LETTERS
from tests.thinned import thinned

PROTOCOLS = [
    fedhh.TrieHH(alphabet=LETTERS, clients_per_layer=800, threshold=10, depth=6),
    fedhh.LdpTrieHH(
        alphabet=LETTERS, clients_per_layer=1_000, depth=6, passes=1, eta_max=40, max_items=3
    ),
    fedhh.Pem(alphabet=LETTERS, clients_per_layer=1_000, length=6, max_items=3),
    fedhh.Sfp(
        alphabet=LETTERS, clients_per_layer=6_000, length=6, max_items=3, word_hashes=64,
        word_cells=256, fragment_hashes=64, fragment_cells=256, num_puzzles=16,
    ),
]  # fmt: skip


@pytest.mark.parametrize("protocol", thinned(PROTOCOLS, keep=2), ids=lambda p: p.title)
def test_every_protocol_runs_through_the_same_call(protocol, population):
    result = fedhh.simulate(protocol, population, seed=0)
    again = fedhh.simulate(protocol, population, seed=0)
    assert result.discoveries.equals(again.discoveries)
    top = [population.lexicon.words[i] for i in np.argsort(-population.word_counts().holders)[:3]]
    assert set(top) <= set(result.discoveries["word"])
    assert 0 < result.metrics.coverage <= 1
    assert result.cost["rounds"] == len(result.layers) <= len(protocol.plan.layers)
    assert result.cost["clients_asked"] <= protocol.plan.most_answers
    assert fedhh.plot(result).axes
    local = result.privacy.best("item", "local").epsilon
    assert local == protocol.plan.local_epsilon
    assert math.isinf(local) == (isinstance(protocol, fedhh.TrieHH))


def test_sfp_finds_the_beginnings_of_longer_words_and_says_so(population):
    protocol = fedhh.Sfp(
        alphabet=LETTERS, clients_per_layer=6_000, length=4, max_items=3, word_hashes=64,
        word_cells=256, fragment_hashes=64, fragment_cells=256, num_puzzles=16,
    )  # fmt: skip
    found = fedhh.simulate(protocol, population, seed=0).discoveries
    held = population.lexicon.words
    assert found["is_truncated"].any()
    for row in found.to_dict("records"):
        longer = any(word.startswith(row["word"]) and len(word) > 4 for word in held)
        cut = len(row["word"]) == 4 and longer and row["word"] not in held
        assert row["is_truncated"] == cut
