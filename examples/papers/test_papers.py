"""The sweeps' populations and settings, and that the sweeps run."""

import gzip
import math
import subprocess
import sys
import tomllib
from pathlib import Path

import bit_values
import numpy as np
import pytest
from one_word import OneWord
from scipy.optimize import brentq

import fedhh
from fedhh import InputError
from fedhh.accounting import shuffle_epsilon
from fedhh.server.pem import Pem
from fedhh.server.triehh import TrieHH

HERE = Path(__file__).parent
CENTRAL, CLIENTS, DELTA = (1.0, 2.0, 4.0, 8.0), 650_000, 2.3e-12


def test_counts_have_every_published_number_and_between_ranks_are_powers():
    counts = bit_values.interpolated_counts()
    assert (len(counts), counts.sum(), counts.min()) == (120_978, 657_427, 1)
    assert [counts[r - 1] for r in (1, 2, 3, 32, 64)] == [18_720, 12_292, 6_132, 1_243, 865]
    assert (np.diff(counts) <= 0).all()
    slope = np.log(1_243 / 6_132) / np.log(32 / 3)
    expected = [6_132 * (r / 3) ** slope for r in range(3, 33)]
    assert np.abs(counts[2:32] - expected).max() <= 0.5


@pytest.mark.slow("::test_counts_have_every_published_number_and_between_ranks_are_powers")
@pytest.mark.parametrize("kind", [bit_values.RandomBits, bit_values.TextBits])
def test_clients_hold_distinct_bits_in_the_order_of_counts(kind):
    population = kind(bit_values.CLIENTS, seed=0)
    assert len(set(population.lexicon.words)) == bit_values.VALUES
    assert {len(word) for word in population.lexicon.words} == {48}
    assert (population.word_counts().holders == bit_values.interpolated_counts()).all()
    few = kind(3_000, seed=1)
    assert few.word_counts().holders.sum() == 3_000
    assert few.word_counts().holders[0] == pytest.approx(3_000 * 18_720 / 657_427, abs=50)
    with pytest.raises(InputError, match="657,427"):
        kind(bit_values.CLIENTS + 1, seed=0)


def test_text_is_the_first_six_bytes_of_words():
    assert [value.to_bytes(6, "big") for value in bit_values.text_values()[:2]] == [
        b"the   ", b"to    ",
    ]  # fmt: skip


def test_a_log_is_read_highest_bit_first_and_another_one_refused(tmp_path, monkeypatch):
    path = tmp_path / bit_values.FILE
    path.write_bytes(gzip.compress(b"b\xff\t   \t4\na     \t6\nab    \t2\n"))
    for name, value in (("CLIENTS", 12), ("VALUES", 3), ("COUNTS", {1: 6, 3: 2})):
        monkeypatch.setattr(bit_values, name, value)
    values, counts = bit_values.read_log(path)
    assert counts.tolist() == [6, 4, 2]
    assert [value.to_bytes(6, "big") for value in values] == [b"a     ", b"b\xff\t   ", b"ab    "]
    monkeypatch.chdir(tmp_path)
    words = bit_values.SearchLog(12, seed=0).lexicon.words
    # "a" is 0x61, and values that begin with the same letter share its eight bits.
    assert words[0][:8] == words[2][:8] == "01100001"
    for content in (b"a     \t6\nb     \t4\nab    \t3\n", b"a     \t-\n", b""):
        path.write_bytes(gzip.compress(content))
        with pytest.raises(InputError, match="Expected the published"):
            bit_values.read_log(path)
    with pytest.raises(InputError, match="Expected the published log"):
        bit_values.read_log(tmp_path / "missing")


@pytest.mark.slow("::test_triehhs_samples_are_the_largest_of_its_theorem")
def test_everybody_holds_one_word_and_no_seed_changes_it():
    population = OneWord(20_000, seed=0)
    counts = population.word_counts().holders
    assert counts.sum() == 20_000
    assert (np.diff(counts) <= 0).all()
    assert min(map(len, population.lexicon.words)) == 3
    assert OneWord(20_000, seed=1).fingerprint() == population.fingerprint()


def config(name):
    return tomllib.loads((HERE / f"{name}.toml").read_text())


def test_triehhs_samples_are_the_largest_of_its_theorem():
    threshold, axes = config("triehh")["protocol"]["threshold"], config("triehh")["sweep"]["axes"]
    shares = [-math.expm1(-epsilon / 10) / threshold for epsilon in CENTRAL]
    assert axes["protocol.clients_per_layer"] == [math.floor(CLIENTS * share) for share in shares]


def blanket_delta(local_epsilon, epsilon):
    """Balle, Bell, Gascon, Nissim (2019), for any local randomizer by Hoeffding's inequality."""
    t = (math.tanh(epsilon / 2) / (2 * math.sinh(local_epsilon))) ** 2
    rate = -math.expm1(-2) * CLIENTS * min(math.exp(-local_epsilon), t)
    return math.expm1(epsilon) / (4 * CLIENTS * t) * math.exp(-rate)


def test_sfps_local_epsilons_follow_from_both_bounds():
    stated = config("sfp")["sweep"]["axes"]["privacy.local_epsilon"]
    for epsilon, old, new in zip(CENTRAL, stated[:4], stated[4:], strict=True):

        def excess(local_epsilon, epsilon=epsilon):
            found = max(blanket_delta(local_epsilon, epsilon), 1e-300)
            return math.log(found) - math.log(DELTA)

        assert old == pytest.approx(brentq(excess, 0.1, 16.0), abs=6e-4)
        central = [
            shuffle_epsilon("clones", local_epsilon=each, num_reports=CLIENTS, delta=DELTA)
            for each in (new - 6e-4, new + 6e-4)
        ]
        assert central[0] <= epsilon <= central[1]


@pytest.mark.slow("::test_triehhs_samples_are_the_largest_of_its_theorem")
@pytest.mark.parametrize(("name", "cells"), [("pem", 80), ("triehh", 20), ("sfp", 80)])
def test_a_sweep_is_planned(tmp_path, name, cells):
    line = [sys.executable, "-m", "fedhh", "run", HERE / f"{name}.toml", "--trust", "--dry-run"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"{cells} cells to run, 0 skipped" in done.stdout + done.stderr


@pytest.mark.slow("::test_triehhs_samples_are_the_largest_of_its_theorem")
def test_the_most_frequent_values_are_found():
    protocol = Pem(
        alphabet="01", fixed_length=True, length=48, step=11, keep=4, oracle="olh", max_items=1
    )
    population = bit_values.RandomBits(8_000, seed=0)
    found = fedhh.simulate(protocol, population, seed=0).discoveries["word"]
    assert set(population.lexicon.words[:2]) <= set(found)
    words = OneWord(20_000, seed=0)
    found = fedhh.simulate(TrieHH(threshold=5, clients_per_layer=800), words, seed=0).discoveries
    assert words.lexicon.words[0] in set(found["word"])
