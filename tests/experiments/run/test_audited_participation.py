"""Runs of four clients audited against what their plans claim, by the engine's own tallies."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fedhh
from fedhh.accounting.terms import PrivacyTerms

DELTA, LEARNED, TESTED = 0.1, 400, 1_600
TRIE = fedhh.LdpTrieHH(
    alphabet="abc",
    depth=2,
    eta_max=1,
    passes=1,
    max_items=1,
    skip_free_layers=False,
    local_epsilon=math.log(64),
)
EPOCH = replace(TRIE, participation="epochs", cohorts="secret")


def seen(protocol, word, seeds):
    """What a reader of each run sees: its tallies. One client of four holds the word."""
    words = [word, "cc", "cc", "cc"]
    users = [f"user {number}" for number in range(len(words))]
    clients = fedhh.population_from(pd.DataFrame({"user": users, "word": words}), known="none")
    return [
        tuple(
            tuple(each.aggregate.tally.tolist())
            for each in fedhh.rounds(protocol, clients, seed=seed)
        )
        for seed in seeds
    ]


def divergences_at_least(protocol, *claims):
    """Lower bounds on delta at the epsilons that a plan claims at `DELTA`; each wrong once in 1e9.

    A claim is that for some number of clients. The event is chosen on some runs of both words, and
    tested on others.
    """
    settled = protocol.settle(num_clients=4, seed=0)
    seeds = np.arange(2 * (LEARNED + TESTED)).reshape(2, -1).tolist()
    one, other = (seen(settled, *pair) for pair in zip(("aa", "bb"), seeds, strict=True))
    counts = Counter(one[:LEARNED]), Counter(other[:LEARNED])
    for num_clients in claims:
        claiming = protocol.settle(num_clients=num_clients, seed=0).plan
        claim = claiming.before_run("user", PrivacyTerms(num_clients=num_clients, delta=DELTA))
        assert claim.epsilon < claiming.most_rounds_per_client * settled.local_epsilon
        odds = math.exp(claim.epsilon)
        event = {each for each, count in counts[0].items() if count > odds * counts[1][each]}
        p, q = (np.mean([each in event for each in runs[LEARNED:]]) for runs in (one, other))
        deviation = math.sqrt((p * (1 - p) + odds**2 * q * (1 - q)) / TESTED)
        yield p - odds * q - 6 * deviation


def test_a_reader_of_few_runs_sees_nothing_beyond_the_claim(monkeypatch):
    monkeypatch.setitem(globals(), "LEARNED", 15)
    monkeypatch.setitem(globals(), "TESTED", 15)
    (bound,) = divergences_at_least(EPOCH, 4)
    assert bound <= DELTA


@pytest.mark.slow("::test_a_reader_of_few_runs_sees_nothing_beyond_the_claim")
@pytest.mark.parametrize(
    "protocol", [EPOCH, replace(TRIE, participation="every-round")], ids=["epoch", "every round"]
)
def test_readers_see_what_is_claimed_and_more_than_is_claimed_for_many_more(protocol):
    claimed, of_many = divergences_at_least(protocol, 4, 5_000)
    assert claimed <= DELTA < of_many
