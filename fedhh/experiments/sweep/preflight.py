"""What is known before the cells of a sweep run on a file."""

from __future__ import annotations

from fedhh.clients.populations.population import StoredPopulation
from fedhh.experiments.config.domain import settle_alphabet
from fedhh.experiments.config.labels import short_label, value_text
from fedhh.experiments.config.population import says_its_size
from fedhh.experiments.config.protocol import settle
from fedhh.experiments.run.preflight import Preflight, preflight_of_configs
from fedhh.experiments.sweep.plan import NAMES_PROTOCOLS, Cell, Sweep
from fedhh.experiments.sweep.sweep import PopulationStore, population_key
from fedhh.validation import InputError


def preflight_of_sweep(plan: Sweep, store: PopulationStore) -> Preflight | None:
    """Return what is known of the cells on the first cell's clients, if these are of a file.

    Of each protocol, the settings with the smallest cohort stand for all; of several, those with
    the largest local epsilon.

    Args:
        plan: The sweep.
        store: Where its populations are kept.

    Returns:
        None without a file, and where a cell cannot run, which its record says.
    """
    if not plan.to_run or says_its_size(plan.to_run[0].config.population):
        return None
    first = plan.to_run[0].config
    try:
        content = store.content(first.population)
        population = store.get(first).population
        if not isinstance(population, StoredPopulation):
            return None
        smallest: dict[str, tuple[tuple[int, float], Cell]] = {}
        for cell in plan.to_run:
            if population_key(cell.config) == population_key(first):
                label, rank = _ranked(cell, population)
                if label not in smallest or rank < smallest[label][0]:
                    smallest[label] = rank, cell
        titled = {_title(label, cell): cell.config for label, (_, cell) in smallest.items()}
        return preflight_of_configs(
            list(titled.values()), population, content, titles=tuple(titled)
        )
    except InputError:
        return None


def _ranked(cell: Cell, population: StoredPopulation) -> tuple[str, tuple[int, float]]:
    """Return a cell's protocol, and its smallest cohort before its local epsilon, falling."""
    config = settle_alphabet(cell.config, population)
    _, protocol = settle(config, population.num_clients, population.lexicon.words)
    size = min(layer.num_clients for layer in protocol.plan.layers)
    return cell.protocol or protocol.title, (size, -protocol.plan.local_epsilon)


def _title(label: str, cell: Cell) -> str:
    """Return what a cell is called: its protocol, and what varies of it beside."""
    settings = [
        f"{short_label(path)} {value_text(value)}"
        for path, value in cell.varied.items()
        if path not in NAMES_PROTOCOLS
    ]
    return f"{label} ({', '.join(settings)})" if settings else label
