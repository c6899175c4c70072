from __future__ import annotations

import itertools
import pickle
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chi2

from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.kernels.sampling import choose_contributions
from fedhh.oracles import OracleSpec
from fedhh.questions.clients import Known
from fedhh.questions.cohort import Cohort
from fedhh.questions.matching import WordMatcher
from fedhh.random import Stream, generator, kernel_state
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation import roster
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from tests import questions_of_each_kind as ask
from tests.asked_clients import Recording, answered
from tests.reference import END, client_prefixes
from tests.zipf_words import final_state

ALPHA = 1e-9
SYMBOLS = "abcdef"


def reference_mix(word: int) -> int:
    """SplitMix64's finalizer, in Python's integers."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % 2**64
    return word ^ (word >> 31)


def with_bits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return values and which of them there are, as kernels take them."""
    known = Known(words=WordMatcher(Lexicon(words=[])), values=values)
    return values, known.live


def make_question(**changes: object):
    nothing = np.zeros((0, 8), dtype=np.uint16)
    values = {
        "finished": nothing,
        "excluded": nothing,
        "oracle": OracleSpec(name="ss", epsilon=6.0),
    }
    return ask.votes(**{"alphabet": Alphabet(symbols=SYMBOLS), **values, **changes})


def spelled_candidates(question) -> list[str]:
    codes = question.names.trie.spell(np.arange(question.names.num_extensions))
    texts = question.alphabet.decode(codes)
    return [t + END if len(t) < codes.shape[1] else t for t in texts]


def client_words(population: Clients, client: int) -> dict[str, int]:
    rows = population.block(np.array([client]))
    return {
        population.lexicon.words[w]: int(c)
        for w, c in zip(rows.word_ids.tolist(), rows.counts.tolist(), strict=True)
    }


@pytest.mark.parametrize("greedy", [False, True])
def test_contributions_are_distinct_candidates_of_the_clients_own_words(population, greedy):
    question = make_question()
    names = spelled_candidates(question)
    excluded = ["a", "b", population.lexicon.words[7]]
    question = make_question(excluded=question.alphabet.encode(excluded, width=8))
    values = WordMatcher(population.lexicon).prefix_values(question.names, question.alphabet)
    rows = population.block(np.arange(300))
    chosen, sizes = choose_contributions(
        rows.clients, rows.offsets, rows.word_ids, rows.counts, *with_bits(values),
        3, greedy,
        np.uint64(9), kernel_state(np.random.default_rng(0)),
    )  # fmt: skip
    for client in range(300):
        expected = client_prefixes(
            client_words(population, client), set(names), set(excluded), length=2
        )
        got = [names[v] for v in chosen[client, : sizes[client]]]
        assert (chosen[client, sizes[client] :] == -1).all()
        assert len(got) == len(set(got)) == min(3, len(expected))
        assert set(got) <= set(expected)
        if greedy and got:
            left = [count for prefix, count in expected.items() if prefix not in got]
            assert min(expected[prefix] for prefix in got) >= max(left, default=0)


def test_greedy_ties_depend_on_client_and_value_alone():
    # Values 1..6 once each; removing one that was not chosen must not change the choice.
    def choose(client: int, held: list[int]) -> set[int]:
        chosen, sizes = choose_contributions(
            np.array([client]), np.array([0, len(held)]), np.arange(len(held), dtype=np.int32),
            np.ones(len(held), dtype=np.int32), *with_bits(np.array(held)),
            3, True, np.uint64(4),
            np.array([1, 2, 3, 4], dtype=np.uint64),
        )  # fmt: skip
        return set(chosen[0, : sizes[0]].tolist())

    choices = set()
    for client in range(40):
        whole = choose(client, [1, 2, 3, 4, 5, 6])
        choices.add(frozenset(whole))
        for gone in {1, 2, 3, 4, 5, 6} - whole:
            assert choose(client, [v for v in (1, 2, 3, 4, 5, 6) if v != gone]) == whole
        for gone in whole:
            smaller = choose(client, [v for v in (1, 2, 3, 4, 5, 6) if v != gone])
            assert len(whole - smaller) == 1
    assert len(choices) > 5


def subset_counts(held: int, take: int, draws: int) -> Counter[frozenset[int]]:
    chosen, sizes = choose_contributions(
        np.arange(draws), np.arange(draws + 1) * held,
        np.tile(np.arange(held, dtype=np.int32), draws),
        np.tile(np.array([9, *[1] * (held - 1)], dtype=np.int32), draws),
        *with_bits(np.arange(held)), take, False, np.uint64(0),
        kernel_state(np.random.default_rng(3)),
    )  # fmt: skip
    assert (sizes == take).all()
    return Counter(frozenset(row) for row in chosen.tolist())


def chi_square_p(counts: Counter[frozenset[int]], cells: list[frozenset[int]]) -> float:
    total = sum(counts.values())
    expected = total / len(cells)
    statistic = sum((counts[cell] - expected) ** 2 / expected for cell in cells)
    return float(chi2.sf(statistic, len(cells) - 1))


def test_random_sampling_is_uniform_over_subsets_whatever_the_counts():
    cells = [frozenset(c) for c in itertools.combinations(range(5), 2)]
    counts = subset_counts(5, 2, 40_000)
    assert chi_square_p(counts, cells) > ALPHA
    # Negative controls, one in each direction: too much and too little of one subset.
    for factor in (1.2, 0.8):
        skewed = counts.copy()
        skewed[cells[0]] = int(skewed[cells[0]] * factor)
        assert chi_square_p(skewed, cells) < ALPHA


