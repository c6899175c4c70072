"""What a second worker brings at Gboard's setting, what crosses the network, what merging costs.

scaling: the same layers with one and with two Ray workers, in turn: wall-clock seconds of the
    layers after the first, which starts the actors; processor seconds of the workers, which other
    load on the machine changes less; and the ratios. The population is virtual, the setting
    gboard-random-one-pass with fewer clients and layers. Before that, bytes that a worker receives
    (the question) and sends (its aggregate) in each layer, pickled, and milliseconds that an actor
    takes for each further aggregate of 8 MB that it merges.
merging: the tree in which aggregates of 8 MB of 64 workers on eight simulated nodes are merged: its
    steps, and what this process takes. And how many calls to workers this process makes in a
    second of its processor time.
nodes: the layers of scaling on simulated clusters of 1, 2, 4 and 8 nodes of one core. Of processor
    seconds, what the workers take, what this process takes, and what Ray's own processes do. Nodes
    share the cores of this machine: the wall time of more nodes than it has cores says little.
"""

from __future__ import annotations

import itertools
import os
import pickle
import statistics
import time
from typing import Any

import numpy as np
import psutil
import ray

from benchmarks.measuring import ROUNDS, Family, Rows, benchmark, cluster_of
from fedhh.clients.populations.virtual import VirtualPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.question import Aggregate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Broadcast, InProcessExecutor, merged
from fedhh.simulation.ray.actors import RayActors, _ClientActor
from fedhh.simulation.ray.executor import RayExecutor

TALLY = 1_000_001
CLIENTS, LAYERS = 300_000, 5
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


def bytes_of_layers(protocol: LdpTrieHH, worker: ClientWorker) -> Rows:
    """Yield the pickled sizes of every layer's question and of an aggregate of it."""
    for finished in rounds(protocol, InProcessExecutor(worker)):
        tally = np.zeros(finished.question.tally_size, dtype=np.int64)
        aggregate = Aggregate(tally=tally, num_reports=1, num_clients=1)
        answer = Answer(aggregate=aggregate, diagnostics=Diagnostics())
        yield {
            "layer": finished.question.layer,
            "query_bytes": len(pickle.dumps(finished.question, protocol=5)),
            "aggregate_bytes": len(pickle.dumps(answer, protocol=5)),
        }


def an_answer(num_clients: int, tally_size: int = TALLY) -> Answer:
    """Return an answer whose tally takes 8 MB, or as much as is said."""
    tally = np.ones(tally_size, dtype=np.int64)
    aggregate = Aggregate(tally=tally, num_reports=num_clients, num_clients=num_clients)
    return Answer(aggregate=aggregate, diagnostics=Diagnostics())


class AtOnce:
    """A worker that answers for a client of each block at once, by a tally of some size."""

    def __init__(self, tally_size: int) -> None:
        self._tally_size = tally_size

    def answer(
        self, broadcast: Any, blocks: Any, progress: Any = None, *, onto: Any = None
    ) -> list[Answer]:
        answers = [an_answer(len(blocks), self._tally_size)]
        return answers if onto is None else merged([onto, answers])


@benchmark("merging")
def merging(num_workers: int = 64, num_nodes: int = 8) -> Rows:
    """Yield how the answers of many workers on simulated nodes are merged."""
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
    question = protocol.next_question(protocol.initialize())
    seconds = []
    with (
        cluster_of(num_nodes, num_workers // num_nodes) as address,
        RayExecutor(AtOnce(TALLY), num_workers=num_workers, address=address) as executor,
    ):
        for _ in range(4):
            groups.clear()
            fetched.clear()
            started = time.perf_counter()
            (answer,) = executor.answer(Broadcast.to_all(question))
            seconds.append(time.perf_counter() - started)
            assert answer.aggregate.num_clients == question.cohort.num_blocks
            assert (answer.aggregate.tally == answer.aggregate.tally[0]).all()
        workers = len(executor.clients)
        executor._actors.hold(AtOnce(10))
        steps = [group for group in groups if len(group) > 1]
        megabytes_here = 8 * sum(fetched)
        rate = calls_per_second(executor, gboard(num_workers * 1_000_000, 2))
    yield {
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
    question = protocol.next_question(protocol.initialize())
    received, count = RayExecutor._received, itertools.count()
    RayExecutor._received = lambda self, share, reference: (  # type: ignore[method-assign]
        next(count) >= 0 and received(self, share, reference)
    )
    rates = []
    for _ in range(4):
        before, started = next(count), time.process_time()
        executor.answer(Broadcast.to_all(question))
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


def worker_of(clients: int) -> ClientWorker:
    """Return what answers for so many virtual clients."""
    return ClientWorker(VirtualPopulation("keyboard60d", clients, seed=0), seed=0)


@benchmark("nodes")
def nodes() -> Rows:
    """Yield a row for each number of nodes."""
    worker = worker_of(CLIENTS * LAYERS)
    for number in (1, 2, 4, 8):
        yield on_nodes(gboard(CLIENTS, LAYERS), worker, number)


@benchmark("scaling")
def scaling() -> Rows:
    """Yield bytes of layers, an actor's time to merge, runs with one and two workers, ratios."""
    yield from bytes_of_layers(gboard(20_000, 15), worker_of(300_000))
    yield {"merge_ms": merge_ms()}
    worker = worker_of(CLIENTS * LAYERS)
    runs: list[dict[str, Any]] = []
    for _ in range(ROUNDS):
        for workers in (1, 2):
            runs.append(run_layers(gboard(CLIENTS, LAYERS), worker, workers))
            yield runs[-1]
    wall, processor = (
        [statistics.median(run[key] for run in runs if run["workers"] == n) for n in (1, 2)]
        for key in ("wall_s", "cpu_s")
    )
    yield {"speedup": wall[0] / wall[1], "cpu_of_two_to_one": processor[1] / processor[0]}
