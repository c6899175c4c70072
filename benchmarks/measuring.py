"""What the benchmarks share: medians of tasks that take turns, and saved results."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np

from fedhh import __version__

RESULTS = Path(__file__).parent / "results"


def medians(
    tasks: Sequence[Callable[[], object]],
    *,
    rounds: int,
    calls: int = 1,
    clock: Callable[[], float] = time.thread_time,
) -> list[float]:
    """Return each task's median seconds per call; tasks take turns, the first round is warm-up.

    Args:
        tasks: What to call.
        rounds: Timed rounds; fewer than 3 are made 3.
        calls: How often each task is called in a round.
        clock: The thread's own time by default, which other programs on the machine disturb less.
    """
    seconds: list[list[float]] = [[] for _ in tasks]
    for turn in range(max(3, rounds) + 1):
        for task, taken in zip(tasks, seconds, strict=True):
            start = clock()
            for _ in range(calls):
                task()
            if turn:
                taken.append((clock() - start) / calls)
    return [statistics.median(taken) for taken in seconds]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what every benchmark takes."""
    parser.add_argument("--json", type=Path, help="save here; benchmarks/results/NAME.json if none")


def save(options: argparse.Namespace, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Save a benchmark's rows, with what they were measured on."""
    path: Path = options.json or RESULTS / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "benchmark": name,
        "date": datetime.date.today().isoformat(),
        "fedhh": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "rows": rows,
    }
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(f"Saved {path}")
