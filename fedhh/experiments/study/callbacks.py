"""Callbacks of an experiment: one interface for all kinds, and a list of callbacks.

A unit is what a kind does one after the other: a round of a run, a cell of a sweep, a day of a
pipeline, a period of a repeated collection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from fedhh.experiments.study.parts import Part


@dataclass(frozen=True, kw_only=True, eq=False)
class Work:
    """What is about to be done; kinds add to it what only they have.

    Attributes:
        title: What it is; may be empty.
        noun: What units are, in the plural.
        total: Units in all.
        done: How many of them were done before.
        steps: What `Callbacks.advance` adds up to in all units; 0 if nothing is reported between
            units.
        steps_done: How many of them were done before.
        seconds_left: Returns an estimate of the seconds left, or None as long as there is none;
            without it, units or steps are taken for equally long.
    """

    title: str = ""
    noun: str
    total: int
    done: int = 0
    steps: int = 0
    steps_done: int = 0
    seconds_left: Callable[[], float | None] | None = None


class Callbacks:
    """Does nothing; a subclass overrides the events that it needs."""

    def say(self, parts: Iterable[Part]) -> None:
        """Hear what is known before the first unit: of the clients of a file, say."""

    def phase(self, text: str, done: int = 0, of: int = 0) -> None:
        """Hear what is done outside of units, and how far it is where that is known."""

    def start(self, work: Work) -> None:
        """Hear what is about to be done."""

    def begin(self, unit: str) -> None:
        """Hear that a unit begins; several may go on at a time."""

    def advance(self, steps: int) -> None:
        """Hear that so many more steps are done: clients have answered, say."""

    def finish(self, unit: str, result: Any) -> None:
        """Hear that a unit is done, and what came out, as its kind has it."""

    def note(self, text: str) -> None:
        """Hear in a line how it stands: what the last round kept, the best cell so far."""


class Several(Callbacks):
    """Tells each of some others, in their order."""

    def __init__(self, others: Iterable[Callbacks]) -> None:
        self._others = tuple(others)

    def say(self, parts: Iterable[Part]) -> None:
        parts = tuple(parts)
        for each in self._others:
            each.say(parts)

    def phase(self, text: str, done: int = 0, of: int = 0) -> None:
        for each in self._others:
            each.phase(text, done, of)

    def start(self, work: Work) -> None:
        for each in self._others:
            each.start(work)

    def begin(self, unit: str) -> None:
        for each in self._others:
            each.begin(unit)

    def advance(self, steps: int) -> None:
        for each in self._others:
            each.advance(steps)

    def finish(self, unit: str, result: Any) -> None:
        for each in self._others:
            each.finish(unit, result)

    def note(self, text: str) -> None:
        for each in self._others:
            each.note(text)
