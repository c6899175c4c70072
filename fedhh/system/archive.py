"""Arrays and notes in one file that is whole or absent, and runs nothing when it is read.

The file is an npz archive without compression, so it holds no more than its size; notes are a JSON
entry of it. A digest of all content is checked when it is read; it finds damage, not forgery.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.system.files import whole_file
from fedhh.system.machine import memory_bytes
from fedhh.system.reading import require_regular
from fedhh.validation import InputError, shown

_SCHEMA_VERSION = 3
_NOTES, _DIGEST = "notes", "digest"

DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,  # of archives that ask for a password or an unknown compression, of deep nesting
    SyntaxError,
    TypeError,
    UserWarning,  # of headers that only an old Python would write
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What a damaged archive, a member of it, or a header of an array raises when it is read."""

Arrays = dict[str, npt.NDArray[Any]]


def write_archive(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], notes: Mapping[str, Any]
) -> None:
    """Write named arrays of numbers, and notes as JSON has them, to a ``.npz`` and to the disk."""
    text = json.dumps({"schema_version": _SCHEMA_VERSION, "notes": notes})
    content = {**arrays, _NOTES: np.frombuffer(text.encode(), dtype=np.uint8)}
    content[_DIGEST] = _digest(content)
    with whole_file(path) as temporary:
        np.savez(temporary, **content)  # type: ignore[arg-type]
        with temporary.open("rb") as file:
            os.fsync(file.fileno())


def read_archive(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and notes that `write_archive` wrote.

    Raises:
        InputError: The file is no such archive, one of another version, changed, or larger than
            this machine's memory.
    """
    try:
        require_regular(path)
        arrays = _read(path)
        digest = arrays.pop(_DIGEST, None)
        content = json.loads(arrays[_NOTES].tobytes().decode())
        if content["schema_version"] != _SCHEMA_VERSION:
            raise ValueError(f"schema {content['schema_version']}, expected {_SCHEMA_VERSION}")
        if digest is None or not np.array_equal(digest, _digest(arrays)):
            raise ValueError("its content is not that of its digest")
        del arrays[_NOTES]
        return arrays, dict(content["notes"])
    except DAMAGE as error:
        raise damaged(path, error) from error


def within(name: str, arrays: Arrays) -> Arrays:
    """Return arrays under names that begin with ``name``, to be stored beside others."""
    return {f"{name}.{each}": array for each, array in arrays.items()}


def part(name: str, arrays: Arrays) -> Arrays:
    """Return the arrays that were `within` a name, by their own names."""
    beginning = f"{name}."
    return {
        each.removeprefix(beginning): array
        for each, array in arrays.items()
        if each.startswith(beginning)
    }


def damaged(path: Path, error: BaseException) -> InputError:
    """Return what says that nothing goes on from a file, and why."""
    return InputError(
        f"Cannot go on from {path}: it is damaged or of another version of fedhh "
        f"({shown(str(error))}). Start again in a new directory."
    )


def of_another_run(path: Path) -> InputError:
    """Return what says that what is asked for now does not go on from a file."""
    return InputError(
        f"{path} is of another run: its clients, its settings, its seed or its fedhh are not those "
        "of this one. Put back what changed, or start again in a new directory."
    )


def _read(path: Path) -> Arrays:
    """Return the arrays of an archive that is not compressed and fits into memory."""
    size, memory = path.stat().st_size, memory_bytes()
    if size > memory:
        raise ValueError(f"{size:,} bytes, expected at most this machine's memory of {memory:,}")
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED for each in members):
            raise ValueError("it is compressed")
        # Members that overlap would be read more often than they are there.
        if sum(each.file_size for each in members) > size:
            raise ValueError("its entries are larger than the file")
        file.seek(0)
        with warnings.catch_warnings(), np.load(file, allow_pickle=False) as opened:
            warnings.simplefilter("error", UserWarning)
            return {name: opened[name] for name in opened.files}


def _digest(arrays: Arrays) -> npt.NDArray[np.uint8]:
    """Return the SHA-256 of arrays: names, types, shapes and values."""
    found = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        found.update(repr((name, str(array.dtype), array.shape)).encode())
        found.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return np.frombuffer(found.digest(), dtype=np.uint8)
