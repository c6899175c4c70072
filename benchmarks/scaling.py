"""What a second worker brings at Gboard's setting, what crosses the network, what merging costs.

1. The same layers with one and with two Ray workers, in turn: wall-clock seconds of the layers
   after the first, which starts the actors; processor seconds of the workers, which other load on
   the machine changes less; and the ratio. The population is virtual, the setting
   gboard-random-one-pass with fewer clients and layers.
2. Bytes that a worker receives (the query) and sends (its aggregate) in each layer, pickled.
3. Milliseconds that an actor takes for each further aggregate of 8 MB that it merges.
4. With --merging-workers W: the tree in which aggregates of 8 MB of W workers on --merging-nodes
   simulated nodes are merged: its steps, what one of them takes, what this process takes. And how
   many calls to workers this process makes in a second of its processor time.
5. With --nodes: the layers of 1. on simulated clusters of so many nodes of one core. Of processor
   seconds, what the workers take, what this process takes, and what Ray's own processes do. Nodes
   share the cores of this machine: the wall time of more nodes than it has cores says little.

Run: python -m benchmarks.scaling [--clients N] [--layers N] [--json FILE]
    [--merging-workers W | --nodes N...]
"""

from __future__ import annotations

import argparse
import itertools
import os
import pickle
import statistics
import time
from typing import Any

import numpy as np
import psutil
import ray

from benchmarks.measuring import Family, add_options, cluster_of, save
from fedhh.clients.populations.virtual import VirtualPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.queries.base import Aggregate, Answer, Diagnostics
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.ray.actors import RayActors, _ClientActor
from fedhh.simulation.ray.executor import RayExecutor

TALLY = 1_000_001
MERGED = (2, 16)


def gboard(clients: int, layers: int) -> LdpTrieHH:
    """Return the preset's protocol with other numbers of clients and layers."""
    return LdpTrieHH(
        clients_per_layer=clients, depth=layers, passes=1, eta_max=10_000, max_items=60,
        local_epsilon=10.0, alphabet="printable", ties="paper", skip_free_layers=False,
        subset_size="paper",
    )  # fmt: skip


def actor_seconds() -> float:
    """Return the processor time of the client actors so far."""
    family = psutil.Process().children(recursive=True)
    actors = [p for p in family if "_ClientActor" in " ".join(p.cmdline())]
    return sum(sum(p.cpu_times()[:2]) for p in actors)


def run_layers(protocol: LdpTrieHH, worker: ClientWorker, num_workers: int) -> dict[str, Any]:
    """Return seconds of the layers after the first."""
    with RayExecutor(worker, num_workers=num_workers) as executor:
        wall, processor = [], []
        for _ in rounds(protocol, executor):
            wall.append(time.perf_counter())
            processor.append(actor_seconds())
    return {
        "workers": num_workers,
        "layers": len(wall) - 1,
        "wall_s": wall[-1] - wall[0],
        "cpu_s": processor[-1] - processor[0],
        "load": os.getloadavg()[0],
    }


def on_nodes(protocol: LdpTrieHH, worker: ClientWorker, num_nodes: int) -> dict[str, Any]:
    """Return seconds of a layer, of those after the first, on nodes of one core."""
    with (
        cluster_of(num_nodes) as address,
        RayExecutor(worker, num_workers=num_nodes, address=address) as executor,
    ):
        family = Family(psutil.Process())
        marks = []
        for _ in rounds(protocol, executor):
            here = sum(psutil.Process().cpu_times()[:2])
            marks.append((time.perf_counter(), family.seconds(), actor_seconds(), here))
    layers = len(marks) - 1
    wall, everything, workers, here = (
        (last - first) / layers for first, last in zip(marks[0], marks[-1], strict=True)
    )
    return {
        "nodes": num_nodes,
        "wall_s": wall,
        "workers_cpu_s": workers,
        "here_cpu_s": here,
        "ray_cpu_s": everything - workers - here,
    }


def bytes_of_layers(protocol: LdpTrieHH, worker: ClientWorker) -> list[dict[str, int]]:
    """Return the pickled sizes of every layer's query and of an aggregate of it."""
    rows = []
    for finished in rounds(protocol, InProcessExecutor(worker)):
        tally = np.zeros(finished.query.tally_size, dtype=np.int64)
        aggregate = Aggregate(tally=tally, num_reports=1, num_clients=1)
        answer = Answer(aggregate=aggregate, diagnostics=Diagnostics())
        rows.append(
            {
                "layer": finished.query.layer,
                "query_bytes": len(pickle.dumps(finished.query, protocol=5)),
                "aggregate_bytes": len(pickle.dumps(answer, protocol=5)),
            }
        )
    return rows


def an_answer(num_clients: int, tally_size: int = TALLY) -> Answer:
    """Return an answer whose tally takes 8 MB, or as much as is said."""
    tally = np.ones(tally_size, dtype=np.int64)
    aggregate = Aggregate(tally=tally, num_reports=num_clients, num_clients=num_clients)
    return Answer(aggregate=aggregate, diagnostics=Diagnostics())


class AtOnce:
    """A worker that answers for a client of each block at once, by a tally of some size."""

    def __init__(self, tally_size: int) -> None:
        self._tally_size = tally_size

    def answer(self, query: Any, blocks: Any, progress: Any = None, *, onto: Any = None) -> Answer:
        answer = an_answer(len(blocks), self._tally_size)
        return answer if onto is None else onto.merge(answer)


