"""A round's threshold_z has one meaning: how far above their noise the votes stand that decide."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from fedhh.protocol import Answers
from fedhh.questions.question import Aggregate
from fedhh.questions.sums import NoisyVotes
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.bitstogram import Bitstogram
from fedhh.server.blender import Blender
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.rappor import Rappor
from fedhh.server.sample_and_threshold import SampleAndThreshold
from fedhh.server.secagg_triehh import SecAggTrieHH
from fedhh.server.svim import Svim
from fedhh.server.tee_histogram import TeeHistogram
from fedhh.server.triehh import TrieHH
from fedhh.server.two_servers import TwoServers
from fedhh.server.weighted_gaussian import DpSips
from fedhh.testing import LETTERS, ProtocolTrial, small_population
from fedhh.words.candidates import Candidates
from tests import questions_of_each_kind as ask

POPULATION = small_population(3_000)
TRIE = {"alphabet": LETTERS, "depth": 4, "eta_max": 8, "local_epsilon": 6.0}
KNOWN = {"alphabet": LETTERS, "candidates": Candidates(POPULATION.lexicon.words)}
VALIDATION = {"false_discovery_rate": 0.1, "validation_share": 0.2}
PROTOCOLS = {
    "ldp-triehh": LdpTrieHH(**TRIE, **VALIDATION, clients_per_layer=300, passes=2),
    "adaptive-triehh": AdaptiveTrieHH(**TRIE, clients_per_layer=300),
    "pem": Pem(alphabet=LETTERS, clients_per_layer=300, length=5, step=1, keep=5),
    "bitstogram": Bitstogram(alphabet=LETTERS, length=4, num_hashes=16, num_cells=64, **VALIDATION),
    "svim": Svim(**KNOWN, keep=5, clients_per_layer=800, local_epsilon=3.0),
    "rappor": Rappor(**KNOWN, **VALIDATION, bloom_bits=32, bloom_cohorts=8),
    "blender": Blender(alphabet=LETTERS, length=5, opt_in_share=0.3, delta=1e-6),
    "triehh": TrieHH(alphabet=LETTERS, clients_per_layer=300, threshold=6, depth=4),
    "secagg-triehh": SecAggTrieHH(alphabet=LETTERS, depth=4, eta_max=8, max_items=2),
    "two-servers": TwoServers(alphabet=LETTERS, depth=4, eta_max=8, max_items=2, noise="skellam"),
    "tee-histogram": TeeHistogram(alphabet=LETTERS, length=5, central_epsilon=4.0),
    "dp-sips": DpSips(alphabet=LETTERS, length=5, central_epsilon=4.0),
    "sample-and-threshold": SampleAndThreshold(
        alphabet=LETTERS, length=5, sample_rate=0.2, threshold=5
    ),
}
# What decides there is no vote of the round against its noise.
OTHERWISE = {
    "rappor": [1],
    "blender": [1, 2, 3],
    "triehh": range(1, 99),
    "tee-histogram": [1],
    "dp-sips": [1, 2, 3],
    "sample-and-threshold": [1],
    "adaptive-triehh": range(1, 99),
}


@pytest.mark.parametrize("name", PROTOCOLS)
def test_it_is_the_normal_quantile_of_the_threshold_among_votes_or_missing(name):
    trial = ProtocolTrial(PROTOCOLS[name], population=POPULATION)
    stated = 0
    for past, summary in zip(trial.run(3), trial.summaries(3), strict=True):
        decided_by_votes = summary.decides and summary.layer not in OTHERWISE.get(name, ())
        assert math.isnan(summary.threshold_z) != decided_by_votes
        if summary.kept_by == "estimates":
            assert name in {"rappor", "blender", "tee-histogram", "dp-sips"}
            assert summary.threshold == 0
        else:
            assert summary.threshold_estimate == 0
        if not decided_by_votes or past.question.names.extended is None:
            continue
        stated += 1
        channel = past.question.channel
        if isinstance(channel, NoisyVotes):
            part = channel.part(past.aggregate.num_clients, past.question.cohort.size)
            tails = channel.noise.distribution(part).tails
            assert summary.threshold_z == pytest.approx(norm.isf(tails[summary.threshold]))
            assert (
                past.question.votes(past.aggregate) >= summary.threshold
            ).sum() == summary.num_kept
            continue
        oracle = channel.pure
        fewer = binom.logsf(summary.threshold - 1, past.aggregate.num_reports, oracle.q)
        if fewer > -600:
            assert summary.threshold_z == pytest.approx(norm.isf(math.exp(fewer)), rel=1e-6)
        votes = past.question.votes(past.aggregate)
        assert (votes >= summary.threshold).sum() >= summary.num_kept
    assert stated or name not in {"ldp-triehh", "bitstogram"}


def test_votes_that_let_everything_through_decide_nothing():
    question = ask.votes()
    tally = np.zeros(question.tally_size, dtype=np.int64)
    aggregate = Aggregate(tally=tally, num_reports=1_000, num_clients=1_000)
    (planned, *_) = LdpTrieHH(clients_per_layer=1_000).plan.layers
    answers = Answers(planned=planned, question=question, aggregate=aggregate)
    assert math.isnan(answers.decision(threshold=500).threshold_z)
    decided = answers.decision(threshold=500, num_kept=1)
    assert decided.threshold_z == answers.noise.z(np.array([500]))[0] > 0
