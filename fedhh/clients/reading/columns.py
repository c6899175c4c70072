"""Which column of a file is what: found by its usual names, or named by the caller."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from fedhh.clients.reading.tables import (
    COMMA,
    CSV,
    kind_of,
    list_names,
    read_header,
    require_distinct,
    separator_name,
    separator_of,
)
from fedhh.validation import InputError, require_choice, shown
from fedhh.words.languages import ENGLISH

DAY = "day"
"""The usual name of a column of days, and its role; only dated files are asked for it."""

_NAMES = {
    "user": ("user", "user_id"),
    "word": ("word",),
    "count": ("count",),
    "text": ("text",),
    DAY: (DAY,),
}
ROLES = tuple(_NAMES)
"""What a column can be."""

_PLACE = "COLUMN"
_SEPARATORS = (";", "\t", "|", COMMA)
# What other programs call such columns; compared without signs and case.
_ELSEWHERE = {
    "user": (
        "user", "userid", "username", "uid", "sender", "author", "client", "clientid", "nick",
        "nickname", "name", "from", "device", "deviceid", "speaker", "participant", "account", "id",
    ),
    "word": ("word", "token", "term"),
    "count": ("count", "n", "frequency", "freq", "times", "counts"),
    "text": ("text", "message", "body", "content", "msg", "comment", "post", "tweet", "chat"),
    DAY: ("day", "date", "days", "when", "timestamp"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Layout:
    """How a file is laid out, where that differs from the usual.

    Attributes:
        columns: The file's name for some of `ROLES`.
        separator: What separates the columns of CSV; None: a comma.
        fold_case: Bring counted words to the form that texts have, see `tokens.folded`.
        language: Of the words, by its code: whose rules of case hold.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    fold_case: bool = False
    language: str = ENGLISH

    def dated(self) -> Layout:
        """Return the same with a column of days."""
        return replace(self, columns={DAY: DAY, **self.columns})


def parse_columns(texts: Sequence[str]) -> dict[str, str]:
    """Return the columns that ``ROLE=NAME`` say, one each.

    Raises:
        InputError: A text is none of these, or a role stands twice.

    >>> parse_columns(["user=Sender", "text=Message"])
    {'user': 'Sender', 'text': 'Message'}
    """
    columns: dict[str, str] = {}
    for text in texts:
        role, _, name = text.partition("=")
        role = role.strip()
        if not name or role not in ROLES:
            raise InputError(
                f"Expected --column ROLE=NAME, the roles {', '.join(ROLES)}, got {shown(text)}."
            )
        if role in columns:
            raise InputError(
                f"Expected one column for each role in --column, got {role}="
                f"{shown(columns[role])} and {role}={shown(name)}; remove one."
            )
        columns[role] = name
    return columns


def find_columns(path: Path, layout: Layout) -> dict[str, str]:
    """Return the file's columns by their roles, see `choose_columns`.

    Raises:
        InputError: The header cannot be read, or as `choose_columns`.
    """
    try:
        found = read_header(path, layout.separator)
    except InputError:
        # Quotes around names are no CSV to those who look for another separator.
        found = [""]
        if _better_separator(path, found, layout.separator) is None:
            raise
    return choose_columns(found, layout.columns, path, separator=layout.separator)


def choose_columns(
    found: Sequence[str],
    columns: Mapping[str, str],
    path: Path,
    *,
    separator: str | None = None,
    is_file: bool = True,
) -> dict[str, str]:
    """Return the columns for user, word and perhaps count, or user and text, or a day too.

    Args:
        found: The file's columns.
        columns: Names that the caller gave; a column of days only if it is among them.
        path: For the message.
        separator: What the columns were separated by.
        is_file: Whether ``path`` is a file, and no table in memory.

    Raises:
        InputError: A column is missing or stands twice, or ``columns`` contradict each other. The
            message says which options would read the file, as far as its names tell.
    """
    _check_roles(columns)
    roles = [role for role in ROLES if role != DAY or DAY in columns]
    wanted = {role: (columns[role],) if role in columns else _NAMES[role] for role in roles}
    # The first of the usual names is the last that is set.
    names = {role: name for role in roles for name in reversed(wanted[role]) if name in found}
    needed = (*columns, "user") if "text" in names else (*columns, "user", "word")
    missing = [role for role in needed if role not in names]
    if missing:
        better = _better_separator(path, found, separator) if is_file else None
        listed, options = list_names(found), ""
        if better is not None:
            name, found = better
            listed = f"{list_names(found)}, separated by {name!r},"
            options = f" --sep {shlex.quote(name)}"
        proposed = _proposed(found, columns, roles)
        if is_file:
            pairs = (shlex.quote(f"{role}={name}") for role, name in proposed.items())
            options += "".join(f" --column {pair}" for pair in pairs)
        elif proposed:
            options = f" columns={proposed}"
        verb = "name them, as in" if _PLACE in proposed.values() else "try"
        raise InputError(
            f"Expected a column {' or '.join(map(repr, wanted[missing[0]]))} for the {missing[0]}, "
            f"got the columns {listed} in {path}{f'; {verb}{options}' if options else ''}."
        )
    are_words = "word" in names and "text" not in columns
    others = ("text",) if are_words else ("word", "count")
    names = {role: name for role, name in names.items() if role not in others}
    require_distinct(found, names.values(), path)
    return names


def _check_roles(columns: Mapping[str, str]) -> None:
    for role, name in columns.items():
        require_choice(ROLES, column=role)
        first = next(each for each in columns if columns[each] == name)
        if first != role:
            raise InputError(
                f"Expected a column of its own for each role, got {shown(name)} for the {first} "
                f"and the {role}; name another one."
            )
    if "text" in columns and (other := {"word", "count"} & set(columns)):
        raise InputError(
            f"Expected a column of texts, or columns of words and counts, got "
            f"text={shown(columns['text'])} and {min(other)}={shown(columns[min(other)])}; remove "
            "one."
        )


def _better_separator(
    path: Path, found: Sequence[str], separator: str | None
) -> tuple[str, list[str]] | None:
    """Return what makes more columns of a CSV header than the separator in use, if anything."""
    headers = [(separator_name(COMMA), [*found])]
    others = {*_SEPARATORS} - {separator_of(separator)} if kind_of(path) == CSV else ()
    for other in sorted(others, key=_SEPARATORS.index):
        with suppress(InputError):
            headers.append((separator_name(other), read_header(path, other)))
    best = max(headers, key=lambda header: len(header[1]))
    return None if best is headers[0] else best


def _proposed(
    found: Sequence[str], columns: Mapping[str, str], roles: Sequence[str]
) -> dict[str, str]:
    """Return columns by role that would read a file; `_PLACE` where no name says what it is."""
    plain = {re.sub(r"[\W_]", "", name).lower(): name for name in reversed(found)}
    guessed = {role: name for role, name in columns.items() if name in found}
    for role in roles:
        named = [plain[name] for name in _ELSEWHERE[role] if name in plain]
        free = [name for name in named if name not in guessed.values()]
        if free:
            guessed.setdefault(role, free[0])
    kind = "text" if "text" in guessed and "word" not in guessed else "word"
    needed = {"user", kind} | ({DAY} & set(roles))
    if kind == "word":
        needed |= {"count"} & guessed.keys()
    chosen = {role: guessed.get(role, _PLACE) for role in ROLES if role in needed}
    # What is found without being named need not be.
    return {role: name for role, name in chosen.items() if name not in _NAMES[role]}
