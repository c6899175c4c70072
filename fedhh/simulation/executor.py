"""Executors: how questions reach every block of those who answer; first of all in process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self

from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import Question
from fedhh.simulation.log import LoggedRound
from fedhh.simulation.roster import RoundRoster

Progress = Callable[[int], None]
"""Called with a number of a cohort's clients that have just been worked off, there or not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Broadcast:
    """A question to those who answer it.

    Attributes:
        question: The question.
        who: Who answers it.
    """

    question: Question
    who: RoundRoster

    @classmethod
    def to_all(cls, question: Question) -> Broadcast:
        """Return a question to its whole cohort."""
        return cls(question=question, who=RoundRoster(cohort=question.cohort))

    @property
    def cohort(self) -> Cohort:
        """Whose blocks are worked off."""
        return self.who.cohort

    @property
    def tally_size(self) -> int:
        """Numbers that the answers of a block have."""
        return self.question.tally_size


class Worker(Protocol):
    """Answers for blocks of clients; it gets their numbers, and draws nothing from who it is.

    Attributes:
        remembers: Whether a block is answered for sooner by who answered for it before.
    """

    remembers: bool

    def answer(
        self,
        broadcast: Any,
        blocks: Iterable[int],
        progress: Progress | None = None,
    ) -> Answer:
        """Return the merged answers of some blocks of a cohort.

        Args:
            broadcast: What is asked: a `Broadcast`, or what else has a cohort and a tally's size.
            blocks: Numbers of the blocks to answer for.
            progress: Called after each block.
        """


class Executor(ABC):
    """Carries questions to workers. Use as a context manager; leaving it frees what it holds."""

    @abstractmethod
    def answer(self, broadcast: Any, progress: Progress | None = None) -> Answer:
        """Return the merged answers of every block of the cohort, each once."""

    def rounds(
        self,
        walk: Any,
        heard: Callable[[], Sequence[LoggedRound]],
        progress: Progress | None = None,
    ) -> Iterator[Any]:
        """Yield the rounds of a `fedhh.simulation.engine.Walk`, wherever the server walks.

        Args:
            walk: The run.
            heard: Reads the rounds that are logged by now.
            progress: Called with a number of clients whenever some have been asked.
        """
        yield from walk.rounds(self, heard=heard(), progress=progress)

    def close(self) -> None:  # noqa: B027 - not everybody holds something
        """Free what the executor holds; it cannot be used afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class InProcessExecutor(Executor):
    """Answers every block in this process, one after the other."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def answer(self, broadcast: Any, progress: Progress | None = None) -> Answer:
        return self._worker.answer(broadcast, range(broadcast.cohort.num_blocks), progress)
