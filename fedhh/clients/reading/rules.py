"""What the rows of files have to be, as one query that brings them to one form.

Of each row, the query says what is wrong with it: one line, and perhaps the value after a NUL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from fedhh.clients.reading.tables import literal
from fedhh.validation import shown

LARGEST_COUNT = 2**31 - 1

NOUNS = {"user": "user", "word": "word"}
"""What messages call the columns."""

Counts = Literal["all", "none", "some"]
"""Which rows of a file have a count: every one; by the first row, none; or some, others being 1."""

_WHOLE_NUMBER = r"\s*[+-]?[0-9]+(\.0*)?\s*"
_WHOLE_DAY = r"\s*[+-]?[0-9]{1,9}\s*"
_ISO_DATE = r"\s*[0-9]{4}-[0-9]{2}-[0-9]{2}\s*"
_VALUE = "chr(0) || "

_Problems = list[tuple[str, str]]
"""Conditions of SQL and what they say."""


def are_dates(types: Mapping[str, str], first_day: str | None) -> bool:
    """Return whether days are dates, which count from 1970-01-01; see `formed`."""
    is_date = re.fullmatch(_ISO_DATE, first_day or "") is not None
    return is_date and types["day"] in ("DATE", "VARCHAR")


def formed(
    rows: str,
    types: Mapping[str, str],
    *,
    first_day: str | None = None,
    nouns: Mapping[str, str] = NOUNS,
    counts: Counts = "all",
) -> str:
    """Return the SQL of the columns user, word, count, row, day and problem.

    Args:
        rows: SQL of columns by role, see `fedhh.clients.reading.tables.scan`.
        types: DuckDB's types of these.
        first_day: The day of the first row, as text; None if days are not asked for.
        nouns: What messages call a user and a word.
        counts: Which rows have one.
    """
    day, row, problems = "NULL", "NULL", _Problems()
    if first_day is not None:
        row = "row_number() OVER ()"
        day, problems = _days(types["day"], first_day, are_dates(types, first_day))
    problems += [_none("user", nouns["user"]), _broken("user", nouns["user"])]
    item, number, wrong = _items(types, nouns, counts)
    cases = " ".join(f"WHEN {bad} THEN {message}" for bad, message in problems + wrong)
    return f"""
        SELECT user, item AS word, n AS count, {row} AS row, d AS day,
            CASE WHEN wrong IS NOT NULL THEN wrong {cases} END AS problem
        FROM (
            SELECT * REPLACE (user::VARCHAR AS user), {item} AS item, {number} AS n, {day} AS d
            FROM ({rows})
        )
    """


def _items(
    types: Mapping[str, str], nouns: Mapping[str, str], counts: Counts
) -> tuple[str, str, _Problems]:
    """Return the SQL of a row's text or word and of its count, and what may be wrong with them."""
    if "text" in types:
        return "text", "1", [("text IS NULL", "'Expected a text, got none'")]
    has_word, noun = "word" in types, nouns["word"]
    problems = [_broken("item", noun)] if has_word else []
    number = "1"
    if "count" in types and counts == "none":
        late = "Expected a count in each row or in none, got the first one"
        problems.append(("count IS NOT NULL", literal(late)))
    elif "count" in types:
        number = _whole_count(types["count"])
        if counts == "some":
            number = f"CASE WHEN count IS NULL THEN 1 ELSE {number} END"
        else:
            problems.append(("count IS NULL", "'Expected a count, got none'"))
        # A user that holds nothing has a row, too.
        least = "item IS NOT NULL" if has_word else "true"
        problems.append(
            (
                f"n IS NULL OR n NOT BETWEEN 0 AND {LARGEST_COUNT} OR (n = 0 AND {least})",
                f"'Expected a whole count from 1 to {LARGEST_COUNT}, got count=' || {_VALUE}"
                r"regexp_replace(count::VARCHAR, '\.0$', '')",
            )
        )
    if has_word:
        missing, message = _none("item", noun)
        problems.append((f"{missing} AND n > 0", message))
    return "nullif(word::VARCHAR, '')" if has_word else "NULL", number, problems


def _whole_count(kind: str) -> str:
    if kind in ("FLOAT", "DOUBLE"):
        return "CASE WHEN count = floor(count) THEN try_cast(count AS BIGINT) END"
    if not _is_text(kind):
        return "try_cast(count AS BIGINT)"
    return (
        f"CASE WHEN regexp_full_match(count::VARCHAR, '{_WHOLE_NUMBER}') THEN "
        "try_cast(try_cast(count::VARCHAR AS DOUBLE) AS BIGINT) END"
    )


def _days(kind: str, first: str, dates: bool) -> tuple[str, _Problems]:
    """Return the SQL of a row's day, and what may be wrong with it."""
    wanted, same = "whole number or a date like 2024-02-29", ""
    pattern, day = _WHOLE_DAY, "try_cast(day::VARCHAR AS BIGINT)"
    if dates:
        wanted = "date like 2024-02-29"
        pattern, day = _ISO_DATE, "try_cast(trim(day::VARCHAR) AS DATE) - DATE '1970-01-01'"
    if re.fullmatch(pattern, first):
        same = f", as in row 1 ({shown(first)})"
    expected = f"Expected a day as a {wanted}{same}, got "
    day = f"CASE WHEN regexp_full_match(day::VARCHAR, '{pattern}') THEN {day} END"
    if not _is_text(kind):
        expected = "Expected a day between -10^9 and 10^9, got "
        day = "CASE WHEN abs(day::DOUBLE) < 1e9 THEN day::BIGINT END"
    if kind == "DATE":
        day = "day - DATE '1970-01-01'"
    return day, [
        ("trim(coalesce(day::VARCHAR, '')) = ''", "'Expected a day, got none'"),
        ("d IS NULL", f"{literal(expected)} || {_VALUE} day::VARCHAR"),
    ]


def _is_text(kind: str) -> bool:
    # What Arrow has as a dictionary is an ENUM.
    return kind == "VARCHAR" or kind.startswith("ENUM")


def _none(column: str, noun: str) -> tuple[str, str]:
    return f"coalesce({column}, '') = ''", literal(f"Expected a {noun}, got none")


def _broken(column: str, noun: str) -> tuple[str, str]:
    message = f"Expected a {noun} without a line break (is a quote unclosed?), got one"
    return rf"regexp_matches({column}, '[\r\n]')", literal(message)
