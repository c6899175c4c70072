"""Runs on a prepared directory against runs on the same clients in memory.

Processor seconds of the rounds of runs in this process, in turn, the least of each, and their
ratio; and what preparing takes. Clients are chat's; both runs ask the same ones in the same order.

Run: python -m benchmarks.prepared [--clients N] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import add_options, save
from fedhh.clients.populations.population import Population, StoredPopulation
from fedhh.clients.populations.prepared import open_prepared
from fedhh.clients.populations.synthetic import population_presets
from fedhh.clients.reading.synthesizing import prepare_synthetic
from fedhh.clients.worker import ClientWorker
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor


def seconds_of_rounds(population: Population, clients: int) -> float:
    """Return the processor time of a run's rounds after the first, which compiles kernels."""
    protocol = LdpTrieHH(passes=1, depth=10, clients_per_layer=clients // 10, eta_max=1_000)
    follow = rounds(protocol, InProcessExecutor(ClientWorker(population, seed=0)))
    next(follow)
    started = time.process_time()
    for _ in follow:
        pass
    return time.process_time() - started


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="runs of each")
    add_options(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "clients"
        started = time.process_time()
        manifest = prepare_synthetic(population_presets()["chat"], options.clients, out, seed=0)
        preparing = time.process_time() - started
        mapped = open_prepared(out)
        items = mapped.items
        held = StoredPopulation(
            name="held",
            lexicon=mapped.lexicon,
            offsets=items.offsets.copy(),
            word_ids=items.word_ids.copy(),
            counts=items.counts.copy(),
        )
        taken: dict[str, list[float]] = {"mapped": [], "in memory": []}
        for _ in range(options.rounds):
            taken["mapped"].append(seconds_of_rounds(mapped, options.clients))
            taken["in memory"].append(seconds_of_rounds(held, options.clients))
    least = {name: min(seconds) for name, seconds in taken.items()}
    ratio = least["mapped"] / least["in memory"]
    print(f"{options.clients:,} clients, {manifest.rows:,} rows")
    print(f"preparing: {preparing:.1f} CPU s, {preparing / manifest.rows * 1e6:.2f} us per row")
    for name, seconds in least.items():
        print(f"{name:>10}: {seconds:.2f} CPU s for nine layers")
    print(f"mapped / in memory: {ratio:.2f}")
    save(
        options,
        "prepared",
        [{"rows": manifest.rows, "preparing_s": preparing, **least, "ratio": ratio}],
    )


if __name__ == "__main__":
    main()
