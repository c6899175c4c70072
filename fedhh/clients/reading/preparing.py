"""Makes prepared populations from files of any size, in any order of users, by external sorting.

What does not fit in memory goes to disk. Otherwise this is reading a file: the same rules and rows.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from fedhh.clients.clients import Texts
from fedhh.clients.prepared import Manifest
from fedhh.clients.prepared_writer import PreparedWriter
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.rows import Rows
from fedhh.clients.reading.sources import STANDARD_INPUT, file_here
from fedhh.clients.reading.tables import has_known_extension, kind_of
from fedhh.clients.synthetic import CLIENTS_AT_ONCE, PopulationModel, RankDrawer
from fedhh.system.files import require_absent, unwritable, whole_directory
from fedhh.system.object_storage import as_address, place_of, remote_files
from fedhh.validation import InputError, reason_of, require_at_least
from fedhh.words.languages import ENGLISH

_MOST_NAMED = 20
"""Sources that a manifest names."""


def prepare_files(
    sources: Sequence[str | Path],
    out: Path,
    layout: Layout,
    *,
    salt: str | None,
    memory: int | None,
) -> tuple[Manifest, Texts]:
    """Prepare the clients of files, or of all files in directories, as one population.

    Returns the directory's manifest, and what of texts is no word: nothing of counted words.

    Args:
        sources: Files, `STANDARD_INPUT`, and directories whose files have known extensions, others
            being ignored; of both also addresses in object storage, whose files are copied here one
            by one.
        out: Where the directory goes, and nothing stands.
        layout: How the files are laid out.
        salt: Key of the order of users; random, and not kept, if None.
        memory: Bytes that sorting takes in memory; None for a share of the machine's.

    Raises:
        InputError: As `fedhh.clients.reading.sources.read_file`, or nothing can be written.
    """
    files = [(source, name) for source in sources for name in _names_below(source)]

    def add_files(rows: Rows) -> None:
        for source, name in files:
            with file_here(source, name, out.parent) as file:
                rows.add_file(file)

    places = [place_of(as_address(source) or str(source)) for source in sources]
    name = ", ".join(Path(place).name for place in places[:_MOST_NAMED])
    if left := len(places[_MOST_NAMED:]):
        name += f" and {left:,} more"
    return prepare_rows(
        add_files, out, name=name, layout=layout, salt=salt, memory=memory,
        made={"from": places[:_MOST_NAMED], "files": len(files)},
    )  # fmt: skip


def prepare_synthetic(
    model: PopulationModel, num_clients: int, out: Path, *, seed: int
) -> Manifest:
    """Prepare the clients of `fedhh.clients.synthetic.synthetic_population`, block by block.

    Args:
        model: What they type.
        num_clients: How many.
        out: Where the directory goes, and nothing stands.
        seed: Of the draw, and of the order in which they are stored.

    Raises:
        InputError: There is no client, or the directory cannot be written.
    """
    require_at_least(1, num_clients=num_clients)
    drawer = RankDrawer(model=model, seed=seed)

    def add_clients(rows: Rows) -> None:
        for first in range(0, num_clients, CLIENTS_AT_ONCE):
            clients = np.arange(first, min(first + CLIENTS_AT_ONCE, num_clients))
            drawn = drawer.draw(clients)
            sizes = np.diff(drawn.offsets)
            ranks, ids = np.unique(drawn.ranks, return_inverse=True)
            words = pa.array(model.strings(ranks), pa.string())
            empty = clients[sizes == 0]
            ids = np.append(ids, np.full(len(empty), -1)).astype(np.int32)
            rows.add_piece(
                pa.array(np.append(np.repeat(clients, sizes), empty)).cast(pa.string()),
                pa.DictionaryArray.from_arrays(pa.array(ids, mask=ids < 0), words),
                pa.array(np.append(drawn.counts, np.zeros(len(empty), dtype=np.int64))),
            )

    language = ENGLISH if model.known is None else model.known.language
    return prepare_rows(
        add_clients,
        out,
        name=f"{model.name}, {num_clients:,} clients, seed {seed}",
        unit=model.unit,
        layout=Layout(language=language),
        salt=f"seed {seed}",
        made={"from": [model.name], "clients": num_clients, "seed": seed},
    )[0]


def prepare_rows(
    add: Callable[[Rows], None],
    out: Path,
    *,
    name: str,
    layout: Layout,
    made: dict[str, Any],
    unit: str = "user",
    salt: str | None = None,
    memory: int | None = None,
) -> tuple[Manifest, Texts]:
    """Write a prepared population from rows in any order; rows of one user and word are added up.

    The directory appears whole or not at all.

    Args:
        add: Adds the rows.
        out: Where the directory goes, and nothing stands.
        name: What a report calls the population.
        layout: Whose form of words they get, by the rules of which language.
        made: How it was made, for the manifest.
        unit: What one client stands for.
        salt: As for `prepare_files`, and so is ``memory``.
        memory: Bytes.

    Raises:
        InputError: There is no row, counts of a word sum to 2^31 or more, or it cannot be written.
    """
    require_absent(out, "directory")
    key = salt or secrets.token_hex(16)
    try:
        with whole_directory(out) as place:
            sorting = place / "sorting"
            sorting.mkdir()
            with closing(Rows(layout, salt=key, place=sorting, memory=memory)) as rows:
                add(rows)
                with closing(PreparedWriter(place, rows.words)) as writer:
                    for piece in rows.pieces(str(out)):
                        writer.add(*piece)
                    manifest = writer.finish(
                        name=name, unit=unit, language=layout.language, made=made
                    )
            shutil.rmtree(sorting)
    except OSError as error:
        raise unwritable(out, error.strerror or str(error), "directory") from None
    except duckdb.Error as error:
        raise unwritable(out, reason_of(error), "directory") from None
    return manifest, rows.texts


def _names_below(source: str | Path) -> list[str]:
    """Return the names of a directory's files that are read; of a file, one that is empty."""
    address, names = as_address(source), [""]
    if address is not None:
        names = remote_files(address)
    # Of a name that is too long, pathlib raises.
    elif os.path.isdir(source):
        place = Path(source)
        names = sorted(str(f.relative_to(place)) for f in place.rglob("*") if f.is_file())
    if names == [""]:
        if str(source) != STANDARD_INPUT:
            kind_of(Path(place_of(address or str(source))))
        return names
    # What begins with a sign is no part of a data set by Spark's and Hive's rules.
    found = [
        name
        for name in names
        if has_known_extension(Path(name)) and not Path(name).name.startswith((".", "_"))
    ]
    if not found:
        raise InputError(
            f"Expected Parquet, CSV or JSON Lines files in {source}, found none; name a directory "
            "that has some."
        )
    return found
