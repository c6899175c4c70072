"""Logs of what devices sent, as files: a row for each record, or for some records of a day."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from fedhh.arrays import Bools, Ints
from fedhh.clients.reading.columns import Layout
from fedhh.clients.reading.dated_rows import read_dated
from fedhh.clients.reading.rules import Counts
from fedhh.clients.reading.tables import JSON, kind_of, list_names, read_header, require_distinct
from fedhh.validation import InputError

ONLY_USE_CASE = "records"
"""What the use case of a file is called that names none."""
_DEVICE, _DAY, _USE_CASE, _RECORDS = "device", "day", "use_case", "records"
_NOUNS = {"user": "device", "word": "use case"}
_MOST_DAYS = 100_000


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceLog:
    """What some devices sent.

    Attributes:
        use_cases: Their names, sorted.
        num_devices: Devices that are named.
        num_days: Days until the last one, from day 0.
        of_use_case: ``(rows,) int64``: which use case, in the order of their names.
        devices: ``(rows,) int64``: who, numbered in the order of their first rows.
        days: ``(rows,) int64``: when, from 0.
        records: ``(rows,) int64``: how many records.
        names: ``(rows,)``: each row's device as the file has it.
    """

    use_cases: tuple[str, ...]
    num_devices: int
    num_days: int
    of_use_case: Ints
    devices: Ints
    days: Ints
    records: Ints
    names: pa.ChunkedArray

    def name_of(self, device: int) -> str:
        """Return what the file calls a device."""
        return str(self.names[int((self.devices == device).argmax())].as_py())

    def of(self, use_case: str) -> tuple[Ints, Ints, Ints]:
        """Return devices, days and records of one use case."""
        chosen = self.of_use_case == self.use_cases.index(use_case)
        return self.devices[chosen], self.days[chosen], self.records[chosen]


def read_device_log(path: Path) -> DeviceLog:
    """Return the log in a file: Parquet, CSV or JSON Lines.

    Columns: ``device``, ``day``, and if there are several ``use_case``; a row is one record, or as
    many as its column ``records`` says. Others, such as reports, are not read. Days are whole
    numbers from a device's opt-in, which is day 0, or dates: then the first date of the file is
    everybody's day 0. The days of a device must not fall from row to row.

    Args:
        path: Its extension tells the format.

    Raises:
        InputError: The file cannot be read, a column is missing, or a row is none of a log.
    """
    names = _columns(path)
    roles = {"user": _DEVICE, "day": _DAY}
    roles |= {"word": _USE_CASE} if _USE_CASE in names else {}
    is_json = kind_of(path) == JSON
    roles |= {"count": _RECORDS} if _RECORDS in names or is_json else {}
    require_distinct(names, roles.values(), path)
    counts: Counts = "some" if is_json else "all"
    found = read_dated(path, roles, Layout(), nouns=_NOUNS, counts=counts)
    days = found.days - (found.days.min() if found.are_dates else 0)
    _refuse_first_day(days < 0, "Expected days from 0, a device's opt-in", days, path)
    far = f"Expected days below {_MOST_DAYS:,}"
    _refuse_first_day(days >= _MOST_DAYS, far, days, path)
    return DeviceLog(
        use_cases=tuple(found.words or [ONLY_USE_CASE]),
        num_devices=int(found.users.max()) + 1,
        num_days=int(days.max()) + 1,
        of_use_case=np.maximum(found.word_ids, 0),
        devices=found.users,
        days=days,
        records=found.counts,
        names=found.called,
    )


def _columns(path: Path) -> list[str]:
    names = read_header(path)
    for wanted in (_DEVICE, _DAY):
        if wanted not in names:
            raise InputError(
                f"Expected a column {wanted!r} in {path}, got {list_names(names)}; a log has "
                f"{_DEVICE}, {_DAY} and perhaps {_USE_CASE} and {_RECORDS}."
            )
    return names


def _refuse_first_day(bad: Bools, wanted: str, days: Ints, path: Path) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise InputError(f"{wanted}, got day={days[row]} in row {row + 1} of {path}.")
