"""Makes prepared populations from files of any size, in any order of users, by external sorting.

What does not fit in memory goes to disk. Otherwise this is reading a file: the same rules and rows.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from fedhh.clients.prepared import Manifest
from fedhh.clients.prepared_writer import PreparedWriter
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.rows import Rows, Texts
from fedhh.clients.reading.standard_input import (
    NAME,
    STANDARD_INPUT,
    copied_input,
    named_instead,
)
from fedhh.clients.reading.tables import has_known_extension, kind_of
from fedhh.system.files import is_there, unwritable, whole_directory
from fedhh.system.object_storage import (
    as_address,
    place_of,
    remote_files,
    temporary_copy,
)
from fedhh.validation import InputError, reason_of

_MOST_NAMED = 20
"""Sources that a manifest names."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What was prepared.

    Attributes:
        manifest: Of the directory.
        texts: What of texts is no word; nothing of counted words.
    """

    manifest: Manifest
    texts: Texts


def prepare_files(
    sources: Sequence[str | Path],
    out: Path,
    layout: Layout,
    *,
    salt: str | None,
    memory: int | None,
) -> Prepared:
    """Prepare the clients of files, or of all files in directories, as one population.

    Args:
        sources: Files, `STANDARD_INPUT`, and directories whose files have known extensions, others
            being ignored; of both also addresses in object storage, whose files are copied here one
            by one.
        out: Where the directory goes, and nothing stands.
        layout: How the files are laid out.
        salt: Key of the order of users; random, and not kept, if None.
        memory: Bytes that sorting takes in memory; None for a share of the machine's.

    Raises:
        InputError: As `fedhh.clients.reading.sources.read_population`, or nothing can be written.
    """
    files = [file for source in sources for file in _files_of(source)]
    texts = Texts()

    def add_files(rows: Rows) -> None:
        for file in files:
            file.add_to(rows, out)
        texts.add(rows.texts)

    addresses = [as_address(source) for source in sources]
    places = [
        str(source) if address is None else place_of(address)
        for source, address in zip(sources, addresses, strict=True)
    ]
    name = ", ".join(Path(place).name for place in places[:_MOST_NAMED])
    if left := len(places[_MOST_NAMED:]):
        name += f" and {left:,} more"
    manifest = prepare_rows(
        add_files, out, name=name, layout=layout, salt=salt, memory=memory,
        made={"from": places[:_MOST_NAMED], "files": len(files)},
    )  # fmt: skip
    return Prepared(manifest=manifest, texts=texts)


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
) -> Manifest:
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
    if is_there(out):
        raise InputError(f"Expected a path where nothing stands, got {out}; name another one.")
    # Of a name that is too long, pathlib raises.
    if not os.path.isdir(out.parent):
        raise unwritable(out, "No such file or directory", "directory")
    try:
        with whole_directory(out) as place:
            sorting = place / "sorting"
            sorting.mkdir()
            key = salt or secrets.token_hex(16)
            with (
                _named(out),
                closing(Rows(layout, salt=key, place=sorting, memory=memory)) as rows,
            ):
                add(rows)
                numbered = rows.numbered()
                with closing(PreparedWriter(place, numbered.words)) as writer:
                    for sizes, word_ids, counts in numbered.clients(str(out)):
                        writer.add(sizes, word_ids, counts)
                    manifest = writer.finish(
                        name=name, unit=unit, language=layout.language, made=made
                    )
            shutil.rmtree(sorting)
    except OSError as error:
        raise unwritable(out, error.strerror or str(error), "directory") from None
    return manifest


@dataclass(frozen=True, kw_only=True)
class _File:
    """A file to read: here, of a name below an address, see `remote_files`, or standard input."""

    path: Path
    address: str = ""
    name: str = ""

    def add_to(self, rows: Rows, out: Path) -> None:
        if self.address:
            there = f"{place_of(self.address)}/{self.name}".rstrip("/")
            copied = temporary_copy(self.address, self.name, out.parent)
            with copied as copy, named_instead(copy, there):
                rows.add_file(copy)
        elif str(self.path) == STANDARD_INPUT:
            with tempfile.TemporaryDirectory(dir=out.parent) as folder:
                copy = copied_input(Path(folder))
                with named_instead(copy, NAME):
                    rows.add_file(copy)
        else:
            rows.add_file(self.path)


def _files_of(source: str | Path) -> list[_File]:
    address = as_address(source)
    if str(source) == STANDARD_INPUT:
        return [_File(path=Path(source))]
    if address is not None:
        names = remote_files(address)
        place = Path(place_of(address))
        listed = [_File(path=place / name, address=address, name=name) for name in names]
        is_whole = names == [""]
    else:
        is_whole = not os.path.isdir(source)
        paths = [Path(source)] if is_whole else sorted(Path(source).rglob("*"))
        listed = [_File(path=path) for path in paths if is_whole or path.is_file()]
    if is_whole:
        kind_of(listed[0].path)
        return listed
    # What begins with a sign is no part of a data set by Spark's and Hive's rules.
    found = [
        file
        for file in listed
        if has_known_extension(file.path) and not file.path.name.startswith((".", "_"))
    ]
    if not found:
        raise InputError(
            f"Expected Parquet, CSV or JSON Lines files in {source}, found none; name a directory "
            "that has some."
        )
    return found


@contextmanager
def _named(out: Path) -> Iterator[None]:
    """Turn what DuckDB cannot do, for want of memory or disk, into one line."""
    try:
        yield
    except duckdb.Error as error:
        raise unwritable(out, reason_of(error), "directory") from None
