import pytest

from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.bitstogram import Bitstogram
from fedhh.server.blender import Blender
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.ldpminer import LdpMiner
from fedhh.server.opt_prefix_tree import OptPrefixTree
from fedhh.server.pem import Pem
from fedhh.server.rappor import Rappor
from fedhh.server.rappor_unknown import RapporUnknown
from fedhh.server.sample_and_threshold import SampleAndThreshold
from fedhh.server.secagg_triehh import SecAggTrieHH
from fedhh.server.sfp import Sfp
from fedhh.server.svim import Svim
from fedhh.server.svsm import Svsm
from fedhh.server.tee_histogram import TeeHistogram
from fedhh.server.treehist import TreeHist
from fedhh.server.triehh import TrieHH
from fedhh.server.two_servers import TwoServers
from fedhh.server.weighted_gaussian import DpSips, WeightedGaussianSelection
from fedhh.testing import LETTERS, ProtocolTrial, protocol_checks, small_population
from fedhh.words.candidates import Candidates
from tests.thinned import thinned

POPULATION = small_population(3_000)

TRIE = {"alphabet": LETTERS, "clients_per_layer": 300, "depth": 4, "eta_max": 8}
SUMS = {"alphabet": LETTERS, "depth": 4, "eta_max": 8, "central_epsilon": 2.0, "max_items": 2}
VALIDATION = {"false_discovery_rate": 0.1, "validation_share": 0.2}
SFP = {
    "alphabet": LETTERS,
    "length": 4,
    "num_puzzles": 16,
    "word_hashes": 16,
    "word_cells": 64,
    "fragment_hashes": 16,
    "fragment_cells": 64,
}
PEM = {"alphabet": LETTERS, "clients_per_layer": 300, "length": 5, "step": 1, "keep": 5}
RECORDS = {"alphabet": LETTERS, "length": 4, "num_hashes": 16, "num_cells": 64}
BLENDER = {"alphabet": LETTERS, "length": 5, "opt_in_share": 0.3, "delta": 1e-6}
TRUSTED = {"alphabet": LETTERS, "length": 5, "central_epsilon": 4.0, "delta": 1e-4}
KNOWN = {"alphabet": LETTERS, "candidates": Candidates(POPULATION.lexicon.words)}
CLOSED = {**KNOWN, "keep": 5}
BLOOM = {**KNOWN, "bloom_bits": 32, "bloom_cohorts": 8}
UNKNOWN = {
    "alphabet": LETTERS,
    "length": 4,
    "local_epsilon": 24.0,
    "ngram_bits": 4,
    "ngram_cohorts": 16,
    "bloom_cohorts": 16,
}
PROTOCOLS = {
    "ldp-triehh": LdpTrieHH(**TRIE, local_epsilon=6.0, max_items=2),
    "ldp-triehh-oue-unpadded": LdpTrieHH(
        **TRIE, local_epsilon=4.0, oracle="oue", pad=False, skip_free_layers=False
    ),
    "ldp-triehh-reusing": LdpTrieHH(
        **TRIE, local_epsilon=6.0, participation="every-round", ties="paper"
    ),
    "ldp-triehh-epochs": LdpTrieHH(
        alphabet=LETTERS,
        depth=4,
        eta_max=8,
        passes=1,
        **VALIDATION,
        local_epsilon=6.0,
        max_items=1,
        participation="epochs",
        epochs=2,
        cohorts="secret",
    ),
    "ldp-triehh-validation": LdpTrieHH(**TRIE, **VALIDATION, local_epsilon=6.0, passes=2),
    "adaptive-triehh": AdaptiveTrieHH(**TRIE, local_epsilon=6.0, max_items=2),
    "adaptive-triehh-auto": AdaptiveTrieHH(
        alphabet=LETTERS, depth=5, local_epsilon=6.0, front_loaded=False, validation_share=0.3
    ),
    "opt-prefix-tree": OptPrefixTree(
        alphabet=LETTERS, depth=5, eta_max=60, rounds=3, passes=2, local_epsilon=12.0
    ),
    "opt-prefix-tree-validation": OptPrefixTree(
        **TRIE, **VALIDATION, max_items=2, local_epsilon=12.0, participation="one-round"
    ),
    "sfp": Sfp(**SFP, clients_per_layer=1_500),
    "sfp-validation": Sfp(**SFP, **VALIDATION),
    "pem-olh": Pem(**PEM, max_items=2),
    "pem-cms": Pem(**PEM, oracle="cms", num_hashes=16),
    "pem-validation": Pem(**PEM, **VALIDATION),
    "pem-norm-sub": Pem(**PEM, **VALIDATION, post_processing="norm-sub"),
    "treehist": TreeHist(**RECORDS, clients_per_layer=1_500, max_items=2),
    "treehist-validation": TreeHist(**RECORDS, **VALIDATION, step=1, oracle="cms"),
    "bitstogram": Bitstogram(**RECORDS, clients_per_layer=1_500, max_items=2),
    "bitstogram-validation": Bitstogram(
        **RECORDS, **VALIDATION, fragment_length=2, fragment_oracle="ss", word_oracle="cms"
    ),
    "blender": Blender(**BLENDER, clients_per_layer=2_000, max_items=2),
    "blender-validation": Blender(**BLENDER, **VALIDATION, oracle="ss", pad=False),
    "ldpminer": LdpMiner(**CLOSED, num_hashes=256, padded_size=3),
    "ldpminer-asked": LdpMiner(**CLOSED, num_hashes=256, local_epsilon=6.0),
    "ldpminer-validation": LdpMiner(**CLOSED, **VALIDATION, num_hashes=256, padded_size=2),
    "rappor": Rappor(**BLOOM, clients_per_layer=1_500, max_items=2, local_epsilon=4.0),
    "rappor-validation": Rappor(**BLOOM, **VALIDATION),
    "svim": Svim(**CLOSED, clients_per_layer=800, local_epsilon=3.0),
    "svim-oue-validation": Svim(**CLOSED, **VALIDATION, oracle="oue"),
    "svsm": Svsm(**CLOSED, clients_per_layer=500, local_epsilon=4.0),
    "svsm-validation": Svsm(**CLOSED, **VALIDATION),
    "rappor-unknown": RapporUnknown(**UNKNOWN, clients_per_layer=2_000, max_items=2),
    "rappor-unknown-validation": RapporUnknown(**UNKNOWN, **VALIDATION),
    "triehh": TrieHH(alphabet=LETTERS, clients_per_layer=300, threshold=6, depth=4),
    "secagg-triehh": SecAggTrieHH(**SUMS, passes=2, clients_per_layer=300),
    "secagg-triehh-dropouts": SecAggTrieHH(
        **SUMS, noise="skellam", max_dropout=0.4, dropout=0.2, pruning="top-eta"
    ),
    "two-servers": TwoServers(**SUMS),
    "two-servers-greedy": TwoServers(
        **SUMS, sampler="greedy", noise="skellam", skip_free_layers=False
    ),
    "secagg-triehh-every-round": SecAggTrieHH(**SUMS, participation="every-round", passes=2),
    "two-servers-every-round": TwoServers(**SUMS, participation="every-round", noise="skellam"),
    "tee-histogram": TeeHistogram(**TRUSTED, clients_per_layer=2_000, max_items=2),
    "tee-histogram-minimum": TeeHistogram(
        **TRUSTED, noise="gaussian", min_contributors=4, sampler="greedy"
    ),
    "weighted-gaussian": WeightedGaussianSelection(**TRUSTED, max_items=3),
    "dp-sips": DpSips(**TRUSTED, clients_per_layer=1_000, max_items=3),
    "sample-and-threshold": SampleAndThreshold(**TRUSTED, max_items=2, sample_rate=0.2),
}
TRIALS = {name: ProtocolTrial(each, population=POPULATION) for name, each in PROTOCOLS.items()}


@pytest.mark.parametrize(
    ("name", "check"),
    thinned(
        [(name, check) for name, trial in TRIALS.items() for check in protocol_checks(trial)],
        keep=160,
    ),
    ids=str,
)
def test_a_protocol_passes(name, check):
    check(TRIALS[name], seed=3)


@pytest.mark.parametrize(
    "name", [n for n in TRIALS if n.startswith("adaptive") or n.endswith("-validation")]
)
def test_the_trials_of_validation_rounds_have_one(name):
    kept_by = "evidence" if name.startswith("adaptive") else "validation"
    summaries = TRIALS[name].summaries(3)
    assert [each.kept_by for each in summaries].count(kept_by) == 1
    assert summaries[-1].kept_by == kept_by
    protocol = TRIALS[name].settled(3)
    found = protocol.discoveries(TRIALS[name].last_state(3))
    assert len(found) == summaries[-1].num_kept > 0
    assert (found.interval_z > 0).all()
