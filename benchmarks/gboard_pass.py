"""What the whole pass over Gboard's clients costs, next to drawing them and to a bare scatter.

The setting is the preset gboard-random-one-pass, all 15 layers; of each layer's million clients,
some blocks of 8,192 are asked. Two processes do the same at once, each for blocks of its own, as
two workers do in a run: they share the outer cache. In turn, block by block,

* clients make their reports: they are drawn, counted for the truth, choose 60 contributions, and
  each of these is randomized and counted;
* clients bring noise-free counts, all that aggregate-level sampling asks of them;
* clients are drawn, and nothing else;
* and ones are scattered over a table as large as the tally, as many as reports have members: at
  random places that are drawn in the same loop, and at places that are ready.

Times are each process's own; to those of clients is added what matching the lexicon takes, once per
worker and layer. Which prefixes go on is decided as for all clients of the layer: the noise-free
counts of one block are scaled up, and votes have the mean and the variance of a million clients'
reports, here as independent normal numbers.

Run: python -m benchmarks.gboard_pass [--json FILE] [--blocks N] [--processes N]
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier

import numpy as np

from benchmarks.measuring import add_options, save
from benchmarks.subset_selection import add_drawn, add_ready
from fedhh.clients.answers.sampling import NoiseFreeQuery
from fedhh.clients.populations.virtual import VirtualPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.oracles import SubsetSelection, make_oracle
from fedhh.queries.base import Aggregate, Answer, PrefixQuery, Query
from fedhh.random import kernel_state
from fedhh.server.ldp_triehh import LdpTrieHH

LAYERS = 15
CLIENTS = 1_000_000
SCATTERED = 4_000_000
TASKS = ("reports_us", "counts_us", "drawing_us", "drawn_us", "ready_us")

Row = dict[str, float]


def gboard() -> tuple[VirtualPopulation, LdpTrieHH]:
    """Return the preset's population and protocol."""
    protocol = LdpTrieHH(
        clients_per_layer=CLIENTS, depth=LAYERS, passes=1, eta_max=10_000, max_items=60,
        local_epsilon=10.0, alphabet="printable", ties="paper", skip_free_layers=False,
        subset_size="paper",
    )  # fmt: skip
    return VirtualPopulation("keyboard60d", LAYERS * CLIENTS, seed=0), protocol


def oracle_of(query: PrefixQuery) -> SubsetSelection:
    """Return a query's oracle."""
    oracle = make_oracle(query.oracle, query.domain_size)
    assert isinstance(oracle, SubsetSelection)
    return oracle


def queries(
    protocol: LdpTrieHH, worker: ClientWorker
) -> Iterator[tuple[PrefixQuery, NoiseFreeQuery]]:
    """Yield each layer's query, and that for its noise-free counts, by the answers before."""
    rng = np.random.default_rng(0)
    state = protocol.initialize()
    while isinstance(query := protocol.next_query(state), PrefixQuery):
        counts_query = NoiseFreeQuery.of(query, query.cohort)
        yield query, counts_query
        asked = worker.answer(counts_query, [0]).aggregate
        held = asked.tally * (query.cohort.size / asked.num_clients)
        num_reports = query.cohort.size * query.max_items
        p, q = oracle_of(query).p, oracle_of(query).q
        mean = held * p + (num_reports - held) * q
        variance = held * p * (1 - p) + (num_reports - held) * q * (1 - q)
        votes = mean + np.sqrt(variance) * rng.standard_normal(len(mean))
        aggregate = Aggregate(
            tally=np.rint(np.clip(votes, 0, num_reports)).astype(np.int64),
            num_reports=num_reports,
            num_clients=query.cohort.size,
        )
        state = protocol.finish_round(state, query, aggregate)


class Clients:
    """A worker's clients, answering one kind of query."""

    def __init__(self, population: VirtualPopulation) -> None:
        """Start without a query."""
        self.worker = ClientWorker(population, seed=0, counts=True)
        self._answer = Answer(aggregate=Aggregate.empty(1))

    def begin(self, query: Query) -> None:
        """Take up a query: match the lexicon, and have the tally in memory."""
        self._query = query
        aggregate = Aggregate.empty(query.tally_size)
        aggregate.tally[:] = 0
        onto = Answer(aggregate=aggregate, diagnostics=self._answer.diagnostics)
        self._answer = self.worker.answer(query, [], onto=onto)

    def answer(self, block: int) -> None:
        """Answer for a block."""
        self._answer = self.worker.answer(self._query, [block], onto=self._answer)


