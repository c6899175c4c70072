from __future__ import annotations

import pickle

import numpy as np
import pytest

from fedhh.clients.populations import virtual
from fedhh.clients.populations.named_words import NAMED_RANKS
from fedhh.clients.populations.synthetic import synthetic_population
from fedhh.clients.populations.virtual import LEXICON_RANKS, VirtualPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.oracles import OracleSpec
from fedhh.questions.coded import CodedMatcher
from fedhh.questions.matching import WordMatcher
from fedhh.server.blender import Blender
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.pem import Pem
from fedhh.server.rappor_unknown import RapporUnknown
from fedhh.server.sfp import Sfp
from fedhh.server.treehist import TreeHist
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.coded_words import coded_numbers, coded_words
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import PrefixTrie
from tests import questions_of_each_kind as ask
from tests.asked_clients import answered
from tests.every import every
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("virtual_lexicon")

CLIENTS = 6_000


@pytest.fixture(scope="module")
def drawn():
    return VirtualPopulation("keyboard60d", CLIENTS, seed=2)


@pytest.fixture(scope="module")
def stored():
    return synthetic_population("keyboard60d", CLIENTS, seed=2)


def word_rows(population, clients):
    block = population.block(np.asarray(clients))
    words = [
        population.lexicon.words[i]
        if i < len(population.lexicon)
        else coded_words(block.coded[i - len(population.lexicon) :][:1])[0]
        for i in block.word_ids.tolist()
    ]
    rows = list(zip(words, block.counts.tolist(), strict=True))
    return [rows[a:b] for a, b in zip(block.offsets, block.offsets[1:], strict=False)]


def make_question(*, levels, excluded=(), finished=(), symbols="lower", **changes):
    alphabet = Alphabet.named(symbols)
    trie = PrefixTrie(alphabet_size=alphabet.size, levels=tuple(levels))
    width = 20
    return ask.votes(
        alphabet=alphabet,
        trie=trie,
        finished=alphabet.encode(list(finished), width=width),
        excluded=alphabet.encode(list(excluded), width=width),
        oracle=OracleSpec(name="ss", epsilon=6.0),
        **changes,
    )


def trie_levels(words, length, alphabet):
    """The trie of all prefixes of some words, up to a length."""
    prefixes = [sorted({word[: n + 1] for word in words if len(word) > n}) for n in range(length)]
    levels = []
    for n, here in enumerate(prefixes):
        above = {p: i for i, p in enumerate(prefixes[n - 1])} if n else {"": 0}
        codes = alphabet.encode([p[-1] for p in here], width=1)[:, 0].astype(np.int64)
        keys = np.array([above[p[:-1]] * alphabet.size for p in here]) + codes
        # Level indices must follow the levels' order, which is that of codes.
        order = np.argsort(keys)
        prefixes[n] = [here[i] for i in order.tolist()]
        levels.append(keys[order])
    return levels


@pytest.mark.slow("::test_a_run_gives_the_same_bits_as_on_the_stored_population")
def test_blocks_hold_what_the_stored_population_holds(drawn, stored):
    clients = np.r_[0:300, 5_000, 17, CLIENTS - 1]
    assert word_rows(drawn, clients) == word_rows(stored, clients)
    assert sum(len(drawn.block(clients[i : i + 1]).coded) for i in range(300)) > 1_000


def test_a_block_drawn_twice_is_the_same_clients(drawn):
    first, second = (drawn.block(np.arange(100, 150)) for _ in range(2))
    for name in ("offsets", "word_ids", "counts", "coded"):
        assert np.array_equal(getattr(first, name), getattr(second, name))


def messages_of(answer):
    messages = answer.aggregate.messages
    return [] if messages is None else messages


def assert_same_rounds(protocol, *populations):
    """Play a protocol on two populations, compare all that the server sees; return its rounds."""

    def play(population):
        worker = ClientWorker(population, seed=9)
        state = protocol.initialize()
        while (question := protocol.next_question(state)) is not None:
            answer = answered(worker, question)
            state = protocol.finish_round(state, question, answer.aggregate)
            yield answer, protocol.discoveries(state)

    rounds = 0
    for (answer, found), (other, also) in zip(*map(play, populations), strict=True):
        assert np.array_equal(answer.aggregate.tally, other.aggregate.tally)
        assert np.array_equal(messages_of(answer), messages_of(other))
        assert answer.aggregate.num_reports == other.aggregate.num_reports > 0
        assert answer.diagnostics == other.diagnostics
        assert found.words == also.words
        assert np.array_equal(found.estimate, also.estimate)
        rounds += 1
    return rounds


