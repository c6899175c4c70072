"""How a device makes records of values, by their form."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.clients.answers.blind import padded_strings
from fedhh.longitudinal.records import FragmentRecords, OracleRecords, RecordForm
from fedhh.validation import InputError

Numbers = npt.NDArray[np.int64]


class RecordMaker:
    """Makes records of values that are numbers of an oracle's domain."""

    def __init__(self, form: OracleRecords) -> None:
        self._form = form

    def reports(self, values: Numbers, rng: np.random.Generator) -> Numbers:
        """Return ``(n, width) int64``: a report for each value."""
        return _rows(self._form.oracle.privatize(values, rng=rng))

    def add_sums(self, values: Numbers, rng: np.random.Generator, out: Numbers) -> None:
        """Add reports to their sums, where they do not cross one by one."""
        self._form.oracle.aggregate(values=values, rng=rng, out=out)


class FragmentRecordMaker(RecordMaker):
    """Makes records of words for SFP: position, report of the word, report of a fragment."""

    def __init__(self, form: FragmentRecords, words: Sequence[str]) -> None:
        self._query = form.query
        codes, self._keys = padded_strings(form.query.alphabet, form.query.puzzle, words)
        if (self._keys < 0).any():
            bad = words[int(np.argmin(self._keys))]
            raise InputError(f"Expected words of the alphabet's symbols, got {bad!r}.")
        self._fragments = form.query.puzzle.fragments(codes, self._keys)

    def reports(self, values: Numbers, rng: np.random.Generator) -> Numbers:
        positions = rng.integers(self._query.puzzle.num_positions, size=len(values))
        words = self._query.words.privatize(self._keys[values], rng=rng)
        fragments = self._query.fragments.privatize(self._fragments[values, positions], rng=rng)
        return np.concatenate([_rows(part) for part in (positions, words, fragments)], axis=1)


def _rows(reports: npt.NDArray[Any]) -> Numbers:
    """Return reports as ``(n, width) int64``, also if there are none."""
    width = math.prod(reports.shape[1:])
    return reports.reshape(len(reports), width).astype(np.int64)


@singledispatch
def record_maker(form: RecordForm, words: Sequence[str] | None) -> RecordMaker:
    """Return what makes records of a form."""
    raise TypeError(f"No records of {type(form).__name__}.")


@record_maker.register
def _(form: OracleRecords, words: Sequence[str] | None) -> RecordMaker:
    return RecordMaker(form)


@record_maker.register
def _(form: FragmentRecords, words: Sequence[str] | None) -> RecordMaker:
    assert words is not None
    return FragmentRecordMaker(form, words)
