from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import wordfreq
from scipy import stats

from fedhh.clients.drawn import DrawnClients
from fedhh.clients.synthetic import (
    PopulationModel,
    RankDrawer,
    WordList,
    population_presets,
    synthetic_population,
)
from fedhh.clients.wordfreq_tail import wordfreq_tail
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import build_population
from fedhh.testing import ALPHA
from fedhh.validation import InputError
from tests.every import every


def listed(weights: np.ndarray, **changes: float) -> PopulationModel:
    words = tuple(f"w{i}" for i in range(len(weights)))
    word_list = WordList(words=words, weights=tuple(weights.tolist()))
    model = replace(population_presets()["chat"], word_list=word_list, adoption=1.0)
    return replace(model, **changes)


def drawn_counts(model: PopulationModel, num_clients: int = 20_000) -> np.ndarray:
    rows = RankDrawer(model=model, seed=3).draw(np.arange(num_clients))
    assert rows.ranks.max() <= len(model.word_list.words)
    return np.bincount(rows.ranks - 1, weights=rows.counts, minlength=len(model.word_list.words))


def p_value(counts: np.ndarray, weights: np.ndarray) -> float:
    expected = weights / weights.sum() * counts.sum()
    assert expected.min() >= 5
    return float(stats.chisquare(counts, expected).pvalue)


def test_listed_words_follow_their_weights_when_nobody_copies():
    weights = 1 / np.arange(1, 301)
    counts = drawn_counts(listed(weights, copy_exponent=0.0))
    assert p_value(counts, weights) > ALPHA


@pytest.mark.parametrize("exponent", [0.9, 1.1])
def test_other_weights_are_distinguished(exponent: float):
    weights = 1 / np.arange(1, 301)
    counts = drawn_counts(listed(weights, copy_exponent=0.0))
    assert p_value(counts, weights**exponent) < ALPHA


@pytest.mark.slow(
    "tests/clients/test_drawn.py::test_a_run_gives_the_same_bits_as_on_the_stored_population"
)
def test_a_virtual_population_of_listed_words_holds_what_a_stored_one_holds():
    model = wordfreq_tail(20_000)
    stored = synthetic_population(model, 300, seed=4)
    virtual = DrawnClients(model, 300, seed=4)
    one, other = stored.block(np.arange(300)), virtual.block(np.arange(300))
    names = [stored.lexicon.words[i] for i in one.word_ids.tolist()]
    assert names == [virtual.lexicon.words[i] for i in other.word_ids.tolist()]
    assert one.counts.tolist() == other.counts.tolist()
    assert virtual.lexicon.num_stubs == 0
    assert virtual.word_counts().typed.sum() == stored.word_counts().typed.sum()


def test_new_words_are_the_rarest_that_hold_the_mass():
    model = wordfreq_tail(20_000, tail_mass=0.1)
    frequencies = wordfreq.get_frequency_dict("en", wordlist="large")
    every = sorted((f for w, f in frequencies.items() if not _zeros(w)), reverse=True)[:20_000]
    words, weights = model.word_list.words, model.word_list.weights
    assert [frequencies[word] for word in words] == list(weights) == every[-len(words) :]
    share = sum(weights) / sum(every)
    assert 0.1 - weights[0] / sum(every) < share <= 0.1
    assert model.oov_share == 0.1


def _zeros(word: str) -> bool:
    return any(a.isdigit() and b.isdigit() for a, b in pairwise(word))


@every(
    ("section", "message"),
    [
        ({"source": "wordfreq-tail", "clients": 9}, 'expected "none", since all words'),
        ({"source": "wordfreq-tail", "known": "none"}, "population.clients is missing"),
        (
            {"source": "wordfreq-tail", "known": "none", "clients": 9,
             "model": {"vocabulary": 400_000}},
            "Expected vocabulary <= 3",
        ),
        (
            {"source": "wordfreq-tail", "known": "none", "clients": 9, "model": {"vocabulary": 9}},
            "vocabulary >= 10000, got vocabulary=9",
        ),
        (
            {"source": "chat", "clients": 9, "model": {"vocabulary": 20_000}},
            "population.model.vocabulary: expected source = 'wordfreq-tail' or 'zipf', got",
        ),
        (
            {"source": "chat", "clients": 9, "model": {"adoption": 2.0}},
            "Expected 0 < adoption <= 1, got adoption=2.0",
        ),
        ({"source": "x.csv", "model": {"adoption": 0.5}}, "expected a synthetic source"),
        (
            {"source": "wordfreq-tail", "known": "none", "clients": 9, "model": {"adoption": 1e-4}},
            "with 47141 listed words",
        ),
    ],
)  # fmt: skip
def test_wrong_models_are_refused_in_one_line(section: dict[str, object], message: str):
    config = parse_config({"population": section}, "test").population
    with pytest.raises(InputError) as caught:
        build_population(config, seed=0)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_model_changes_make_another_population_and_are_named():
    section = {"source": "chat", "clients": 500, "model": {"copy_exponent": 0.0}}
    population = build_population(parse_config({"population": section}, "t").population, seed=1)
    plain = synthetic_population("chat", 500, seed=1)
    assert population.name == "chat, copy_exponent 0, 500 clients, seed 1"
    assert population.word_counts().typed.sum() == plain.word_counts().typed.sum()
    assert len(population.items.word_ids) > len(plain.items.word_ids)
