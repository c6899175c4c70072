"""What the three settings of Gboard's Table 1 cost together, next to drawing their clients once.

Greedy and random sampling ask the same clients in the same rounds, which are drawn once for both
(`fedhh.experiments.sweep.together`); two passes ask others. The clients are those of the preset,
fewer of them, and the ratio is for the preset's 15 million: what grows with the clients is
separated from what does not (the server, the noise of its tallies) by runs with a fifth of them.
Measures and accounting, which do not grow, are left out.

Times are processor time of one process. With --apart, also what they cost if nothing is shared.

Run: python -m benchmarks.table1 [--json FILE] [--clients N] [--apart]
"""

from __future__ import annotations

import argparse
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from benchmarks.measuring import add_options, save
from fedhh.clients.exact_tally import ExactTallyExecutor
from fedhh.clients.populations.population import Population
from fedhh.clients.shared_drawing import SharedDrawing
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.sweep.plan import load_sweep_table, parse_sweep
from fedhh.protocol import AnyProtocol
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor

BLOCK = 8_192
PRESET = "gboard-table1"


def main() -> None:
    """Print the ratios; save them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--clients", type=int, default=500_000)
    parser.add_argument("--apart", action="store_true", help="also without sharing")
    add_options(parser)
    options = parser.parse_args()
    few, many = options.clients // 5, options.clients
    plan = parse_sweep(*load_sweep_table(PRESET))
    full = plan.cells[0].config.population.clients or 0
    config = plan.cells[0].config.population.model_copy(update={"clients": many})
    population = build_population(config.model_copy(update={"virtual": True}), seed=0)[0]
    settings = [build_protocol(cell.config) for cell in plan.cells]
    # Compiled, and loaded, before the clock starts.
    _ = seconds_together([replace(settings[1], depth=2, clients_per_layer=100)], population)
    drawing = seconds_drawing(population, many) / many * full

    def seconds(*runs: AnyProtocol) -> float:
        """Return what runs take together with all clients, by those with few and with many."""
        taken = [
            seconds_together(
                [replace(p, clients_per_layer=int(p.clients_per_layer) * n // full) for p in runs],
                population,
            )
            for n in (few, many)
        ]
        return taken[0] + (taken[1] - taken[0]) / (many - few) * (full - few)

    greedy, random, two = settings
    pair, passes = seconds(greedy, random), seconds(two)
    row = {"clients": many, "drawing_all_s": drawing, "together": (pair + passes) / drawing}
    print(
        f"{full:,} clients: drawing them takes {drawing:.0f} s, Table 1 {row['together']:.2f} times"
        " as long"
    )
    if options.apart:
        row["apart"] = (seconds(greedy) + seconds(random) + passes) / drawing
        print(f"If nothing is shared, {row['apart']:.2f} times as long")
    save(options, "table1", [row])


def seconds_together(protocols: Sequence[AnyProtocol], population: Population) -> float:
    """Return what the rounds of protocols take that share their clients."""
    worker = ClientWorker(population, seed=0, counts=True)
    shared = SharedDrawing(InProcessExecutor(worker), len(protocols))

    def run(number: int) -> None:
        with shared.run(number) as own:
            for _ in rounds(protocols[number], ExactTallyExecutor(own, seed=0, always=True)):
                pass

    started = time.process_time()
    threads = [threading.Thread(target=run, args=(n,)) for n in range(len(protocols))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.process_time() - started


def seconds_drawing(population: Population, clients: int) -> float:
    """Return what drawing all clients takes."""
    started = time.process_time()
    for start in range(0, clients, BLOCK):
        population.block(np.arange(start, min(start + BLOCK, clients)))
    return time.process_time() - started


if __name__ == "__main__":
    main()
