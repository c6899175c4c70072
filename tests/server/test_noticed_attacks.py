"""What a run notices by itself: votes for a prefix that the layer before did not see."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.run import simulate
from fedhh.experiments.run.sentences import noticed
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS
from fedhh.words.alphabet import END
from tests.asked_clients import answered

# Clients hold fewer prefixes than they may contribute, so that honest children exceed no parent.
SHARED = {
    "alphabet": LETTERS, "clients_per_layer": 400, "depth": 6, "eta_max": 25,
    "max_items": 40, "local_epsilon": 6.0,
}  # fmt: skip
PROTOCOLS = [
    LdpTrieHH(**SHARED, passes=1),
    LdpTrieHH(**SHARED, passes=1, votes_per_client="one"),
    AdaptiveTrieHH(**SHARED),
]
FAKE_VOTES = 250
ATTACKED = 4


def exceeding(protocol, population, fake_votes):
    """Return how many prefixes exceed their parents in each layer, with votes added to tallies."""
    protocol = protocol.settle(num_clients=population.num_clients, seed=0)
    executor = InProcessExecutor(ClientWorker(population, seed=2))
    state = protocol.initialize()
    while (question := protocol.next_question(state)) is not None:
        aggregate = answered(executor, question).aggregate
        tally = aggregate.tally.copy()
        if (place := fake_votes(question, state)) is not None:
            tally[place] += FAKE_VOTES
        state = protocol.finish_round(state, question, replace(aggregate, tally=tally))
    return [summary.num_exceeding for summary in state.history if summary.num_prefixes]


def nothing(question, state):
    return None


def one_layer(question, state):
    """Return the first child of the prefix with the smallest share, in one layer alone."""
    if question.layer != ATTACKED or not question.names.num_extensions:
        return None
    return int(state.own.shares[:, 0].argmin()) * question.names.trie.alphabet_size + 1


class EveryLayer:
    """The first child of the prefix that was supported before, from the first layer on."""

    def __init__(self) -> None:
        self.followed = None

    def __call__(self, question, state):
        if not question.names.num_extensions:
            return None
        size = question.names.trie.alphabet_size
        node = 0
        if self.followed is not None:
            (node,) = np.flatnonzero(question.names.trie.levels[-1] == self.followed)
        self.followed = int(node) * size + 1
        return self.followed


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=["reports", "clients", "posterior"])
def test_votes_that_the_layer_before_did_not_see_are_noticed(population, protocol):
    assert sum(exceeding(protocol, population, nothing)) == 0
    attacked = exceeding(protocol, population, one_layer)
    first = protocol.depth - len(attacked) + 1
    assert attacked[ATTACKED - first] == 1
    assert sum(attacked) == 1
    # Who supports the whole path contradicts nothing.
    assert sum(exceeding(protocol, population, EveryLayer())) == 0


def test_shares_are_those_of_the_tries_last_level(population):
    protocol = PROTOCOLS[0].settle(num_clients=population.num_clients, seed=0)
    executor = InProcessExecutor(ClientWorker(population, seed=2))
    state = protocol.initialize()
    question = protocol.next_question(state)
    aggregate = answered(executor, question).aggregate
    state = protocol.finish_round(state, question, aggregate)
    kept = state.own.trie.levels[-1]
    assert (kept % question.names.trie.alphabet_size != END).all()
    oracle = protocol._oracle(question.domain_size)
    estimate = oracle.estimate(aggregate.tally[kept], aggregate.num_reports)
    np.testing.assert_allclose(state.own.shares[:, 0], estimate / aggregate.num_clients)
    held = np.clip(estimate, 0, aggregate.num_reports)
    variance = oracle.variance(held, aggregate.num_reports) / aggregate.num_clients**2
    np.testing.assert_allclose(state.own.shares[:, 1], variance)


def test_what_layers_notice_is_a_sentence():
    layers = pd.DataFrame({"num_exceeding": [0, 2], "num_candidates": [40, 60]})
    text = noticed(SimpleNamespace(layers=layers))
    assert text.startswith("Noticed: 2 kept prefixes or words have a larger estimated share")
    assert f"at most {2.8665e-7 * 100:.2g} expected" in text
    layers["num_exceeding"] = 0
    assert noticed(SimpleNamespace(layers=layers)) is None


@pytest.mark.slow("::test_what_layers_notice_is_a_sentence")
def test_a_run_says_what_it_noticed(population):
    result = simulate(PROTOCOLS[0], population, seed=1)
    assert noticed(result) is None
    layers = result.layers.copy()
    layers.loc[layers.index[1], "num_exceeding"] = 2
    text = noticed(replace(result, layers=layers))
    assert text is not None
    assert text.startswith("Noticed: 2 kept prefixes or words have a larger estimated share")
    by_chance = 2.8665e-7 * layers["num_candidates"].sum()
    assert f"at most {by_chance:.2g} expected" in text
    assert text in str(replace(result, layers=layers))
