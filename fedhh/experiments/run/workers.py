"""How many processes answer for clients, and the way to them.

One rule stands behind ``execution.workers = "auto"``.

A Ray cluster whose address is given is used, with a worker for each of its cores that is free. Else
a local Ray is started, with a worker for each core of this machine, if that saves more than Ray's
start and end take; the clients are asked in this process otherwise. What is saved is estimated from
the number of answers alone, see `seconds_of_answers`: what comes out is the same in every case.
"""

from __future__ import annotations

import logging
import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedhh.accounting.plan import Plan
from fedhh.clients.clients import Clients
from fedhh.clients.population import Population
from fedhh.clients.warm_up import warm_up
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.config.schema import Config, ExecutionConfig
from fedhh.settings import AUTO
from fedhh.simulation.executor import Executor, InProcessExecutor, Worker
from fedhh.simulation.fidelity import PER_REPORT

if TYPE_CHECKING:
    from fedhh.simulation.ray.executor import RayExecutor

_log = logging.getLogger(__name__)

RAY_SECONDS = 10.0
"""What the start and the end of a local Ray take."""

HELD, DRAWN, REPORTED = 0.8e-6, 8e-6, 15e-6
"""Seconds of one core for an answer of a client that is held in memory, or drawn again; and what
comes on top where each of its reports is made. See docs/performance.md."""


@dataclass(frozen=True, kw_only=True)
class Workers:
    """Who answers for the clients.

    Attributes:
        number: Ray actors; 0: this process; None: one for each core of a cluster that is free.
        why: What was chosen and why, as a clause.
    """

    number: int | None
    why: str


def seconds_of_answers(answers: float, config: Config, *, is_held: bool) -> float:
    """Return about how long so many answers of clients take on one core.

    Args:
        answers: Of clients that are drawn; one that is asked in several rounds counts each time.
        config: How they are simulated.
        is_held: Whether the population is held in memory.
    """
    reported = REPORTED if config.simulation.fidelity == PER_REPORT else 0.0
    return answers * ((HELD if is_held else DRAWN) + reported)


def seconds_of_run(config: Config, plan: Plan, population: Population) -> float:
    """Return about how long the answers that a run asks for take on one core."""
    most = config.simulation.drawn_clients
    answers = sum(
        layer.num_clients if isinstance(most, str) else min(layer.num_clients, most)
        for layer in plan.layers
    )
    return seconds_of_answers(answers, config, is_held=isinstance(population, Clients))


def certain_workers(execution: ExecutionConfig) -> Workers | None:
    """Return who answers for clients if it does not depend on how much there is to do."""
    if execution.workers != AUTO:
        where = f"on Ray, {execution.workers} workers" if execution.workers else "in this process"
        return Workers(number=execution.workers, why=f"{where}, as configured")
    if execution.ray_address:
        where = f"on the Ray cluster at {execution.ray_address}"
        return Workers(number=None, why=f"{where}, a worker for each core that is free")
    return None


def start_in_background(execution: ExecutionConfig) -> AbstractContextManager[RayExecutor | None]:
    """Return workers that get ready from now on, where it is certain that Ray is asked.

    It is for who still has to make the population; None elsewhere.
    """
    workers = certain_workers(execution)
    if workers is None or workers.number == 0:
        return nullcontext()
    from fedhh.simulation.ray.executor import RayExecutor

    return RayExecutor(num_workers=workers.number, address=execution.ray_address, warm_up=warm_up)


def choose_workers(
    execution: ExecutionConfig, seconds: float, *, most: int | None = None
) -> Workers:
    """Return who answers for clients.

    Args:
        execution: A number of workers is taken as it is; "auto" is decided here.
        seconds: What the work takes on one core, see `seconds_of_run`.
        most: As many workers have something to do at a time; None for any number.
    """
    certain = certain_workers(execution)
    if certain is not None:
        return certain
    cores = _cores()
    number = cores if most is None else min(cores, most)
    if number < 2:
        which = "which has one core" if cores < 2 else "since nothing is there to share"
        return Workers(number=0, why=f"in this process, {which}")
    saved = seconds * (1 - 1 / number)
    text = f"{number} workers would save about {saved:.0f} s, and Ray takes {RAY_SECONDS:.0f} s"
    if saved > RAY_SECONDS:
        return Workers(number=number, why=f"on Ray: {text} to start and end")
    return Workers(number=0, why=f"in this process: {text} to start and end")


def _cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def open_executor(
    config: Config, population: Population, workers: Workers, ahead: RayExecutor | None = None
) -> Executor:
    """Return the way to a population's clients, see `choose_workers`; close it after use.

    It serves every configuration with the same seed and population.
    """
    _log.info("clients are asked %s", workers.why)
    worker = ClientWorker(population, seed=config.seed)
    if ahead is not None:
        ahead.hold(worker)
        return ahead
    return open_workers(worker, workers.number, config.execution.ray_address)


def open_workers(worker: Worker, workers: int | None, ray_address: str) -> Executor:
    """Return the way to so many copies of a worker; 0: this process, None: each free core."""
    if workers == 0:
        return InProcessExecutor(worker)
    from fedhh.simulation.ray.executor import RayExecutor

    return RayExecutor(worker, num_workers=workers, address=ray_address)


def check_cluster(workers: int | Literal["auto"], ray_address: str) -> None:
    """Raise InputError if Ray is to be joined at an address, and cannot be."""
    if workers != 0 and ray_address:
        from fedhh.simulation.ray import cluster

        cluster.check_cluster(ray_address)
