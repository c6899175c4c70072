from __future__ import annotations

import pickle

import numpy as np
import pytest

from fedhh.clients import drawn as drawn_module
from fedhh.clients import population
from fedhh.clients.drawn import LEXICON_RANKS, DrawnClients
from fedhh.clients.named_words import NAMED_RANKS
from fedhh.clients.synthetic import synthetic_population
from fedhh.clients.worker import ClientWorker
from fedhh.kernels.ranks import STUBS, list_words
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.validation import InputError
from fedhh.words.alphabet import FOREIGN, Alphabet
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import answered
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("virtual_lexicon")

CLIENTS = 6_000


@pytest.fixture(scope="module")
def drawn():
    return DrawnClients("keyboard60d", CLIENTS, seed=2)


@pytest.fixture(scope="module")
def stored():
    return synthetic_population("keyboard60d", CLIENTS, seed=2)


def word_rows(population, clients):
    block = population.block(np.asarray(clients))
    words = [population.lexicon.words[i] for i in block.word_ids.tolist()]
    rows = list(zip(words, block.counts.tolist(), strict=True))
    return [rows[a:b] for a, b in zip(block.offsets, block.offsets[1:], strict=False)]


def with_stubs(rows, lexicon):
    """Return what clients hold, each word that a lexicon lacks as its first symbols and a NUL."""
    stubbed = []
    for held in rows:
        sums = {}
        for word, count in held:
            listed = word if word in lexicon else word[:4] + "\0"
            sums[listed] = sums.get(listed, 0) + count
        stubbed.append(list(sums.items()))
    return stubbed


@pytest.mark.slow("::test_a_run_gives_the_same_bits_as_on_the_stored_population")
def test_blocks_hold_what_the_stored_population_holds(drawn, stored):
    clients = np.r_[0:300, 5_000, 17, CLIENTS - 1]
    held = word_rows(drawn, clients)
    assert held == with_stubs(word_rows(stored, clients), set(drawn.lexicon.words))
    assert sum(word.endswith("\0") for rows in held for word, _ in rows) > 1_000


@pytest.mark.parametrize("in_place", [False, True])
def test_two_words_of_one_stub_are_one_word_of_a_client(in_place):
    offsets = np.array([0, 5, 6, 8])
    # Ranks from 11 are of stubs: (rank - 1) % STUBS, after ten listed words.
    ranks = np.array([20, 1, 3 * STUBS + 1, STUBS + 1, 4 * STUBS + 1, 2 * STUBS + 1, 2, STUBS + 1])
    counts = np.arange(1, 9, dtype=np.int32)
    ends = np.full(4, -1)
    words = ranks.view(np.int32) if in_place else np.empty(8, dtype=np.int32)
    assert list_words(offsets, ranks, counts, 10, 0, ends, words) == 6
    assert ends.tolist() == [0, 3, 4, 6]
    assert words[:6].tolist() == [29, 0, 10, 10, 1, 10]
    assert counts[:6].tolist() == [1, 2, 3 + 4 + 5, 6, 7, 8]


def test_a_block_drawn_twice_is_the_same_clients(drawn):
    first, second = (drawn.block(np.arange(100, 150)) for _ in range(2))
    for name in ("offsets", "word_ids", "counts"):
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
        depth=3,  # Beyond four symbols, the end among them, stubs have no vote.
        passes=2,
        eta_max=3_000,
        max_items=8,
        sampler=sampler,
        local_epsilon=8.0,
        skip_free_layers=True,
    )

    assert assert_same_rounds(protocol, drawn, stored) == protocol.rounds_per_pass * 2


@pytest.mark.slow("::test_a_run_gives_the_same_bits_as_on_the_stored_population")
def test_counts_are_those_of_the_stored_population(drawn, stored):
    ids = drawn.lexicon.ids(stored.lexicon.words)
    inside = ids >= 0
    counts, clients = (np.zeros(len(drawn.lexicon), np.int64) for _ in range(2))
    counts[ids[inside]] = stored.word_counts().typed[inside]
    clients[ids[inside]] = stored.word_counts().holders[inside]
    words = [stored.lexicon.words[i] for i in np.flatnonzero(~inside).tolist()]
    stubs = drawn.lexicon.ids([word[:4] + "\0" for word in words])
    np.add.at(counts, stubs, stored.word_counts().typed[~inside])
    assert np.array_equal(drawn.word_counts().typed, counts)
    assert np.array_equal(drawn.word_counts().holders, clients)
    assert counts[LEXICON_RANKS:].sum() > 0
    assert drawn.word_counts().share_std_error == 0
    assert drawn.word_counts().num_counted == CLIENTS


