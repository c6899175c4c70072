"""One run: a protocol over a population, or a configuration over its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from fedhh.adversary import Adversary
from fedhh.clients.population import Population, client_order
from fedhh.clients.worker import ClientWorker
from fedhh.devices import Devices
from fedhh.experiments.config.domain import (
    CLOSED_DOMAIN,
    NOT_PRIVATE,
    is_closed,
    is_from_data,
    settle_alphabet,
)
from fedhh.experiments.config.load import adversary_of, devices_of
from fedhh.experiments.config.protocol import fidelity_of, settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.arguments import require_population, require_protocol
from fedhh.experiments.run.calendar import check_devices
from fedhh.experiments.run.equal_privacy import with_chosen_epsilons
from fedhh.experiments.run.follow import FollowedRun
from fedhh.experiments.run.privacy import (
    DEFAULT_ALPHA,
    DEFAULT_DELTA,
)
from fedhh.experiments.run.result import MetricSettings, RunResult
from fedhh.experiments.run.workers import (
    choose_workers,
    open_executor,
    open_workers,
    seconds_of_run,
)
from fedhh.experiments.study.callbacks import Callbacks
from fedhh.protocol import DiscoveryProtocol
from fedhh.simulation import engine
from fedhh.simulation.executor import Executor, InProcessExecutor
from fedhh.simulation.fidelity import Fidelity
from fedhh.simulation.roster import Roster


def simulate(
    protocol: DiscoveryProtocol,
    population: Population,
    *,
    seed: int,
    workers: int = 0,
    ray_address: str = "",
    fidelity: Fidelity | None = None,
    devices: Devices | None = None,
    adversary: Adversary | None = None,
    settings: MetricSettings | None = None,
    delta: float = DEFAULT_DELTA,
    alpha: float = DEFAULT_ALPHA,
    callbacks: Sequence[Callbacks] = (),
    log_in: Path | None = None,
) -> RunResult:
    """Run a protocol over a population and measure what it found.

    Args:
        protocol: The server's settings.
        population: The clients; their known words should be removed already.
        seed: The run's seed; the same seed gives the same result with any number of workers.
        workers: Ray actors that hold clients; 0 for this process alone.
        ray_address: ``HOST:PORT`` of a running Ray cluster, or ``auto`` for this machine's; a
            local Ray if empty.
        fidelity: How faithfully to simulate clients; if None, every report, or each layer's
            tally at once where that is cheaper.
        devices: When clients' devices are there; if None, all of them always answer at once.
        adversary: Fake clients, or clients that collude; if None, all are honest.
        settings: What to measure against.
        delta: Of central guarantees.
        alpha: Of approximate k-anonymity.
        callbacks: Hear how it goes on.
        log_in: A folder for the log of the rounds. A log that is there already is where the run
            goes on. Only with it does the result state the outcomes of candidates.

    Raises:
        InputError: The population is too small for the protocol.
        RunFailedError: Ray ended while clients were asked.
    """
    require_protocol(protocol)
    require_population(population)
    num_fakes = 0 if adversary is None else sum(adversary.fakes(population.num_clients))
    protocol = protocol.settle(num_clients=population.num_clients + num_fakes, seed=seed)
    fidelity = fidelity or Fidelity()
    fidelity.check(protocol)
    check_devices(devices, protocol.plan)
    worker = ClientWorker(population, seed=seed)
    with open_workers(worker, workers, ray_address) as executor:
        return FollowedRun(
            protocol,
            population,
            seed=seed,
            fidelity=fidelity,
            devices=devices,
            adversary=adversary,
            settings=settings or MetricSettings(),
            delta=delta,
            alpha=alpha,
            callbacks=callbacks,
            log_in=log_in,
        ).finish(executor)


def check_config(config: Config, population: Population) -> tuple[Config, DiscoveryProtocol]:
    """Return a configuration with its alphabet, epsilons and every "auto", and its protocol."""
    settled = with_chosen_epsilons(settle_alphabet(config, population), population.num_clients)
    settled, protocol = settle(settled, population.num_clients, population.lexicon.words)
    check_devices(devices_of(settled), protocol.plan)
    return settled, protocol


def run_config(
    config: Config,
    population: Population,
    *,
    executor: Executor | None = None,
    callbacks: Sequence[Callbacks] = (),
    log_in: Callable[[Config], Path] | None = None,
) -> tuple[Config, RunResult]:
    """Run a configuration over its population, which the caller may use again for another.

    Args:
        config: What to run; "auto" cohorts and an alphabet from data are settled here.
        population: Its clients, see `populations.build_population`.
        executor: See `open_executor`; one is opened, and closed again, if None.
        callbacks: Hear how it goes on.
        log_in: Makes the run's directory, once nothing can be refused any more.

    Returns:
        The settled configuration, and the result.
    """
    config, protocol = check_config(config, population)
    # A directory is made only once Ray has answered: an address may be wrong, too.
    if executor is None:
        seconds = seconds_of_run(config, protocol.plan, population)
        workers = choose_workers(config.execution, seconds)
        opened: AbstractContextManager[Executor] = open_executor(config, population, workers)
    else:
        opened = nullcontext(executor)
    notes = ((is_from_data(config), NOT_PRIVATE), (is_closed(config), CLOSED_DOMAIN))
    with opened as clients:
        result = FollowedRun(
            protocol,
            population,
            seed=config.seed,
            fidelity=fidelity_of(config),
            devices=devices_of(config),
            adversary=adversary_of(config),
            settings=MetricSettings(**config.metrics.model_dump()),
            delta=config.privacy.delta,
            alpha=config.privacy.alpha,
            callbacks=callbacks,
            log_in=None if log_in is None else log_in(config),
            notes=tuple(note for holds, note in notes if holds),
        ).finish(clients)
    return config, result


def rounds(
    protocol: DiscoveryProtocol, population: Population, *, seed: int
) -> Iterator[engine.Round]:
    """Run in this process and yield after each round, to look inside the interaction.

    Each round has its ``question`` (what the server broadcast) and the protocol's ``state`` after
    it: ``protocol.discoveries(state)`` and ``state.history`` read it.
    """
    require_protocol(protocol)
    require_population(population)
    protocol = protocol.settle(num_clients=population.num_clients, seed=seed)
    yield from engine.rounds(
        protocol,
        InProcessExecutor(ClientWorker(population, seed=seed)),
        roster=Roster(client_order(population, seed=seed)),
        fidelity=Fidelity(),
    )
