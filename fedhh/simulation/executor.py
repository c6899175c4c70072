"""Executors: how a question reaches every block of its cohort; first of all in process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Protocol, Self

from fedhh.questions.answer import Answer

Progress = Callable[[int], None]
"""Called with a number of clients that have just answered."""


class Worker(Protocol):
    """Answers for blocks of clients; it gets their numbers, and draws nothing from who it is."""

    def answer(
        self,
        question: Any,
        blocks: Iterable[int],
        progress: Progress | None = None,
        *,
        onto: Answer | None = None,
    ) -> Answer:
        """Return the merged answer of some blocks of the question's cohort.

        Args:
            question: The broadcast.
            blocks: Numbers of the blocks to answer for.
            progress: Called with the number of clients after each block.
            onto: An earlier answer of this worker to the question, which is used up: the result is
                that of its blocks, too. Large arrays are then made once a round.
        """


class Executor(ABC):
    """Carries questions to workers. Use as a context manager; leaving it frees what it holds."""

    @abstractmethod
    def answer(self, question: Any, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield answers that together cover every block of the cohort once, in any order."""

    @abstractmethod
    def close(self) -> None:
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

    def answer(self, question: Any, progress: Progress | None = None) -> Iterator[Answer]:
        yield self._worker.answer(question, range(question.cohort.num_blocks), progress)

    def close(self) -> None:
        pass
