"""How long `fedhh run` takes to stop after a signal, and what it leaves behind.

Each row stops runs with SIGINT or SIGTERM in one phase: while clients are drawn into memory, while
the truth is counted, and in a layer. A run must exit with 130. One second later none of the
processes that it had may be left.

Run: python -m benchmarks.stopping [--workers N] [--times N] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.measuring import add_options, save

RUN = [
    "run", "--preset", "gboard-random-one-pass", "--set", "protocol.clients_per_layer=200_000",
    "--set", "population.clients=800_000", "--set", "protocol.depth=4",
]  # fmt: skip

PHASES = ("drawing", "truth", "layer")


def stop_once(phase: str, stop: signal.Signals, workers: int, folder: Path) -> tuple[float, int]:
    """Return the seconds from the signal to the exit, and how many processes were left."""
    out = folder / "run"
    virtual = "false" if phase == "drawing" else "true"
    process = subprocess.Popen(
        [sys.executable, "-m", "fedhh", *RUN, "--set", f"population.virtual={virtual}",
         "--workers", str(workers), "--out", str(out)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    if phase == "drawing":
        time.sleep(3)
    else:
        last_sign = "config.toml" if phase == "truth" else "checkpoint/state.npz"
        while not (out / last_sign).exists() and process.poll() is None:
            time.sleep(0.02)
        time.sleep(1)
    family = psutil.Process(process.pid).children(recursive=True)
    start = time.perf_counter()
    process.send_signal(stop)
    status = process.wait(timeout=60)
    seconds = time.perf_counter() - start
    if status != 130:
        raise SystemExit(f"Expected exit code 130 in phase {phase}, got {status}.")
    time.sleep(1)
    return seconds, sum(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in family)


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--times", type=int, default=3, help="runs per row")
    add_options(parser)
    options = parser.parse_args()
    rows = []
    print(f"{'phase':<10}{'signal':<10}{'median s':>9}{'worst s':>9}{'left':>6}   load")
    for phase in PHASES:
        for stop in (signal.SIGINT, signal.SIGTERM):
            results = []
            for _ in range(options.times):
                with tempfile.TemporaryDirectory() as folder:
                    results.append(stop_once(phase, stop, options.workers, Path(folder)))
            row = {
                "phase": phase,
                "signal": stop.name,
                "workers": options.workers,
                "seconds": [seconds for seconds, _ in results],
                "processes_left": max(left for _, left in results),
                "load": os.getloadavg()[0],
            }
            rows.append(row)
            print(
                f"{phase:<10}{stop.name:<10}{statistics.median(row['seconds']):9.2f}"
                f"{max(row['seconds']):9.2f}{row['processes_left']:6d}{row['load']:7.1f}",
                flush=True,
            )
    save(options, "stopping", rows)


if __name__ == "__main__":
    main()
