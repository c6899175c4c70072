"""Counts that are kept are those of a pass, and are found only for the same clients and code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients import drawn as drawn_module
from fedhh.clients import kept_counts as kept_module
from fedhh.clients.drawn import DrawnClients
from fedhh.clients.population import WordCounts
from fedhh.clients.synthetic import WordList, population_presets

CLIENTS = 400
LISTED = WordList(
    words=tuple(f"w{i}" for i in range(200)), weights=tuple(1 / (i + 1) for i in range(200))
)
# A small lexicon, since a fingerprint is of all words.
MODEL = replace(population_presets()["chat"], adoption=1.0, word_list=LISTED)


@pytest.fixture(autouse=True)
def passes(tmp_path, monkeypatch) -> list[int]:
    """Keep all counts in a directory of the test, and return the sizes of passes, once made."""
    made: list[int] = []
    count_words = drawn_module.count_words

    def count(population, progress=None, **options) -> WordCounts:
        made.append(options["num_counted"])
        return count_words(population, progress, **options)

    # Compiled code is loaded before, since none is in this directory.
    DrawnClients(MODEL, 10, seed=0).word_counts()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(drawn_module, "KEPT_FROM", 300)
    monkeypatch.setattr(drawn_module, "count_words", count)
    return made


def counts_of(*, seed: int = 1, clients: int = CLIENTS, counted: int | None = None) -> WordCounts:
    return DrawnClients(MODEL, clients, seed=seed, counted_clients=counted).word_counts()


def kept_files(tmp_path):
    return sorted((tmp_path / "fedhh").glob("counts-*"))


def assert_same(one: WordCounts, other: WordCounts) -> None:
    assert np.array_equal(one.typed, other.typed)
    assert np.array_equal(one.holders, other.holders)
    assert one.typed.dtype == other.typed.dtype == one.holders.dtype == np.int64
    assert not one.typed.flags.writeable
    assert not one.holders.flags.writeable
    assert (one.num_counted, one.share_std_error) == (other.num_counted, other.share_std_error)


@pytest.mark.parametrize("counted", [None, 300])
def test_a_second_population_of_the_same_clients_makes_no_pass(passes, monkeypatch, counted):
    first, second = counts_of(counted=counted), counts_of(counted=counted)
    assert passes == [counted or CLIENTS]
    with monkeypatch.context() as patch:
        patch.setattr(drawn_module, "KEPT_FROM", CLIENTS + 1)
        counted_afresh = counts_of(counted=counted)
    assert len(passes) == 2
    assert counted_afresh.typed.sum() > 0
    for kept in (first, second):
        assert_same(kept, counted_afresh)


def test_other_clients_and_other_code_are_counted_themselves(passes, monkeypatch, tmp_path):
    counts_of()
    # These bounds differ for clients alone that no fingerprint is of.
    rarely_other = replace(MODEL, max_words=MODEL.max_words - 1)
    DrawnClients(rarely_other, CLIENTS, seed=1).word_counts()
    counts_of(seed=2)
    counts_of(clients=CLIENTS + 1)
    counts_of(counted=300)
    assert passes == [CLIENTS, CLIENTS, CLIENTS, CLIENTS + 1, 300]
    monkeypatch.setattr(kept_module, "digest_of_sources", lambda: b"other kernels")
    counts_of()
    assert len(passes) == len(kept_files(tmp_path)) == 6


def test_small_populations_are_not_kept(passes, tmp_path):
    counts_of(clients=299)
    counts_of(counted=299)
    assert passes == [299, 299]
    assert not kept_files(tmp_path)


@pytest.mark.parametrize("damaged", ["[[1,", "[[1],[1],400,0.0]", "7", "\x00"])
def test_damaged_counts_are_counted_again(passes, tmp_path, damaged):
    first = counts_of()
    (file,) = kept_files(tmp_path)
    file.write_text(damaged)
    assert_same(counts_of(), first)
    assert passes == [CLIENTS, CLIENTS]


def test_without_sources_nothing_is_kept(passes, monkeypatch, tmp_path):
    monkeypatch.setattr(kept_module, "_SOURCES", ("absent.py",))
    assert_same(counts_of(), counts_of())
    assert passes == [CLIENTS, CLIENTS]
    assert not kept_files(tmp_path)
