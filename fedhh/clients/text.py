"""From texts to counted words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedhh.clients.files import read_header, require_known_extension
from fedhh.clients.population import StoredPopulation
from fedhh.clients.sources import choose_columns, read_population, write_population
from fedhh.validation import InputError


def prepare_text(
    in_path: str | Path, out_path: str | Path, *, columns: Mapping[str, str] | None = None
) -> StoredPopulation:
    """Count the words of each user's texts, write them as user, word, count, and return them.

    Users are numbers in the order of their first text, so that names do not go on.

    Args:
        in_path: A file with a row for each text, as in `read_population`.
        out_path: Where to write, as in `write_population`.
        columns: The file's names for ``user`` and ``text``, where they differ.

    Raises:
        InputError: As `read_population` and `write_population` do.
    """
    require_known_extension(Path(out_path))
    names = choose_columns(read_header(Path(in_path)), columns or {}, Path(in_path))
    if "text" not in names:
        raise InputError(f"Expected a column 'text', got counted words already in {in_path}.")
    population = read_population(in_path, columns=columns)
    write_population(population, out_path)
    return population
