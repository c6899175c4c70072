"""What estimates of a validation round are about: clients that contribute a word when asked."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest

from fedhh.clients.clients import Clients
from fedhh.clients.drawn import DrawnClients
from fedhh.experiments.run import contributors as module
from fedhh.experiments.run.contributors import contributors
from fedhh.experiments.run.run import simulate
from fedhh.protocol import Answers, Discoveries
from fedhh.questions.question import Aggregate, Question
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.testing import LETTERS, small_population
from fedhh.words.lexicon import Lexicon

WORDS = ["aa", "ab", "ba", "bb", "c"]
HELD = [(), ("aa",), ("aa", "ab"), ("aa", "ab", "ba"), ("aa", "ab", "ba", "bb"), ("c", "bb")]
"""What each client holds; "c" is no candidate."""
CANDIDATES = WORDS[:4]


def tiny(held: list[tuple[str, ...]]) -> Clients:
    """A word's count is higher, the later it stands in `WORDS`."""
    rows = [(client, WORDS.index(word)) for client, words in enumerate(held) for word in words]
    clients, words = np.array(rows).T
    return Clients.from_rows(
        name="tiny",
        lexicon=Lexicon(words=WORDS),
        clients=clients,
        word_ids=words,
        counts=1 + words,
        num_clients=len(held),
    )


def asked(words: list[str], *, max_items: int, sampler: str = "random") -> Question:
    """The validation round of some words, whose answers nobody looks at."""
    protocol = LdpTrieHH(
        alphabet="abc", clients_per_layer=10, depth=3, passes=1, eta_max=3,
        max_items=max_items, sampler=sampler, false_discovery_rate=0.05,
    )  # fmt: skip
    codes = protocol.symbols.encode(words, width=4)
    return protocol.addressed(
        protocol.plan.layers[-1], protocol.words_question(codes, protocol.validation_oracle)
    )


def found(question: Question, words: list[str]) -> Discoveries:
    codes = question.alphabet.encode(words, width=question.names.finished.shape[1])
    answers = Answers(planned=None, question=question, aggregate=Aggregate.empty(0))
    return answers.found(codes).discoveries(question.alphabet)


def counted(population, question: Question, words: list[str], **more) -> dict[str, float]:
    ids = population.lexicon.ids(words)
    holders = np.where(ids >= 0, population.word_counts().holders[ids], 0)
    numbers = contributors(question, population, found(question, words), holders, seed=3, **more)
    return dict(zip(words, numbers.tolist(), strict=True))


@pytest.mark.parametrize("max_items", [1, 2, 3, 4])
def test_a_random_sample_says_a_word_as_often_as_all_samples_do_that_are_possible(max_items):
    expected = dict.fromkeys(CANDIDATES, 0.0)
    for words in HELD:
        listed = [word for word in words if word in CANDIDATES]
        said = min(max_items, len(listed))
        for chosen in combinations(listed, said):
            for word in chosen:
                expected[word] += 1 / comb(len(listed), said)
    question = asked(CANDIDATES, max_items=max_items)
    # In another order than that of the candidates.
    result = counted(tiny(HELD), question, CANDIDATES[::-1])
    assert result == pytest.approx(expected)


def test_a_greedy_sample_says_what_is_typed_most():
    result = counted(tiny(HELD), asked(CANDIDATES, max_items=2, sampler="greedy"), CANDIDATES)
    # Of four candidates the two last, of three the two last, of two both.
    assert result == {"aa": 2, "ab": 2, "ba": 2, "bb": 2}


def test_who_holds_no_candidate_contributes_none():
    population = tiny([(), ("c",), ("aa",)])
    assert counted(population, asked(["aa", "bb"], max_items=1), ["bb", "aa"]) == {"bb": 0, "aa": 1}


@pytest.mark.parametrize("at_once", [1, 4, 2**14])
def test_blocks_of_clients_add_up(monkeypatch, at_once):
    question = asked(CANDIDATES, max_items=2)
    whole = counted(tiny(HELD), question, CANDIDATES)
    monkeypatch.setattr(module, "_AT_ONCE", at_once)
    assert counted(tiny(HELD), question, CANDIDATES) == pytest.approx(whole)


