"""From texts to counted words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.sources import FileContent, read_texts, write_population
from fedhh.clients.reading.tables import require_known_extension


def prepare_text(
    in_path: str | Path,
    out_path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    separator: str | None = None,
) -> FileContent:
    """Count the words of each user's texts, write them as user, word, count, and return them.

    Users are numbers in the order of their first text, so that names do not go on.

    Args:
        in_path: A file with a row for each text, as in `read_population`.
        out_path: Where to write, as in `write_population`.
        columns: The file's names for ``user`` and ``text``, where they differ.
        separator: What separates the columns of CSV, or "tab"; None: a comma.

    Raises:
        InputError: As `read_population` and `write_population` do.
    """
    require_known_extension(Path(out_path))
    content = read_texts(in_path, Layout(columns=columns or {}, separator=separator))
    write_population(content.population, out_path)
    return content
