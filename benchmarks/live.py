"""What the record of candidates and `--live` cost the default run, a page reading everything.

Adaptive TrieHH with the default preset's settings, from drawing the clients to the account of
privacy; processor seconds of the whole process, threads that serve the page included. A run into a
directory, which keeps a checkpoint and records its candidates, is held against one that does not;
and one that is followed, by a reader that asks for each piece as the page does, against one that is
not. They take turns; ratios are of the least of several.

Run: python -m benchmarks.live [--clients N] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import add_options, save
from fedhh.experiments.config.load import load_config
from fedhh.experiments.config.population import build_population
from fedhh.experiments.report.explorer.live import LiveRun, live_run
from fedhh.experiments.run.run import run_config
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.kinds import LivePage

READER = """
import json, sys, urllib.request
address = sys.argv[1]
for line in urllib.request.urlopen(f"{address}events"):
    if line.startswith(b"data: {") and "chunk" in (said := json.loads(line[6:])):
        urllib.request.urlopen(f"{address}chunk/{said['chunk']}").read()
"""
"""Follows a run as its page does: receives the events, and asks for each piece."""


def main() -> None:
    """Measure, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    add_options(parser)
    options = parser.parse_args()
    config = load_config(
        settings=[
            f"population.clients={options.clients}", "baseline=none", "execution.workers=0",
        ]
    )  # fmt: skip

    def run(callbacks: list[Callbacks], folder: Path | None) -> None:
        population, _ = build_population(config.population, seed=config.seed)
        checkpoint_in = None if folder is None else lambda _: folder
        run_config(config, population, callbacks=callbacks, checkpoint_in=checkpoint_in)

    def plain() -> None:
        run([], None)

    def recorded() -> None:
        with tempfile.TemporaryDirectory() as folder:
            run([], Path(folder))

    def followed() -> None:
        server = live_run("T")
        page = LivePage(server=server, callbacks=LiveRun(server))
        with tempfile.TemporaryDirectory() as folder, followed(page):
            reader = subprocess.Popen([sys.executable, "-c", READER, server.address])
            run([page.callbacks], Path(folder))
        reader.wait()

    tasks: dict[str, Callable[[], None]] = {
        "plain": plain, "recorded": recorded, "followed": followed,
    }  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(options.rounds):
        for name, task in tasks.items():
            started = time.process_time()
            task()
            seconds[name].append(time.process_time() - started)
    least = {name: min(each) for name, each in seconds.items()}
    results = {
        "clients": options.clients,
        "cpu_seconds": least,
        "recorded_over_plain": least["recorded"] / least["plain"],
        "followed_over_recorded": least["followed"] / least["recorded"],
    }
    for name, value in results.items():
        print(f"{name}: {value}")
    save(options, "live", [results])


if __name__ == "__main__":
    main()
