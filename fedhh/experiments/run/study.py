"""A run and its baselines, from a configuration to their directory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from fedhh.clients.clients import Clients
from fedhh.clients.known_words import removal_facts
from fedhh.clients.population import Population
from fedhh.experiments.config.client_file import KeptFile
from fedhh.experiments.config.domain import FROM_DATA, settle_alphabet
from fedhh.experiments.config.load import devices_of, parse_config
from fedhh.experiments.config.population import build_population, says_its_size
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run import directory as output
from fedhh.experiments.run.equal_privacy import with_chosen_epsilons
from fedhh.experiments.run.preflight import plan_facts, preflight_of_configs
from fedhh.experiments.run.preflight_facts import plan_parts
from fedhh.experiments.run.result import RunResult
from fedhh.experiments.run.run import check_config, run_config
from fedhh.experiments.run.workers import (
    check_cluster,
    choose_workers,
    open_executor,
    seconds_of_run,
    start_in_background,
)
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.experiments.study.directory import CONFIG, begin_directory, check_output
from fedhh.experiments.study.parts import Columns, Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.resume import require_unfinished, resumed
from fedhh.experiments.study.study import Study
from fedhh.settings import AUTO
from fedhh.system.files import owned


class RunStudy(Study):
    """A run and its baselines, on the same clients."""

    def __init__(
        self, source: Source, request: Request, draw: Callable[[Path, RunResult], object]
    ) -> None:
        """Refuse what cannot work, before any client is drawn.

        ``draw`` writes a run's figures into its directory.
        """
        config = parse_config(source.table, source.origin)
        if request.resume:
            assert request.out is not None
            stored = output.resumed_config(request.out)
            asked = _as_stored(config, stored)
            config = resumed(asked, stored, request.out, what=output.NAME)
        self._request, self._draw = request, draw
        self.configs = [config, *config.of_baselines]
        self._made: list[Path] = []
        for each in self.configs:
            build_protocol(each)

    @property
    def title(self) -> str:
        names = " and ".join(each.protocol.name for each in self.configs)
        return f"{names} on {self.configs[0].population.source}"

    def plan(self) -> list[Part]:
        """Return what the rounds ask and cost; the clients are drawn for it, and asked nothing."""
        file = KeptFile()
        population = self._drawn(file)
        rows, facts = [], []
        seed, devices = self.configs[0].seed, devices_of(self.configs[0])
        delta = self.configs[0].privacy.delta
        configs = self._at_epsilons(population)
        for each in configs:
            protocol = check_config(each, population)[1]
            plan = protocol.plan
            rows.append((protocol.title, f"{len(plan.layers):,}", f"{plan.most_uploads:,}"))
            facts.append(plan_facts(protocol, population.num_clients, delta, seed, devices=devices))
        heads = ("protocol", "rounds at most", "answers")
        clients = Line(f"{population.name}: {population.num_clients:,} {population.unit}s")
        known = self._preflight(configs, population, file) or plan_parts(facts, population.unit)
        return [clients, Columns(heads=heads, rows=rows), *known]

    def plan_record(self) -> list[dict[str, Any]]:
        population = self._drawn(KeptFile())
        settled = [check_config(each, population)[0] for each in self.configs]
        return [each.model_dump(mode="json", exclude_none=True) for each in settled]

    def run(self, callbacks: Sequence[Callbacks] = ()) -> Path:
        with ExitStack() as self._owned:
            return self._run(callbacks)

    def _run(self, callbacks: Sequence[Callbacks]) -> Path:
        config, listener = self.configs[0], Several(callbacks)
        check_output(self._request.out, config.output.directory, resume=self._request.resume)
        if self._request.resume:
            assert self._request.out is not None
            self._owned.enter_context(owned(self._request.out))
            require_unfinished(self._request.out, what=output.NAME)
        check_cluster(config.execution.workers, config.execution.ray_address)
        with start_in_background(config.execution) as ahead:
            listener.phase("drawing clients")
            started = time.perf_counter()
            file = KeptFile()
            population = self._drawn(file)
            drawn = time.perf_counter() - started
            configs = self._at_epsilons(population)
            checked = [check_config(each, population) for each in configs]
            listener.say(self._preflight(configs, population, file))
            seconds = sum(
                seconds_of_run(settled, protocol.plan, population) for settled, protocol in checked
            )
            workers = choose_workers(config.execution, seconds)
            listener.note(workers.why)
            with open_executor(config, population, workers, ahead) as executor:
                runs = [
                    run_config(
                        each,
                        population,
                        executor=executor,
                        callbacks=callbacks,
                        log_in=partial(self._make, number),
                    )
                    for number, each in enumerate(configs)
                ]
        listener.phase("drawing figures")
        runs[0][1].timings["population"] = drawn
        # The run's own result comes last, since it says that all is done; then nothing is resumed.
        for (each, result), directory in reversed(list(zip(runs, self._made, strict=True))):
            self._draw(directory, result)
            known = removal_facts(population, each.population.known)
            output.write_result(directory, result, each, known)
        for (each, _), directory in zip(runs, self._made, strict=True):
            output.drop_log(directory, each)
        return self._made[0]

    def _drawn(self, file: KeptFile) -> Population:
        config = self.configs[0]
        return build_population(config.population, seed=config.seed, read=file.read)

    def _at_epsilons(self, population: Population) -> list[Config]:
        """Return the configurations with the epsilons that a central one asks for."""
        settled = (settle_alphabet(each, population) for each in self.configs)
        return [with_chosen_epsilons(each, population.num_clients) for each in settled]

    def _preflight(
        self, configs: Sequence[Config], population: Population, file: KeptFile
    ) -> Sequence[Part]:
        """Return what is known before a run on a file; nothing without a file."""
        if says_its_size(configs[0].population) or not isinstance(population, Clients):
            return ()
        if population.table.is_mapped:
            # Nothing is looked up of clients that may be more than memory holds.
            return ()
        return preflight_of_configs(configs, population).parts

    def _make(self, number: int, config: Config) -> Path:
        """Make the directory of a run from its settled configuration: 0, or of a baseline."""
        request = self._request
        if number == 0:
            source = Path(config.population.source).name.split(".")[0]
            name = f"{config.protocol.name.replace(':', '_')}_{source}_seed{config.seed}"
            directory = request.out
            if (asked := self.configs[0]).privacy.central_target is not None:
                # Which decides each baseline's epsilons, too.
                kept = {"privacy": asked.privacy, "protocol": _as_stored(asked, config).protocol}
                config = config.model_copy(update=kept)
        else:
            directory = output.baseline_folder(self._made[0], number - 1)
            name = directory.name
        if directory is None or not (request.resume and directory.exists()):
            directory = output.new_directory(config, directory, name=name)
            if number == 0:
                self._owned.enter_context(owned(directory))
        elif not (directory / CONFIG).exists():
            begin_directory(directory, config.to_toml())
        self._made.append(directory)
        return directory


def _as_stored(asked: Config, stored: Config) -> Config:
    """Return a request with what a run settles, such as "auto", as the stored run has it."""
    kept = dict(stored.protocol)
    changes = {key: kept.get(key, value) for key, value in asked.protocol if value == AUTO}
    settled: dict[str, Any] = {"protocol": asked.protocol.changed(changes)}
    if asked.population.alphabet == FROM_DATA == stored.population.alphabet_source:
        settled["population"] = asked.population.model_copy(
            update={"alphabet": stored.population.alphabet, "alphabet_source": FROM_DATA}
        )
    return asked.model_copy(update=settled)
