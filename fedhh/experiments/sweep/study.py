"""A sweep or a comparison, from a file to its directory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from fedhh.experiments.config.load import parse_config
from fedhh.experiments.run.workers import Workers
from fedhh.experiments.study.callbacks import Callbacks, Several
from fedhh.experiments.study.directory import check_directory, check_writable, unused_directory
from fedhh.experiments.study.parts import Line, Part
from fedhh.experiments.study.request import Request, Source
from fedhh.experiments.study.study import Study
from fedhh.experiments.sweep import directory as results
from fedhh.experiments.sweep.axes import SWEEP
from fedhh.experiments.sweep.execution import settings_text
from fedhh.experiments.sweep.plan import SKIP_RULES, Cell, parse_sweep
from fedhh.experiments.sweep.preflight import preflight_of_sweep
from fedhh.experiments.sweep.sweep import PopulationStore, run_sweep, workers_of_sweep


class SweepStudy(Study):
    """All cells of a sweep, every one of them checked."""

    def __init__(self, source: Source, request: Request, draw: Callable[[Path], str]) -> None:
        """Make the cells.

        Args:
            source: The file.
            request: Where it goes; its option "parallel" is what workers share.
            draw: Writes what is made of the results into the directory, and returns why there is
                no figure; empty if there is one.
        """
        if request.out is not None and not request.resume:
            check_directory(request.out)
        self._request, self._draw = request, draw
        self._store = PopulationStore()
        table = source.table
        self.sweep = parse_sweep(table, source.origin, num_clients=self._store.num_clients)
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
        """Return every cell, skipped ones with their reason."""
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
        """Run the cells that have no result yet."""
        request, plan, execution = self._request, self.sweep, self._execution
        directory = request.out or unused_directory(self._parent, request.name or SWEEP)
        check_writable(directory)
        heard = Several(callbacks)
        if request.resume:
            heard.say(self._opening(None))
        else:
            heard.say(self._opening(workers_of_sweep(plan.to_run, execution)))
            if (found := preflight_of_sweep(plan, self._store)) is not None:
                heard.say(found.parts)
        frame = run_sweep(
            plan,
            directory,
            workers=execution.workers,
            ray_address=execution.ray_address,
            parallel=request.options.get("parallel", "auto"),
            resume=request.resume,
            callbacks=callbacks,
            store=self._store,
        )
        is_done = frame["status"] == results.DONE
        self.is_complete = bool(is_done.all())
        if is_done.any():
            heard.phase("drawing figures")
            if reason := self._draw(directory):
                heard.say([Line(f"No figure: {reason}", is_whole=True)])
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
