from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from fedhh.clients.clients import Clients
from fedhh.clients.worker import ClientWorker
from fedhh.questions.question import Aggregate
from fedhh.server import ldp_triehh
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS
from fedhh.validation import InputError
from fedhh.words.lexicon import Lexicon
from tests.asked_clients import Recording, answered
from tests.every import every
from tests.reference import trie_hh_without_noise
from tests.zipf_words import final_state

SMALL = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer=400, depth=6, passes=1, eta_max=25, max_items=4
)


def test_without_noise_the_trie_is_that_of_the_papers_algorithm(population):
    # The null oracle reports true votes, so the run has one right answer: Algorithm 2, done with
    # strings and dictionaries on the same cohorts.
    protocol = replace(
        SMALL, oracle="none", ties="paper", max_items=100, skip_free_layers=False, eta_max=15
    )
    asked = Recording(population)
    state = final_state(protocol, asked)
    clients = []
    for layer in range(6):
        rows = population.block(asked.asked[layer * 400 : (layer + 1) * 400])
        clients.append(
            [
                {
                    population.lexicon.words[w]: int(c)
                    for w, c in zip(
                        rows.word_ids[start:end].tolist(),
                        rows.counts[start:end].tolist(),
                        strict=True,
                    )
                }
                for start, end in zip(rows.offsets[:-1], rows.offsets[1:], strict=True)
            ]
        )
    expected = trie_hh_without_noise(clients, LETTERS, depth=6, eta_max=15)
    discovered = protocol.discoveries(state)
    assert sorted(discovered.words) == sorted(expected)
    assert len(expected) > 15


def test_estimates_are_within_five_standard_deviations_of_the_cohorts_truth(population):
    protocol = replace(SMALL, local_epsilon=6.0, max_items=6)
    clients = Recording(population)
    state = final_state(protocol, clients)
    discovered = protocol.discoveries(state)
    noise_of = {s.layer: s.noise_std for s in state.history}
    first_layer = state.history[0].layer
    for word, layer, estimate in zip(
        discovered.words, discovered.layer.tolist(), discovered.estimate, strict=True
    ):
        start = (layer - first_layer) * 400
        noise = noise_of[layer]
        rows = population.block(clients.asked[start : start + 400])
        word_id = int(population.lexicon.ids([word])[0])
        held = int((rows.word_ids == word_id).sum()) if word_id >= 0 else 0
        assert abs(estimate - held) < 5 * noise + 5
    assert len(discovered) > 10


def test_kept_prefixes_number_eta_and_each_layer_extends_the_last(population):
    executor = InProcessExecutor(ClientWorker(population, seed=0))
    previous = None
    for round_ in rounds(SMALL, executor):
        question = round_.question
        assert question.names.trie.length == question.layer
        if previous is not None:
            assert question.names.trie.levels[:-1] == previous.names.trie.levels
            assert question.names.trie.width <= 25
        assert round_.state.history[-1].num_kept == 25
        previous = question


def test_every_client_sends_exactly_b_reports(population):
    for summary in final_state(SMALL, population).history:
        assert summary.num_reports == 400 * 4


def test_free_layers_are_skipped_and_their_words_stay_candidates(population):
    # 6 + 42 candidates of one or two symbols fit into eta = 60: the first layer decides nothing.
    skipping = replace(SMALL, eta_max=60, local_epsilon=8.0)
    asking = replace(skipping, skip_free_layers=False)
    assert [s.layer for s in final_state(skipping, population).history] == [2, 3, 4, 5, 6]
    assert [s.layer for s in final_state(asking, population).history] == [1, 2, 3, 4, 5, 6]
    assert not final_state(asking, population).history[0].decides
    assert final_state(skipping, population).history[0].decides
    short = {
        w for w in skipping.discoveries(final_state(skipping, population)).words if len(w) == 1
    }
    assert short <= {w for w in population.lexicon.words if len(w) == 1}
    assert short
    free = {w for w in asking.discoveries(final_state(asking, population)).words if len(w) == 1}
    assert free == set(LETTERS)
    assert skipping.plan.most_answers == 5 * 400
    assert asking.plan.most_answers == 6 * 400


def test_the_last_layer_is_never_skipped(population):
    protocol = replace(SMALL, depth=2, eta_max=10_000)
    state = final_state(protocol, population)
    assert [s.layer for s in state.history] == [2]
    assert set(protocol.discoveries(state).words) >= set(LETTERS)


def test_later_passes_leave_out_what_earlier_ones_found(population):
    protocol = replace(SMALL, passes=2, oracle="none", eta_max=12)
    discovered = protocol.discoveries(final_state(protocol, population))
    first = [w for w, p in zip(discovered.words, discovered.pass_index, strict=True) if p == 0]
    second = [w for w, p in zip(discovered.words, discovered.pass_index, strict=True) if p == 1]
    assert first
    assert second
    assert not set(first) & set(second)
    single = protocol.discoveries(final_state(replace(protocol, passes=1), population))
    assert list(single.words) == first


