"""Checkpoints: a protocol's state after a round, in one file that is whole or absent.

A state is a tree of frozen dataclasses, tuples, arrays and scalars. Arrays go to an npz archive
under their path in the tree, the rest into a JSON entry of the same archive. No pickle: a
checkpoint can be read without running what it says. No compression: it holds no more than its file
does. A digest of all content is checked when it is read; it finds damage, not forgery.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.system.files import whole_file
from fedhh.system.machine import memory_bytes
from fedhh.system.reading import require_regular
from fedhh.validation import InputError, shown

_SCHEMA_VERSION = 2
_TREE, _DIGEST = "tree", "digest"

_DAMAGE = (
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


def save_checkpoint(path: Path, state: Any, notes: dict[str, Any]) -> None:
    """Write to a ``.npz`` a state, and what else a resumed run needs as JSON values.

    A state is a frozen dataclass of arrays, scalars, tuples and such dataclasses.
    """
    arrays: Arrays = {}
    tree = _pack(state, "state", arrays)
    text = json.dumps({"schema_version": _SCHEMA_VERSION, "state": tree, "notes": notes})
    arrays[_TREE] = np.frombuffer(text.encode(), dtype=np.uint8)
    arrays[_DIGEST] = _digest(arrays)
    with whole_file(path) as temporary:
        np.savez(temporary, **arrays)  # type: ignore[arg-type]


def load_checkpoint(path: Path, types: Sequence[type[Any]]) -> tuple[Any, dict[str, Any]]:
    """Return the state, made of these dataclasses, and the notes that `save_checkpoint` wrote.

    Raises:
        InputError: The file is no checkpoint, one of another version, changed, or larger than
            this machine's memory.
    """
    try:
        require_regular(path)
        arrays = _read(path)
        digest = arrays.pop(_DIGEST, None)
        content = json.loads(arrays[_TREE].tobytes().decode())
        if content["schema_version"] != _SCHEMA_VERSION:
            raise ValueError(f"schema {content['schema_version']}, expected {_SCHEMA_VERSION}")
        if digest is None or not np.array_equal(digest, _digest(arrays)):
            raise ValueError("its content is not that of its digest")
        state = _unpack(content["state"], arrays, {t.__name__: t for t in types})
        notes = dict(content["notes"])
    except _DAMAGE as error:
        raise InputError(
            f"Cannot go on from the checkpoint {path}: it is damaged or of another version of "
            f"fedhh ({shown(str(error))}). Start the run again in a new directory."
        ) from error
    return state, notes


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


def _pack(value: Any, path: str, arrays: Arrays) -> Any:
    if isinstance(value, np.ndarray):
        arrays[path] = value
        return {"array": path}
    if dataclasses.is_dataclass(value):
        names = [f.name for f in dataclasses.fields(value)]
        packed = {name: _pack(getattr(value, name), f"{path}.{name}", arrays) for name in names}
        return {"type": type(value).__name__, "fields": packed}
    if isinstance(value, tuple):
        return {"tuple": [_pack(v, f"{path}.{i}", arrays) for i, v in enumerate(value)]}
    if value is None or isinstance(value, bool | int | float | str):
        return {"scalar": value}
    raise TypeError(f"A checkpoint cannot hold {type(value).__name__} at {path}.")


def _unpack(packed: Any, arrays: Arrays, types: dict[str, type[Any]]) -> Any:
    if "array" in packed:
        return arrays[packed["array"]]
    if "tuple" in packed:
        return tuple(_unpack(part, arrays, types) for part in packed["tuple"])
    if "scalar" in packed:
        return packed["scalar"]
    if packed["type"] not in types:
        raise ValueError(f"The checkpoint holds {packed['type']}, which the protocol lacks.")
    fields = {name: _unpack(part, arrays, types) for name, part in packed["fields"].items()}
    return types[packed["type"]](**fields)
