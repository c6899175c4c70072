"""A pipeline, from a configuration to its directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fedhh.experiments.run.workers import check_cluster, choose_workers, open_workers
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.experiments.study.directory import check_output
from fedhh.experiments.study.parts import Columns, Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.resume import require_unfinished, resumed
from fedhh.experiments.study.study import Study
from fedhh.longitudinal.devices.worker import DeviceWorker
from fedhh.longitudinal.pipeline.build import build_model, build_use_cases
from fedhh.longitudinal.pipeline.config import parse_pipeline
from fedhh.longitudinal.pipeline.directory import (
    NAME,
    SUMS,
    make_directory,
    stored_config,
    sums_line,
    write_pipeline,
)
from fedhh.longitudinal.pipeline.measures import PipelineResult
from fedhh.longitudinal.pipeline.run import Run, ledger_of, opted_in, seconds_of_devices
from fedhh.system.files import owned
from fedhh.system.stopping import before_leaving
from fedhh.validation import printable


class PipelineStudy(Study):
    """Devices over days, an ingestor and an aggregator."""

    def __init__(
        self, source: Source, request: Request, draw: Callable[[Path, PipelineResult], object]
    ) -> None:
        """Check the settings.

        Args:
            source: The configuration.
            request: Where it goes.
            draw: Writes figures into the directory.
        """
        self.config = parse_pipeline(source.table, source.origin)
        if request.resume:
            assert request.out is not None
            self.config = resumed(self.config, stored_config(request.out), request.out, what=NAME)
        self._request, self._draw = request, draw

    def plan(self) -> list[Part]:
        """Return the use cases, and what their caps allow a device to lose."""
        config, days = self.config, self.config.pipeline
        use_cases = build_use_cases(config)
        before = ledger_of(config, use_cases).before([each.device.cap for each in use_cases])
        rows = [
            (
                each.name,
                each.title,
                f"{each.charge.epsilon:g}",
                f"{each.config.records_per_day} in {each.config.session_days} d",
                f"{before.guarantee('user', 'basic', each.name).epsilon:g}",
            )
            for each in use_cases
        ]
        heads = ("use case", "by", "epsilon of a record", "records", "epsilon of all days at most")
        return [
            Line(f"{days.devices:,} devices over {days.days} days"),
            Columns(heads=heads, rows=rows),
        ]

    def plan_record(self) -> dict[str, Any]:
        """Return the configuration."""
        build_use_cases(self.config)
        return self.config.model_dump(mode="json", exclude_none=True)

    def run(self, callbacks: Sequence[Callbacks] = ()) -> Path:
        """Let the days happen that are left."""
        with ExitStack() as self._owned:
            return self._run(callbacks)

    def _run(self, callbacks: Sequence[Callbacks]) -> Path:
        config, request, listener = self.config, self._request, Several(callbacks)
        execution = config.execution
        check_output(request.out, config.output.directory, resume=request.resume)
        check_cluster(execution.workers, execution.ray_address)
        if request.resume:
            assert request.out is not None
            self._owned.enter_context(owned(request.out))
            require_unfinished(request.out, what=NAME)
        listener.phase("preparing")
        use_cases = build_use_cases(config)
        model = build_model(config, use_cases)
        opted_in(model, config.seed)
        workers = choose_workers(execution, seconds_of_devices(config))
        worker = DeviceWorker(model, seed=config.seed)
        with open_workers(worker, workers.number, execution.ray_address) as executor:
            if request.resume:
                assert request.out is not None
                directory = request.out
            else:
                name = f"pipeline_{request.name}_seed{config.seed}"
                directory = make_directory(config, request.out, name=name)
                self._owned.enter_context(owned(directory))
            sums = directory / SUMS
            before_leaving(lambda: say_sums(sums))
            run = Run(config, use_cases, executor, stored_in=sums)
            result = run.finish(callbacks)
        listener.phase("drawing figures")
        # The result comes last: where a figure does not fit on the disk, --resume goes on.
        self._draw(directory, result)
        listener.phase("writing tables")
        write_pipeline(directory, result)
        return directory


def say_sums(sums: Path) -> None:
    """Say on standard error what a pipeline that is stopped leaves to go on with."""
    if line := printable(sums_line(sums)):
        os.write(2, f"Left to go on with: {line}; a finished pipeline removes it.\n".encode())
