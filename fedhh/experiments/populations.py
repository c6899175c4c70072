"""From a config's `[population]` to the clients of a run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedhh.clients.known_words import load_known, remove_known
from fedhh.clients.population import StoredPopulation
from fedhh.clients.synthetic import population_presets, synthetic_population
from fedhh.experiments.config import PopulationConfig
from fedhh.validation import InputError


def build_population(
    config: PopulationConfig, *, seed: int
) -> tuple[StoredPopulation, dict[str, Any]]:
    """Return the clients with their unknown words, and facts about what was removed.

    Raises:
        InputError: The source is no preset and no readable file, or the settings contradict it.
    """
    if config.source in population_presets():
        if config.clients is None:
            raise InputError(
                f"population.clients is missing: source = {config.source!r} is synthetic; say "
                "how many clients to draw."
            )
        population = synthetic_population(config.source, config.clients, seed=seed)
        return _without_known(population, config.known)
    if config.clients is not None:
        raise InputError(
            f"population.clients = {config.clients}: expected none, since the file "
            f"{config.source} says who the clients are; remove the key."
        )
    population = load_file(config)
    return _without_known(population, config.known)


def load_file(config: PopulationConfig) -> StoredPopulation:
    """Return all clients and words of a file."""
    columns = {
        "user": config.user_column,
        "word": config.word_column,
        "count": config.count_column,
        "text": config.text_column,
    }
    from fedhh.clients.sources import read_population

    return read_population(
        Path(config.source), columns={role: name for role, name in columns.items() if name}
    )


def load_population(path: str | Path, *, known: str = "scowl70") -> StoredPopulation:
    """Return the clients of a file with the words that a device would not know.

    Args:
        path: Parquet, CSV, CSV.gz or JSON Lines with columns (user, word, count) or (user, text).
        known: Known words: "scowl70", "none", or a file with a word per line.

    Raises:
        InputError: The file or the list cannot be read, or holds no client.
    """
    from fedhh.clients.sources import read_population

    return _without_known(read_population(Path(path)), known)[0]


def _without_known(
    population: StoredPopulation, known: str
) -> tuple[StoredPopulation, dict[str, Any]]:
    target, facts = remove_known(population, load_known(known))
    return target, {
        **asdict(facts),
        "known_token_share": facts.known_token_share,
        "known_word_share": facts.known_word_share,
    }
