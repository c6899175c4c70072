"""Protocols with each oracle that they can take, and without those that they cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedhh.experiments.run.run import simulate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.testing import LETTERS, small_population
from fedhh.validation import InputError
from tests.thinned import thinned

PROTOCOL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=800, depth=4, passes=1, eta_max=20, local_epsilon=6.0
)


@pytest.fixture(scope="module")
def population():
    return small_population(4_000)


@pytest.mark.parametrize("oracle", thinned(["sue", "ss", "blh", "the", "pgr", "bassily-smith"]))
def test_ldp_triehh_finds_frequent_words_by_every_pure_oracle(population, oracle):
    result = simulate(replace(PROTOCOL, oracle=oracle), population, seed=0)
    # One bit for each of a layer's reports is noise of one report each: less is found.
    least = 1 if oracle in {"blh", "bassily-smith"} else 5
    assert result.metrics.discovered_real >= least


def test_pem_finds_words_by_one_bit_reports_too(population):
    protocol = Pem(alphabet=LETTERS, clients_per_layer=1_300, length=4, keep=20, num_hashes=512)
    found = simulate(
        replace(protocol, oracle="bassily-smith", local_epsilon=6.0), population, seed=0
    )
    assert found.metrics.discovered_real >= 1


@pytest.mark.parametrize("oracle", ["she", "hr", "dbitflip"])
def test_oracles_without_p_and_q_are_refused_in_one_line(oracle):
    with pytest.raises(InputError, match=f"a PureOracle, got oracle='{oracle}'; use ss"):
        replace(PROTOCOL, oracle=oracle)


def test_an_oracle_that_a_later_layer_would_outgrow_is_refused_before_anything_runs():
    wide = replace(PROTOCOL, oracle="pgr", local_epsilon=10.0)
    assert wide.oracle == "pgr"
    with pytest.raises(InputError, match="485,210,757 over the field of 22,027"):
        replace(wide, eta_max=5_000)
