"""A goal: whom to find, at which guarantee, in what time, with how many bytes, trusting whom."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

from fedhh.accounting.guarantees import Unit
from fedhh.validation import (
    InputError,
    require_at_least,
    require_epsilon,
    require_positive,
    shown,
)

ALL = "all"
"""Any trust model."""

_UNITS = {"B": 1, "kB": 1_000, "MB": 1_000_000, "GB": 1_000_000_000}
_LARGEST_SIZE = 10**15

SIZE_LIMITS = ("max_upload", "max_download", "max_bytes")
"""Limits on bytes."""

BITS = 8
"""Of a byte."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What settings have to reach; None where nothing is asked for.

    Attributes:
        held_by: Words held by at least this share of the clients are the ones to find; without it,
            coverage is what is made large.
        unit: Whose central guarantee is limited, "item" or "user".
        central_epsilon: The largest central epsilon of the unit, before the run.
        local_epsilon: The largest local epsilon of a contribution.
        days: The most days until the last answer.
        rounds_per_day: Rounds that follow each other in a day; below 1 for rounds of several days.
        max_upload: The most bytes that a client sends.
        max_download: The most bytes that a client receives.
        max_bytes: The most bytes that a client sends and receives.
        min_precision: The least share of returned words that somebody holds.
        trust_model: Whom clients trust, see `fedhh.experiments.planner.trust`; "all" for any.
    """

    held_by: float | None = None
    unit: Unit = "item"
    central_epsilon: float | None = None
    local_epsilon: float | None = None
    days: float | None = None
    rounds_per_day: float = 1.0
    max_upload: int | None = None
    max_download: int | None = None
    max_bytes: int | None = None
    min_precision: float = 0.5
    trust_model: str = ALL

    def __post_init__(self) -> None:
        if self.held_by is not None and not 0 < self.held_by <= 1:
            raise InputError(f"Expected 0 < held_by <= 1, got held_by={shown(self.held_by)}.")
        if self.central_epsilon is None and self.local_epsilon is None:
            raise InputError(
                "Expected a guarantee: a central one, as --at item-central-epsilon=1, or "
                "--local-epsilon, got neither."
            )
        if self.central_epsilon is not None:
            require_positive(central_epsilon=self.central_epsilon)
        if self.local_epsilon is not None:
            require_epsilon(local_epsilon=self.local_epsilon)
        if self.days is not None:
            require_positive(days=self.days)
        require_positive(rounds_per_day=self.rounds_per_day)
        for name in SIZE_LIMITS:
            if (size := getattr(self, name)) is not None:
                require_at_least(1, **{name: size})
        if not 0 <= self.min_precision <= 1:
            raise InputError(
                f"Expected 0 <= min_precision <= 1, got min_precision={shown(self.min_precision)}."
            )

    @property
    def metric(self) -> str:
        """What is made large: "recall" of the words to find, or "coverage"."""
        return "coverage" if self.held_by is None else "recall"

    def days_of(self, rounds: int) -> float:
        """Return how long rounds take that follow each other."""
        return rounds / self.rounds_per_day

    def min_clients(self, num_clients: int) -> int | None:
        """Return the fewest holders of a word to find, in a population of this size."""
        if self.held_by is None:
            return None
        # A share that was meant as a fraction of the clients is not moved up by its rounding.
        return max(math.ceil(self.held_by * num_clients * (1 - 1e-12)), 1)

    def to_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def share_of(text: str | float) -> float:
    """Return a share that is given as a number or as a fraction.

    >>> share_of("1/10000"), share_of(0.5)
    (0.0001, 0.5)
    """
    top, slash, bottom = str(text).partition("/")
    try:
        share = float(top) / (float(bottom) if slash else 1.0)
    except (ValueError, ZeroDivisionError):
        share = math.nan
    if not 0 < share <= 1:
        raise InputError(
            f"Expected --held-by, a share in (0, 1] as 1/10000 or 0.0001, got {shown(text)}."
        )
    return share


def bytes_of(text: str | int, name: str) -> int:
    """Return a size in bytes that is given as a number, or with B, kB, MB or GB.

    >>> bytes_of("100kB", "--max-bytes"), bytes_of("1.5 MB", "--max-bytes"), bytes_of(7, "x")
    (100000, 1500000, 7)
    """
    given = str(text).strip()
    unit = next((each for each in ("kB", "MB", "GB", "B") if given.endswith(each)), "")
    try:
        size = float(given.removesuffix(unit)) * _UNITS[unit or "B"]
    except ValueError:
        size = math.nan
    if not 1 <= size <= _LARGEST_SIZE:
        raise InputError(
            f"Expected {name}, a size from 1 B to 1000000 GB as 100kB or 100000, got {shown(text)}."
        )
    return math.floor(size)
