"""A run's log: the answers to each round, a file each, from which a stopped run goes on.

Protocols are pure, so whoever hears the answers again stands where the run stood. Nothing of a
protocol's state is stored.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.questions.answer import Answer, Attendance, Diagnostics
from fedhh.questions.question import Aggregate, Question
from fedhh.system.archive import (
    DAMAGE,
    Arrays,
    damaged,
    of_another_run,
    read_archive,
    write_archive,
)
from fedhh.system.machine import memory_bytes

LOG = "log"
"""Folder of the log in a run's directory."""

_OF_FAKES = "fake_"
"""Before the names of what fake clients sent."""

_ARRAYS, _NUMBERS = ("tally", "messages"), ("num_reports", "num_clients")
"""Of an `Aggregate`."""

_PLAIN = (bool, int, float, str, bytes, type(None), np.generic)


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedRound:
    """The answers to a round that was asked before.

    Attributes:
        path: Where they stand.
        digest: `digest` of the question.
        answer: What came back; nothing in it counts what clients hold.
        seconds: From the run's beginning to the end of the round.
    """

    path: Path
    digest: str
    answer: Answer
    seconds: float

    @property
    def asked(self) -> int:
        """Clients of the round's cohort."""
        attendance = self.answer.diagnostics.attendance
        return self.answer.aggregate.num_clients if attendance is None else attendance.asked

    def answer_to(self, question: Question) -> Answer:
        """Return the answer; InputError unless it is one to this question."""
        if self.digest != digest(question):
            raise of_another_run(self.path)
        return self.answer


class Log:
    """The log of one run, from which no other run goes on."""

    def __init__(self, folder: Path, *, run: str) -> None:
        """``run`` names all that decides how the run goes on."""
        self._folder, self._run = folder, run

    def read(self) -> list[LoggedRound]:
        """Return the rounds in their order; none if the folder is missing.

        Raises:
            InputError: They are damaged, incomplete, of another run, or larger than memory.
        """
        paths = [
            self._path(place) for place in range(len(list(self._folder.glob("[0-9]*.arrays"))))
        ]
        size, memory = sum(path.stat().st_size for path in paths if path.exists()), memory_bytes()
        if size > memory:
            too_large = f"{size:,} bytes, expected at most this machine's memory of {memory:,}"
            raise damaged(self._folder, ValueError(too_large))
        return [self._read(path) for path in paths]

    def write(self, place: int, question: Question, answer: Answer, seconds: float) -> None:
        """Keep the answers to a round, ``place`` rounds after the first; see `LoggedRound`."""
        seen = answer.diagnostics
        notes = {
            "run": self._run,
            "question": digest(question),
            "seconds": seconds,
            "num_dummies": seen.num_dummies,
            "num_clients_with_items": seen.num_clients_with_items,
            "is_sampled": seen.is_sampled,
            "attendance": None if seen.attendance is None else asdict(seen.attendance),
        }
        arrays: Arrays = {}
        for whose, aggregate in (("", answer.aggregate), (_OF_FAKES, seen.fakes)):
            if aggregate is not None:
                notes |= {f"{whose}{name}": getattr(aggregate, name) for name in _NUMBERS}
                parts = {f"{whose}{name}": getattr(aggregate, name) for name in _ARRAYS}
                arrays |= {name: part for name, part in parts.items() if part is not None}
        write_archive(self._path(place), arrays, notes)

    def _path(self, place: int) -> Path:
        return self._folder / f"{place}.arrays"

    def _read(self, path: Path) -> LoggedRound:
        arrays, notes = read_archive(path)
        if notes.get("run") != self._run:
            raise of_another_run(path)
        try:
            return LoggedRound(
                path=path,
                digest=str(notes["question"]),
                seconds=float(notes["seconds"]),
                answer=_answer(arrays, notes),
            )
        except DAMAGE as error:
            raise damaged(path, error) from error


def _aggregate(arrays: Arrays, notes: Mapping[str, Any], whose: str) -> Aggregate:
    numbers = {name: int(notes[f"{whose}{name}"]) for name in _NUMBERS}
    return Aggregate(
        tally=arrays[f"{whose}tally"], messages=arrays.get(f"{whose}messages"), **numbers
    )


def _answer(arrays: Arrays, notes: Mapping[str, Any]) -> Answer:
    if any(each.dtype != np.int64 for each in arrays.values()):
        raise TypeError("expected 64-bit integers")
    attendance, has_fakes = notes["attendance"], f"{_OF_FAKES}tally" in arrays
    return Answer(
        aggregate=_aggregate(arrays, notes, ""),
        diagnostics=Diagnostics(
            num_dummies=int(notes["num_dummies"]),
            num_clients_with_items=int(notes["num_clients_with_items"]),
            is_sampled=bool(notes["is_sampled"]),
            attendance=None if attendance is None else Attendance(**attendance),
            fakes=_aggregate(arrays, notes, _OF_FAKES) if has_fakes else None,
        ),
    )


def digest(value: Any) -> str:
    """Return the SHA-256 of a question, or of a part of one: its types, fields, arrays and values.

    Raises:
        TypeError: It holds something else than dataclasses, sequences, mappings, sets, arrays and
            plain values.
    """
    found = hashlib.sha256()
    _feed(found, value, "question")
    return found.hexdigest()


def _feed(found: Any, value: Any, path: str) -> None:
    """Pass to a hash the type of a value, and then what is in it."""
    found.update(f"{type(value).__qualname__}\n".encode())
    if isinstance(value, np.ndarray) and value.dtype != object:
        found.update(f"{value.dtype.str}{value.shape}\n".encode())
        found.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
        return
    is_sequence = isinstance(value, Sequence)
    if isinstance(value, _PLAIN) or (is_sequence and all(isinstance(x, _PLAIN) for x in value)):
        # A million words, not each by itself.
        text = repr(value if isinstance(value, _PLAIN) else list(value))
        found.update(f"{text}\n".encode("utf-8", "surrogatepass"))
        return
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    elif isinstance(value, set | frozenset):
        value = dict(enumerate(sorted(map(digest, value))))
    elif is_sequence:
        value = dict(enumerate(value))
    elif not isinstance(value, Mapping):
        raise TypeError(f"A log cannot know {type(value).__name__} at {path} again.")
    found.update(f"{len(value)}\n".encode())
    for name, part in value.items():
        found.update(f"{name!r}\n".encode())
        _feed(found, part, f"{path}.{name}")
