"""Files whose rows say on which day they were typed, as a population over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.clients.clients import Clients
from fedhh.clients.reading.columns import Layout, find_columns
from fedhh.clients.reading.dated_rows import read_dated
from fedhh.clients.reading.sources import file_here, name_of
from fedhh.longitudinal.populations.over_time import MOST_PERIODS, PopulationOverTime
from fedhh.validation import InputError, require_at_least
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon


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
        users: Ints,
        days: Ints,
        word_ids: Ints,
        counts: Ints,
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
    def arrivals(self) -> Ints:
        return self._first

    @property
    def ends(self) -> Ints:
        return self._last + 1

    def _typed(self, period: int, devices: Ints, name: str) -> tuple[Clients, Floats]:
        ends = np.array([period, period + 1]) * self.every_days
        rows = np.arange(*np.searchsorted(self._days, ends))
        rows = rows[self._word_ids[rows] >= 0]
        whole = Clients.from_rows(
            name=name,
            lexicon=self._lexicon,
            clients=np.searchsorted(devices, self._users[rows]),
            word_ids=self._word_ids[rows],
            counts=self._counts[rows],
            num_clients=len(devices),
            unit=self.unit,
        )
        held = whole.word_counts().holders > 0
        return whole.keep_words(held), self._born[held]


def read_over_time(
    source: str | Path,
    *,
    every_days: int,
    num_days: int | None = None,
    layout: Layout | None = None,
    known: KnownWords | None = None,
    unit: str = "user",
) -> DatedPopulation:
    """Return the population over time in a file with a column of days.

    Besides the columns of `fedhh.clients.reading.sources.read_file`, each row has a day: a
    whole number, or a date as 2024-02-29, all rows the same kind. The days of a user's rows must
    not fall: a row below with an earlier day is refused, since then either the clock or the order
    of the rows is wrong, and nobody can tell which. Rows of different users may come in any order.

    Args:
        source: A file whose extension tells its format, or "-" for standard input.
        every_days: Days of a period.
        num_days: Use only so many of the first days; None for all.
        layout: How the file is laid out, where that differs from the usual.
        known: Words that devices know and keep to themselves.
        unit: What one user of the file is.

    Raises:
        InputError: As `read_file`; or a row has no day, or one that is earlier than that of
            an earlier row of the same user.
    """
    layout = (layout or Layout()).dated()
    with file_here(source) as path:
        found = read_dated(path, find_columns(path, layout), layout)
    words, word_ids = found.words, found.word_ids
    if known is not None:
        is_known = known.contains_all(words)
        new = np.where(is_known, -1, np.cumsum(~is_known) - 1)
        word_ids = np.r_[new, -1][word_ids]
        words = [words[i] for i in np.flatnonzero(~is_known).tolist()]
    return DatedPopulation(
        name=name_of(source),
        unit=unit,
        lexicon=Lexicon(words=words),
        users=found.users,
        days=found.days - found.days.min(),
        word_ids=word_ids,
        counts=found.counts,
        every_days=every_days,
        num_days=num_days,
    )
