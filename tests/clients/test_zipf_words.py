from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedhh.clients.drawn import DrawnClients
from fedhh.clients.synthetic import synthetic_population
from fedhh.clients.zipf_words import zipf_words
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import build_population
from fedhh.testing import ALPHA
from fedhh.validation import InputError
from tests.every import every

CLIENTS = 60_000


def counts_of(model, population) -> np.ndarray:
    """Contributions by rank."""
    held = dict(zip(population.lexicon.words, population.word_counts().typed.tolist(), strict=True))
    return np.array([held.get(word, 0) for word in model.word_list.words])


def p_value(counts: np.ndarray, exponent: float) -> float:
    distribution = np.arange(1, len(counts) + 1) ** -exponent
    return stats.chisquare(counts, distribution / distribution.sum() * counts.sum()).pvalue


def test_every_client_holds_one_word_by_zipfs_distribution():
    model = zipf_words(300, exponent=1.1)
    population = synthetic_population(model, CLIENTS, seed=5)
    assert population.word_counts().typed.sum() == population.word_counts().holders.sum() == CLIENTS
    counts = counts_of(model, population)
    assert p_value(counts, 1.1) > ALPHA
    assert p_value(counts, 1.05) < ALPHA
    assert p_value(counts, 1.15) < ALPHA


def test_words_are_distinct_of_their_length_and_the_same_for_every_seed():
    words = zipf_words(5_000, word_length=6).word_list.words
    assert len(set(words)) == 5_000
    assert {len(word) for word in words} == {6}
    letters = np.array([list(word) for word in words])
    # No position prefers a letter.
    for position in range(6):
        _, counts = np.unique(letters[:, position], return_counts=True)
        assert len(counts) == 26
        assert stats.chisquare(counts).pvalue > ALPHA
    assert len(set(zipf_words(338, word_length=2).word_list.words)) == 338


def test_a_virtual_population_holds_the_same_words():
    model = zipf_words(200)
    stored = synthetic_population(model, 3_000, seed=2)
    virtual = DrawnClients(model, 3_000, seed=2)
    assert counts_of(model, stored).tolist() == counts_of(model, virtual).tolist()


def population(**changes):
    table = {"population": {"source": "zipf", "clients": 500, "known": "none", **changes}}
    return build_population(parse_config(table, "x").population, seed=0)


def test_a_configuration_can_ask_for_it():
    model = {"vocabulary": 400, "exponent": 0.9, "word_length": 4}
    drawn = population(model=model)
    assert drawn.name.startswith("zipf(0.9) over 400 random words of 4 letters")
    assert population().lexicon.words[0] in zipf_words().word_list.words
    many = population(model={"log_words_mean": 2.0, "log_words_sd": 0.0})
    assert many.word_counts().typed.sum() == 500


@every(
    ("changes", "message"),
    [
        ({"known": "scowl70"}, 'expected "none"'),
        ({"model": {"tail_mass": 0.1}}, "population.model.tail_mass: expected source"),
        ({"model": {"base": "chat"}}, "population.model.base: expected source"),
        ({"model": {"vocabulary": 50}}, "100 <= vocabulary"),
        ({"model": {"word_length": 13}}, "word_length <= 12"),
        ({"model": {"vocabulary": 400, "word_length": 2}}, "raise word_length"),
        ({"source": "chat", "known": "scowl70", "model": {"exponent": 1.0}}, "'zipf'"),
    ],
)
def test_settings_that_mean_nothing_are_refused(changes, message):
    with pytest.raises(InputError) as caught:
        population(**changes)
    assert message in str(caught.value)