@pytest.mark.slow("::test_blocks_of_clients_add_up")
def test_of_clients_that_are_drawn_a_sample_gives_the_share(virtual_lexicon, monkeypatch):
    population = DrawnClients("chat", 3_000, seed=1)
    best = np.argsort(-population.word_counts().holders)[:40]
    words = [virtual_lexicon.words[i] for i in best.tolist()]
    words = [word for word in words if word.isascii() and word.isalpha()]
    protocol = LdpTrieHH(clients_per_layer=100, depth=15, max_items=2, false_discovery_rate=0.05)
    codes = protocol.symbols.encode(words, width=16)
    question = protocol.addressed(
        protocol.plan.layers[-1], protocol.words_question(codes, protocol.validation_oracle)
    )
    whole = counted(population, question, words)
    monkeypatch.setattr(module, "_MOST_DRAWN", 1_500)
    half = counted(population, question, words)
    holders = dict(
        zip(words, population.word_counts().holders[population.lexicon.ids(words)], strict=True)
    )
    assert half != whole
    # A share's standard error is at most 1/2 over the root of the sample's holders.
    for word in words:
        assert abs(half[word] - whole[word]) < 4 * 0.5 * holders[word] / np.sqrt(holders[word] / 2)
    monkeypatch.setattr(module, "_MOST_DRAWN", 1)
    none = counted(population, question, words)
    assert sum(np.isnan(value) for value in none.values()) > 0


VALIDATED = LdpTrieHH(
    alphabet=LETTERS, clients_per_layer="auto", depth=5, passes=1, eta_max=30, max_items=2,
    false_discovery_rate=0.05,
)  # fmt: skip


@pytest.mark.slow("::test_a_random_sample_says_a_word_as_often_as_all_samples_do_that_are_possible")
def test_a_runs_intervals_hold_contributors_and_not_holders():
    population = small_population(30_000)
    results = [simulate(VALIDATED, population, seed=seed) for seed in range(5)]
    numbers = [result.metrics for result in results]
    assert np.mean([each.interval_coverage for each in numbers]) >= 0.95
    assert np.mean([each.lower_bound_coverage for each in numbers]) >= 0.975
    table = results[0].discoveries
    assert (table["contributing_clients"] <= table["true_clients"]).all()
    assert (table["contributing_clients"] < 0.9 * table["true_clients"]).any()
    of_holders = table["true_clients"].between(table["clients_low"], table["clients_high"])
    assert of_holders.mean() < numbers[0].interval_coverage


@pytest.mark.slow("::test_a_random_sample_says_a_word_as_often_as_all_samples_do_that_are_possible")
def test_estimates_are_unbiased_for_contributors():
    population = small_population(4_000)
    excess = []
    for seed in range(16):
        table = simulate(VALIDATED, population, seed=seed).discoveries
        # Words that every run returns, so that the choice favors no estimate.
        frequent = table[table["true_clients"] > 1_000]
        assert len(frequent) > 0
        excess.append((frequent["estimated_clients"] / frequent["contributing_clients"]).mean() - 1)
    assert abs(np.mean(excess)) < 4 * np.std(excess) / np.sqrt(len(excess))


class StoppedError(Exception):
    pass


@pytest.mark.slow("::test_who_holds_no_candidate_contributes_none")
def test_a_run_that_stopped_after_its_validation_round_knows_its_contributors(
    tmp_path, monkeypatch
):
    population = small_population(6_000)
    whole = simulate(VALIDATED, population, seed=4, log_in=tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr("fedhh.experiments.run.follow.contributors", _stop)
        with pytest.raises(StoppedError):
            simulate(VALIDATED, population, seed=4, log_in=tmp_path / "stopped")
    again = simulate(VALIDATED, population, seed=4, log_in=tmp_path / "stopped")
    assert "contributing_clients" in again.discoveries
    assert again.discoveries.equals(whole.discoveries)
    assert again.metrics == whole.metrics


def _stop(*_, **__):
    raise StoppedError


def test_a_run_without_a_validation_round_states_no_interval():
    protocol = LdpTrieHH(alphabet=LETTERS, clients_per_layer=300, depth=5, passes=1, eta_max=20)
    result = simulate(protocol, small_population(3_000), seed=0)
    assert "contributing_clients" not in result.discoveries
    assert result.metrics.interval_coverage is None
    assert result.metrics.lower_bound_coverage is None
