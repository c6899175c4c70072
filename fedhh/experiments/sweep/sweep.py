"""Sweeps: many runs that differ in a few settings, in parallel or one after the other."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pandas as pd

from fedhh import plugins
from fedhh.experiments.config.client_file import KeptFile
from fedhh.experiments.config.population import (
    build_population,
    expected_tokens,
    is_synthetic,
    says_its_size,
)
from fedhh.experiments.config.schema import Config, ExecutionConfig, PopulationConfig
from fedhh.experiments.run.run import run_config
from fedhh.experiments.run.workers import check_cluster
from fedhh.experiments.study.callbacks import Callbacks, Several, Work
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.costs import Costs, draws_again, workers_of_sweep
from fedhh.experiments.sweep.directory import Record
from fedhh.experiments.sweep.execution import (
    Call,
    Drawn,
    FinishedCell,
    ProgressLines,
    Standing,
    draw,
    fits_with_others,
    recorded,
    rows_fit,
    side_by_side,
    unit_of,
)
from fedhh.experiments.sweep.plan import Cell, Sweep, load_sweep_table, parse_sweep
from fedhh.settings import AUTO
from fedhh.system.files import owned
from fedhh.validation import InputError, require_at_least, require_between
from fedhh.words.known_words import is_named

_log = logging.getLogger(__name__)


class PopulationStore:
    """Draws or reads a population once for all cells in a row that share it.

    Attributes:
        file: Read once for all samples of its users.
    """

    def __init__(self) -> None:
        self._key: tuple[PopulationConfig, int] | None = None
        self._drawn: Drawn | None = None
        self.file = KeptFile()

    def get(self, config: Config) -> Drawn:
        """Return the population of a configuration; the last one is kept."""
        key = population_key(config)
        if self._drawn is None or self._key != key:
            self._drawn = None  # Two populations at a time may be more than fits.
            self._drawn = draw(
                lambda: build_population(config.population, seed=config.seed, read=self.file.read)
            )
            self._key = key
            if config.population.clients is None:
                self.file.drop()
        return self._drawn

    def num_clients(self, config: Config) -> int:
        """Return the number of clients of a configuration whose clients are in a file."""
        asked = config.population.clients
        drawn = draw(lambda: self.file.read(config.population))
        if drawn.population is None:
            raise InputError(drawn.error)
        if asked is None:
            return drawn.population.num_clients
        require_between(1, drawn.population.num_clients, **{"population.clients": asked})
        return asked


def population_key(config: Config) -> tuple[PopulationConfig, int]:
    """Return what a population depends on; a whole file is the same with every seed."""
    is_whole_file = config.population.clients is None
    return config.population, -1 if is_whole_file else config.seed


def sweep(
    file: str | Path | None = None,
    *,
    preset: str | None = None,
    settings: Sequence[str] = (),
    seeds: int | None = None,
    workers: int | Literal["auto"] = 0,
    ray_address: str = "",
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
) -> pd.DataFrame:
    """Run a sweep and return its results, one row per cell and seed.

    Args:
        file: A TOML file with a base configuration and `[sweep]`.
        preset: A built-in sweep, in place of a file.
        settings: ``section.key=value`` changes each.
        seeds: Seeds per cell, in place of the file's.
        workers: Cells that run in parallel on Ray; 0 for one after the other in this process.
            "auto" for what takes less time, by the number of clients that are asked.
        ray_address: ``HOST:PORT`` of a running Ray cluster, or ``auto`` for this machine's; a
            local Ray if empty.
        out: The sweep's directory; without one, only the returned table remains.
        resume: Go on with the sweep in ``out``.
        progress: Write a line to standard error for each finished cell.

    Raises:
        InputError: The sweep cannot run as it is; nothing has run.
    """
    changes = [*settings, *([] if seeds is None else [f"sweep.seeds={seeds}"])]
    if file is not None and preset is not None:
        raise InputError("Expected a file or a preset, got both; choose one.")
    source = preset or "" if file is None else Path(file)
    store = PopulationStore()
    plugins.search(source.parent if isinstance(source, Path) else Path())
    table, origin = load_sweep_table(source, settings=changes)
    plan = parse_sweep(table, origin, num_clients=store.num_clients)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch) / "sweep" if out is None else Path(out)
        frame = run_sweep(
            plan,
            directory,
            workers=workers,
            ray_address=ray_address,
            resume=resume,
            callbacks=[ProgressLines()] if progress else [],
            store=store,
        )
    frame.attrs[results.DESCRIPTION] = results.description_of(plan)
    return frame


def run_sweep(
    plan: Sweep,
    directory: Path,
    *,
    workers: int | Literal["auto"],
    ray_address: str = "",
    resume: bool = False,
    callbacks: Sequence[Callbacks] = (),
    store: PopulationStore | None = None,
) -> pd.DataFrame:
    """Run the cells that have no result yet, and write and return the tables of all.

    A cell's record is written as soon as the cell is done. A cell that fails is recorded with its
    error, and the others go on.

    Workers share the cells; where a population is too large for all that happens next to it, they
    share the clients of one cell after the other. How many ``workers`` "auto" means,
    `workers_of_sweep` says, or where workers share clients, each cell's own size. ``store`` may
    hold the population of the first cells.
    """
    if workers != AUTO:
        require_at_least(0, workers=workers)
    execution = ExecutionConfig(workers=workers, ray_address=ray_address)
    check_cluster(workers, ray_address)
    results.open_directory(directory, plan, resume=resume)
    with owned(directory):
        return _run_missing(
            plan, directory, execution, Several(callbacks), store or PopulationStore()
        )


def _run_missing(
    plan: Sweep,
    directory: Path,
    execution: ExecutionConfig,
    listener: Several,
    store: PopulationStore,
) -> pd.DataFrame:
    missing = results.missing_cells(directory, plan)
    # Cells of one population follow each other, so that it is drawn once.
    order = {
        key: i for i, key in enumerate(dict.fromkeys(population_key(c.config) for c in plan.cells))
    }
    missing = sorted(missing, key=lambda cell: order[population_key(cell.config)])
    costs = Costs(plan.to_run)
    left = {cell.id for cell in missing}
    for cell in plan.to_run:
        if cell.id not in left:
            costs.learn(cell, None)
    done = _thousandths(costs)
    total = len(plan.to_run)
    listener.start(
        Work(
            title=plan.title,
            noun="cells",
            total=total,
            done=total - len(missing),
            # By what cells take: of a few long ones, most units are done when little is.
            steps=1000,
            steps_done=done,
        )
    )
    chosen = workers_of_sweep(missing, execution)
    _log.info("cells run %s", chosen.why)
    number = chosen.number
    if number != 0 and _fits_with_others(missing, store):
        finished = side_by_side(
            missing,
            run_cell,
            job=lambda cell: _executed(cell.config, ExecutionConfig(workers=0)),
            population=lambda cell: population_key(cell.config),
            draw=lambda cell: store.get(cell.config),
            draw_apart=lambda cell: _drawn_apart(cell.config),
            cost=costs.seconds,
            listener=listener,
            workers=number,
            ray_address=execution.ray_address,
        )
    else:
        finished = _in_turn(missing, store, listener, execution)
    standing = Standing(plan.best)
    for cell, record in finished:
        results.write_record(directory, cell, record)
        _log.info("cell %s, seed %d: %s", cell.id, cell.config.seed, record["status"])
        listener.finish(unit_of(cell), FinishedCell(cell, record))
        costs.learn(cell, None if record["error"] else record["timings"]["seconds"])
        before, done = done, max(done, _thousandths(costs))
        listener.advance(done - before)
        listener.note(standing.after(cell, record))
    return results.write_tables(directory, plan)


def run_cell(config: Config, drawn: Drawn) -> Record:
    """Return the record of one configuration; what goes wrong is part of it."""
    return recorded(
        drawn, lambda population: run_config(config, population)[1], delta=config.privacy.delta
    )


def _in_turn(
    cells: Sequence[Cell], store: PopulationStore, listener: Callbacks, execution: ExecutionConfig
) -> Iterator[tuple[Cell, Record]]:
    for cell in cells:
        listener.begin(unit_of(cell))
        yield cell, run_cell(_executed(cell.config, execution), store.get(cell.config))


def _thousandths(costs: Costs) -> int:
    return round(1000 * costs.share_done)


def _drawn_apart(config: Config) -> Call | None:
    """Return the call that draws a population on any node; None for one that needs a file."""
    population = config.population
    if not is_synthetic(population) or not is_named(population.known):
        return None
    return draw_synthetic, (population, config.seed)


def draw_synthetic(population: PopulationConfig, seed: int) -> Drawn:
    """Return a synthetic population, drawn, or the reason why it is not."""
    return draw(lambda: build_population(population, seed=seed))


def _executed(config: Config, execution: ExecutionConfig) -> Config:
    return config.model_copy(update={"execution": execution})


def _fits_with_others(cells: Sequence[Cell], store: PopulationStore) -> bool:
    """Return whether every population leaves room for runs next to it, see `fits_with_others`.

    Nothing is drawn for the answer that would have to be drawn again, but for
    populations of plug-ins: of those, one with the most clients.
    """
    configs = {cell.config.population: cell.config for cell in cells}.values()
    others = []
    for config in configs:
        population = config.population
        if is_synthetic(population):
            if draws_again(config):
                return False
            if not rows_fit(expected_tokens(population, config.seed)):
                return False
        elif says_its_size(population):
            others.append(config)
        elif not _file_fits(population, store):
            return False
    largest = max(others, key=lambda config: config.population.clients or 0, default=None)
    return largest is None or fits_with_others(store.get(largest).population)


def _file_fits(population: PopulationConfig, store: PopulationStore) -> bool:
    """Return whether all of a file would fit; one that cannot be read fits nowhere."""
    return fits_with_others(draw(lambda: store.file.read(population)).population)
