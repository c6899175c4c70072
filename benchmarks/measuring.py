"""What the benchmarks share: their names, medians of tasks that take turns, saved results."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
import psutil

from fedhh import __version__

RESULTS = Path(__file__).parent / "results"
ROUNDS = 3

Rows = Iterator[dict[str, Any]]

BENCHMARKS: dict[str, Callable[[], Rows]] = {}


def benchmark(name: str) -> Callable[[Callable[[], Rows]], Callable[[], Rows]]:
    """Register a function that yields rows: `python -m benchmarks NAME` prints and saves them."""

    def register(function: Callable[[], Rows]) -> Callable[[], Rows]:
        BENCHMARKS[name] = function
        return function

    return register


def medians(
    tasks: Sequence[Callable[[], object]], *, clock: Callable[[], float] = time.thread_time
) -> list[float]:
    """Return each task's median seconds; tasks take turns, and the first turn is warm-up.

    Args:
        tasks: What to call.
        clock: The thread's own time by default, which other programs on the machine disturb less.
    """
    seconds: list[list[float]] = [[] for _ in tasks]
    for turn in range(ROUNDS + 1):
        for task, taken in zip(tasks, seconds, strict=True):
            start = clock()
            task()
            if turn:
                taken.append(clock() - start)
    return [statistics.median(taken) for taken in seconds]


def machine() -> dict[str, Any]:
    """Return the processor's model, its caches as the system tells them, cores and memory."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    caches = {}
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        level, kind, size = (
            (folder / name).read_text(encoding="ascii").strip()
            for name in ("level", "type", "size")
        )
        caches[f"L{level} {kind.lower()}"] = size
    return {
        "cpu": names[0] if names else platform.processor(),
        "caches": caches,
        "cores": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }


class Family:
    """The processor seconds of a process and all below it, also of those that have ended.

    What a process used after it was last looked at is missed.
    """

    def __init__(self, process: psutil.Process) -> None:
        """Follow a process."""
        self._process = process
        self._seconds: dict[int, float] = {}

    def seconds(self) -> float:
        """Look at all processes, and return what they have used so far."""
        with suppress(psutil.Error):
            for each in (self._process, *self._process.children(recursive=True)):
                with suppress(psutil.Error):
                    self._seconds[each.pid] = sum(each.cpu_times()[:2])
        return sum(self._seconds.values())


@contextmanager
def cluster_of(num_nodes: int, cores: int = 1) -> Iterator[str]:
    """Simulate a Ray cluster of so many nodes, each with some cores, and return its address."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    for _ in range(num_nodes):
        cluster.add_node(num_cpus=cores)
    cluster.wait_for_nodes()
    try:
        yield cluster.address
    finally:
        ray.shutdown()
        cluster.shutdown()


def show(rows: Rows) -> Rows:
    """Print rows as they come, under their names where these change, and yield them."""
    widths: dict[str, int] = {}
    for row in rows:
        cells = {key: _cell(value) for key, value in row.items()}
        if list(cells) != list(widths):
            widths = {key: max(len(key), len(cell), 8) for key, cell in cells.items()}
            print("  ".join(key.rjust(width) for key, width in widths.items()))
        print("  ".join(cells[key].rjust(width) for key, width in widths.items()), flush=True)
        yield row


def _cell(value: object) -> str:
    return (
        f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if (isinstance(value, int) and not isinstance(value, bool))
        else str(value)
    )


def save(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Save a benchmark's rows, with what they were measured on."""
    RESULTS.mkdir(exist_ok=True)
    record = {
        "benchmark": name,
        "date": datetime.date.today().isoformat(),
        "fedhh": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "machine": machine(),
        "load": os.getloadavg()[0],
        "rows": rows,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"Saved {path}")
