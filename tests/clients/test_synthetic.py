import dataclasses

import numpy as np
import pytest

from fedhh.clients import synthetic
from fedhh.clients.clients import Removed
from fedhh.clients.known_words import load_known, remove_known
from fedhh.clients.named_words import rank_strings
from fedhh.clients.synthetic import RankDrawer, population_presets, synthetic_population
from fedhh.validation import InputError
from tests.every import every

PRESETS = ["chat", "keyboard60d", "post", "tweet"]


@pytest.fixture(scope="module")
def chat():
    return synthetic_population("chat", 5000, seed=3)


def rows_by_word(population):
    items = population.items
    owners = np.repeat(items.clients, np.diff(items.offsets))
    words = [population.lexicon.words[i] for i in items.word_ids.tolist()]
    return list(zip(owners.tolist(), words, items.counts.tolist(), strict=True))


@pytest.mark.parametrize("dense", [1, 2, 50])
def test_ranks_beyond_the_dense_part_keep_their_words(monkeypatch, dense):
    expected = rows_by_word(synthetic_population("chat", 200, seed=3))
    monkeypatch.setattr(synthetic, "_DENSE_RANKS", dense)
    assert rows_by_word(synthetic_population("chat", 200, seed=3)) == expected


def test_presets_are_the_four_fitted_ones():
    assert sorted(population_presets()) == PRESETS
    assert all(name == model.name for name, model in population_presets().items())


@pytest.mark.parametrize("preset", PRESETS)
def test_a_population_holds_what_its_drawer_draws(preset):
    population = synthetic_population(preset, 700, seed=8)
    rows = RankDrawer(model=population_presets()[preset], seed=8).draw(np.arange(700))
    items = population.items
    assert np.array_equal(items.offsets, rows.offsets)
    assert np.array_equal(items.counts, rows.counts)
    words = [population.lexicon.words[i] for i in items.word_ids.tolist()]
    assert words == rank_strings(rows.ranks)
    assert population.unit == population_presets()[preset].unit
    assert population.name == f"{preset}, 700 clients, seed 8"


def test_a_lexicon_has_every_held_word_once_and_no_other(chat):
    words = list(chat.lexicon.words)
    assert len(set(words)) == len(words)
    assert chat.word_counts().holders.min() >= 1


def test_ranks_far_beyond_the_named_ones_get_words_too():
    population = synthetic_population("keyboard60d", 3000, seed=0)
    coded = [word for word in population.lexicon.words if len(word) > 12 and word.endswith("q")]
    assert len(coded) > 1000


def test_the_first_clients_do_not_depend_on_how_many_there_are(chat):
    fewer = synthetic_population("chat", 40, seed=3)
    assert rows_by_word(fewer) == [row for row in rows_by_word(chat) if row[0] < 40]


def test_blocks_of_any_size_give_the_same_population(chat, monkeypatch):
    monkeypatch.setattr("fedhh.clients.synthetic.CLIENTS_AT_ONCE", 999)
    again = synthetic_population("chat", 5000, seed=3)
    assert rows_by_word(again) == rows_by_word(chat)


def test_seeds_give_different_populations(chat):
    assert rows_by_word(synthetic_population("chat", 5000, seed=4)) != rows_by_word(chat)


def test_known_words_find_nothing_to_remove(chat):
    left = remove_known(chat, load_known("scowl70"))
    assert left.removed == Removed(known="scowl70", tokens=0, words=0)


def test_clients_without_a_word_stay(chat):
    assert chat.num_clients == 5000
    assert 0.18 < (np.diff(chat.items.offsets) == 0).mean() < 0.27


@pytest.mark.parametrize("preset", PRESETS)
def test_the_head_and_the_tail_of_ranks_meet_without_a_jump(preset):
    model = population_presets()[preset]
    table = model.rank_table
    bits = table.bits
    whole = 2.0 ** (64 - bits)
    aliases = (table.entries & np.uint64(2**bits - 1)).astype(np.int64)
    held = (table.entries >> np.uint64(bits)) / whole
    np.add.at(held, aliases, 1 - held)
    # Columns without a rank are at the end and are never drawn.
    used = table.starts > np.arange(2**bits)
    assert abs(held[~used]).max(initial=0) < 1e-12
    held = held[used]
    starts = table.starts[: len(held)]
    ranks = np.arange(1, model.head_ranks + 1)
    distribution = (ranks + model.rank_shift) ** -model.rank_exponent
    np.testing.assert_allclose(held[ranks - 1] / held[0], distribution / distribution[0], rtol=1e-9)
    # A group is drawn as if all its ranks weighed what its first does, and then thinned.
    tail = np.arange(model.head_ranks, len(held))
    per_rank = held[tail] / table.widths[tail]
    expected = (starts[tail] / model.head_ranks) ** -model.tail_exponent
    np.testing.assert_allclose(per_rank / held[model.head_ranks - 1], expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("preset", "num_clients", "figures"),
    [
        # Published with the fit: one draw of the model at the size of the corpus.
        ("chat", 17_060, (7.3, 2, 28, 1727, 121, 4, 0.094, 0.037, 0.0069)),
        ("keyboard60d", 14_435, (62, 25, 229, 10_557, 662, 24, 0.169, 0.100, 0.029)),
    ],
)
def test_presets_look_like_their_published_figures(preset, num_clients, figures):
    rows = RankDrawer(model=population_presets()[preset], seed=0).draw(np.arange(num_clients))
    sizes = np.diff(rows.offsets)
    holders = np.sort(np.unique(rows.ranks, return_counts=True)[1])[::-1]
    measured = [sizes.mean(), np.median(sizes), np.percentile(sizes, 95)]
    measured += [(holders >= least).sum() for least in (10, 100, 1000)]
    measured += (holders[[0, 9, 99]] / num_clients).tolist()
    # Either is one draw with noise of up to 5 %, a share of rare words with up to 10 %; an
    # independent draw of words is off by a third and more.
    np.testing.assert_allclose(measured[:6], figures[:6], rtol=0.1, atol=2)
    np.testing.assert_allclose(measured[6:], figures[6:], rtol=0.15)


def test_an_unknown_preset_names_the_known_ones():
    message = "Unknown preset 'chatt'; did you mean 'chat'\\? Known: chat, keyboard60d, post, tweet"
    with pytest.raises(InputError, match=message):
        synthetic_population("chatt", 10, seed=0)


def test_no_clients_are_refused():
    with pytest.raises(InputError, match="Expected an integer num_clients >= 1, got num_clients=0"):
        synthetic_population("chat", 0, seed=0)


def test_a_population_beyond_memory_is_refused_before_it_is_drawn():
    with pytest.raises(InputError, match=r"fewer than 2\^31 new words, got about .* use fewer"):
        synthetic_population("keyboard60d", 10**8, seed=0)


@every(
    ("field", "value"),
    [
        ("min_words", 0),
        ("max_words", 0),
        ("oov_share", 0.0),
        ("oov_share", 1.5),
        ("oov_share", float("nan")),
        ("oov_share_log_sd", -0.1),
        ("log_words_mean", float("inf")),
        ("log_words_sd", float("nan")),
        ("copy_scale", 0.0),
        ("copy_exponent", -1.0),
        ("head_ranks", 3),
        ("rank_shift", -1.0),
        ("tail_exponent", 1.0),
        ("adoption", 0.0),
        ("adoption", 1.1),
    ],
)
def test_a_parameter_out_of_its_range_is_refused_by_name(field, value):
    with pytest.raises(InputError, match=f"{field}"):
        dataclasses.replace(population_presets()["chat"], **{field: value})
