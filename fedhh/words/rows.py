"""Rows of codes, found among others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.words.trie import Codes

_AT_ONCE = 2**18


def match_rows(codes: Codes, rows: Codes) -> npt.NDArray[np.int64]:
    """Return for each row of ``codes`` its position among ``rows``, or -1.

    Args:
        codes: ``(n, width) uint16``.
        rows: ``(m, width) uint16``, distinct.
    """
    # Imported late: who only asks oracles needs no Arrow.
    import pyarrow as pa
    import pyarrow.compute as pc

    def as_bytes(table: Codes) -> Any:
        content = pa.py_buffer(np.ascontiguousarray(table))
        kind = pa.binary(2 * table.shape[1])
        return pa.FixedSizeBinaryArray.from_buffers(kind, len(table), [None, content])

    wanted = as_bytes(rows)
    matches = np.full(len(codes), -1, dtype=np.int64)
    for first in range(0, len(codes) if len(rows) else 0, _AT_ONCE):
        found = pc.index_in(as_bytes(codes[first : first + _AT_ONCE]), value_set=wanted)
        matches[first : first + _AT_ONCE] = found.fill_null(-1).to_numpy()
    return matches
