"""What a command about cells was asked for, and the sweep that it makes of that."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from fedhh.cli.console import open_console, print_json
from fedhh.cli.preflight import print_preflight
from fedhh.cli.sweep_progress import LiveSweep
from fedhh.cli.sweep_tables import cell_rows, print_cells, print_plan
from fedhh.experiments.config.load import apply_settings, parse_config
from fedhh.experiments.config.schema import Config, ExecutionConfig
from fedhh.experiments.study.directory import check_directory, check_writable, unused_directory
from fedhh.experiments.study.resume import resumed_directory
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.axes import SWEEP
from fedhh.experiments.sweep.execution import Listener
from fedhh.experiments.sweep.plan import Cell, Sweep, load_sweep_table, parse_sweep
from fedhh.experiments.sweep.preflight import preflight_of_sweep
from fedhh.experiments.sweep.sweep import PopulationStore, run_sweep, workers_of_sweep


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """What `fedhh sweep` or `fedhh compare` was asked for.

    Attributes:
        file: A TOML file, or None.
        preset: Name of a built-in sweep, or None.
        settings: ``KEY=VALUE`` changes.
        out: The sweep's directory, or None.
        resume: Go on with the sweep in ``out``.
        parallel: What workers share, see `sweep.PARALLEL`.
        dry_run: Check and list the cells, and run none.
        data: A file of clients, or None.
        live: Serve a page that follows the cells.
        as_json: Print results as JSON.
        quiet: Print no progress, and nothing beside the result.
    """

    file: Path | None
    preset: str | None
    settings: tuple[str, ...]
    out: Path | None
    resume: bool
    parallel: str = "auto"
    dry_run: bool = False
    data: Path | None = None
    live: bool = False
    as_json: bool = False
    quiet: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class DoneSweep:
    """A sweep that has run.

    Attributes:
        plan: Its cells.
        base: The configuration beside `[sweep]`.
        frame: One row per cell and seed.
        directory: Where the files are.
    """

    plan: Sweep
    base: Config
    frame: pd.DataFrame
    directory: Path

    @property
    def is_complete(self) -> bool:
        """Whether every cell has a result."""
        return bool((self.frame["status"] == results.DONE).all())

    @property
    def has_results(self) -> bool:
        """Whether some cell has a result."""
        return bool((self.frame["status"] == results.DONE).any())


def run_requested(requested: tuple[dict[str, Any], str], request: SweepRequest) -> DoneSweep | None:
    """Run a sweep's table, named in errors, as asked; None after a dry run."""
    table, origin = requested
    if request.out is not None and not request.resume:
        check_directory(request.out)
    store = PopulationStore()
    plan = parse_sweep(table, origin, num_clients=store.num_clients)
    base = parse_config({key: table[key] for key in table if key != SWEEP}, origin)
    if request.dry_run:
        _list_cells(plan, request, base.execution)
        return None
    directory = request.out or _new_directory(Path(base.output.directory), request)
    check_writable(directory)
    if not request.quiet:
        chosen = None if request.resume else workers_of_sweep(plan.to_run, base.execution)
        console = open_console(stderr=request.as_json)
        print_plan(console, plan, chosen)
        if not request.resume and (found := preflight_of_sweep(plan, store)) is not None:
            print_preflight(console, found)
    with ExitStack() as stack:
        progress = LiveSweep(open_console(stderr=True), plan.best, quiet=request.quiet)
        listener: Listener[Cell] = progress
        if request.live:
            from fedhh.cli.live import followed_sweep

            listener = stack.enter_context(followed_sweep(progress, plan, directory))
        stack.enter_context(progress)
        frame = run_sweep(
            plan,
            directory,
            workers=base.execution.workers,
            ray_address=base.execution.ray_address,
            parallel=request.parallel,
            resume=request.resume,
            listener=listener,
            store=store,
        )
    return DoneSweep(plan=plan, base=base, frame=frame, directory=directory)


def _list_cells(plan: Sweep, request: SweepRequest, execution: ExecutionConfig) -> None:
    """Print what would run, and what of it has a result already."""
    cells: Sequence[Cell] = plan.to_run
    if request.resume:
        assert request.out is not None
        results.open_directory(request.out, plan, resume=True)
        cells = results.missing_cells(request.out, plan)
    missing = {cell.id for cell in cells}
    if request.as_json:
        print_json(cell_rows(plan, missing))
    else:
        console = open_console()
        print_plan(console, plan, workers_of_sweep(cells, execution))
        print_cells(console, plan, missing)


def requested_table(request: SweepRequest) -> tuple[dict[str, Any], str]:
    """Return the sweep's table; a resumed sweep's is the one in its directory."""
    if not request.resume:
        return _named(request)
    directory = resumed_directory(request.out, what=results.NAME)
    if request.preset is not None or request.file is not None:
        # Compared by the directory with what it holds, cell by cell.
        return _named(request)
    table = results.stored_sweep_table(directory)
    apply_settings(table, request.settings)
    return table, str(directory)


def _named(request: SweepRequest) -> tuple[dict[str, Any], str]:
    return load_sweep_table(
        preset=request.preset, file=request.file, settings=request.settings, data=request.data
    )


def _new_directory(parent: Path, request: SweepRequest) -> Path:
    name = request.preset or (request.file.stem if request.file is not None else SWEEP)
    return unused_directory(parent, name)
