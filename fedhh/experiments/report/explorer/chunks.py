"""Data of a page: columns as JSON, compressed, each piece read only when it is asked for."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fedhh.experiments.study.json_values import plain

Columns = dict[str, list[Any]]
"""A table: for each column its values, one entry per row."""


def packed(value: Any) -> str:
    """Return JSON, compressed, in letters that mean nothing to HTML."""
    try:
        text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        # Few pieces hold numbers that JSON has no words for.
        text = json.dumps(plain(value), separators=(",", ":"), allow_nan=False)
    # Equal content makes an equal page, whenever it is written.
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")


def unpacked(text: str) -> Any:
    """Return what was packed."""
    return json.loads(gzip.decompress(base64.b64decode(text)))


def columns_of(table: pd.DataFrame, digits: int = 6) -> Columns:
    """Return a table by columns; numbers with so many significant digits, missing ones as None."""
    return {str(name): values_of(table[name], digits) for name in table.columns}


def values_of(column: pd.Series[Any], digits: int = 6) -> list[Any]:
    """Return a column's values for JSON."""
    if pd.api.types.is_bool_dtype(column):
        return column.astype(int).tolist()
    if pd.api.types.is_float_dtype(column):
        return _all_rounded(column.to_numpy(dtype=np.float64), digits)
    if pd.api.types.is_integer_dtype(column):
        return column.tolist()
    return [_of_object(value, digits) for value in column.tolist()]


def _all_rounded(values: npt.NDArray[np.float64], digits: int) -> list[Any]:
    finite = np.isfinite(values)
    sizes = np.where(finite & (values != 0), np.abs(values), 1.0)
    scale = 10.0 ** (digits - 1 - np.floor(np.log10(sizes)))
    usual = finite & np.isfinite(scale) & (scale < 1e300) & (scale > 0)
    rounded = np.round(np.where(usual, values, 0.0) * np.where(usual, scale, 1.0))
    # Dividing by a whole number gives the number that its digits say.
    up, down = np.maximum(scale, 1.0), np.maximum(1 / scale, 1.0)
    short = np.where(usual, rounded / np.where(usual, up, 1.0) * np.where(usual, down, 1.0), values)
    listed: list[Any] = short.tolist()
    for i in np.flatnonzero(~usual):
        listed[i] = _rounded(float(values[i]), digits)
    return listed


def _rounded(value: float, digits: int) -> float | int | None:
    if np.isnan(value):
        return None
    if not np.isfinite(value):
        return value
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def _of_object(value: Any, digits: int) -> Any:
    if isinstance(value, np.ndarray | list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, float | np.floating):
        return _rounded(float(value), digits)
    if isinstance(value, np.integer):
        return int(value)
    return value if value is None or isinstance(value, int) else str(value)
