"""`post_processing` of protocols: what it does to reported estimates, and to nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedhh
from fedhh.oracles.consistency import POST_PROCESSING, post_process
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.bitstogram import Bitstogram
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.ldpminer import LdpMiner
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.server.svim import Svim
from fedhh.server.svsm import Svsm
from fedhh.server.treehist import TreeHist
from fedhh.testing import LETTERS, small_population
from fedhh.words.candidates import Candidates
from tests.thinned import thinned

POPULATION = small_population(3_000)
KNOWN = {"alphabet": LETTERS, "candidates": Candidates(POPULATION.lexicon.words), "keep": 5}
RECORDS = {"alphabet": LETTERS, "length": 4, "num_hashes": 16, "num_cells": 64}
VALIDATION = {"false_discovery_rate": 0.1, "validation_share": 0.2}
TRIE = {"alphabet": LETTERS, "clients_per_layer": 300, "depth": 4, "eta_max": 8}
PROTOCOLS = {
    "ldp-triehh": LdpTrieHH(**TRIE, local_epsilon=6.0),
    "ldp-triehh-validation": LdpTrieHH(**TRIE, **VALIDATION, local_epsilon=6.0),
    "adaptive-triehh": AdaptiveTrieHH(**TRIE, local_epsilon=6.0, max_items=2),
    "pem": Pem(alphabet=LETTERS, clients_per_layer=300, length=5, step=1, keep=5),
    "sfp": Sfp(
        alphabet=LETTERS, length=4, num_puzzles=16, word_hashes=16, word_cells=64,
        fragment_hashes=16, fragment_cells=64,
    ),
    "treehist": TreeHist(**RECORDS),
    "bitstogram": Bitstogram(**RECORDS),
    "svim": Svim(**KNOWN, local_epsilon=3.0),
    "ldpminer": LdpMiner(**KNOWN, num_hashes=256, local_epsilon=6.0),
    "svsm": Svsm(**KNOWN, local_epsilon=4.0),
}  # fmt: skip


def found_by(protocol):
    *_, last = fedhh.rounds(protocol, POPULATION, seed=3)
    return last.state.found


@pytest.mark.parametrize("name", thinned(PROTOCOLS))
def test_words_are_the_same_and_estimates_consistent(name):
    protocol = PROTOCOLS[name]
    assert protocol.post_processing == "none"
    raw = found_by(protocol)
    assert len(raw.codes)
    for how in POST_PROCESSING[1:]:
        found = found_by(replace(protocol, post_processing=how))
        assert np.array_equal(found.codes, raw.codes)
        assert np.array_equal(found.z, raw.z)
        assert np.array_equal(found.variance, raw.variance)
        assert (found.estimate >= 0).all()
        if how == "base-cut":
            assert np.isin(found.estimate, [0.0, *raw.estimate]).all()
        # Larger estimates of a round stay larger, or become equal.
        for layer in np.unique(raw.layer):
            here = raw.layer == layer
            order = np.argsort(raw.estimate[here], kind="stable")
            assert (np.diff(found.estimate[here][order]) >= -1e-9).all()


@pytest.mark.parametrize("how", POST_PROCESSING[1:])
def test_estimates_are_those_of_all_candidates_of_the_round(how):
    protocol = replace(PROTOCOLS["pem"], post_processing=how)
    *_, last = fedhh.rounds(protocol, POPULATION, seed=3)
    raw = found_by(PROTOCOLS["pem"])
    found, n = last.state.found, last.aggregate.num_reports
    # The five words found have the most support of all candidates.
    total = float(found.estimate.sum())
    assert total <= n + 1e-6
    if how == "norm-sub":
        shift = (found.estimate - raw.estimate)[found.estimate > 0]
        assert np.ptp(shift) < 1e-9
        assert shift[0] < 0
        # Among these five alone less would be taken away.
        alone = post_process(how, raw.estimate, total=n, std=1.0, has_rest=True)
        assert found.estimate.sum() < alone.sum()


def test_a_validation_rounds_intervals_are_of_unprocessed_estimates():
    protocol = PROTOCOLS["ldp-triehh-validation"]
    assert np.isfinite(found_by(protocol).interval_z).all()
    found = found_by(replace(protocol, post_processing="norm-sub"))
    assert np.isnan(found.interval_z).all()