def test_no_word_is_discovered_twice_even_by_noise(population):
    # At a tiny epsilon nearly every kept candidate is noise.
    protocol = replace(SMALL, passes=4, clients_per_layer=200, local_epsilon=0.1)
    words = protocol.discoveries(final_state(protocol, population)).words
    assert len(words) == len(set(words))


def test_words_with_foreign_symbols_or_too_many_are_never_found():
    population = Clients.from_rows(
        name="odd",
        lexicon=Lexicon(words=["abé", "abcabc", "ab"]),
        clients=np.repeat(np.arange(400), 3),
        word_ids=np.tile(np.arange(3), 400),
        counts=np.ones(1200, dtype=np.int64),
        num_clients=400,
    )
    protocol = LdpTrieHH(
        alphabet="abc", depth=4, clients_per_layer=100, eta_max=3, passes=1, oracle="none"
    )
    state = final_state(protocol, population)
    assert "ab" in protocol.discoveries(state).words
    assert not {"abé", "abcabc", "abca"} & set(protocol.discoveries(state).words)
    # The long word's prefix was voted for to the last layer, as a real device would: "abcab".
    last = protocol.symbols.decode(_last_trie(protocol, population))
    assert "abcab" in last


def _last_trie(protocol: LdpTrieHH, population: Clients) -> np.ndarray:
    """Return the codes of the candidates with most votes in the last layer."""
    *_, before, _ = rounds(protocol, InProcessExecutor(ClientWorker(population, seed=0)))
    question = protocol.next_question(before.state)
    answer = answered(ClientWorker(population, seed=0), question)
    return question.names.trie.spell(
        np.flatnonzero(question.votes(answer.aggregate)[: question.names.num_extensions] > 50)
    )


def test_the_same_seed_gives_the_same_words_and_another_seed_other_estimates(population):
    a, b, c = (SMALL.discoveries(final_state(SMALL, population, seed=seed)) for seed in (1, 1, 2))
    assert list(a.words) == list(b.words)
    assert np.array_equal(a.estimate, b.estimate)
    assert not np.array_equal(a.estimate, c.estimate)


def test_a_tally_of_another_size_is_refused():
    question = SMALL.next_question(SMALL.initialize())
    with pytest.raises(ValueError, match="Expected a tally of"):
        SMALL.finish_round(SMALL.initialize(), question, Aggregate.empty(question.tally_size - 1))


def test_too_few_clients_are_refused_with_the_numbers_and_a_cure():
    with pytest.raises(InputError, match=r"1,000 clients.*need 2,400.*clients_per_layer <= 166"):
        SMALL.check_population(1_000)
    SMALL.check_population(2_400)
    reusing = replace(SMALL, participation="every-round")
    reusing.check_population(400)
    with pytest.raises(InputError, match="clients_per_layer <= 399"):
        reusing.check_population(399)


@pytest.mark.parametrize("changes", [{}, {"eta_max": 1}, {"skip_free_layers": False}])
def test_the_oracle_is_tried_beforehand_on_a_domain_as_large_as_any_layers(monkeypatch, changes):
    tried = []
    monkeypatch.setattr(ldp_triehh, "make_pure_oracle", lambda _, size: tried.append(size))
    protocol = replace(SMALL, **changes)
    deciding = [x.largest_domain for x in protocol.plan.layers if x.layer > 2]
    assert max(tried) >= max(deciding)


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_the_cure_for_too_few_clients_leaves_the_validation_rounds_part(share):
    validated = replace(SMALL, false_discovery_rate=0.05, validation_share=share)
    with pytest.raises(InputError, match="rounds need") as refused:
        validated.check_population(1_000)
    (largest,) = re.findall(r"clients_per_layer <= (\d+)", str(refused.value))
    replace(validated, clients_per_layer=int(largest)).check_population(1_000)
    with pytest.raises(InputError, match=f"clients_per_layer <= {largest},"):
        replace(validated, clients_per_layer=int(largest) + 1).check_population(1_000)


@every(
    ("field", "value", "message"),
    [
        ("local_epsilon", -1.0, "local_epsilon=-1.0"),
        ("local_epsilon", float("nan"), "local_epsilon=nan"),
        ("eta_max", 0, "eta_max >= 1, got eta_max=0"),
        ("max_items", 0, "max_items=0"),
        ("depth", 0, "depth=0"),
        ("passes", 0, "passes=0"),
        ("clients_per_layer", 0, "clients_per_layer=0"),
        ("sampler", "greeedy", "did you mean 'greedy'"),
        ("ties", "strikt", "did you mean 'strict'"),
        ("alphabet", "aab", "more than once"),
        ("oracle", "sss", "did you mean 'ss'"),
        ("subset_size", "papier", "did you mean 'paper'"),
    ],
)
def test_impossible_settings_are_refused_by_name(field: str, value: object, message: str):
    with pytest.raises(InputError, match=message):
        replace(SMALL, **{field: value})
