"""Executors: how questions reach every block of those who answer; first of all in process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from types import TracebackType
from typing import Any, Protocol, Self

from fedhh.questions.answer import Answer
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import Aggregate, AnyQuestion
from fedhh.simulation.roster import RoundRoster

Progress = Callable[[int], None]
"""Called with a number of a cohort's clients that have just been worked off, there or not."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Broadcast:
    """Questions to the same clients, who are drawn once to answer all of them.

    A simulator's way: each question is answered as if it were alone, since randomness is addressed
    by pass, layer and block, and nothing of one answer reaches another.

    Attributes:
        questions: The questions, of one run each.
        who: Who answers them.
    """

    questions: tuple[AnyQuestion, ...]
    who: RoundRoster

    @classmethod
    def to_all(cls, question: AnyQuestion) -> Broadcast:
        """Return a question to its whole cohort."""
        return cls(questions=(question,), who=RoundRoster(cohort=question.cohort))

    @property
    def cohort(self) -> Cohort:
        """Whose blocks are worked off."""
        return self.who.cohort

    @property
    def tally_size(self) -> int:
        """Numbers that the answers of a block have."""
        return sum(question.tally_size for question in self.questions)

    @property
    def unanswered(self) -> list[Answer]:
        """The answers of nobody."""
        sizes = (question.tally_size for question in self.questions)
        return [Answer(aggregate=Aggregate.empty(size)) for size in sizes]


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
    ) -> list[Answer]:
        """Return the merged answers of some blocks of a cohort, one to each question.

        Args:
            broadcast: What is asked: a `Broadcast`, or what else has a cohort and a tally's size.
            blocks: Numbers of the blocks to answer for.
            progress: Called after each block.
        """


class Executor(ABC):
    """Carries questions to workers. Use as a context manager; leaving it frees what it holds."""

    @abstractmethod
    def answer(self, broadcast: Any, progress: Progress | None = None) -> list[Answer]:
        """Return the answers of every block of the cohort, each once, one to each question."""

    def serve(self, walks: Sequence[Any]) -> Iterator[Any] | None:
        """Return what `fedhh.simulation.engine.together` yields, if a server elsewhere walks."""
        return None

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

    def answer(self, broadcast: Any, progress: Progress | None = None) -> list[Answer]:
        return self._worker.answer(broadcast, range(broadcast.cohort.num_blocks), progress)

    def close(self) -> None:
        pass


def merged(parts: Iterable[list[Answer]]) -> list[Answer]:
    """Return the answers to each question of several parts of a cohort."""
    return [reduce(Answer.merge, each) for each in zip(*parts, strict=True)]
