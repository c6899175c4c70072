"""How much of the cores a sweep of 27 small cells uses, and what it takes.

Three epsilons, three numbers of clients and three protocols, over 17,060 clients of a file: drawn
by the model `chat` and written as Parquet, or given. Between the first cell's start and the last
one's end: the processor seconds of all processes, as a share of what the cores had left next to
other programs (their own and the idle seconds together); and the share of the workers' wall
time in which they ran a cell.

With --nodes, the workers are the cores of a simulated cluster: that many nodes of one core, and a
head without. More nodes than this machine has cores share them, so that every cell takes longer.

Run: python -m benchmarks.sweep [--data FILE] [--workers N] [--nodes N] [--seeds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measuring import Family, add_options, cluster_of, save
from fedhh.clients.populations.synthetic import synthetic_population
from fedhh.clients.reading.sources import write_population
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.experiments.sweep.sweep import PopulationStore, run_sweep

CLIENTS = 17_060


class Watch(Callbacks):
    """Receives when cells run, and looks at the processor's time then."""

    def __init__(self) -> None:
        self.family = Family(psutil.Process())
        self.marks: list[tuple[float, float, float]] = []
        self.cells: list[float] = []

    def mark(self) -> None:
        """Note the clock, the processor seconds of all processes, and the machine's idle ones."""
        self.marks.append((time.perf_counter(), self.family.seconds(), psutil.cpu_times().idle))

    def begin(self, unit: str) -> None:
        """Note a cell's start."""
        self.mark()

    def finish(self, unit: str, result: Any) -> None:
        """Note a cell's end."""
        record = result.record
        if record["status"] != "done":
            raise SystemExit(f"Expected every cell to be done, got: {record['error']}.")
        self.cells.append(record["timings"]["seconds"])
        self.mark()


def table_of(data: Path, seeds: int) -> dict[str, Any]:
    """Return the sweep, as its file would have it."""
    return {
        "population": {"source": str(data)},
        "protocol": {"depth": 10},
        "sweep": {
            "seeds": seeds,
            "axes": {
                "privacy.local_epsilon": [4, 6, 8],
                "population.clients": [6_000, 12_000, CLIENTS],
            },
            "protocols": {
                "TrieHH": {"name": "ldp-triehh", "passes": 1, "eta_max": 300},
                "SFP": {"name": "sfp"},
                "PEM": {"name": "pem"},
            },
        },
    }


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, help="a file of at least 17,060 clients")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=0, help="of a simulated cluster")
    parser.add_argument("--seeds", type=int, default=1, help="of each cell")
    add_options(parser)
    options = parser.parse_args()
    watch = Watch()
    workers = options.nodes or options.workers
    with tempfile.TemporaryDirectory() as folder:
        data = options.data
        if data is None:
            data = Path(folder) / "clients.parquet"
            write_population(synthetic_population("chat", CLIENTS, seed=0), data)
        watch.mark()
        store = PopulationStore()
        plan = parse_sweep(
            table_of(data, options.seeds), "benchmark", num_clients=store.num_clients
        )
        with cluster_of(options.nodes) if options.nodes else nullcontext("") as address:
            run_sweep(
                plan,
                Path(folder) / "out",
                workers=workers,
                ray_address=address,
                callbacks=[watch],
                store=store,
            )
        watch.mark()
    started, first, *_, last, ended = watch.marks
    cells_s, cells_cpu_s, idle_s = (end - begin for begin, end in zip(first, last, strict=True))
    row = {
        "cells": len(watch.cells),
        "workers": workers,
        "nodes": options.nodes,
        "wall_s": ended[0] - started[0],
        "cpu_s": ended[1] - started[1],
        "before_cells_s": first[0] - started[0],
        "cells_s": cells_s,
        "after_cells_s": ended[0] - last[0],
        "share_of_cores": cells_cpu_s / (cells_cpu_s + idle_s),
        "share_at_a_cell": sum(watch.cells) / cells_s / max(1, workers),
    }
    print(
        f"{row['cells']} cells, {workers} workers: {row['wall_s']:.1f} s wall time, "
        f"{row['cpu_s']:.1f} CPU-s;\nbefore the first cell {row['before_cells_s']:.1f} s, cells "
        f"{row['cells_s']:.1f} s, after them {row['after_cells_s']:.1f} s;\nwhile cells run, "
        f"{row['share_of_cores']:.0%} of the cores' free time in use, and "
        f"{row['share_at_a_cell']:.0%} of the workers' time at a cell"
    )
    save(options, "sweep", [row])


if __name__ == "__main__":
    main()
