"""Seeded mutation of valid examples: what a case is depends on its name and number alone."""

from __future__ import annotations

import copy
import datetime
import random
from typing import Any

# What parsers, numbers and words have stumbled over.
_TOKENS = (
    b"", b"\0", b"\r", b"\n", b"\r\n", b'"', b'""', b"'", b",", b";", b"\t", b" ", b"\\",
    b"\\u0000", b"\\ud800", b"\xff", b"\xc3\xa9", b"\xe2\x80\xae", b"\xef\xbb\xbf", b"\x1b[2J",
    b"{", b"}", b"[", b"]", b"[" * 50, b"{" * 50, b'{"a":' * 30, b":", b"=", b"#", b"null",
    b"true", b"nan", b"NaN", b"inf", b"-1", b"0", b"1e999", b"1e-300", b"0.5",
    b"9" * 30, b"9" * 400, b"9" * 5000, b"0x" +
    b"f" * 5000, b"2147483648", b"9223372036854775808", b"1979-05-27", b"07:32:00", b"[/]",
    b"[red]x", b"=cmd()", b"user", b"word", b"count", b"text", b"x" * 300,
    b"a" * 200_000, b"/dev/zero", b"..",
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**53, 2**63 - 1, -(2**63), 2**64, 16**6000, 0.0,
    -0.0, 0.5, 1.0, 1e-300, 1e-6, 5e-324, 1e300, float("inf"), float("-inf"), float("nan"), "",
    "auto", "none", "from-data", "lower", "abc", "aa", "a\0b", "\ud800", "\x1b[2J", "[/]",
    "x" * 300,
    "ss", "cms", "sfp", "pem", "triehh", "ldp-triehh", "zipf", "wordfreq-tail", "chat", "/dev/zero",
    ".", "absent.csv", [], [1], [[]], ["a"], [0.1, 0.2], [1, "a"], {}, {"a": 1}, {"name": "sfp"},
    {"from": 1, "to": 3, "step": 1}, {"from": 0.1, "to": 1, "step": 0}, {"from": 1, "to": 1e308,
    "step": 1e-308}, datetime.date(1979, 5, 27), datetime.time(7, 32),
    datetime.datetime(1979, 5, 27),
)  # fmt: skip


def rng_of(name: str, case: int) -> random.Random:
    """Return the source of a case's choices."""
    return random.Random(f"{name} {case}")


def mutate_bytes(data: bytes, rng: random.Random) -> bytes:
    """Return bytes after one to four changes: cut, doubled, swapped, flipped, or a token put in."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        first, last = sorted(rng.randint(0, len(data)) for _ in range(2))
        last = min(last, first + rng.choice((1, 4, 40, 4000)))
        before, piece, after = data[:first], data[first:last], data[last:]
        match rng.randrange(7):
            case 0:
                data = before + after
            case 1:
                data = before
            case 2:
                data = before + piece * rng.choice((2, 3, 50)) + after
            case 3:
                data = before + bytes(rng.randrange(256) for _ in piece[:8]) + piece[8:] + after
            case 4:
                data = before + after + piece
            case _:
                kept = b"" if rng.random() < 0.5 else piece
                data = before + rng.choice(_TOKENS) + kept + after
    return data


def mutate_table(table: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Change one to three places of a table of tables, in place, and return it."""
    for _ in range(rng.randint(1, 3)):
        inner: Any = table
        while True:
            key = rng.choice(list(inner)) if inner else "x"
            if isinstance(inner.get(key), dict) and inner[key] and rng.random() < 0.8:
                inner = inner[key]
                continue
            break
        match rng.randrange(6):
            case 0:
                inner.pop(key, None)
            case 1:
                inner[rng.choice(("x", "name", "clients", key + key, "a.b", ""))] = any_value(rng)
            case 2 if isinstance(inner.get(key), list) and inner[key]:
                inner[key] = [*inner[key], any_value(rng)]
            case _:
                inner[key] = any_value(rng)
    return table


def any_value(rng: random.Random) -> Any:
    """Return one of `VALUES`, sometimes in a list with another."""
    # Copied: what a case changes in it must not be there in the next one.
    value = copy.deepcopy(rng.choice(VALUES))
    return [value, copy.deepcopy(rng.choice(VALUES))] if rng.random() < 0.1 else value


def paths_of(table: dict[str, Any], prefix: str = "") -> list[str]:
    """Return the paths of a table's values."""
    return [
        path
        for key, value in table.items()
        for path in (
            paths_of(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"]
        )
    ]
