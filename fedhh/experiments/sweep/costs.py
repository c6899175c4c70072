"""What the cells of a sweep should take: by their clients, then by what others took."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fedhh.experiments.config.population import is_synthetic, is_virtual
from fedhh.experiments.config.schema import Config, ExecutionConfig
from fedhh.experiments.run.workers import Workers, choose_workers, seconds_of_answers
from fedhh.experiments.sweep.plan import Cell
from fedhh.settings import AUTO
from fedhh.validation import InputError

CELL_SECONDS = 1.0
"""What a cell takes besides the answers of its clients: its measures and its accounting."""


class Costs:
    """Estimates of the seconds that cells take on one core.

    Before any is done, the answers of clients and `CELL_SECONDS`. What a server does is not among
    them, and may be most of it: so an estimate is scaled by what finished cells of the same
    protocol took for each second of theirs.
    """

    def __init__(self, cells: Sequence[Cell]) -> None:
        configs = {cell.config.population: cell.config for cell in cells}
        is_drawn = {population: draws_again(config) for population, config in configs.items()}
        self._planned = {
            cell.id: _planned_seconds(cell, is_held=not is_drawn[cell.config.population])
            for cell in cells
        }
        self._left = {cell.id: cell for cell in cells}
        self._spent = 0.0
        self._taken: dict[str, list[tuple[float, float]]] = {}

    @property
    def seconds_left(self) -> float:
        """Of all cells that are not done."""
        return sum(map(self.seconds, self._left.values()))

    @property
    def share_done(self) -> float:
        """Share of all seconds that the cells took which are done; 1 where there is none."""
        everything = self._spent + self.seconds_left
        return self._spent / everything if everything else 1.0

    def seconds(self, cell: Cell) -> float:
        """Return what a cell should take."""
        planned = self._planned[cell.id]
        if taken := self._taken.get(_protocol(cell)):
            planned *= sum(seconds for seconds, _ in taken) / sum(before for _, before in taken)
        return planned

    def learn(self, cell: Cell, seconds: float | None) -> None:
        """Hear that a cell is done, and what it took; None if that says nothing of others."""
        del self._left[cell.id]
        self._spent += self.seconds(cell) if seconds is None else seconds
        if seconds is not None:
            taken = self._taken.setdefault(_protocol(cell), [])
            taken.append((seconds, self._planned[cell.id]))


def workers_of_sweep(cells: Sequence[Cell], execution: ExecutionConfig) -> Workers:
    """Return how many cells of a sweep run in parallel, and why."""
    if execution.workers != AUTO or execution.ray_address:
        return choose_workers(execution, 0.0)
    return choose_workers(execution, Costs(cells).seconds_left, most=len(cells))


def draws_again(config: Config) -> bool:
    """Return whether clients are drawn anew when asked; a cell's record says what is wrong."""
    try:
        return is_synthetic(config.population) and is_virtual(config.population, config.seed)
    except InputError:
        return False


def _planned_seconds(cell: Cell, *, is_held: bool) -> float:
    if cell.asked is None or cell.asked.clients is None:
        return CELL_SECONDS
    most = cell.config.simulation.drawn_clients
    drawn = math.inf if isinstance(most, str) else most * cell.asked.layers
    answers = min(cell.asked.clients, drawn)
    return CELL_SECONDS + seconds_of_answers(answers, cell.config, is_held=is_held)


def _protocol(cell: Cell) -> str:
    return cell.protocol or cell.config.protocol.name
