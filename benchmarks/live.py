"""What `--live` and the record of candidates cost a run, with a page that reads everything.

The default run's protocol on a chat population; processor seconds of the whole process, server
included. A run into a directory, which records its candidates, is held against one that does not;
and one that is followed, by a reader that asks for each piece as the page does, against one that
is not. Each is run in turn; the ratio is of the least of several.

Run: python -m benchmarks.live [--clients N] [--rounds N] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import add_options, save
from fedhh.cli.live import followed_run
from fedhh.clients.populations.synthetic import synthetic_population
from fedhh.experiments.run.run import Silence, simulate
from fedhh.server.adaptive_triehh import AdaptiveTrieHH


def read_all(address: str) -> None:
    """Follow a run as its page does: hear the events, and ask for each piece."""
    with urllib.request.urlopen(f"{address}events") as events:
        for line in events:
            if not line.startswith(b"data: {"):
                continue
            name = json.loads(line[6:]).get("chunk")
            if name is not None:
                with urllib.request.urlopen(f"{address}chunk/{name}") as answer:
                    answer.read()


def main() -> None:
    """Measure, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    add_options(parser)
    options = parser.parse_args()
    population = synthetic_population("chat", options.clients, seed=0)
    population.count()
    protocol = AdaptiveTrieHH(max_items=10, local_epsilon=8.0, alphabet="lower")

    def plain() -> None:
        simulate(protocol, population, seed=0)

    def recorded() -> None:
        with tempfile.TemporaryDirectory() as folder:
            simulate(protocol, population, seed=0, checkpoint_in=Path(folder))

    def followed() -> None:
        with tempfile.TemporaryDirectory() as folder, followed_run(Silence(), "T") as live:
            listener, server = live
            reader = threading.Thread(target=read_all, args=(server.address,))
            reader.start()
            simulate(protocol, population, seed=0, checkpoint_in=Path(folder), listener=listener)
        reader.join()

    tasks: dict[str, Callable[[], None]] = {
        "plain": plain, "recorded": recorded, "followed": followed,
    }  # fmt: skip
    plain()
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