def measure(number: int, num_blocks: int, barrier: Barrier) -> list[Row]:
    """Return a row for each layer, of the blocks of one of the processes that measure at once."""
    population, protocol = gboard()
    reporting, counting = Clients(population), Clients(population)
    rng = np.random.default_rng(number)
    state = kernel_state(rng)
    rows = []
    for query, counts_query in queries(protocol, counting.worker):
        subset_size = oracle_of(query).d
        votes = query.max_items * subset_size
        table = np.ones(query.tally_size, dtype=np.int64)
        ready = rng.integers(0, query.domain_size, size=SCATTERED)
        row = {"layer": query.layer, "domain_size": query.domain_size, "subset_size": subset_size}
        if not rows:  # What is loaded once is not what a pass costs.
            Clients(population).begin(query)
        started = time.thread_time()
        reporting.begin(query)
        row["matching_ms"] = (time.thread_time() - started) * 1e3
        counting.begin(counts_query)
        tasks: list[tuple[Callable[[int], object], float]] = [
            (reporting.answer, query.cohort.block_size),
            (counting.answer, query.cohort.block_size),
            (lambda block, q=query: population.block(_clients(q, block)), query.cohort.block_size),
            (lambda _, t=table: add_drawn(t, SCATTERED, state), SCATTERED / votes),
            (lambda _, t=table, r=ready: add_ready(t, r), SCATTERED / votes),
        ]
        if not rows:  # Compiled, or loaded, before the clock starts.
            for task, _ in tasks:
                task(0)
        seconds = np.zeros(len(tasks))
        for block in range(number * num_blocks, (number + 1) * num_blocks):
            for i, (task, _) in enumerate(tasks):
                barrier.wait()
                started = time.thread_time()
                task(block)
                seconds[i] += time.thread_time() - started
        for name, taken, (_, clients) in zip(TASKS, seconds, tasks, strict=True):
            row[name] = taken / num_blocks / clients * 1e6
        rows.append(row)
    return rows


def _clients(query: PrefixQuery, block: int) -> np.ndarray:
    here = query.cohort.block(block)
    return np.arange(here.start, here.stop)


def partner(pipe: Connection, number: int, num_blocks: int, barrier: Barrier) -> None:
    """Measure next to the main process."""
    pipe.send(measure(number, num_blocks, barrier))


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--blocks", type=int, default=2, help="per process and layer")
    parser.add_argument("--processes", type=int, default=2, help="that measure at once")
    add_options(parser)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(options.processes)
    pipes = []
    for number in range(1, options.processes):
        pipe, others_end = context.Pipe()
        pipes.append(pipe)
        arguments = (others_end, number, options.blocks, barrier)
        context.Process(target=partner, args=arguments, daemon=True).start()
    measured = [measure(0, options.blocks, barrier)] + [pipe.recv() for pipe in pipes]
    rows = [mean(layers) for layers in zip(*measured, strict=True)]
    # Of all layers together, times the mean ones.
    rows.append(mean(rows) | {"layer": 0})
    print("layer        s    d  match ms  reports   counts  drawing    drawn    ready us", end="")
    print("  reports x drawn  x ready  counts x drawing")
    for row in rows:
        matching_us = row["matching_ms"] * 1e3 / (CLIENTS / options.processes)
        row["ratio_drawn"] = (row["reports_us"] + matching_us) / row["drawn_us"]
        row["ratio_ready"] = (row["reports_us"] + matching_us) / row["ready_us"]
        row["ratio_drawing"] = (row["counts_us"] + matching_us) / row["drawing_us"]
        print(
            f"{row['layer'] or 'all':>5}{row['domain_size']:9.0f}{row['subset_size']:5.0f}"
            f"{row['matching_ms']:10.1f}"
            + "".join(f"{row[name]:9.2f}" for name in TASKS)
            + f"{row['ratio_drawn']:20.2f}{row['ratio_ready']:9.2f}{row['ratio_drawing']:16.2f}"
        )
    save(options, "gboard_pass", rows)


def mean(rows: Sequence[Row]) -> Row:
    """Return the mean of rows, field by field."""
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


if __name__ == "__main__":
    main()
