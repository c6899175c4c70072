"""How fast clients answer LDP TrieHH's layers on one core, and which stage takes the time.

For Gboard's setting on a virtual population, and for the default's on one in memory. A stage is
timed by itself on the same block of 8,192 clients: finding or drawing their items, choosing B
contributions, and the randomized votes; and per layer, matching the lexicon. The ratio is the
clients' whole time over what as many plain scattered increments take, drawn and added in one loop
on the same core in the same run. `benchmarks.gboard_pass` has the whole pass, over all layers.

Run: python -m benchmarks.rounds [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import gboard_pass
from benchmarks.measuring import add_options, medians, save
from benchmarks.subset_selection import add_drawn
from fedhh.clients.answers.base import WordValues
from fedhh.clients.answers.matching import CodedMatcher, WordMatcher
from fedhh.clients.answers.registry import make_answerer
from fedhh.clients.populations.population import Population
from fedhh.clients.populations.synthetic import synthetic_population
from fedhh.clients.worker import ClientWorker
from fedhh.kernels.sampling import choose_contributions
from fedhh.oracles import SubsetSelection, make_oracle
from fedhh.queries.base import PrefixQuery
from fedhh.random import kernel_state
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor

BLOCK = 8_192
LAYERS = (1, 2, 3, 8)


def gboard() -> Iterator[tuple[str, Population, WordMatcher, PrefixQuery]]:
    """Yield the layers of Gboard's setting."""
    population, protocol = gboard_pass.gboard()
    words = WordMatcher(population.lexicon)
    for query, _ in gboard_pass.queries(protocol, ClientWorker(population, seed=0)):
        yield "gboard, virtual", population, words, query


def chat() -> Iterator[tuple[str, Population, WordMatcher, PrefixQuery]]:
    """Yield the layers of the default's setting, with the clients of one block."""
    protocol = LdpTrieHH(
        clients_per_layer=BLOCK, depth=15, passes=1, eta_max=1_000, max_items=10,
        local_epsilon=8.0, skip_free_layers=False,
    )  # fmt: skip
    population = synthetic_population("chat", 15 * BLOCK, seed=0)
    words = WordMatcher(population.lexicon)
    for finished in rounds(protocol, InProcessExecutor(ClientWorker(population, seed=0))):
        yield "chat, in memory", population, words, finished.query


def measure(
    name: str, population: Population, words: WordMatcher, query: PrefixQuery, turns: int
) -> dict[str, Any]:
    """Return one layer's row."""
    clients = np.arange(BLOCK) + query.cohort.start
    oracle = make_oracle(query.oracle, query.domain_size)
    started = time.thread_time()
    answerer = make_answerer(query, words, 0)
    matching = time.thread_time() - started
    word_values = WordValues.of(words.prefix_values(query))
    coded = CodedMatcher(query)
    rows = population.block(clients)

    def choose() -> Any:
        choices = answerer.choices(rows, 0, word_values, coded.values(rows.coded))
        return choose_contributions(*choices)[0]

    chosen = choose()
    chosen[chosen < 0] = query.dummy
    values = chosen.ravel()
    rng = np.random.default_rng(0)
    tally = np.zeros(query.tally_size, dtype=np.int64)
    subset_size = oracle.d if isinstance(oracle, SubsetSelection) else 1
    num_votes = len(values) * subset_size
    state = kernel_state(rng)
    items_s, choose_s, votes_s, block_s, plain_s = medians(
        [
            lambda: population.block(clients),
            choose,
            lambda: oracle.aggregate(values=values, rng=rng, out=tally),
            lambda: answerer.add_block(population.block(clients), 0, tally),
            lambda: add_drawn(tally, num_votes, state),
        ],
        rounds=turns,
    )
    micro = 1e6 / BLOCK
    return {
        "setting": name,
        "layer": query.layer,
        "domain_size": query.domain_size,
        "subset_size": subset_size,
        "clients_per_s": BLOCK / block_s,
        "items_us": items_s * micro,
        "choose_us": choose_s * micro,
        "votes_us": votes_s * micro,
        "matching_ms": matching * 1e3,
        "ratio": block_s / plain_s,
    }


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (at least 3)")
    add_options(parser)
    options = parser.parse_args()
    rows = []
    print(
        f"{'setting':<17}layer{'s':>9}{'d':>5}{'clients/s':>11}{'items':>7}{'choose':>8}"
        f"{'votes us':>9}{'match ms':>9}{'x plain':>9}"
    )
    for layers in (gboard(), chat()):
        for name, population, words, query in layers:
            if query.layer > max(LAYERS):
                break
            if query.layer not in LAYERS:
                continue
            row = measure(name, population, words, query, options.rounds)
            rows.append(row)
            print(
                f"{name:<17}{row['layer']:5d}{row['domain_size']:9d}{row['subset_size']:5d}"
                f"{row['clients_per_s']:11,.0f}{row['items_us']:7.2f}{row['choose_us']:8.2f}"
                f"{row['votes_us']:9.2f}{row['matching_ms']:9.1f}{row['ratio']:9.1f}",
                flush=True,
            )
    save(options, "rounds", rows)


if __name__ == "__main__":
    main()
