"""What a second worker brings at Gboard's setting, and what crosses the network.

scaling: the same layers with one and with two Ray workers, in turn: wall-clock seconds of the
    layers after the first, which starts the actors; processor seconds of the workers, which other
    load on the machine changes less; and the ratios. The population is virtual, the setting
    gboard-random-one-pass with fewer clients and layers. Before that, bytes that a worker receives
    (the question) and sends (its aggregate) in each layer, pickled.
nodes: the layers of scaling on simulated clusters of 1, 2, 4 and 8 nodes of one core. Of processor
    seconds, what the workers take, what this process takes, and what Ray's own processes do. Nodes
    share the cores of this machine: the wall time of more nodes than it has cores says little.
"""

from __future__ import annotations

import os
import pickle
import statistics
import time
from typing import Any

import numpy as np
import psutil

from benchmarks.measuring import ROUNDS, Family, Rows, benchmark, cluster_of
from fedhh.clients.drawn import DrawnClients
from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.question import Aggregate
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.ray.executor import RayExecutor

CLIENTS, LAYERS = 300_000, 5


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
    actors = [p for p in family if "ray::Client" in " ".join(p.cmdline())]
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


def worker_of(clients: int) -> ClientWorker:
    """Return what answers for so many virtual clients."""
    return ClientWorker(DrawnClients("keyboard60d", clients, seed=0), seed=0)


@benchmark("nodes")
def nodes() -> Rows:
    """Yield a row for each number of nodes."""
    worker = worker_of(CLIENTS * LAYERS)
    for number in (1, 2, 4, 8):
        yield on_nodes(gboard(CLIENTS, LAYERS), worker, number)


@benchmark("scaling")
def scaling() -> Rows:
    """Yield bytes of layers, runs with one and two workers, and their ratios."""
    yield from bytes_of_layers(gboard(20_000, 15), worker_of(300_000))
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