def merging(num_workers: int, num_nodes: int) -> dict[str, Any]:
    """Return how the answers of many workers on simulated nodes are merged."""
    groups: list[list[str]] = []
    fetched: list[int] = []
    merged, get = RayActors._merged, RayActors._get
    RayActors._merged = lambda self, group: (  # type: ignore[method-assign]
        groups.append([node for node, *_ in group]) or merged(self, group)
    )
    RayActors._get = lambda self, refs: (  # type: ignore[method-assign]
        fetched.append(len(refs)) or get(self, refs)
    )
    protocol = gboard(num_workers * 4_000, 2)
    query = protocol.next_query(protocol.initialize())
    seconds = []
    with (
        cluster_of(num_nodes, num_workers // num_nodes) as address,
        RayExecutor(AtOnce(TALLY), num_workers=num_workers, address=address) as executor,
    ):
        for _ in range(4):
            groups.clear()
            fetched.clear()
            started = time.perf_counter()
            (answer,) = executor.answer(query)
            seconds.append(time.perf_counter() - started)
            assert answer.aggregate.num_clients == query.cohort.num_blocks
            assert (answer.aggregate.tally == answer.aggregate.tally[0]).all()
        workers = len(executor.clients)
        executor._actors.hold(AtOnce(10))
        steps = [group for group in groups if len(group) > 1]
        megabytes_here = 8 * sum(fetched)
        rate = calls_per_second(executor, gboard(num_workers * 1_000_000, 2))
    return {
        "workers": workers,
        "nodes": num_nodes,
        "merges": len(steps),
        "most_merged_at_once": max(map(len, steps)),
        "mb_between_nodes": 8 * sum(node != group[0] for group in steps for node in group),
        "mb_to_this_process": megabytes_here,
        "mb_flat": 8 * workers,
        "seconds": min(seconds),
        "calls_per_cpu_s": rate,
    }


def calls_per_second(executor: RayExecutor, protocol: LdpTrieHH) -> float:
    """Return how many calls this process makes and hears of in a second of its time, at best."""
    query = protocol.next_query(protocol.initialize())
    received, count = RayExecutor._received, itertools.count()
    RayExecutor._received = lambda self, share, reference: (  # type: ignore[method-assign]
        next(count) >= 0 and received(self, share, reference)
    )
    rates = []
    for _ in range(4):
        before, started = next(count), time.process_time()
        next(executor.answer(query))
        rates.append((next(count) - before) / (time.process_time() - started))
    RayExecutor._received = received  # type: ignore[method-assign]
    return max(rates)


def merge_ms(times: int = 7) -> float:
    """Return an actor's milliseconds for each further aggregate."""
    ray.init(
        address="local", num_cpus=1, include_dashboard=False, log_to_driver=False,
        logging_level="ERROR",
    )  # fmt: skip
    actor = ray.remote(num_cpus=0)(_ClientActor).remote()
    answer = an_answer(1)
    references = [ray.put(answer) for _ in range(max(MERGED))]
    taken: list[float] = []
    for number in MERGED:
        seconds = []
        for _ in range(times):
            started = time.perf_counter()
            ray.get(actor.merge.remote(*references[:number]))
            seconds.append(time.perf_counter() - started)
        taken.append(statistics.median(seconds[1:]))
    ray.shutdown()
    return (taken[1] - taken[0]) / (MERGED[1] - MERGED[0]) * 1e3


def main() -> None:
    """Print the tables; save them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--clients", type=int, default=300_000, help="per layer")
    parser.add_argument("--layers", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3, help="pairs of runs (at least 3)")
    parser.add_argument("--merging-workers", type=int, default=0)
    parser.add_argument("--merging-nodes", type=int, default=8)
    parser.add_argument("--nodes", type=int, nargs="*", default=[])
    add_options(parser)
    options = parser.parse_args()
    if options.merging_workers:
        tree = merging(options.merging_workers, options.merging_nodes)
        for key, value in tree.items():
            print(f"{key.replace('_', ' '):>22} {value:,.4g}")
        save(options, "merging", [tree])
        return
    protocol = gboard(options.clients, options.layers)
    population = VirtualPopulation("keyboard60d", options.clients * options.layers, seed=0)
    worker = ClientWorker(population, seed=0)
    if options.nodes:
        rows = []
        for number in options.nodes:
            rows.append(on_nodes(protocol, worker, number))
            print({key: round(value, 3) for key, value in rows[-1].items()}, flush=True)
        save(options, "nodes", rows)
        return
    further = merge_ms()
    print(f"merging one more aggregate of 8 MB: {further:.1f} ms")
    small = gboard(20_000, 15)
    crossing = bytes_of_layers(
        small, ClientWorker(VirtualPopulation("keyboard60d", 300_000, seed=0), seed=0)
    )
    print(f"{'layer':>5}{'query kB':>10}{'aggregate kB':>14}")
    for row in crossing:
        print(
            f"{row['layer']:5d}{row['query_bytes'] / 1e3:10.1f}{row['aggregate_bytes'] / 1e3:14.1f}"
        )
    runs: list[dict[str, Any]] = []
    print(f"{'workers':>7}{'wall s':>9}{'CPU s':>9}{'load':>7}")
    for _ in range(max(3, options.rounds)):
        for workers in (1, 2):
            runs.append(run_layers(protocol, worker, workers))
            row = runs[-1]
            print(
                f"{workers:7d}{row['wall_s']:9.2f}{row['cpu_s']:9.2f}{row['load']:7.1f}", flush=True
            )
    wall, processor = (
        [statistics.median(run[key] for run in runs if run["workers"] == n) for n in (1, 2)]
        for key in ("wall_s", "cpu_s")
    )
    print(f"two workers are {wall[0] / wall[1]:.2f} times as fast as one, in wall time;")
    print(f"they take {processor[1] / processor[0]:.2f} times the processor time of one")
    save(
        options,
        "scaling",
        [{"merge_ms": further, "layers": crossing, "runs": runs, "speedup": wall[0] / wall[1]}],
    )


if __name__ == "__main__":
    main()
