"""Writes prepared populations, client by client, in memory that does not grow with their number.

Columns are collected in raw files, and then copied into the files that `prepared` describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedhh.arrays import Ints, SmallInts
from fedhh.clients.prepared import (
    LARGEST_MANIFEST,
    MANIFEST,
    SCHEMAS,
    Manifest,
    file_digest,
)
from fedhh.validation import InputError
from fedhh.version import __version__

_RAW = {"offsets": np.int64, "word": np.int32, "count": np.int32}


class PreparedWriter:
    """A prepared directory in the making."""

    def __init__(self, directory: Path, words: Sequence[str]) -> None:
        """Begin to write.

        Args:
            directory: An empty one.
            words: ``(V,)``, sorted and distinct.
        """
        self._directory, self._words = directory, words
        self._typed, self._holders = (np.zeros(len(words), dtype=np.int64) for _ in range(2))
        self._rows = 0
        self._raw: dict[str, BinaryIO] = {
            name: (directory / f"{name}.raw").open("wb") for name in _RAW
        }

    def add(self, starts: Ints, word_ids: SmallInts, counts: SmallInts) -> None:
        """Add some rows.

        Args:
            starts: Of each client that begins in them, how many rows there are before its first.
            word_ids: ``(rows,)``, ascending within a client.
            counts: As many, at least 1.
        """
        self._append("offsets", starts)
        self._append("word", word_ids)
        self._append("count", counts)
        self._rows += len(word_ids)
        np.add.at(self._typed, word_ids, counts)
        self._holders += np.bincount(word_ids, minlength=len(self._words))

    def finish(self, *, name: str, unit: str, language: str, made: dict[str, Any]) -> Manifest:
        """Write the files and the manifest, and return it.

        Raises:
            InputError: The manifest is larger than what is read.
        """
        self._append("offsets", np.array([self._rows]))
        self.close()
        offsets = self._column("offsets")
        self._write("clients.arrow", offsets)
        self._write("rows.arrow", self._column("word"), self._column("count"))
        words = pa.array(self._words, type=pa.large_string())
        self._write("words.arrow", words, pa.array(self._typed), pa.array(self._holders))
        files = {}
        for each in SCHEMAS:
            path = self._directory / each
            files[each] = (path.stat().st_size, file_digest(path))
        manifest = Manifest(
            name=name,
            unit=unit,
            language=language,
            clients=len(offsets) - 1,
            rows=self._rows,
            words=len(self._words),
            contributions=int(self._typed.sum()),
            files=files,
            made={"fedhh_version": __version__, **made},
        )
        content = manifest.to_json().encode()
        if len(content) > LARGEST_MANIFEST:
            raise InputError(
                f"Expected a manifest of at most {LARGEST_MANIFEST:,} bytes, got "
                f"{len(content):,}; give the population and where it is from shorter names."
            )
        (self._directory / MANIFEST).write_bytes(content)
        return manifest

    def close(self) -> None:
        """Close what is open, without a directory that could be read."""
        for file in self._raw.values():
            file.close()

    def _append(self, name: str, values: npt.NDArray[Any]) -> None:
        self._raw[name].write(np.ascontiguousarray(values, dtype=_RAW[name]).tobytes())

    def _column(self, name: str) -> pa.Array:
        """Return a raw file as a column that lies on disk."""
        path, kind = self._directory / f"{name}.raw", _RAW[name]
        size = path.stat().st_size // np.dtype(kind).itemsize
        # A file of no bytes cannot be mapped.
        values = np.memmap(path, dtype=kind, mode="r") if size else np.zeros(0, dtype=kind)
        buffers = [None, pa.py_buffer(values)]
        return pa.Array.from_buffers(pa.from_numpy_dtype(kind), size, buffers)

    def _write(self, name: str, *columns: pa.Array) -> None:
        schema = SCHEMAS[name]
        batch = pa.RecordBatch.from_arrays(list(columns), schema=schema)
        path = str(self._directory / name)
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(batch)
        for column in schema.names:
            (self._directory / f"{column}.raw").unlink(missing_ok=True)
