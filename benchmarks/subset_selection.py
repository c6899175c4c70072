"""What a Subset Selection vote costs, next to a plain scattered increment.

Every row draws n reports over s values by `SubsetSelection.aggregate` and, in the same
run and in turn with it, two baselines that add as many ones to an int64 table of s entries:

* drawn: uniform indices from the same generator, drawn and added in one plain loop;
* ready: indices drawn beforehand, so that only the scattered increments are timed.

The last column is the first ratio once more, with two processes that do the same at once on cores
that share the outer cache: the mean of both.

Times are the thread's own, medians of many short rounds. Subset Selection's include all that
it does per call: the work table, the coins, rejected repeats, and the pass that adds to the tally.
A call has at most 500,000 reports, about a block of 8,192 clients with 60 contributions each.

Run: python -m benchmarks.subset_selection [--json FILE] [--rounds N] [--votes N]
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

import numba
import numpy as np

from benchmarks.measuring import add_options, medians, save
from fedhh.oracles import SubsetSelection
from fedhh.oracles.subset_selection import best_route
from fedhh.random import kernel_state

REPORTS_PER_CALL = 500_000

CELLS = [
    (1_000, 1.0),
    (1_000, 4.0),
    (1_000, 8.0),
    (1_000, 10.0),
    (30_000, 1.0),
    (30_000, 4.0),
    (30_000, 8.0),
    (30_000, 10.0),
    (1_000_001, 1.0),
    (1_000_001, 4.0),
    (1_000_001, 8.0),
    (1_000_001, 10.0),
]


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


@numba.njit
def add_ready(table: np.ndarray, indices: np.ndarray) -> None:
    """Count indices."""
    for index in indices:
        table[index] += 1


def measure(
    domain_size: int,
    epsilon: float,
    num_votes: int,
    rounds: int,
    begin: Callable[[], object] = lambda: None,
) -> dict[str, Any]:
    """Return one row of the table; ``begin`` is called before the clock starts."""
    oracle = SubsetSelection(epsilon=epsilon, domain_size=domain_size)
    num_reports = min(max(1, num_votes // oracle.d), REPORTS_PER_CALL)
    calls = max(1, num_votes // (num_reports * oracle.d))
    num_votes = num_reports * oracle.d
    rng = np.random.default_rng(0)
    values = rng.integers(0, domain_size, size=num_reports)
    indices = rng.integers(0, domain_size, size=num_votes)
    table = np.zeros(domain_size, dtype=np.int64)
    state = kernel_state(rng)
    begin()
    reports_s, drawn_s, ready_s = medians(
        [
            lambda: oracle.aggregate(values=values, rng=rng, out=table),
            lambda: add_drawn(table, num_votes, state),
            lambda: add_ready(table, indices),
        ],
        calls=calls,
        rounds=rounds,
    )
    return {
        "domain_size": domain_size,
        "epsilon": epsilon,
        "subset_size": oracle.d,
        "route": best_route(domain_size, oracle.d),
        "num_reports": num_reports,
        "reports_per_s": num_reports / reports_s,
        "votes_per_s": num_votes / reports_s,
        "vote_ns": reports_s / num_votes * 1e9,
        "drawn_ns": drawn_s / num_votes * 1e9,
        "ready_ns": ready_s / num_votes * 1e9,
        "ratio_drawn": reports_s / drawn_s,
        "ratio_ready": reports_s / ready_s,
    }


def partner(pipe: Connection, barrier: Barrier) -> None:
    """Measure the cells that come through a pipe, each at once with the process that sends it."""
    while (cell := pipe.recv()) is not None:
        pipe.send(measure(*cell, begin=barrier.wait)["ratio_drawn"])


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=15, help="timed rounds per row (at least 3)")
    parser.add_argument("--votes", type=int, default=4_000_000, help="votes per row and round")
    add_options(parser)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    pipe, others_end = context.Pipe()
    barrier = context.Barrier(2)
    other = context.Process(target=partner, args=(others_end, barrier), daemon=True)
    other.start()
    print(
        "        s  eps       d    route  reports/s    votes/s  ns/vote   drawn x   ready x"
        "  two at once x"
    )
    rows = []
    for domain_size, epsilon in CELLS:
        cell = domain_size, epsilon, options.votes, options.rounds
        row = measure(*cell)
        pipe.send(cell)
        both = [measure(*cell, begin=barrier.wait)["ratio_drawn"], pipe.recv()]
        row["ratio_drawn_two_at_once"] = statistics.mean(both)
        rows.append(row)
        print(
            f"{domain_size:9d} {epsilon:4g} {row['subset_size']:7d} {row['route']:>8s} "
            f"{row['reports_per_s']:10.3g} {row['votes_per_s']:10.3g} {row['vote_ns']:8.3f} "
            f"{row['drawn_ns']:5.2f}{row['ratio_drawn']:5.2f} "
            f"{row['ready_ns']:5.2f}{row['ratio_ready']:5.2f}"
            f"{row['ratio_drawn_two_at_once']:15.2f}",
            flush=True,
        )
    pipe.send(None)
    other.join()
    save(options, "subset_selection", rows)


if __name__ == "__main__":
    main()
