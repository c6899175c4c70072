"""Files whose rows say on which day they were typed, as a population over time."""

from __future__ import annotations

import datetime
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.reading.columns import DAY, Layout, find_columns
from fedhh.clients.reading.rows import (
    count_rows,
    dictionary_encoded,
    formed_rows,
    refuse_bytes,
    refuse_first,
    refuse_nulls,
    rows_with_a_word,
    user_rows,
    word_rows,
)
from fedhh.clients.reading.sources import with_late_counts
from fedhh.clients.reading.tables import is_text, read_columns, readable
from fedhh.clients.reading.tokens import tokenize_all
from fedhh.longitudinal.populations.over_time import MOST_PERIODS, PopulationOverTime
from fedhh.validation import InputError, require_at_least, shown
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon

_Ids = npt.NDArray[np.int64]
_Shares = npt.NDArray[np.float64]

_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,9}\s*")
_ISO_DATE = re.compile(r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*")
_EPOCH = datetime.date(1970, 1, 1)


class DatedPopulation(PopulationOverTime):
    """The users of a file over time, by the days of its rows.

    Day 0 is the first day of any row. A user is there from the period of its first row to that of
    its last, also in periods between in which it typed nothing. Days after the last whole period
    are left out.
    """

    def __init__(
        self,
        *,
        name: str,
        unit: str,
        lexicon: Lexicon,
        users: _Ids,
        days: _Ids,
        word_ids: _Ids,
        counts: _Ids,
        every_days: int,
        num_days: int | None = None,
    ) -> None:
        """Take rows in any order; see `read_over_time`.

        Args:
            name: What a report calls the file.
            unit: What one user of it stands for.
            lexicon: The distinct words.
            users: ``(rows,) int64``, numbered from 0.
            days: ``(rows,) int64``, from 0.
            word_ids: ``(rows,) int64``; -1 for a row that only says that the user is there.
            counts: ``(rows,) int64``, at least 1 where there is a word.
            every_days: Days of a period.
            num_days: Use only so many of the first days; None for all.
        """
        require_at_least(1, every_days=every_days)
        spanned = int(days.max()) + 1
        if num_days is not None and num_days > spanned:
            raise InputError(
                f"Expected days <= {spanned:,}, the days from the first row to the last of {name}, "
                f"got days={num_days:,}."
            )
        self.name, self.unit, self.every_days = name, unit, every_days
        self.num_periods = (num_days or spanned) // every_days
        if not self.num_periods:
            raise InputError(
                f"Expected at least one whole period of every_days={every_days} days, got "
                f"{num_days or spanned} days in {name}; use a smaller every_days."
            )
        if self.num_periods > MOST_PERIODS:
            raise InputError(
                f"Expected at most {MOST_PERIODS:,} periods of {every_days} days, got "
                f"{self.num_periods:,} between the first and the last day of {name}; is a day "
                "wrong?"
            )
        order = np.argsort(days, kind="stable")
        order = order[: np.searchsorted(days[order], self.num_periods * every_days)]
        self._days, self._users = days[order], users[order]
        self._word_ids, self._counts = word_ids[order], counts[order]
        self._lexicon = lexicon
        self._first = np.full(int(users.max()) + 1, self.num_periods)
        self._last = np.full(len(self._first), -1)
        periods = self._days // every_days
        self._first[self._users[::-1]] = periods[::-1]
        self._last[self._users] = periods
        has_word = self._word_ids >= 0
        born = np.full(len(lexicon), -1, dtype=np.int64)
        born[self._word_ids[has_word][::-1]] = self._days[has_word][::-1]
        # What is typed in the first period may have been typed before, too.
        self._born = np.where(born < every_days, np.nan, born)

    @property
    def arrivals(self) -> _Ids:
        return self._first

    @property
    def ends(self) -> _Ids:
        return self._last + 1

    def _typed(self, period: int, devices: _Ids, name: str) -> tuple[StoredPopulation, _Shares]:
        ends = np.array([period, period + 1]) * self.every_days
        rows = np.arange(*np.searchsorted(self._days, ends))
        rows = rows[self._word_ids[rows] >= 0]
        whole = StoredPopulation.from_rows(
            name=name,
            lexicon=self._lexicon,
            clients=np.searchsorted(devices, self._users[rows]),
            word_ids=self._word_ids[rows],
            counts=self._counts[rows],
            num_clients=len(devices),
            unit=self.unit,
        )
        held = whole.word_clients > 0
        return whole.keep_words(held), self._born[held]


def read_over_time(
    path: str | Path,
    *,
    every_days: int,
    num_days: int | None = None,
    layout: Layout | None = None,
    known: KnownWords | None = None,
    unit: str = "user",
) -> DatedPopulation:
    """Return the population over time in a file with a column of days.

    Besides the columns of `fedhh.clients.reading.sources.read_population`, each row has a day: a
    whole number, or a date as 2024-02-29, all rows the same kind. The days of a user's rows must
    not fall: a row below with an earlier day is refused, since then either the clock or the order
    of the rows is wrong, and nobody can tell which. Rows of different users may come in any order.

    Args:
        path: A file whose extension tells its format.
        every_days: Days of a period.
        num_days: Use only so many of the first days; None for all.
        layout: How the file is laid out, where that differs from the usual.
        known: Words that devices know and keep to themselves.
        unit: What one user of the file is.

    Raises:
        InputError: As `read_population`; or a row has no day, or one that is earlier than that of
            an earlier row of the same user.
    """
    path = Path(path)
    layout = (layout or Layout()).dated()
    names = find_columns(path, layout)
    with readable(path):
        rows = _read(path, names, layout, known)
    return DatedPopulation(
        name=path.name, unit=unit, every_days=every_days, num_days=num_days, **rows
    )


def _read(
    path: Path, names: dict[str, str], layout: Layout, known: KnownWords | None
) -> dict[str, Any]:
    table = read_columns(path, with_late_counts(names, path), layout.separator)
    if not table.num_rows:
        raise InputError(f"Expected at least one row, got only a header in {path}.")
    users = user_rows(table["user"], path)
    numbers = users.of_rows()
    days, are_dates = day_rows(table[DAY], path)
    refuse_backwards(numbers, days, are_dates, names[DAY], path)
    if "word" in names:
        words, ids = formed_rows(*word_rows(table["word"], path), layout)
        counted = "count" in table.column_names
        counts = count_rows(table["count"], path) if counted else np.ones(len(ids), dtype=np.int64)
        rows_with_a_word(ids, counts, path)
    else:
        refuse_nulls(table["text"], "text", path)
        refuse_bytes(table["text"], "text", path)
        tokens = tokenize_all(table["text"], layout.language)
        # A text without a word still says that its user is there.
        sizes = np.maximum(tokens.sizes, 1)
        words, ids = tokens.words, np.full(int(sizes.sum()), -1, dtype=np.int64)
        ids[np.repeat(tokens.sizes > 0, sizes)] = tokens.word_ids
        numbers, days = np.repeat(numbers, sizes), np.repeat(days, sizes)
        counts = np.ones(len(ids), dtype=np.int64)
    word_ids = ids.astype(np.int64)
    if known is not None:
        is_known = known.contains_all(words)
        new = np.where(is_known, -1, np.cumsum(~is_known) - 1)
        word_ids = np.r_[new, -1][word_ids]
        words = [words[i] for i in np.flatnonzero(~is_known).tolist()]
    return {
        "lexicon": Lexicon(words=words),
        "users": numbers,
        "days": days - days.min(),
        "word_ids": word_ids,
        "counts": counts.astype(np.int64),
    }


def day_rows(column: pa.ChunkedArray, path: Path) -> tuple[_Ids, bool]:
    """Return each row's day, and whether days are dates, which count from 1970-01-01."""
    refuse_nulls(column, "day", path)
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32()).to_numpy().astype(np.int64), True
    value_type = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not is_text(value_type):
        whole = column.cast(pa.int64()).to_numpy()
        _refuse_far(np.abs(whole) >= 10**9, whole, path)
        return whole, False
    coded = dictionary_encoded(column)
    refuse_nulls(coded, "day", path)
    codes = coded.indices.to_numpy()
    refuse_bytes(coded.dictionary, "day", path, codes)
    texts = [str(text) for text in coded.dictionary.to_pylist()]
    blank = np.array([not text.strip() for text in texts])
    refuse_first(blank[codes], "Expected a day, got none", path)
    are_dates = _ISO_DATE.fullmatch(texts[codes[0]]) is not None
    values = [_day_of(text, are_dates) for text in texts]
    bad = np.array([value is None for value in values])[codes]
    if bad.any():
        row = int(bad.argmax())
        wanted = "date like 2024-02-29" if are_dates else "whole number or a date like 2024-02-29"
        same = f", as in row 1 ({shown(texts[codes[0]])})" if row else ""
        raise InputError(
            f"Expected a day as a {wanted}{same}, got {shown(texts[codes[row]])} in row {row + 1} "
            f"of {path}."
        )
    return np.array(values, dtype=np.int64)[codes], are_dates


