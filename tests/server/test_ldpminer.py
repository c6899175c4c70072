from __future__ import annotations

import itertools

import numpy as np
import pytest

import fedhh
from fedhh.clients.populations.population import StoredPopulation
from fedhh.server.ldpminer import LdpMiner
from fedhh.validation import InputError
from fedhh.words.candidates import Candidates
from fedhh.words.lexicon import Lexicon

WORDS = ["".join(pair) for pair in itertools.product("abcdef", repeat=2)]


@pytest.fixture(scope="module")
def baskets():
    """20,000 clients with three of 36 words each, the first of them by half of the clients."""
    rng = np.random.default_rng(4)
    distribution = np.r_[[0.2] * 3, [0.4 / 33] * 33]
    drawn = rng.choice(36, size=(20_000, 3), p=distribution / distribution.sum())
    return StoredPopulation.from_rows(
        name="baskets", lexicon=Lexicon(words=WORDS), clients=np.repeat(np.arange(20_000), 3),
        word_ids=drawn.ravel(), num_clients=20_000,
    )  # fmt: skip


def test_both_rounds_ask_everybody_with_half_of_epsilon(baskets):
    protocol = LdpMiner(
        candidates=Candidates(WORDS), alphabet="abcdef", keep=3, padded_size=3, local_epsilon=4.0
    )
    rounds = list(fedhh.rounds(protocol, baskets, seed=0))
    first, second = (each.query for each in rounds)
    assert (first.oracle.name, second.oracle.name) == ("bassily-smith", "sue")
    assert (first.oracle.epsilon, second.oracle.epsilon) == (2.0, 2.0)
    assert (first.cohort.size, second.cohort.size) == (20_000, 20_000)
    assert (first.num_candidates, second.num_candidates) == (36, 6)
    found = protocol.discoveries(rounds[-1].state)
    assert set(found.words) == set(WORDS[:3])
    for word, estimate, variance in zip(found.words, found.estimate, found.variance, strict=True):
        true = baskets.word_clients[WORDS.index(word)]
        assert abs(estimate - true) < 5 * variance**0.5


def test_epsilon_is_the_clients_over_all_its_rounds(baskets):
    for rate, rounds in ((0.0, 2), (0.1, 3)):
        protocol = LdpMiner(
            candidates=Candidates(WORDS), alphabet="abcdef", keep=3, padded_size=3,
            local_epsilon=6.0, false_discovery_rate=rate,
        )  # fmt: skip
        result = fedhh.simulate(protocol, baskets, seed=0)
        assert result.cost["rounds"] == rounds
        assert protocol.round_epsilon == pytest.approx(6 / rounds)
        for unit in ("item", "user"):
            assert result.privacy.best(unit, "local").epsilon == pytest.approx(6.0)


def test_an_epsilon_too_small_to_share_is_refused():
    with pytest.raises(InputError, match="epsilon_of_a_round"):
        LdpMiner(candidates=Candidates(WORDS), local_epsilon=1.5e-6)
