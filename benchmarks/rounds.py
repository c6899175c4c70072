"""How fast clients answer LDP TrieHH's layers on one core, and which stage takes the time.

For Gboard's setting on a virtual population, and for the default's on one in memory. A stage is
timed by itself on the same block of 8,192 clients: finding or drawing their items, choosing B
contributions, and the randomized votes; and per layer, matching the lexicon. The ratio is the
clients' whole time over what as many plain scattered increments take, drawn and added in one loop
on the same core in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numba
import numpy as np

from benchmarks.measuring import Rows, benchmark, medians
from fedhh.clients.drawn import DrawnClients
from fedhh.clients.population import Population
from fedhh.clients.synthetic import synthetic_population
from fedhh.clients.worker import ClientWorker
from fedhh.oracles import SubsetSelection, make_oracle
from fedhh.questions.channel import Answering
from fedhh.questions.clients import Coins, Held
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Aggregate, Question
from fedhh.random import kernel_state
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Broadcast, InProcessExecutor

BLOCK = 8_192
LAYERS = (1, 2, 3, 8)


@numba.njit
def add_drawn(table: np.ndarray, num_votes: int, state: np.ndarray) -> None:
    """Draw indices by xoshiro256++ and Lemire's method, two per word, and count them."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    bound, half, low = np.uint64(len(table)), np.uint64(32), np.uint64(0xFFFFFFFF)
    threshold = (np.uint64(0x100000000) - bound) % bound
    votes = 0
    while votes < num_votes:
        mixed = s0 + s3
        word = ((mixed << np.uint64(23)) | (mixed >> np.uint64(41))) + s0
        t = s1 << np.uint64(17)
        s2 ^= s0
        s3 ^= s1
        s1 ^= s2
        s0 ^= s3
        s2 ^= t
        s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
        first, second = (word & low) * bound, (word >> half) * bound
        if first & low >= threshold:
            table[first >> half] += 1
            votes += 1
        if second & low >= threshold and votes < num_votes:
            table[second >> half] += 1
            votes += 1
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


def gboard() -> Iterator[tuple[str, Population, WordMatcher, Question]]:
    """Yield the layers of the preset gboard-random-one-pass.

    Which prefixes go on is decided as for all clients of the layer: the noise-free counts of one
    block are scaled up, and votes have the mean and the variance of all clients' reports, here as
    independent normal numbers.
    """
    protocol = LdpTrieHH(
        clients_per_layer=1_000_000, depth=15, passes=1, eta_max=10_000, max_items=60,
        local_epsilon=10.0, alphabet="printable", ties="paper", skip_free_layers=False,
        subset_size="paper",
    )  # fmt: skip
    population = DrawnClients("keyboard60d", 15_000_000, seed=0)
    worker, words = ClientWorker(population, seed=0), WordMatcher(population.lexicon)
    rng = np.random.default_rng(0)
    state = protocol.initialize()
    while (question := protocol.next_question(state)) is not None:
        yield "gboard, virtual", population, words, question
        counts = Broadcast.to_all(replace(question, counts_only=True))
        asked = worker.answer(counts, [0]).aggregate
        held = asked.tally * (question.cohort.size / asked.num_clients)
        num_reports = question.cohort.size * question.max_items
        oracle = make_oracle(question.channel.oracle, question.domain_size)
        assert isinstance(oracle, SubsetSelection)
        p, q = oracle.p, oracle.q
        mean = held * p + (num_reports - held) * q
        variance = held * p * (1 - p) + (num_reports - held) * q * (1 - q)
        votes = mean + np.sqrt(variance) * rng.standard_normal(len(mean))
        aggregate = Aggregate(
            tally=np.rint(np.clip(votes, 0, num_reports)).astype(np.int64),
            num_reports=num_reports,
            num_clients=question.cohort.size,
        )
        state = protocol.finish_round(state, question, aggregate)


def chat() -> Iterator[tuple[str, Population, WordMatcher, Question]]:
    """Yield the layers of the default's setting, with the clients of one block."""
    protocol = LdpTrieHH(
        clients_per_layer=BLOCK, depth=15, passes=1, eta_max=1_000, max_items=10,
        local_epsilon=8.0, skip_free_layers=False,
    )  # fmt: skip
    population = synthetic_population("chat", 15 * BLOCK, seed=0)
    words = WordMatcher(population.lexicon)
    for finished in rounds(protocol, InProcessExecutor(ClientWorker(population, seed=0))):
        yield "chat, in memory", population, words, finished.question


def measure(
    name: str, population: Population, words: WordMatcher, question: Question
) -> dict[str, Any]:
    """Return one layer's row."""
    clients = np.arange(BLOCK) + question.cohort.start
    oracle = make_oracle(question.channel.oracle, question.domain_size)
    started = time.thread_time()
    answering = Answering(question, words, 0)
    matching = time.thread_time() - started
    known = question.names.known(words, question.alphabet)
    rows = population.block(clients)
    coins = Coins(seed=0, pass_index=question.pass_index, layer=question.layer, block=0)

    def choose() -> Any:
        held = Held(rows=rows, known=known)
        return question.choice.say(question, held, coins).values

    chosen = choose()
    chosen[chosen < 0] = question.names.nothing
    values = chosen.ravel()
    rng = np.random.default_rng(0)
    tally = np.zeros(question.tally_size, dtype=np.int64)
    subset_size = oracle.d if isinstance(oracle, SubsetSelection) else 1
    num_votes = len(values) * subset_size
    state = kernel_state(rng)
    items_s, choose_s, votes_s, block_s, plain_s = medians(
        [
            lambda: population.block(clients),
            choose,
            lambda: oracle.aggregate(values=values, rng=rng, out=tally),
            lambda: answering.add_block(population.block(clients), 0, tally),
            lambda: add_drawn(tally, num_votes, state),
        ]
    )
    micro = 1e6 / BLOCK
    return {
        "setting": name,
        "layer": question.layer,
        "domain_size": question.domain_size,
        "subset_size": subset_size,
        "clients_per_s": BLOCK / block_s,
        "items_us": items_s * micro,
        "choose_us": choose_s * micro,
        "votes_us": votes_s * micro,
        "matching_ms": matching * 1e3,
        "ratio": block_s / plain_s,
    }


@benchmark("rounds")
def rows() -> Rows:
    """Yield a row for each of some layers."""
    for layers in (gboard(), chat()):
        for name, population, words, question in layers:
            if question.layer in LAYERS:
                yield measure(name, population, words, question)
            if question.layer == max(LAYERS):
                break