def _day_of(text: str, are_dates: bool) -> int | None:
    if not are_dates:
        return int(text) if _WHOLE.fullmatch(text) else None
    try:
        # Python also takes dates without dashes and by weeks.
        day = datetime.date.fromisoformat(text.strip()) if _ISO_DATE.fullmatch(text) else None
    except ValueError:
        return None
    return None if day is None else (day - _EPOCH).days


def _refuse_far(bad: npt.NDArray[np.bool_], days: npt.NDArray[Any], path: Path) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise InputError(
            f"Expected a day between -10^9 and 10^9, got {days[row]} in row {row + 1} of {path}."
        )


def refuse_backwards(
    users: _Ids, days: _Ids, are_dates: bool, column: str, path: Path, *, who: str = "user"
) -> None:
    """Refuse a row whose day is before that of an earlier row of the same user."""
    order = np.argsort(users, kind="stable")
    falls = (users[order][1:] == users[order][:-1]) & (days[order][1:] < days[order][:-1])
    if falls.any():
        places = np.flatnonzero(falls)
        place = places[order[places + 1].argmin()]
        before, row = (int(order[place + each]) for each in (0, 1))
        earlier, later = (_shown_day(int(days[each]), are_dates) for each in (row, before))
        raise InputError(
            f"Expected days that do not fall from row to row of a {who}, got {earlier} in row "
            f"{row + 1} after {later} in row {before + 1} of {path}: time goes backwards; sort the "
            f"file by its column {shown(column)}, or mend the day."
        )


def _shown_day(day: int, is_date: bool) -> str:
    return (_EPOCH + datetime.timedelta(days=day)).isoformat() if is_date else f"day {day}"
