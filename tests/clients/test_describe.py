import numpy as np
import pytest

from fedhh.clients.describe import describe
from fedhh.clients.known_words import KnownWords, load_known
from fedhh.clients.population import StoredPopulation
from fedhh.clients.synthetic import synthetic_population
from fedhh.lexicon import Lexicon


@pytest.fixture
def population():
    """Twelve clients: all hold lol and the, the first ten also im; the last holds nothing."""
    rows = [(i, word) for i in range(11) for word in (0, 1, *((2,) if i < 10 else ()))]
    clients, words = map(np.array, zip(*rows, strict=True))
    return StoredPopulation.from_rows(
        name="twelve",
        lexicon=Lexicon(words=["lol", "the", "im"]),
        clients=clients,
        word_ids=words,
        counts=np.where(words == 1, 7, 1),
        num_clients=12,
        unit="nick",
    )


def test_figures_are_those_of_a_small_population_counted_by_hand(population):
    summary = describe(population, KnownWords(name="mine", words=frozenset({"the"})))
    assert (summary.name, summary.unit, summary.known) == ("twelve", "nick", "mine")
    assert (summary.clients, summary.empty_clients) == (12, 1)
    assert (summary.tokens, summary.words) == (98, 3)
    assert (summary.tokens_per_client.p50, summary.tokens_per_client.max) == (9, 9)
    assert (summary.words_per_client.p50, summary.words_per_client.max) == (3, 3)
    assert (summary.unknown_tokens, summary.unknown_words) == (21, 2)
    assert summary.unknown_token_share == pytest.approx(21 / 98)
    assert summary.unknown_words_held_by == {10: 2, 100: 0, 1000: 0}
    assert summary.unknown_words_per_client.max == 2
    assert summary.top_token_share == {10: 1.0, 100: 1.0, 1000: 1.0}


def test_shares_of_top_words_and_percentiles_agree_with_a_count_by_words():
    population = synthetic_population("chat", 3000, seed=2)
    summary = describe(population, load_known("none"))
    items = population.items
    sizes = np.diff(items.offsets)
    owners = np.repeat(np.arange(3000), sizes)
    tokens = np.bincount(owners, items.counts, minlength=3000)
    most = np.sort(np.bincount(items.word_ids, items.counts))[::-1]
    assert summary.top_token_share[10] == pytest.approx(most[:10].sum() / tokens.sum())
    assert summary.top_token_share[1000] == pytest.approx(most[:1000].sum() / tokens.sum())
    assert summary.tokens_per_client.p95 == np.percentile(tokens, 95)
    assert summary.words_per_client.p95 == np.percentile(sizes, 95)
    assert summary.unknown_words == summary.words
    assert summary.unknown_token_share == 1.0


def test_a_population_that_typed_nothing_has_figures_of_zero():
    population = StoredPopulation(
        name="silent",
        lexicon=Lexicon(words=[]),
        offsets=np.zeros(4, dtype=np.int64),
        word_ids=np.zeros(0, dtype=np.int32),
        counts=np.zeros(0, dtype=np.int32),
    )
    summary = describe(population, load_known("scowl70"))
    assert (summary.clients, summary.empty_clients, summary.tokens) == (3, 3, 0)
    assert summary.unknown_token_share == 0.0
    assert summary.top_token_share == {10: 0.0, 100: 0.0, 1000: 0.0}
