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
from fedhh.questions.question import Aggregate, AnyQuestion
from fedhh.system.archive import (
    DAMAGE,
    Arrays,
    damaged,
    of_another_run,
    read_archive,
    write_archive,
)
from fedhh.system.machine import memory_bytes

_OF_FAKES = "fake_"
"""Before the names of what fake clients sent."""

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

    def answer_to(self, question: AnyQuestion) -> Answer:
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

    def write(self, place: int, question: AnyQuestion, answer: Answer, seconds: float) -> None:
        """Keep the answers to a round, ``place`` rounds after the first; see `LoggedRound`."""
        aggregate, seen = answer.aggregate, answer.diagnostics
        arrays = _arrays(aggregate)
        if seen.fakes is not None:
            arrays |= _arrays(seen.fakes, _OF_FAKES)
        notes = {
            "run": self._run,
            "question": digest(question),
            "seconds": seconds,
            **_numbers(aggregate),
            "num_dummies": seen.num_dummies,
            "num_clients_with_items": seen.num_clients_with_items,
            "is_sampled": seen.is_sampled,
            "attendance": None if seen.attendance is None else asdict(seen.attendance),
            "fakes": None if seen.fakes is None else _numbers(seen.fakes),
        }
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


def _numbers(aggregate: Aggregate) -> dict[str, int]:
    return {"num_reports": aggregate.num_reports, "num_clients": aggregate.num_clients}


def _arrays(aggregate: Aggregate, prefix: str = "") -> Arrays:
    arrays: Arrays = {f"{prefix}tally": aggregate.tally}
    if aggregate.messages is not None:
        arrays[f"{prefix}messages"] = aggregate.messages
    return arrays


def _aggregate(arrays: Arrays, numbers: Mapping[str, Any], prefix: str = "") -> Aggregate:
    return Aggregate(
        tally=arrays[f"{prefix}tally"],
        num_reports=int(numbers["num_reports"]),
        num_clients=int(numbers["num_clients"]),
        messages=arrays.get(f"{prefix}messages"),
    )


def _answer(arrays: Arrays, notes: dict[str, Any]) -> Answer:
    if any(each.dtype != np.int64 for each in arrays.values()):
        raise TypeError("expected 64-bit integers")
    attendance, fakes = notes["attendance"], notes["fakes"]
    return Answer(
        aggregate=_aggregate(arrays, notes),
        diagnostics=Diagnostics(
            num_dummies=int(notes["num_dummies"]),
            num_clients_with_items=int(notes["num_clients_with_items"]),
            is_sampled=bool(notes["is_sampled"]),
            attendance=None if attendance is None else Attendance(**attendance),
            fakes=None if fakes is None else _aggregate(arrays, fakes, _OF_FAKES),
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
    if isinstance(value, _PLAIN):
        found.update(f"{value!r}\n".encode("utf-8", "surrogatepass"))
    elif isinstance(value, np.ndarray) and value.dtype != object:
        found.update(f"{value.dtype.str}{value.shape}\n".encode())
        found.update(np.ascontiguousarray(value).reshape(-1).view(np.uint8).data)
    elif isinstance(value, set | frozenset):
        _feed(found, sorted(map(digest, value)), path)
    elif isinstance(value, Sequence) and all(isinstance(each, _PLAIN) for each in value):
        # A million words, not each by itself.
        found.update(f"{list(value)}\n".encode("utf-8", "surrogatepass"))
    else:
        parts = _parts(value)
        if parts is None:
            raise TypeError(f"A log cannot know {type(value).__name__} at {path} again.")
        found.update(f"{len(parts)}\n".encode())
        for name, part in parts:
            found.update(f"{name}\n".encode())
            _feed(found, part, f"{path}.{name}")


def _parts(value: Any) -> list[tuple[str, Any]] | None:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        return [(repr(name), part) for name, part in value.items()]
    if isinstance(value, Sequence):
        return [(str(place), part) for place, part in enumerate(value)]
    return None
