"""What the rows of files have to be, as one query that brings them to one form.

Of each row, the query says what is wrong with it: one line, and perhaps the value after a NUL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from fedhh.clients.reading.tables import literal
from fedhh.validation import shown

LARGEST_COUNT = 2**31 - 1

NOUNS = {"user": "user", "word": "word"}
"""What messages call the columns."""

_WHOLE_NUMBER = r"\s*[+-]?[0-9]+(\.0*)?\s*"
_WHOLE_DAY = r"\s*[+-]?[0-9]{1,9}\s*"
_ISO_DATE = r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*"
_VALUE = "chr(0) || "
_TEXT = "VARCHAR"


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How the rows of a file are read.

    Attributes:
        types: DuckDB's types of its columns, by role.
        first_day: The day of its first row, as text; None if days are not asked for.
        nouns: What messages call a user and a word.
        counts_are_late: Whether the first record has no count, so that no other may have one.
        fills_counts: Whether a row without a count counts once.
    """

    types: Mapping[str, str]
    first_day: str | None = None
    nouns: Mapping[str, str]
    counts_are_late: bool = False
    fills_counts: bool = False

    @property
    def days_are_dates(self) -> bool:
        """Whether days are dates, which count from 1970-01-01."""
        is_date = re.fullmatch(_ISO_DATE, self.first_day or "") is not None
        return is_date and self.types["day"] in ("DATE", _TEXT)

    def query(self, rows: str) -> str:
        """Return the SQL of the columns user, word, count, problem, row and day.

        Args:
            rows: SQL of columns by role, see `fedhh.clients.reading.tables.scan`.
        """
        problems = [*self._day_problems(), *self._user_problems(), *self._word_problems()]
        cases = " ".join(f"WHEN {bad} THEN {message}" for bad, message in problems)
        row = "NULL" if self.first_day is None else "row_number() OVER ()"
        word = "NULL"
        if "text" in self.types:
            word = "text"
        elif "word" in self.types:
            word = "nullif(word::VARCHAR, '')"
        day = "NULL" if self.first_day is None else self._day()
        return f"""
            SELECT user, item AS word, n AS count, {row} AS row, d AS day,
                CASE WHEN wrong IS NOT NULL THEN wrong {cases} END AS problem
            FROM (
                SELECT * REPLACE (user::VARCHAR AS user), {word} AS item, {self._count()} AS n,
                    {day} AS d
                FROM ({rows})
            )
        """

    def _count(self) -> str:
        kind = self.types.get("count")
        if kind is None or self.counts_are_late:
            return "1"
        if kind in ("FLOAT", "DOUBLE"):
            number = "CASE WHEN count = floor(count) THEN try_cast(count AS BIGINT) END"
        elif self._is_text("count"):
            number = (
                f"CASE WHEN regexp_full_match(count::VARCHAR, '{_WHOLE_NUMBER}') THEN "
                "try_cast(try_cast(count::VARCHAR AS DOUBLE) AS BIGINT) END"
            )
        else:
            number = "try_cast(count AS BIGINT)"
        return f"CASE WHEN count IS NULL THEN 1 ELSE {number} END" if self.fills_counts else number

    def _day(self) -> str:
        if self.types["day"] == "DATE":
            return "day - DATE '1970-01-01'"
        if not self._is_text("day"):
            return "CASE WHEN abs(day::DOUBLE) < 1e9 THEN day::BIGINT END"
        if self.days_are_dates:
            return (
                f"CASE WHEN regexp_full_match(day::VARCHAR, '{_ISO_DATE}') THEN "
                "try_cast(trim(day::VARCHAR) AS DATE) - DATE '1970-01-01' END"
            )
        whole = f"regexp_full_match(day::VARCHAR, '{_WHOLE_DAY}')"
        return f"CASE WHEN {whole} THEN try_cast(day::VARCHAR AS BIGINT) END"

    def _is_text(self, role: str) -> bool:
        # What Arrow has as a dictionary is an ENUM.
        return self.types[role] == _TEXT or self.types[role].startswith("ENUM")

    def _day_problems(self) -> list[tuple[str, str]]:
        first = self.first_day
        if first is None:
            return []
        wanted, same = "whole number or a date like 2024-02-29", ""
        if self.days_are_dates:
            wanted = "date like 2024-02-29"
        if self.days_are_dates or re.fullmatch(_WHOLE_DAY, first):
            same = f", as in row 1 ({shown(first)})"
        expected = f"Expected a day as a {wanted}{same}, got "
        if not self._is_text("day"):
            expected = "Expected a day between -10^9 and 10^9, got "
        return [
            ("trim(coalesce(day::VARCHAR, '')) = ''", "'Expected a day, got none'"),
            ("d IS NULL", f"{literal(expected)} || {_VALUE} day::VARCHAR"),
        ]

    def _user_problems(self) -> list[tuple[str, str]]:
        return [_is_none("user", self.nouns["user"]), _is_broken("user", self.nouns["user"])]

    def _word_problems(self) -> list[tuple[str, str]]:
        if "text" in self.types:
            return [("text IS NULL", "'Expected a text, got none'")]
        problems = []
        if "word" in self.types:
            problems.append(_is_broken("item", self.nouns["word"]))
        if self.counts_are_late:
            late = "Expected a count in each row or in none, got the first one"
            problems.append(("count IS NOT NULL", literal(late)))
        elif "count" in self.types:
            if not self.fills_counts:
                problems.append(("count IS NULL", "'Expected a count, got none'"))
            expected = f"Expected a whole count from 1 to {LARGEST_COUNT}, got count="
            least = "item IS NOT NULL" if "word" in self.types else "true"
            problems.append(
                (
                    f"n IS NULL OR n NOT BETWEEN 0 AND {LARGEST_COUNT} OR (n = 0 AND {least})",
                    rf"'{expected}' || {_VALUE} regexp_replace(count::VARCHAR, '\.0$', '')",
                )
            )
        if "word" in self.types:
            missing, message = _is_none("item", self.nouns["word"])
            # A user that holds nothing has a row, too.
            problems.append((f"{missing} AND n > 0", message))
        return problems


def _is_none(column: str, noun: str) -> tuple[str, str]:
    return f"coalesce({column}, '') = ''", literal(f"Expected a {noun}, got none")


def _is_broken(column: str, noun: str) -> tuple[str, str]:
    message = f"Expected a {noun} without a line break (is a quote unclosed?), got one"
    return rf"regexp_matches({column}, '[\r\n]')", literal(message)
