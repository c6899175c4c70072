"""An experiment of any kind that is about to run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from fedhh.experiments.study.callbacks import Callbacks
from fedhh.experiments.study.parts import Part


class Study(ABC):
    """An experiment whose settings are checked, and of which nothing is made yet.

    Attributes:
        is_complete: Whether all of it has a result, once it has run.
    """

    is_complete = True

    @abstractmethod
    def plan(self) -> Iterable[Part]:
        """Return what would run."""

    @abstractmethod
    def plan_record(self) -> Any:
        """Return what would run, as JSON values."""

    @abstractmethod
    def run(self, callbacks: Sequence[Callbacks] = ()) -> Path:
        """Run all that has no result yet, write files and figures, and return the directory."""