@pytest.mark.parametrize("sampler", thinned(["random", "greedy"]))
def test_a_run_gives_the_same_bits_as_on_the_stored_population(drawn, stored, sampler):
    protocol = LdpTrieHH(
        clients_per_layer=400,
        depth=7,
        passes=2,
        eta_max=3_000,
        max_items=8,
        sampler=sampler,
        local_epsilon=8.0,
        skip_free_layers=True,
    )

    assert assert_same_rounds(protocol, drawn, stored) == protocol.rounds_per_pass * 2


SKETCHES = {"word_hashes": 64, "word_cells": 256, "fragment_hashes": 64, "fragment_cells": 64}
# Clients never hear which prefixes are kept: keeping few only spares the server's scoring.
GROUPS = {"clients_per_layer": 200, "length": 10, "max_items": 20, "keep": 20}


@pytest.mark.slow(
    "tests/questions/answers/test_blind.py::test_coded_words_of_a_block_are_reported_as_words_of_the_lexicon_are"
)
@pytest.mark.parametrize(
    "protocol",
    thinned(
        [
            Sfp(clients_per_layer=1_000, length=8, max_items=20, **SKETCHES),
            Sfp(clients_per_layer=1_000, length=8, fragment_oracle="ss", pad=False, **SKETCHES),
            Pem(**{**GROUPS, "length": 6}),
            Pem(**GROUPS, sampler="greedy", oracle="hcms", num_hashes=64),
            TreeHist(clients_per_layer=1_000, num_hashes=16, num_cells=64),
            RapporUnknown(clients_per_layer=1_000, length=10, bloom_cohorts=4, em_iterations=1),
            Blender(clients_per_layer=3_000, opt_in_share=0.4, opt_in_epsilon=90.0, head_items=20),
        ]
    ),
    ids=[
        "sfp",
        "sfp-subset-selection-unpadded",
        "pem",
        "pem-sketch-greedy",
        "treehist",
        "rappor-unknown",
        "blender",
    ],
)
def test_protocols_that_broadcast_no_candidates_give_the_same_bits_as_on_the_stored_population(
    drawn, stored, protocol
):
    # Coded words have nine symbols and more: SFP truncates them, one PEM takes those of up to ten.
    assert assert_same_rounds(protocol, drawn, stored) == len(protocol.plan.layers)


@every("length", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 14])
@every("symbols", ["lower", "printable", "abcdeiouzq"])
def test_coded_words_have_the_values_that_their_strings_have(length, symbols):
    rng = np.random.default_rng(length)
    numbers = np.r_[
        0:300, 999_990:1_000_010, rng.integers(0, 2**53, 300), rng.integers(0, 10**8, 300)
    ]
    words = coded_words(numbers)
    alphabet = Alphabet.named(symbols)
    spelled = [word for word in words[::2] if set(word) <= set(alphabet.symbols)]
    levels = trie_levels([*spelled, "bab", "abcdeedcbaabcde"], length, alphabet)
    question = make_question(levels=levels, symbols=symbols)
    expected = WordMatcher(Lexicon(words=words)).prefix_values(question.names, question.alphabet)
    assert np.array_equal(CodedMatcher(question.names, question.alphabet).values(numbers), expected)
    assert (expected >= 0).any() == any(len(word) >= length for word in spelled)
    assert (expected < 0).any() or length == 1


def test_coded_words_may_be_excluded_or_finished():
    numbers = np.arange(50)
    words = coded_words(numbers)
    levels = trie_levels(words, 3, Alphabet.named("lower"))
    question = make_question(
        levels=levels, excluded=[words[7], "lol", words[20]], finished=["ab", words[9], words[7]]
    )
    expected = WordMatcher(Lexicon(words=words)).prefix_values(question.names, question.alphabet)
    values = CodedMatcher(question.names, question.alphabet).values(numbers)
    assert np.array_equal(values, expected)
    assert values[7] == values[20] == -1
    assert values[9] == question.names.num_extensions + 1


def test_coded_numbers_invert_coded_words():
    numbers = np.r_[
        0:200, 999_999:1_000_003, 10**8, np.random.default_rng(0).integers(0, 2**53, 99)
    ]
    assert np.array_equal(coded_numbers(coded_words(numbers)), numbers)
    assert coded_numbers(["", "q", "babaq", "bababa", "bababaqq", "ababaq"]).tolist() == [-1] * 6
    assert coded_numbers(["zu" * 9 + "q"]).tolist() == [-1]


@pytest.mark.slow("::test_a_run_gives_the_same_bits_as_on_the_stored_population")
def test_counts_are_those_of_the_stored_population(drawn, stored):
    ids = drawn.lexicon.ids(stored.lexicon.words)
    inside = ids >= 0
    counts, clients = np.zeros(LEXICON_RANKS, np.int64), np.zeros(LEXICON_RANKS, np.int64)
    counts[ids[inside]] = stored.word_counts[inside]
    clients[ids[inside]] = stored.word_clients[inside]
    assert np.array_equal(drawn.word_counts, counts)
    assert np.array_equal(drawn.word_clients, clients)
    assert drawn.rare_words.contributions == stored.word_counts[~inside].sum() > 0
    # All clients are in the sample.
    assert drawn.rare_words.sample_counts.sum() == drawn.rare_words.contributions
    assert len(drawn.rare_words.sample) == stored.word_clients[~inside].sum()
    assert drawn.share_std_error == 0
    assert drawn.counted_clients == CLIENTS


