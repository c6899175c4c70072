"""A file of clients as a config's `[population]` names it, and how it is laid out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fedhh.experiments.config.schema import PopulationConfig
from fedhh.validation import InputError, shown

if TYPE_CHECKING:
    from fedhh.clients.populations.population import StoredPopulation
    from fedhh.clients.reading.columns import Layout
    from fedhh.clients.reading.sources import FileContent


def load_file(config: PopulationConfig) -> StoredPopulation:
    """Return all clients and words of a file."""
    return load_content(config).population


def load_content(config: PopulationConfig) -> FileContent:
    """Return all clients and words of a file, and what of its texts is no word.

    Raises:
        InputError: The file cannot be read, or a column of days is named, which no run reads.
    """
    from fedhh.clients.reading.sources import read_file

    if config.columns.day is not None:
        raise InputError(
            f"population.columns.day = {shown(config.columns.day)}: expected no column of days, "
            "since a run takes the words of all days; remove the key, or use fedhh longitudinal "
            "run."
        )
    return read_file(Path(config.source), layout_of(config))


class KeptFile:
    """Reads a file for `build_population`, and keeps what of it is no population.

    Attributes:
        content: What the file holds; None as long as none was read.
    """

    def __init__(self) -> None:
        self.content: FileContent | None = None

    def read(self, config: PopulationConfig) -> StoredPopulation:
        """Return all clients and words of a file."""
        self.content = load_content(config)
        return self.content.population


def layout_of(config: PopulationConfig) -> Layout:
    """Return how a file is laid out."""
    from fedhh.clients.reading.columns import Layout

    return Layout(
        columns=config.columns.named, separator=config.separator, fold_case=config.fold_case
    )


def refuse_layout(config: PopulationConfig) -> None:
    """Raise InputError if a population that is no file's says how its file is laid out."""
    given: dict[str, Any] = {f"columns.{role}": name for role, name in config.columns}
    given |= {"separator": config.separator, "fold_case": config.fold_case or None}
    for key, value in given.items():
        if value is not None:
            raise InputError(
                f"population.{key} = {shown(value)}: expected a file as population.source, got "
                f"{shown(config.source)}; remove the key."
            )
