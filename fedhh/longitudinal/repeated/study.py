"""A repeated collection, from a configuration to its directory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedhh.experiments.config.population import is_synthetic
from fedhh.experiments.run.preflight import preflight_of_configs
from fedhh.experiments.run.workers import check_cluster
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.experiments.study.directory import check_directory, check_writable, unused_directory
from fedhh.experiments.study.parts import Columns, Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.longitudinal.populations.over_time import PopulationOverTime
from fedhh.longitudinal.repeated.config import parse_plan
from fedhh.longitudinal.repeated.one_run import asked_devices
from fedhh.longitudinal.repeated.run import Outcome, build_over_time, first_jobs, run_plan


class RepeatedStudy(Study):
    """A discovery that is repeated period by period."""

    def __init__(
        self, source: Source, request: Request, finish: Callable[[Path, Outcome], object]
    ) -> None:
        """Check the settings.

        Args:
            source: The configuration.
            request: Where it goes.
            finish: Writes tables, figures and the result into the directory.
        """
        self.collection = parse_plan(source.table, source.origin)
        self._request, self._finish = request, finish

    def plan(self) -> list[Part]:
        """Return the periods, and what each protocol asks and costs a device."""
        over_time = build_over_time(self.collection)
        rows = [
            (arm.name, f"{len(job.asked):,}", f"{arm.run_loss:g}", f"{arm.cost:,}")
            for arm, job in first_jobs(self.collection, over_time)
        ]
        heads = ("protocol", "devices asked first", "local epsilon of a run", "rounds of a device")
        periods = f"{over_time.num_periods} periods of {over_time.every_days} days"
        return [Line(periods), Columns(heads=heads, rows=rows), *self._preflight(over_time)]

    def plan_record(self) -> dict[str, Any]:
        """Return what every protocol asks in the first period."""
        over_time = build_over_time(self.collection)
        return {
            "periods": over_time.num_periods,
            "every_days": over_time.every_days,
            "protocols": [
                {"protocol": arm.name, "asked": len(job.asked), "run_loss": arm.run_loss}
                for arm, job in first_jobs(self.collection, over_time)
            ],
        }

    def run(self, callbacks: Sequence[Callbacks] = ()) -> Path:
        """Run the periods that have no record yet."""
        config, request, listener = self.collection.config, self._request, Several(callbacks)
        check_cluster(config.execution.workers, config.execution.ray_address)
        name = request.name or "longitudinal"
        directory = request.out or unused_directory(Path(config.output.directory), name)
        if not request.resume:
            check_directory(directory)
        check_writable(directory)
        listener.phase("reading or drawing devices")
        over_time = build_over_time(self.collection)
        if not request.resume:
            listener.say(self._preflight(over_time))
        outcome = run_plan(
            self.collection,
            directory,
            resume=request.resume,
            callbacks=callbacks,
            over_time=over_time,
        )
        listener.phase("writing tables and figures")
        self._finish(directory, outcome)
        return directory

    def _preflight(self, over_time: PopulationOverTime) -> Sequence[Part]:
        """Return what is known of the first run of each protocol on a file; else nothing."""
        if is_synthetic(self.collection.config.population):
            return ()
        population = over_time.at(0).population
        found = [
            preflight_of_configs([arm.config], asked_devices(population, job), titles=[arm.name])
            for arm, job in first_jobs(self.collection, over_time)
        ]
        plans = tuple(plan for each in found for plan in each.plans)
        return replace(found[0], plans=plans).parts
