"""One run: a protocol over a population, its measures, and its checkpoints."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pandas as pd

from fedhh.clients.population import Population
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.config import Config
from fedhh.experiments.fidelity import Fidelity
from fedhh.experiments.metrics import discoveries_table, measure
from fedhh.experiments.privacy import (
    DEFAULT_ALPHA,
    DEFAULT_DELTA,
    claimed_k,
    measured_anonymity,
    privacy_of_run,
)
from fedhh.experiments.protocols import build_protocol, resolve_cohorts
from fedhh.experiments.run_result import AnyProtocol, MetricSettings, RunResult
from fedhh.experiments.truth import Truth
from fedhh.protocol import RoundSummary
from fedhh.simulation import engine
from fedhh.simulation.checkpoint import load_checkpoint, save_checkpoint
from fedhh.simulation.executor import Executor, InProcessExecutor, Progress

CHECKPOINT = Path("checkpoint") / "state.npz"


class Listener(Protocol):
    """Follows a run; the command line shows what it hears."""

    def count(self, counted: int, of: int) -> None:
        """Hear on how many clients the true words have been counted, where that takes a pass."""

    def start(self, protocol: AnyProtocol, population: Population, clients_done: int) -> None:
        """Hear that clients are about to be asked, some perhaps before a resume."""

    def advance(self, num_clients: int) -> None:
        """Hear that some clients have answered."""

    def finish_round(self, layer: dict[str, Any]) -> None:
        """Hear a finished round's row of the layers table."""


class Silence:
    """A listener that does nothing."""

    def count(self, counted: int, of: int) -> None:
        """Ignore."""

    def start(self, protocol: AnyProtocol, population: Population, clients_done: int) -> None:
        """Ignore."""

    def advance(self, num_clients: int) -> None:
        """Ignore."""

    def finish_round(self, layer: dict[str, Any]) -> None:
        """Ignore."""


def simulate(
    protocol: AnyProtocol,
    population: Population,
    *,
    seed: int,
    workers: int = 0,
    ray_address: str = "",
    fidelity: Fidelity | None = None,
    settings: MetricSettings | None = None,
    delta: float = DEFAULT_DELTA,
    alpha: float = DEFAULT_ALPHA,
    listener: Listener | None = None,
    checkpoint_in: Path | None = None,
) -> RunResult:
    """Run a protocol over a population and measure what it found.

    Args:
        protocol: The server's settings.
        population: The clients; their known words should be removed already.
        seed: The run's seed; the same seed gives the same result with any number of workers.
        workers: Ray actors that hold clients; 0 for this process alone.
        ray_address: A running Ray cluster; a local one if empty.
        fidelity: How faithfully to simulate clients; every report if None.
        settings: What to measure against.
        delta: Of central guarantees.
        alpha: Of approximate k-anonymity.
        listener: Follows the run.
        checkpoint_in: A folder for the state after each round. A state that is there already is
            where the run goes on.

    Raises:
        InputError: The population is too small for the protocol.
    """
    protocol.check_population(population.num_clients)
    fidelity = fidelity or Fidelity()
    worker = ClientWorker(population, seed=seed)
    with fidelity.wrap(_executor(worker, workers, ray_address), seed=seed) as executor:
        return _run(
            protocol,
            population,
            executor,
            seed=seed,
            fidelity=fidelity,
            settings=settings or MetricSettings(),
            delta=delta,
            alpha=alpha,
            listener=listener or Silence(),
            checkpoint_in=checkpoint_in,
        )


def _run(
    protocol: AnyProtocol,
    population: Population,
    executor: Executor,
    *,
    seed: int,
    fidelity: Fidelity,
    settings: MetricSettings,
    delta: float,
    alpha: float,
    listener: Listener,
    checkpoint_in: Path | None,
) -> RunResult:
    """Follow the rounds from the start or a checkpoint, and measure the end."""
    protocol = protocol.for_run(seed)
    started = time.perf_counter()
    truth = Truth(population, protocol.symbols, protocol.longest_word, progress=listener.count)
    state, notes = _resume(protocol, checkpoint_in)
    rows: list[dict[str, Any]] = notes["layers"]
    spent: float = notes["seconds"]
    listener.start(protocol, population, sum(row["num_clients"] for row in rows))
    ready = time.perf_counter()
    follow = _follow(protocol, executor, state, truth=truth, rows=rows, listener=listener)
    server_seconds = 0.0
    for finished in follow:
        state = finished.state
        server_seconds += finished.server_seconds
        if checkpoint_in is not None:
            seconds = spent + time.perf_counter() - started
            notes = {"layers": rows, "seconds": seconds}
            save_checkpoint(checkpoint_in / CHECKPOINT, state, notes)
    asked = time.perf_counter()
    table = discoveries_table(
        protocol.discoveries(state),
        truth,
        significance_z=settings.significance_z,
        truncated_at=protocol.longest_word if protocol.truncates_words else None,
    )
    metrics = measure(
        table,
        truth,
        top_k=settings.top_k,
        min_clients=settings.min_clients_of(population.num_clients),
    )
    measured = time.perf_counter()
    privacy = privacy_of_run(
        protocol,
        protocol.summaries(state),
        num_clients=population.num_clients,
        delta=delta,
        alpha=alpha,
    )
    metrics.update(measured_anonymity(table, claimed_k(privacy)))
    return RunResult(
        protocol=protocol,
        population={
            "name": population.name,
            "unit": population.unit,
            "clients": population.num_clients,
            "counted_clients": truth.counted_clients,
            "coverage_std_error_at_most": truth.share_std_error,
        },
        seed=seed,
        simulation=fidelity.facts([row["num_clients"] for row in rows]),
        settings=settings,
        discoveries=table,
        layers=pd.DataFrame(rows),
        metrics=metrics,
        privacy=privacy,
        cost=_cost(protocol, protocol.summaries(state)),
        timings={
            "prepare": ready - started,
            "rounds": asked - ready,
            "server": server_seconds,
            "measure": measured - asked,
            "account": time.perf_counter() - measured,
            "before_resume": spent,
        },
    )


