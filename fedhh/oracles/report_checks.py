"""Which reports of an oracle a server accepts, and why it refuses the others.

A server accepts a report if and only if the oracle could have sent it. What such a report looks
like stands in `FrequencyOracle.report_form`. The check knows nothing of probabilities: reports that
a client made up, in the right form, are accepted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from fedhh.oracles.base import FrequencyOracle

SMALLEST_INT64 = -(2**63)
LARGEST_INT64 = 2**63 - 1

INT64: np.dtype[Any] = np.dtype(np.int64)

Codes = npt.NDArray[np.uint8]


class Flaw(StrEnum):
    """Why a report is refused. Where several reasons hold, the first one here is counted."""

    TYPE = "wrong type"
    """It is no array, or one of other numbers than the oracle's reports."""
    SIZE = "wrong size"
    """It has more numbers, or fewer, or other axes."""
    ROW = "no such row"
    """It names a hash function that there is not."""
    DOMAIN = "out of domain"
    """A number in it is none that the oracle sends there."""
    REPEATED = "repeated members"
    """It is a set of values, and one of them occurs twice."""
    ORDER = "members out of order"
    """It is a set of values, and they do not ascend."""


FLAWS = tuple(Flaw)
"""Flaws by their codes: flaw ``FLAWS[c - 1]`` has code c, and 0 stands for none."""

_CODES = {flaw: np.uint8(code) for code, flaw in enumerate(FLAWS, start=1)}

Bound = int | tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class ReportForm:
    """What a report of an oracle looks like.

    Attributes:
        shape: Of one report: none, or how many numbers it has.
        dtype: Of its numbers.
        lowest: The smallest number, or that of each place; None if any finite one may be sent.
        highest: Likewise the largest.
        step: The numbers between them are this far apart, or so at each place.
        has_row: Whether the first number names a hash function.
        entries_per_value: Of a report that is a set, ascending: how many numbers stand for each
            value; 0 if it is no set.
    """

    shape: tuple[int, ...] = ()
    dtype: np.dtype[Any] = INT64
    lowest: Bound | None = None
    highest: Bound | None = None
    step: Bound = 1
    has_row: bool = False
    entries_per_value: int = 0

    def flaw_of_array(self, reports: npt.NDArray[Any]) -> Flaw | None:
        """Return what is wrong with an array's type or axes, whatever its numbers are."""
        if reports.dtype != self.dtype:
            return Flaw.TYPE
        return Flaw.SIZE if not reports.ndim or reports.shape[1:] != self.shape else None

    def codes(self, reports: npt.NDArray[Any]) -> Codes:
        """Return ``(n,) uint8``: 0 for each report of this form, the code of its flaw otherwise.

        Args:
            reports: Any array, whose first axis is one per report; without axes, it is one.
        """
        if (flaw := self.flaw_of_array(reports)) is not None:
            return np.full(len(reports) if reports.ndim else 1, _CODES[flaw])
        inside = self._inside(reports)
        codes = np.zeros(len(reports), dtype=np.uint8)
        if self.entries_per_value:
            steps = np.diff(np.sort(reports // self.entries_per_value, axis=1), axis=1)
            codes[(reports[:, 1:] < reports[:, :-1]).any(axis=1)] = _CODES[Flaw.ORDER]
            codes[(steps == 0).any(axis=1)] = _CODES[Flaw.REPEATED]
        whole = inside.reshape(len(reports), math.prod(self.shape))
        codes[~whole.all(axis=1)] = _CODES[Flaw.DOMAIN]
        if self.has_row:
            codes[~whole[:, 0]] = _CODES[Flaw.ROW]
        return codes

    def _inside(self, reports: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which numbers are some that may be sent at their places."""
        if self.lowest is None or self.highest is None:
            return np.asarray(np.isfinite(reports))
        lowest, highest = np.array(self.lowest), np.array(self.highest)
        inside = (reports >= lowest) & (reports <= highest)
        if self.step != 1:
            # Where the difference wraps around, the number is outside already.
            inside &= (reports - lowest) % np.array(self.step) == 0
        return np.asarray(inside)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReportCheck:
    """Which of some reports a server accepts.

    Attributes:
        codes: ``(n,) uint8``: 0 for each that is accepted, otherwise its flaw's place in `FLAWS`,
            from 1.
    """

    codes: Codes

    @property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """``(n,) bool``: which are accepted."""
        return np.asarray(self.codes == 0)

    @property
    def refused(self) -> Mapping[Flaw, int]:
        """How many are refused, by flaws that occur."""
        counts = np.bincount(self.codes, minlength=len(FLAWS) + 1)[1:].tolist()
        return {flaw: count for flaw, count in zip(FLAWS, counts, strict=True) if count}


def is_plain_array(reports: object) -> TypeGuard[npt.NDArray[Any]]:
    """Return whether something is an array of numbers, and not of one of its subclasses.

    These may hide some of their numbers, as masked arrays do.
    """
    return type(reports) is np.ndarray


def check_reports(oracle: FrequencyOracle, reports: object) -> ReportCheck:
    """Return which reports a server accepts that arrive as reports of an oracle.

    Every report is accepted or refused: none is lost, and none is mended.

    Args:
        oracle: The oracle.
        reports: Whatever arrived. First axis one per report; what is no array, or an array without
            axes, counts as one report.

    >>> from fedhh.oracles import OracleSpec, make_oracle
    >>> oracle = make_oracle(OracleSpec(name="grr", epsilon=1.0), 4)
    >>> check = check_reports(oracle, np.array([0, 3, 4, -1]))
    >>> check.accepted.tolist(), {str(flaw): n for flaw, n in check.refused.items()}
    ([True, True, False, False], {'out of domain': 2})
    """
    if not is_plain_array(reports):
        return ReportCheck(codes=np.full(1, _CODES[Flaw.TYPE]))
    return ReportCheck(codes=oracle.report_form.codes(reports))