@pytest.mark.parametrize("held", [1, 7, 40, 3_000])
def test_equal_values_are_merged_and_stay_in_the_order_of_their_words(held):
    values = np.random.default_rng(0).integers(0, max(held // 3, 2), size=held)
    values[: held // 4] -= 1  # Some have none: -1.
    chosen, sizes = choose_contributions(
        np.array([0]), np.array([0, held]), np.arange(held, dtype=np.int32),
        np.ones(held, dtype=np.int32), *with_bits(values),
        held, False, np.uint64(0), np.array([1, 2, 3, 4], dtype=np.uint64),
    )  # fmt: skip
    expected = list(dict.fromkeys(v for v in values.tolist() if v >= 0))
    assert chosen[0, : sizes[0]].tolist() == expected
    assert (chosen[0, sizes[0] :] == -1).all()


@pytest.mark.parametrize(("held", "take"), [(61, 60), (200, 60), (200, 1), (2_000, 30)])
@pytest.mark.parametrize("largest", [1, 3, 1_000])
def test_greedy_takes_the_largest_sums_as_a_full_sort_would(held, take, largest):
    rng = np.random.default_rng(held + largest)
    clients, words = 20, 2 * held
    values = rng.permutation(np.arange(words) % held)
    counts = rng.integers(1, largest + 1, size=clients * words).astype(np.int32)
    chosen, sizes = choose_contributions(
        np.arange(clients), np.arange(clients + 1) * words,
        np.tile(np.arange(words, dtype=np.int32), clients), counts, *with_bits(values),
        take, True, np.uint64(77), np.array([1, 2, 3, 4], dtype=np.uint64),
    )  # fmt: skip
    assert (sizes == take).all()
    for client in range(clients):
        sums: Counter[int] = Counter()
        for value, count in zip(values.tolist(), counts[client * words :].tolist(), strict=False):
            sums[value] += count
        key = reference_mix(77 ^ client)
        rank = {value: (total, reference_mix(key ^ value)) for value, total in sums.items()}
        ordered = sorted(rank, key=lambda value: rank[value], reverse=True)
        assert set(chosen[client].tolist()) == set(ordered[:take])


def test_a_client_without_items_sends_exactly_b_dummies():
    population = Clients.from_rows(
        name="mute",
        lexicon=Lexicon(words=["zz"]),
        clients=np.array([0]),
        word_ids=np.array([0]),
        counts=np.array([1]),
        num_clients=10,
    )
    question = make_question(
        cohort=Cohort(start=0, size=10), oracle=OracleSpec(name="none", epsilon=np.inf)
    )
    answer = answered(ClientWorker(population, seed=1), question, range(1))
    assert answer.aggregate.num_reports == 30
    assert answer.aggregate.tally[question.names.nothing] == 30
    assert answer.diagnostics.num_dummies == 30
    assert answer.diagnostics.num_clients_with_items == 0
    silent = make_question(cohort=Cohort(start=0, size=10), pad=False)
    assert answered(ClientWorker(population, seed=1), silent, range(1)).aggregate.num_reports == 0


def test_finished_words_are_candidates_of_their_own(population):
    question = make_question()
    finished = question.alphabet.encode(["a", "b"], width=8)
    trie = question.names.trie.extend(np.arange(question.names.num_extensions))
    question = make_question(layer=2, trie=trie, finished=finished)
    values = WordMatcher(population.lexicon).prefix_values(question.names, question.alphabet)
    by_word = dict(zip(population.lexicon.words, values.tolist(), strict=True))
    assert by_word["a"] == question.names.num_extensions
    assert by_word["b"] == question.names.num_extensions + 1
    assert all(v < question.names.num_extensions for w, v in by_word.items() if len(w) > 1)


def test_blocks_answer_the_same_alone_and_together(population):
    question = make_question(cohort=Cohort(start=100, size=1_000))
    together = answered(ClientWorker(population, seed=4), question)
    alone = [
        answered(ClientWorker(population, seed=4), question, [b])
        for b in reversed(range(question.cohort.num_blocks))
    ]
    merged = alone[0]
    for answer in alone[1:]:
        merged = merged.merge(answer)
    assert question.cohort.num_blocks == 4
    assert np.array_equal(together.aggregate.tally, merged.aggregate.tally)
    assert together.diagnostics == merged.diagnostics


def test_cohorts_of_a_run_never_share_a_client(population):
    protocol = LdpTrieHH(alphabet=SYMBOLS, clients_per_layer=400, depth=6, passes=2, eta_max=20)
    clients = Recording(population)
    final_state(protocol, clients)
    assert len(clients.asked) == len(np.unique(clients.asked)) == 400 * 6 * 2


@pytest.mark.parametrize("num_clients", [127, 128, 129, 40_000])
def test_an_order_of_clients_is_numpys_permutation_in_as_few_bytes_as_it_takes(num_clients):
    counts = np.ones(num_clients, dtype=np.int64)
    everybody = Clients.from_rows(
        name="all", lexicon=Lexicon(words=["a"]), clients=np.arange(num_clients),
        word_ids=counts - 1, counts=counts, num_clients=num_clients,
    )  # fmt: skip
    clients = Recording(everybody)
    worker = ClientWorker(clients, seed=7)
    for redraw, path in ((None, ()), (3, (3,)), (None, ())):
        question = make_question(cohort=Cohort(start=5, size=num_clients - 5, redraw=redraw))
        clients.blocks.clear()
        answered(worker, question)
        assert clients.asked.dtype == np.int64
        expected = generator(7, Stream.COHORT, *path).permutation(num_clients)
        assert np.array_equal(clients.asked, expected[5:])
    # No more bytes than it takes are kept, and none of them with the worker.
    width = 1 if num_clients <= 128 else 2 if num_clients < 2**15 else 4
    assert roster._shuffled(num_clients, 7, None).nbytes == width * num_clients
    assert len(pickle.dumps(worker.__getstate__()["_order"])) < 300