def check_config(config: Config, num_clients: int) -> tuple[Config, AnyProtocol]:
    """Return a configuration with its cohorts settled for a population's size, and its protocol.

    Raises:
        InputError: The population is too small for the protocol.
    """
    config = resolve_cohorts(config, num_clients)
    protocol = build_protocol(config)
    protocol.check_population(num_clients)
    return config, protocol


def open_executor(config: Config, population: Population) -> Executor:
    """Return the way to a population's clients that a configuration asks for; close it after use.

    It serves every configuration with the same seed, population and simulation.
    """
    worker = ClientWorker(population, seed=config.seed)
    asking = _executor(worker, config.execution.workers, config.execution.ray_address)
    return _fidelity(config).wrap(asking, seed=config.seed)


def run_config(
    config: Config,
    population: Population,
    *,
    executor: Executor | None = None,
    listener: Listener | None = None,
    checkpoint_in: Callable[[Config], Path] | None = None,
) -> tuple[Config, RunResult]:
    """Run a configuration over its population, which the caller may use again for another.

    Args:
        config: What to run; "auto" cohorts are settled here.
        population: Its clients, see `populations.build_population`.
        executor: See `open_executor`; one is opened, and closed again, if None.
        listener: Follows the run.
        checkpoint_in: Makes the run's directory, once nothing can be refused any more.

    Returns:
        The settled configuration, and the result.

    Raises:
        InputError: The population is too small for the protocol.
    """
    config, protocol = check_config(config, population.num_clients)
    # A directory is made only once Ray has answered: an address may be wrong, too.
    opened = open_executor(config, population) if executor is None else nullcontext(executor)
    with opened as clients:
        result = _run(
            protocol,
            population,
            clients,
            seed=config.seed,
            fidelity=_fidelity(config),
            settings=MetricSettings(**config.metrics.model_dump()),
            delta=config.privacy.delta,
            alpha=config.privacy.alpha,
            listener=listener or Silence(),
            checkpoint_in=None if checkpoint_in is None else checkpoint_in(config),
        )
    return config, result


def rounds(
    protocol: AnyProtocol, population: Population, *, seed: int
) -> Iterator[engine.Round[Any, Any]]:
    """Run in this process and yield after each round, to look inside the interaction.

    Each round has its ``query`` (what the server broadcast) and the protocol's ``state`` after
    it: ``protocol.discoveries(state)`` and ``protocol.summaries(state)`` read it.
    """
    protocol = protocol.for_run(seed)
    protocol.check_population(population.num_clients)
    worker = ClientWorker(population, seed=seed)
    yield from engine.rounds(protocol, InProcessExecutor(worker))


def _executor(worker: ClientWorker, workers: int, ray_address: str) -> Executor:
    if workers == 0:
        return InProcessExecutor(worker)
    from fedhh.simulation.ray_executor import RayExecutor

    return RayExecutor(worker, num_workers=workers, address=ray_address)


def _fidelity(config: Config) -> Fidelity:
    return Fidelity(name=config.simulation.fidelity, drawn_clients=config.simulation.drawn_clients)


def _resume(protocol: AnyProtocol, folder: Path | None) -> tuple[Any, dict[str, Any]]:
    if folder is not None and (folder / CHECKPOINT).exists():
        state, notes = load_checkpoint(folder / CHECKPOINT, protocol.state_types)
        return state, notes
    return protocol.initialize(), {"layers": [], "seconds": 0.0}


def _follow(
    protocol: AnyProtocol,
    executor: Executor,
    state: Any,
    *,
    truth: Truth,
    rows: list[dict[str, Any]],
    listener: Listener,
) -> Iterator[engine.Round[Any, Any]]:
    """Yield each round, its row appended to ``rows``."""
    progress: Progress = listener.advance
    for finished in engine.rounds(protocol, executor, state=state, progress=progress):
        following = protocol.next_query(finished.state)
        same_pass = following is not None and following.pass_index == finished.query.pass_index
        summary = protocol.summaries(finished.state)[-1]
        rows.append(
            {
                **_layer_row(summary),
                "dummies": finished.diagnostics.num_dummies,
                "clients_with_items": finished.diagnostics.num_clients_with_items,
                **truth.observe(
                    finished.query,
                    following if same_pass else None,
                    protocol.discoveries(finished.state),
                ),
            }
        )
        listener.finish_round(rows[-1])
        yield finished


def _layer_row(summary: RoundSummary) -> dict[str, Any]:
    row = dataclasses.asdict(summary)
    return {"pass": row.pop("pass_index") + 1, **row, "decides": summary.decides}


def _cost(protocol: AnyProtocol, summaries: Sequence[RoundSummary]) -> dict[str, Any]:
    """Return what the run asked of clients and network.

    A client answers in one round, or, where every round draws from all clients, perhaps in each.
    """
    at_most = sum if protocol.reuses_clients else partial(max, default=0.0)
    items = protocol.contributions_per_client
    return {
        "clients_asked": sum(s.num_clients for s in summaries),
        "reports": sum(s.num_reports for s in summaries),
        "rounds": len(summaries),
        "upload_bits_per_client_max": at_most(s.report_bits * items for s in summaries),
        "download_bits_per_client_max": at_most(s.download_bits for s in summaries),
    }