def test_counts_do_not_depend_on_chunks_or_cores(drawn, monkeypatch):
    monkeypatch.setattr(population, "_COUNTED_AT_ONCE", 999)
    monkeypatch.setattr(drawn_module, "num_cores", lambda: 3)
    again = DrawnClients("keyboard60d", CLIENTS, seed=2)
    assert np.array_equal(again.word_counts().typed, drawn.word_counts().typed)
    assert np.array_equal(again.word_counts().holders, drawn.word_counts().holders)
    some = [DrawnClients("keyboard60d", CLIENTS, seed=2, counted_clients=1_500)]
    monkeypatch.setattr(population, "_COUNTED_AT_ONCE", 100)
    some.append(DrawnClients("keyboard60d", CLIENTS, seed=2, counted_clients=1_500))
    first, second = (each.word_counts().share_std_error for each in some)
    assert first == second


def test_large_populations_are_counted_on_some_clients_within_the_stated_error(drawn):
    counted = 1_500
    some = DrawnClients("keyboard60d", CLIENTS, seed=2, counted_clients=counted)
    assert some.word_counts().num_counted == counted
    error = some.word_counts().share_std_error
    assert 0 < error < 0.1
    scale = CLIENTS / counted
    mass, all_mass = (p.word_counts().typed.sum() for p in (some, drawn))
    for first, last in [(0, 10), (0, 1_000), (1_000, 100_000), (0, LEXICON_RANKS)]:
        share = some.word_counts().typed[first:last].sum() / mass
        truth = drawn.word_counts().typed[first:last].sum() / all_mass
        assert abs(share - truth) < 6 * error
    assert some.word_counts().holders.max() <= CLIENTS
    few = DrawnClients("keyboard60d", counted, seed=2)
    assert np.array_equal(
        some.word_counts().holders, np.rint(few.word_counts().holders * scale).astype(np.int64)
    )


@pytest.mark.slow("::test_memory_does_not_depend_on_the_number_of_clients")
def test_a_copy_for_a_worker_draws_the_same_and_leaves_the_counts_behind(drawn):
    drawn.word_counts()
    uncounted = DrawnClients("keyboard60d", CLIENTS, seed=2)
    assert uncounted.lexicon is drawn.lexicon  # of which a copy has the words
    sent = pickle.dumps(drawn)
    assert len(sent) < len(pickle.dumps(uncounted)) + drawn.word_counts().typed.nbytes / 100
    copied = pickle.loads(sent)
    assert word_rows(copied, range(20)) == word_rows(drawn, range(20))


def test_memory_does_not_depend_on_the_number_of_clients():
    huge = DrawnClients("keyboard60d", 10**12, seed=2)
    last = huge.block(np.arange(10**12 - 5, 10**12))
    assert len(last.clients) == 5
    assert huge.num_clients == 10**12


def test_impossible_sizes_are_refused():
    for number in (0, 2**40 + 1):
        bounds = f"1 <= num_clients <= {2**40}, got num_clients={number}"
        with pytest.raises(InputError, match=bounds):
            DrawnClients("chat", number, seed=0)
    with pytest.raises(InputError, match="Unknown preset 'chatt'"):
        DrawnClients("chatt", 5, seed=0)


def test_words_of_the_lexicon_are_those_of_their_ranks(drawn):
    assert len(drawn.lexicon) == LEXICON_RANKS + STUBS
    assert drawn.lexicon.words[NAMED_RANKS] == "bababaq"
    assert drawn.lexicon.words[LEXICON_RANKS - 1] == "zuzuzuq"
    assert drawn.lexicon.words[LEXICON_RANKS:][:2] == ["baba\0", "beba\0"]
    assert drawn.lexicon.words[-1] == "zuzu\0"
    assert len(set(drawn.lexicon.words[LEXICON_RANKS:])) == STUBS


@pytest.mark.parametrize("symbols", ["lower", "printable"])
def test_no_alphabet_spells_a_stub_and_its_beginning_votes(drawn, symbols):
    alphabet = Alphabet.named(symbols)
    stubs = Lexicon(words=drawn.lexicon.words[-3:])
    assert not stubs.reachable(alphabet, 24).any()
    codes = stubs.encoded(alphabet, 6)
    assert (codes[:, 4] == FOREIGN).all()
    assert (codes[:, :4] != FOREIGN).all()


def test_populations_are_counted_whole_up_to_a_size_and_on_some_clients_beyond(monkeypatch):
    monkeypatch.setattr(drawn_module, "COUNTED_WHOLE", 1_000)
    monkeypatch.setattr(drawn_module, "COUNTED_CLIENTS", 300)
    assert DrawnClients("chat", 1_000, seed=0).word_counts().num_counted == 1_000
    assert DrawnClients("chat", 1_001, seed=0).word_counts().num_counted == 300
    few = DrawnClients("chat", 1_001, seed=0, counted_clients=7)
    assert few.word_counts().num_counted == 7
