"""What whole commands take: wall time, and processor seconds of all their processes.

The ratio is of processor seconds, to drawing the default population once in this process. "The
first time" is a command with an empty place for compiled code; the others should be compiled, so
after a change of kernels the second run of this benchmark counts.

Run: python -m benchmarks.commands [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.measuring import Family, add_options, medians, save
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population

COMMANDS = {
    "run --workers 0": ["run", "--workers", "0"],
    "run --preset small --workers 0": ["run", "--preset", "small", "--workers", "0"],
}
FIRST = "run --preset small --workers 0"


def seconds_of(words: list[str], folder: Path, compiled: Path | None = None) -> tuple[float, float]:
    """Return the wall time and the processor seconds that a command takes."""
    own = {} if compiled is None else {"NUMBA_CACHE_DIR": str(compiled)}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "fedhh", *words, "--out", str(folder / "run")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **own},
    )
    family = Family(psutil.Process(process.pid))
    while process.poll() is None:
        family.seconds()
        time.sleep(0.1)
    if process.returncode:
        raise SystemExit(f"Expected exit code 0 of {words}, got {process.returncode}.")
    return time.perf_counter() - started, family.seconds()


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=1, help="times each; the fastest counts")
    add_options(parser)
    options = parser.parse_args()
    config = load_config()
    (drawing,) = medians(
        [lambda: build_population(config.population, seed=config.seed)],
        rounds=3,
        clock=time.process_time,
    )
    rows = []
    print(f"drawing the default population: {drawing:.2f} s")
    print(f"{'command':<48}{'wall s':>8}{'CPU s':>8}{'x drawing':>11}")
    for name, words in (*COMMANDS.items(), (f"{FIRST}, the first time", COMMANDS[FIRST])):
        taken = []
        for _ in range(max(1, options.rounds)):
            with tempfile.TemporaryDirectory() as folder:
                compiled = Path(folder) / "compiled" if name.endswith("time") else None
                taken.append(seconds_of(words, Path(folder), compiled))
        wall, processor = map(min, zip(*taken, strict=True))
        row = {"command": name, "wall_s": wall, "cpu_s": processor, "ratio": processor / drawing}
        rows.append(row)
        print(f"{name:<48}{wall:8.1f}{processor:8.1f}{row['ratio']:11.1f}", flush=True)
    save(options, "commands", rows)


if __name__ == "__main__":
    main()
