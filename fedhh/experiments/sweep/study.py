"""A sweep or a comparison, from a file to its directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fedhh.clients.clients import Clients
from fedhh.experiments.config.domain import settle_alphabet
from fedhh.experiments.config.labels import short_label, value_text
from fedhh.experiments.config.load import parse_config
from fedhh.experiments.config.population import says_its_size
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.run.preflight import preflight_of_configs
from fedhh.experiments.run.preflight_facts import Preflight
from fedhh.experiments.run.workers import Workers
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.experiments.study.directory import check_directory, check_writable, unused_directory
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.axes import SWEEP
from fedhh.experiments.sweep.costs import workers_of_sweep
from fedhh.experiments.sweep.execution import settings_text
from fedhh.experiments.sweep.plan import NAMES_PROTOCOLS, SKIP_RULES, Cell, Sweep, parse_sweep
from fedhh.experiments.sweep.sweep import PopulationStore, population_key, run_sweep
from fedhh.validation import InputError


class SweepStudy(Study):
    """All cells of a sweep, every one of them checked."""

    def __init__(self, source: Source, request: Request, draw: Callable[[Path], str]) -> None:
        """Make the cells.

        Args:
            source: The file.
            request: Where it goes.
            draw: Writes what is made of the results into the directory, and returns why there is
                no figure; empty if there is one.
        """
        if request.out is not None and not request.resume:
            check_directory(request.out)
        self._request, self._draw = request, draw
        self._store = PopulationStore()
        table = source.table
        self.sweep = parse_sweep(
            table,
            source.origin,
            num_clients=self._store.num_clients,
            callbacks=Several(request.callbacks),
        )
        base = parse_config({key: table[key] for key in table if key != SWEEP}, source.origin)
        self._execution, self._parent = base.execution, Path(base.output.directory)

    def plan(self) -> Iterable[Part]:
        """Return how many cells there are, and each, a line for all seeds of a setting."""
        missing = self._missing()
        yield from self._opening(workers_of_sweep(missing, self._execution))
        ids = {cell.id for cell in missing}
        groups: dict[str, list[Cell]] = {}
        for cell in self.sweep.to_run:
            groups.setdefault(settings_text(cell), []).append(cell)
        for settings, cells in groups.items():
            seeds = [cell.seed for cell in cells]
            done = sum(cell.id not in ids for cell in cells)
            words = [settings] if settings else []
            of_seeds = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
            words += [of_seeds, *([f"{done} of {len(cells)} done"] if done else [])]
            yield Line(f"  {', '.join(words)}", is_whole=True)
        total = len(self.sweep.to_run)
        if done := total - len(ids):
            yield Line(f"{done} of {total} cells are done, {len(ids)} left")

    def plan_record(self) -> list[dict[str, Any]]:
        missing = {cell.id for cell in self._missing()}
        return [
            {
                "cell": cell.id,
                **cell.varied,
                "seed": cell.seed,
                "clients_in_all": None if cell.asked is None else cell.asked.clients,
                "done": not cell.skipped and cell.id not in missing,
                "skipped_by": cell.skipped or None,
            }
            for cell in self.sweep.cells
        ]

    def run(self, callbacks: Sequence[Callbacks] = ()) -> Path:
        request, plan, execution = self._request, self.sweep, self._execution
        directory = request.out or unused_directory(self._parent, request.name or SWEEP)
        check_writable(directory)
        listener = Several(callbacks)
        if request.resume:
            listener.say(self._opening(None))
        else:
            listener.say(self._opening(workers_of_sweep(plan.to_run, execution)))
            if (found := _preflight(plan, self._store)) is not None:
                listener.say(found.parts)
        frame = run_sweep(
            plan,
            directory,
            workers=execution.workers,
            ray_address=execution.ray_address,
            resume=request.resume,
            callbacks=callbacks,
            store=self._store,
        )
        is_done = frame["status"] == results.DONE
        self.is_complete = bool(is_done.all())
        if is_done.any():
            listener.phase("drawing figures")
            if reason := self._draw(directory):
                listener.say([Line(f"No figure: {reason}", is_whole=True)])
        return directory

    def _missing(self) -> Sequence[Cell]:
        if not self._request.resume:
            return self.sweep.to_run
        assert self._request.out is not None
        results.open_directory(self._request.out, self.sweep, resume=True)
        return results.missing_cells(self._request.out, self.sweep)

    def _opening(self, workers: Workers | None) -> Iterable[Part]:
        """Yield how many cells there are, where they run, and which are skipped by which rule."""
        skipped = [cell for cell in self.sweep.cells if cell.skipped]
        yield Line(f"{len(self.sweep.to_run)} cells to run, {len(skipped)} skipped")
        if self.sweep.clients_line:
            yield Line(self.sweep.clients_line, is_whole=True)
        if workers is not None:
            yield Line(f"cells run {workers.why}", is_whole=True)
        for rule in dict.fromkeys(cell.skipped for cell in skipped):
            yield Line(f"skipped by {rule} ({SKIP_RULES[rule]}):")
            places = dict.fromkeys(settings_text(cell) for cell in skipped if cell.skipped == rule)
            yield from (Line(f"  {place}", is_whole=True) for place in places)


def _preflight(plan: Sweep, store: PopulationStore) -> Preflight | None:
    """Return what is known of the cells on the first cell's clients, if these are of a file.

    Of each protocol, the settings with the smallest cohort stand for all; of several, those with
    the largest local epsilon. None without a file, and where a cell cannot run, which its record
    says.
    """
    if not plan.to_run or says_its_size(plan.to_run[0].config.population):
        return None
    first = plan.to_run[0].config
    try:
        population = store.get(first).population
        if not isinstance(population, Clients) or population.table.is_mapped:
            return None
        smallest: dict[str, tuple[tuple[int, float], Cell]] = {}
        for cell in plan.to_run:
            if population_key(cell.config) == population_key(first):
                label, rank = _ranked(cell, population)
                if label not in smallest or rank < smallest[label][0]:
                    smallest[label] = rank, cell
        titled = {_title(label, cell): cell.config for label, (_, cell) in smallest.items()}
        return preflight_of_configs(list(titled.values()), population, titles=tuple(titled))
    except InputError:
        return None


def _ranked(cell: Cell, population: Clients) -> tuple[str, tuple[int, float]]:
    """Return a cell's protocol, and its smallest cohort before its local epsilon, falling."""
    config = settle_alphabet(cell.config, population)
    _, protocol = settle(config, population.num_clients, population.lexicon.words)
    size = min(layer.num_clients for layer in protocol.plan.layers)
    return cell.protocol or protocol.title, (size, -protocol.plan.local_epsilon)


def _title(label: str, cell: Cell) -> str:
    """Return what a cell is called: its protocol, and what else varies of it."""
    settings = [
        f"{short_label(path)} {value_text(value)}"
        for path, value in cell.varied.items()
        if path not in NAMES_PROTOCOLS
    ]
    return f"{label} ({', '.join(settings)})" if settings else label
