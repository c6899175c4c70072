"""How long the servers of SFP and PEM take to decode, at the parameters of Apple's deployment.

Sketches of 2,048 rows and 1,024 cells, 256 puzzle numbers, words of 10 symbols of "lower". The
ratio is to as many plain look-ups in one row of such a sketch, of indices that are there already:
decoding also computes the hash functions, and SFP looks into the sketches of five positions.

Run: python -m benchmarks.decoding [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np

from benchmarks.measuring import add_options, save
from fedhh.clients.populations.synthetic import synthetic_population
from fedhh.clients.worker import ClientWorker
from fedhh.protocol import AnyProtocol
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp

CLIENTS, EPSILON = 20_000, 8.0
CELLS = 1_024
_SAMPLE, _TIMES = 2**14, 512


def protocols() -> dict[str, AnyProtocol]:
    """Return both protocols with Apple's sketches."""
    common: dict[str, Any] = {"local_epsilon": EPSILON, "max_items": 3, "alphabet": "lower"}
    return {"sfp": Sfp(**common), "pem": Pem(oracle="cms", **common)}


def decode(protocol: AnyProtocol, worker: ClientWorker) -> tuple[float, int]:
    """Return the seconds of the server, and how many (row, key) pairs it looked up."""
    state = protocol.initialize()
    seconds, looked_up = 0.0, 0
    while (query := protocol.next_query(state)) is not None:
        answer = worker.answer(query, range(query.cohort.num_blocks))
        started = time.process_time()
        state = protocol.finish_round(state, query, answer.aggregate)
        seconds += time.process_time() - started
        summary = state.history[-1]
        looked_up += summary.num_candidates
        if isinstance(protocol, Sfp):
            looked_up += query.fragments.domain_size
    hashes = protocol.fragment_hashes if isinstance(protocol, Sfp) else protocol.num_hashes
    return seconds, looked_up * hashes


def seconds_per_look_up() -> float:
    """Return what a look-up costs where nothing is to be computed."""
    rng = np.random.default_rng(0)
    cells = rng.integers(CELLS, size=_SAMPLE)
    row = rng.integers(1000, size=CELLS)
    sums = np.empty(_SAMPLE, dtype=np.int64)
    started = time.process_time()
    for _ in range(_TIMES):
        np.take(row, cells, out=sums, mode="clip")
    return (time.process_time() - started) / _SAMPLE / _TIMES


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (at least 3)")
    add_options(parser)
    options = parser.parse_args()
    worker = ClientWorker(synthetic_population("chat", CLIENTS, seed=0), seed=0)
    rows = []
    print(f"{'protocol':<10}{'CPU s':>8}{'pairs':>10}{'ns each':>9}{'x look-up':>11}")
    for name, given in protocols().items():
        protocol = given.settle(num_clients=CLIENTS, seed=0)
        decode(protocol, worker)
        runs = [(*decode(protocol, worker), seconds_per_look_up()) for _ in range(options.rounds)]
        seconds = statistics.median(run[0] for run in runs)
        pairs = runs[0][1]
        ratio = statistics.median(run[0] / run[1] / run[2] for run in runs)
        rows.append({"protocol": name, "seconds": seconds, "pairs": pairs, "ratio": ratio})
        print(f"{name:<10}{seconds:8.2f}{pairs:10.1e}{seconds / pairs * 1e9:9.2f}{ratio:11.1f}")
    save(options, "decoding", rows)


if __name__ == "__main__":
    main()
