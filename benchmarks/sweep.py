"""How much of the cores a sweep of 27 small cells uses, and what it takes.

Three epsilons, three numbers of clients and three protocols, over 17,060 clients of a file: drawn
by the model `chat` and written as Parquet, or given. Between the first cell's start and the last
one's end, the processor seconds of all processes over the clock's, times the number of workers, is
the share of cores in use; on a machine where other programs run, the share of that time in which
cells ran says more, which counts seconds by the clock.

Run: python -m benchmarks.sweep [--data FILE] [--workers N] [--json FILE]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from benchmarks.measuring import Family, add_options, save
from fedhh.clients.populations.synthetic import synthetic_population
from fedhh.clients.reading.sources import write_population
from fedhh.experiments.sweep.execution import Silence
from fedhh.experiments.sweep.plan import parse_sweep
from fedhh.experiments.sweep.sweep import PopulationStore, run_sweep

CLIENTS = 17_060


class Watch(Silence):
    """Hears when cells run, and looks at the processor's time then."""

    def __init__(self) -> None:
        self.family = Family(psutil.Process())
        self.marks: list[tuple[float, float]] = []
        self.cells: list[float] = []

    def mark(self) -> None:
        """Note both times."""
        self.marks.append((time.perf_counter(), self.family.seconds()))

    def begin(self, cell: Any) -> None:
        """Note a cell's start."""
        self.mark()

    def finish(self, cell: Any, record: dict[str, Any]) -> None:
        """Note a cell's end."""
        if record["status"] != "done":
            raise SystemExit(f"Expected every cell to be done, got: {record['error']}.")
        self.cells.append(record["timings"]["seconds"])
        self.mark()


def table_of(data: Path) -> dict[str, Any]:
    """Return the sweep, as its file would have it."""
    return {
        "population": {"source": str(data)},
        "protocol": {"depth": 10},
        "sweep": {
            "seeds": 1,
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
    add_options(parser)
    options = parser.parse_args()
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        data = options.data
        if data is None:
            data = Path(folder) / "clients.parquet"
            write_population(synthetic_population("chat", CLIENTS, seed=0), data)
        watch.mark()
        store = PopulationStore()
        plan = parse_sweep(table_of(data), "benchmark", num_clients=store.num_clients)
        run_sweep(plan, Path(folder) / "out", workers=options.workers, listener=watch, store=store)
        watch.mark()
    (started, before), (first, used), *_, (last, used_by), (ended, after) = watch.marks
    cores = max(1, options.workers)
    row = {
        "cells": len(watch.cells),
        "workers": options.workers,
        "wall_s": ended - started,
        "cpu_s": after - before,
        "before_cells_s": first - started,
        "cells_s": last - first,
        "after_cells_s": ended - last,
        "share_of_cores": (used_by - used) / (last - first) / cores,
        "share_with_a_cell": sum(watch.cells) / (last - first) / cores,
    }
    print(
        f"{row['cells']} cells, {options.workers} workers: {row['wall_s']:.1f} s by the clock, "
        f"{row['cpu_s']:.1f} CPU-s;\nbefore the first cell {row['before_cells_s']:.1f} s, cells "
        f"{row['cells_s']:.1f} s, after them {row['after_cells_s']:.1f} s;\nwhile cells run, "
        f"{row['share_of_cores']:.0%} of the cores in use, and {row['share_with_a_cell']:.0%} of "
        "the workers' time in cells"
    )
    save(options, "sweep", [row])


if __name__ == "__main__":
    main()
