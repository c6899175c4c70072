"""Arrays and notes in one file that is whole or absent, and runs nothing when it is read.

The first line is the SHA-256 of all that follows; the second is JSON: the notes, and each array's
type and shape. Then come the arrays' bytes. A digest finds damage, not forgery.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.system.files import whole_file
from fedhh.system.machine import memory_bytes
from fedhh.system.reading import require_regular
from fedhh.validation import InputError, shown

_SCHEMA_VERSION = 4

DAMAGE = (
    ArithmeticError, AttributeError, LookupError, MemoryError, OSError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip
"""What a damaged archive, or what it holds, raises where it is read."""

Arrays = dict[str, npt.NDArray[Any]]


def write_archive(
    path: Path, arrays: Mapping[str, npt.NDArray[Any]], notes: Mapping[str, Any]
) -> None:
    """Write named arrays of numbers, and notes as JSON has them, to a file and to the disk."""
    kinds = {name: (each.dtype.str, each.shape) for name, each in arrays.items()}
    text = json.dumps({"schema_version": _SCHEMA_VERSION, "notes": notes, "arrays": kinds})
    content: list[Any] = [
        f"{text}\n".encode(),
        *(np.ascontiguousarray(x).ravel() for x in arrays.values()),
    ]
    digest = hashlib.sha256()
    for each in content:
        digest.update(each)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        file.write(f"{digest.hexdigest()}\n".encode())
        file.writelines(content)
        file.flush()
        os.fsync(file.fileno())


def read_archive(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and notes that `write_archive` wrote.

    Raises:
        InputError: The file is no such archive, one of another version, changed, or larger than
            this machine's memory.
    """
    try:
        require_regular(path)
        size, memory = path.stat().st_size, memory_bytes()
        if size > memory:
            raise ValueError(f"{size:,} bytes, expected at most this machine's memory: {memory:,}")
        with path.open("rb") as file:
            stated, text = file.readline().strip(), file.readline()
            content = json.loads(text)
            if content["schema_version"] != _SCHEMA_VERSION:
                raise ValueError(f"schema {content['schema_version']}, expected {_SCHEMA_VERSION}")
            digest, arrays = hashlib.sha256(text), {}
            for name, (kind, shape) in content["arrays"].items():
                dtype, number = np.dtype(kind), math.prod(shape)
                if dtype.kind not in "biuf" or number * dtype.itemsize > size:
                    raise ValueError(f"{shown(name)} is larger than the file, or no numbers")
                array = np.fromfile(file, dtype, number)
                digest.update(array.data)
                arrays[name] = array.reshape(shape)
            if stated.decode() != digest.hexdigest() or file.read(1):
                raise ValueError("its content is not that of its digest")
        return arrays, dict(content["notes"])
    except DAMAGE as error:
        raise damaged(path, error) from error


def within(name: str, arrays: Arrays) -> Arrays:
    """Return arrays under names that begin with ``name``, to be stored beside others."""
    return {f"{name}.{each}": array for each, array in arrays.items()}


def part(name: str, arrays: Arrays) -> Arrays:
    """Return the arrays that were `within` a name, by their own names."""
    return {key[len(name) + 1 :]: x for key, x in arrays.items() if key.startswith(f"{name}.")}


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
