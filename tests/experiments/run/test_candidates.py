"""What a run records of its candidates: all that survived, a stated sample, and who holds what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fedhh.experiments.run import candidates as recording
from fedhh.experiments.run.candidates import CandidateRecord
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import simulate
from fedhh.protocol import DiscoveryProtocol
from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.server.triehh import TrieHH
from fedhh.testing import LETTERS, small_population
from fedhh.words.known_words import KnownWords
from tests.experiments.run.test_resume import StoppedError, Stopper
from tests.thinned import thinned

POPULATION = small_population(3_000)
LDP = LdpTrieHH(alphabet=LETTERS, clients_per_layer=250, depth=5, passes=2, eta_max=20, max_items=2)
ADAPTIVE = AdaptiveTrieHH(
    alphabet=LETTERS, clients_per_layer=400, depth=5, eta_max=30, max_items=2,
    # Without public words of the language, nothing is asked about a list of them.
    known_words=KnownWords(name="none", words=frozenset(), language="de"), language="de",
)  # fmt: skip
PEM = Pem(alphabet=LETTERS, length=5, keep=20, clients_per_layer=700)
PROTOCOLS: list[DiscoveryProtocol] = [PEM, LDP, ADAPTIVE, TrieHH(alphabet=LETTERS, depth=5)]
TABLES = ("candidates", "votes", "missed")


def recorded(protocol: DiscoveryProtocol, folder: Path) -> tuple[RunResult, CandidateRecord]:
    result = simulate(protocol, POPULATION, seed=4, log_in=folder)
    assert result.candidates is not None
    return result, result.candidates


@pytest.fixture(scope="module")
def of_ldp(tmp_path_factory) -> tuple[RunResult, CandidateRecord]:
    return recorded(LDP, tmp_path_factory.mktemp("ldp"))


def holders(prefix: str, *, is_word: bool) -> int:
    words = zip(POPULATION.lexicon.words, POPULATION.word_counts().holders, strict=True)
    return sum(
        int(clients)
        for word, clients in words
        if (word == prefix if is_word else word.startswith(prefix))
    )


@pytest.mark.parametrize("protocol", thinned(PROTOCOLS), ids=lambda each: each.name)
def test_every_round_says_what_its_layer_says(protocol, tmp_path):
    result, record = recorded(protocol, tmp_path)
    for row in result.layers.to_dict("records"):
        here = record.candidates.query(f"`pass` == {row['pass']} and layer == {row['layer']}")
        ranges = record.votes.query(f"`pass` == {row['pass']} and layer == {row['layer']}")
        fates = here["fate"].value_counts()
        assert fates["word"] == row["num_finished"] or row["layer"] == 6
        if protocol is not PEM:
            counted = ranges[["kept_real", "kept_noise", "dropped_real", "dropped_noise"]]
            # A validation round asks about words once more, so does a layer that carries them.
            assert counted.to_numpy().sum() <= row["num_candidates"]
            assert here["stands_for"].sum() == pytest.approx(counted.to_numpy().sum())
        assert (here["threshold"] == row["threshold"]).all()
    found = record.candidates.query("fate == 'word'")["prefix"]
    assert set(result.discoveries["word"]) <= set(found)


def test_true_clients_are_those_that_hold_the_prefix(of_ldp):
    _, record = of_ldp
    first = record.candidates.query("`pass` == 1")
    for row in first.sample(60, random_state=0).to_dict("records"):
        assert row["true_clients"] == holders(row["prefix"], is_word=row["is_word"]), row
    # The second pass's clients leave out what the first one found.
    second = record.candidates.query("`pass` == 2")
    ahead = [
        holders(p, is_word=w) for p, w in zip(second["prefix"], second["is_word"], strict=True)
    ]
    assert (second["true_clients"] <= ahead).all()
    assert (second["true_clients"] < ahead).any()


def test_what_votes_say_is_what_the_discoveries_say(of_ldp):
    result, record = of_ldp
    words = record.candidates.query("fate == 'word'").set_index(["pass", "prefix"])
    for row in result.discoveries.to_dict("records"):
        own = words.loc[(row["pass"], row["word"])]
        assert own["z"] == pytest.approx(row["z"], rel=1e-5)
        assert own["layer"] == row["layer"]


def test_missed_words_lead_to_the_round_that_dropped_them(of_ldp):
    result, record = of_ldp
    assert not set(record.missed["word"]) & set(result.discoveries["word"])
    lost = record.missed.query("why == 'dropped' and layer > 0")
    assert len(lost) > 5
    for row in lost.to_dict("records"):
        text = (row["word"] + "$")[: row["prefix_length"]]
        is_word = text.endswith("$")
        own = record.candidates[
            (record.candidates["pass"] == row["pass"])
            & (record.candidates["layer"] == row["layer"])
            & (record.candidates["prefix"] == text.rstrip("$"))
            & (record.candidates["is_word"] == is_word)
        ]
        assert len(own) == 1, row
        assert own["fate"].item() == "dropped"
        assert own["votes"].item() == row["votes"]
    longer = record.missed.query("why == 'longer than the depth'")
    assert (longer["word"].str.len() > LDP.depth).all()


def test_the_posterior_says_what_a_layer_kept(tmp_path):
    # So few are kept that the posterior of all others is not worth its time.
    _, record = recorded(replace(ADAPTIVE, eta_max=15), tmp_path)
    layers = record.candidates.query(f"layer <= {ADAPTIVE.depth}")
    assert record.candidates.query(f"layer > {ADAPTIVE.depth}")["posterior"].isna().all()
    for layer, rows in layers.groupby("layer"):
        survived = rows["fate"] != "dropped"
        assert rows.loc[survived, "posterior"].between(0, 1).all()
        words = rows[rows["is_word"]]
        assert ((words["posterior"] > 0.002) == (words["fate"] == "word")).all(), layer
        prefixes = rows[~rows["is_word"]]
        if layer < ADAPTIVE.depth:
            kept = prefixes["fate"] == "kept"
            assert kept.any()
            dropped = prefixes.loc[~kept, "posterior"]
            assert prefixes.loc[kept, "posterior"].min() >= dropped.max()
    prefixes = layers.query(f"not is_word and layer < {ADAPTIVE.depth}")
    assert prefixes["posterior"].isna().any()
    lost = record.missed.query(f"0 < layer <= {ADAPTIVE.depth}")
    assert lost["posterior"].notna().any()
    for row in lost.to_dict("records"):
        text = (row["word"] + "$")[: row["prefix_length"]]
        own = layers[
            (layers["layer"] == row["layer"])
            & (layers["prefix"] == text.rstrip("$"))
            & (layers["is_word"] == text.endswith("$"))
        ]
        np.testing.assert_array_equal(own["posterior"].to_numpy(), np.float32(row["posterior"]))


def test_protocols_without_a_posterior_record_none(of_ldp):
    _, record = of_ldp
    assert record.candidates["posterior"].isna().all()
    assert record.missed["posterior"].isna().all()


def test_a_sample_stands_for_what_it_leaves_out(of_ldp, tmp_path, monkeypatch):
    _, whole = of_ldp
    for name in ("NEAREST", "SAMPLED", "MISSED"):
        monkeypatch.setattr(recording, name, 7)
    _, record = recorded(LDP, tmp_path)
    pd.testing.assert_frame_equal(record.votes, whole.votes)
    assert len(record.candidates) < len(whole.candidates)
    by_round = ["pass", "layer"]
    expected = whole.candidates.groupby(by_round)["stands_for"].sum()
    stands = record.candidates.groupby(by_round)["stands_for"].sum()
    np.testing.assert_allclose(stands, expected)
    kept = "fate != 'dropped'"
    assert len(record.candidates.query(kept)) == len(whole.candidates.query(kept))


def test_other_queries_have_no_candidates(tmp_path):
    protocol = Sfp(alphabet=LETTERS, length=6, word_hashes=64, word_cells=64)
    result = simulate(protocol, POPULATION, seed=4, log_in=tmp_path)
    assert result.candidates is None


def test_nothing_is_recorded_without_a_directory():
    assert simulate(LDP, POPULATION, seed=4).candidates is None


@pytest.mark.parametrize("protocol", thinned([PEM, LDP, ADAPTIVE]), ids=lambda each: each.name)
def test_a_resumed_run_records_the_same(protocol, tmp_path):
    _, whole = recorded(protocol, tmp_path / "whole")
    stopped = tmp_path / "stopped"
    if protocol is not PEM:
        with pytest.raises(StoppedError):
            simulate(protocol, POPULATION, seed=4, log_in=stopped, callbacks=[Stopper()])
    _, again = recorded(protocol, stopped)
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(again, name), getattr(whole, name))
