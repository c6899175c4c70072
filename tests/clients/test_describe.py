import numpy as np
import pytest

from fedhh.clients.clients import Clients, Table
from fedhh.clients.describe import describe, spelling_of
from fedhh.clients.known_words import KnownWords, load_known
from fedhh.clients.synthetic import synthetic_population
from fedhh.words.lexicon import Lexicon

SPELLED = {"alphabet": "lower", "depth": 15}


@pytest.fixture
def population():
    """Twelve clients: all hold lol and the, the first ten also im; the last holds nothing."""
    rows = [(i, word) for i in range(11) for word in (0, 1, *((2,) if i < 10 else ()))]
    clients, words = map(np.array, zip(*rows, strict=True))
    return Clients.from_rows(
        name="twelve",
        lexicon=Lexicon(words=["lol", "the", "im"]),
        clients=clients,
        word_ids=words,
        counts=np.where(words == 1, 7, 1),
        num_clients=12,
        unit="nick",
    )


def test_figures_are_those_of_a_small_population_counted_by_hand(population):
    summary = describe(population, KnownWords(name="mine", words=frozenset({"the"})), **SPELLED)
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
    summary = describe(population, load_known("none"), **SPELLED)
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
    population = Clients(
        Table(
            Lexicon(words=[]),
            np.zeros(4, dtype=np.int64),
            np.zeros(0, dtype=np.int32),
            np.zeros(0, dtype=np.int32),
        ),
        name="silent",
    )
    summary = describe(population, load_known("scowl70"), **SPELLED)
    assert (summary.clients, summary.empty_clients, summary.tokens) == (3, 3, 0)
    assert summary.unknown_token_share == 0.0
    assert summary.top_token_share == {10: 0.0, 100: 0.0, 1000: 0.0}
    assert summary.spelling.lost_token_share == 0.0


def test_unknown_words_that_cannot_be_spelled_are_counted_and_shown(population):
    summary = describe(
        population, KnownWords(name="mine", words=frozenset({"the"})), alphabet="mil", depth=2
    )
    spelling = summary.spelling
    assert (spelling.words, spelling.tokens) == (2, 21)
    assert (spelling.lost_words, spelling.lost_tokens) == (1, 11)
    assert spelling.lost_token_share == pytest.approx(11 / 21)
    assert spelling.examples == ("lol",)
    assert spelling.other_symbols == "o"


def test_lost_words_are_distinguished_by_what_they_lack_and_ordered_by_their_tokens():
    words = ["lol", "naïve", "пока", "looooong", "", "a\0"]
    spelling = spelling_of(words, np.array([5, 1, 9, 3, 2, 4]), alphabet="lower", depth=6)
    assert (spelling.words, spelling.lost_words) == (6, 5)
    assert (spelling.words_with_other_symbols, spelling.longer_words) == (3, 2)
    assert spelling.lost_tokens == 19
    assert spelling.examples == ("пока", "a\0", "looooong", "", "naïve")
    assert spelling.other_symbols == "акоп\0ï"


def test_the_first_clients_words_count_as_all_others_do():
    alone = Clients.from_rows(
        name="one", lexicon=Lexicon(words=["lol", "brb"]), clients=np.array([0, 0]),
        word_ids=np.array([0, 1]), num_clients=1,
    )  # fmt: skip
    summary = describe(alone, KnownWords(name="none", words=frozenset()), **SPELLED)
    assert summary.unknown_words_per_client.p50 == summary.unknown_words_per_client.max == 2
    assert summary.tokens_per_client.max == 2