def test_counts_do_not_depend_on_chunks_or_cores(drawn, monkeypatch):
    monkeypatch.setattr(virtual, "_CLIENTS_AT_ONCE", 999)
    monkeypatch.setattr(virtual, "num_cores", lambda: 3)
    again = VirtualPopulation("keyboard60d", CLIENTS, seed=2).census
    assert np.array_equal(again.words, drawn.census.words)
    assert (again.beyond, again.squares) == (drawn.census.beyond, drawn.census.squares)


def test_large_populations_are_counted_on_some_clients_within_the_stated_error(drawn):
    counted = 1_500
    some = VirtualPopulation("keyboard60d", CLIENTS, seed=2, counted_clients=counted)
    assert some.counted_clients == counted
    error = some.share_std_error
    assert 0 < error < 0.1
    scale = CLIENTS / counted
    mass, all_mass = (p.word_counts.sum() + p.rare_words.contributions for p in (some, drawn))
    for first, last in [(0, 10), (0, 1_000), (1_000, 100_000), (0, LEXICON_RANKS)]:
        share = some.word_counts[first:last].sum() / mass
        truth = drawn.word_counts[first:last].sum() / all_mass
        assert abs(share - truth) < 6 * error
    assert some.word_clients.max() <= CLIENTS
    assert np.array_equal(
        some.word_clients, np.rint(some.census.words[:, 1] * scale).astype(np.int64)
    )


@pytest.mark.slow("::test_memory_does_not_depend_on_the_number_of_clients")
def test_a_copy_for_a_worker_draws_the_same_and_leaves_the_counts_behind(drawn):
    drawn.census  # noqa: B018 (counted before it is copied)
    uncounted = VirtualPopulation("keyboard60d", CLIENTS, seed=2)
    assert uncounted.lexicon is drawn.lexicon  # of which a copy has the words
    sent = pickle.dumps(drawn)
    assert len(sent) < len(pickle.dumps(uncounted)) + drawn.word_counts.nbytes / 100
    copied = pickle.loads(sent)
    assert word_rows(copied, range(20)) == word_rows(drawn, range(20))


def test_memory_does_not_depend_on_the_number_of_clients():
    huge = VirtualPopulation("keyboard60d", 10**12, seed=2)
    last = huge.block(np.arange(10**12 - 5, 10**12))
    assert len(last.clients) == 5
    assert huge.num_clients == 10**12


def test_impossible_sizes_are_refused():
    with pytest.raises(InputError, match=r"num_clients <= 2\^40, got num_clients=2199023255552"):
        VirtualPopulation("chat", 2**41, seed=0)
    with pytest.raises(InputError, match="num_clients >= 1"):
        VirtualPopulation("chat", 0, seed=0)
    with pytest.raises(InputError, match="Unknown preset 'chatt'"):
        VirtualPopulation("chatt", 5, seed=0)


def test_words_of_the_lexicon_are_those_of_their_ranks(drawn):
    assert len(drawn.lexicon) == LEXICON_RANKS
    assert drawn.lexicon.words[NAMED_RANKS] == "bababaq"
    assert drawn.lexicon.words[-1] == "zuzuzuq"


def test_populations_are_counted_whole_up_to_a_size_and_on_some_clients_beyond(monkeypatch):
    monkeypatch.setattr(virtual, "COUNTED_WHOLE", 1_000)
    monkeypatch.setattr(virtual, "COUNTED_CLIENTS", 300)
    assert VirtualPopulation("chat", 1_000, seed=0).counted_clients == 1_000
    assert VirtualPopulation("chat", 1_001, seed=0).counted_clients == 300
    assert VirtualPopulation("chat", 1_001, seed=0, counted_clients=7).counted_clients == 7


def test_counts_get_more_bits_before_they_overflow():
    population = VirtualPopulation("chat", 300, seed=0)
    counter = population.counter()
    counter._words[:, 0] = counter._contributions = 2**31 - 1
    before = counter.counted
    rows = population.block(np.arange(300))
    counter.add(rows)
    added = counter.counted.words[:, 0] - (2**31 - 1)
    listed = rows.word_ids < len(added)
    expected = np.bincount(rows.word_ids[listed], weights=rows.counts[listed], minlength=len(added))
    assert np.array_equal(added, expected)
    merged = before.merge(before).words
    assert (merged[:, 0] == 2**32 - 2).all()
