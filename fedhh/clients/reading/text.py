"""From texts to counted words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.reading.sources import read_texts, write_population
from fedhh.clients.reading.tables import require_known_extension


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """Counted words, and what of the texts is none of them.

    Attributes:
        population: The words of each user.
        dropped: How often what is no word was dropped, see `tokens.tokenize`.
    """

    population: StoredPopulation
    dropped: Counter[tuple[str, str]]


def prepare_text(
    in_path: str | Path, out_path: str | Path, *, columns: Mapping[str, str] | None = None
) -> Prepared:
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
    population, dropped = read_texts(in_path, columns=columns)
    write_population(population, out_path)
    return Prepared(population=population, dropped=dropped)
