"""What the commands about sweeps do, between the command line and the package."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console

from fedhh.experiments import results
from fedhh.experiments.config import Config, parse_config
from fedhh.experiments.output import check_directory
from fedhh.experiments.sweep_axes import SWEEP
from fedhh.experiments.sweep_config import Sweep, load_sweep_table, parse_sweep
from fedhh.validation import InputError


@dataclass(frozen=True, kw_only=True)
class SweepRequest:
    """What `fedhh sweep` was asked for.

    Attributes:
        file: A TOML file, or None.
        preset: Name of a built-in sweep, or None.
        settings: ``KEY=VALUE`` changes.
        out: The sweep's directory, or None.
        resume: Go on with the sweep in ``out``.
        parallel: What workers share, see `sweep.PARALLEL`.
        dry_run: Check and list the cells, and run none.
        data: A file of clients, or None.
    """

    file: Path | None
    preset: str | None
    settings: tuple[str, ...]
    out: Path | None
    resume: bool
    parallel: str = "auto"
    dry_run: bool = False
    data: Path | None = None


def sweep_command(request: SweepRequest, *, as_json: bool) -> bool:
    """Run a sweep, print its summary, and return whether every cell has a result."""
    from fedhh.experiments.sweep_console import print_sweep

    console = Console(stderr=as_json)
    done = run_requested(requested_table(request), request, console)
    if done is None:
        return True
    if as_json:
        Console(soft_wrap=True).print_json(done.frame.to_json(orient="records"))
    else:
        print_sweep(console, done.plan, done.frame, done.directory)
    return done.is_complete


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


def run_requested(
    requested: tuple[dict[str, Any], str], request: SweepRequest, console: Console
) -> DoneSweep | None:
    """Run a sweep's table, named in errors, as asked; None after a dry run."""
    from fedhh.experiments.sweep import PopulationStore, run_sweep
    from fedhh.experiments.sweep_console import LiveSweep, print_plan

    table, origin = requested
    if request.out is not None and not request.resume:
        check_directory(request.out)
    store = PopulationStore()
    plan = parse_sweep(table, origin, num_clients=store.num_clients)
    base = parse_config({key: table[key] for key in table if key != SWEEP}, origin)
    print_plan(console, plan)
    if request.dry_run:
        return None
    directory = request.out or _new_directory(Path(base.output.directory), request)
    with LiveSweep(console, plan.best) as listener:
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


def requested_table(request: SweepRequest) -> tuple[dict[str, Any], str]:
    """Return the sweep's table; a resumed sweep's is the one in its directory."""
    if not request.resume:
        return _named(request)
    if request.out is None:
        raise InputError(
            "Expected --out DIR with --resume: the directory of the sweep to go on with."
        )
    if request.preset is not None or request.file is not None:
        # Compared by the directory with what it holds, cell by cell.
        return _named(request)
    from fedhh.experiments.config import apply_settings

    table = results.stored_sweep_table(request.out)
    apply_settings(table, request.settings)
    return table, str(request.out)


def _named(request: SweepRequest) -> tuple[dict[str, Any], str]:
    return load_sweep_table(
        preset=request.preset, file=request.file, settings=request.settings, data=request.data
    )


def _new_directory(parent: Path, request: SweepRequest) -> Path:
    name = request.preset or (request.file.stem if request.file is not None else SWEEP)
    stamp = datetime.datetime.now().strftime("%Y-%m-%d_%H%M%S")
    directory = parent / f"{stamp}_{name}"
    number = 2
    while directory.exists():
        directory = parent / f"{stamp}_{name}_{number}"
        number += 1
    return directory


def table_command(name: str, directory: Path, *, kind: str) -> None:
    """Print a table of a sweep's results."""
    from fedhh.experiments.tables import make_table

    print(make_table(name, directory).render(kind), end="")  # noqa: T201 - to be piped as it is


def plot_command(
    directory: Path,
    *,
    out: Path | None,
    x: str | None,
    by: str | None,
    metrics: tuple[str, ...],
) -> None:
    """Draw a sweep's figures and print where they are."""
    from fedhh.experiments.sweep_plots import METRICS, plot_sweep

    paths = plot_sweep(directory, out=out, x=x, by=by, metrics=metrics or METRICS)
    console = Console()
    for path in paths:
        console.print(f"Wrote {path} (also .pdf, .svg)", soft_wrap=True, highlight=False)
