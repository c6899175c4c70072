"""Several runs that ask the same clients at the same time, who are drawn once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

from fedhh.plugin_errors import naming_plugins
from fedhh.questions.answer import Answer
from fedhh.simulation.executor import Broadcast, Executor, Progress


@dataclass(kw_only=True, eq=False)
class _Asked:
    """A run's questions, and what came of it."""

    broadcast: Broadcast
    progress: Progress | None
    answers: list[Answer] | None = None
    error: BaseException | None = None

    @property
    def is_settled(self) -> bool:
        return self.answers is not None or self.error is not None


class SharedDrawing:
    """The way of several runs to the same clients; each run lives in a thread of its own.

    Threads take turns: one runs until it asks its clients. When all that still run have asked, the
    questions to one cohort are asked together. Runs whose cohorts differ stay right, and save
    nothing.
    """

    def __init__(self, executor: Executor, num_runs: int) -> None:
        self._executor = executor
        self._turn = threading.Condition()
        self._asked: list[_Asked | None] = [None] * num_runs
        self._running = set(range(num_runs))

    def run(self, number: int) -> _Run:
        """Return a run's own executor: to be entered in the run's thread, before all else."""
        return _Run(self, number)

    def begin(self) -> None:
        """Wait for the first turn."""
        self._turn.acquire()

    def end(self, number: int) -> None:
        """Give up the turn for good: the others no longer wait for this run."""
        self._running.discard(number)
        self._turn.notify_all()
        self._turn.release()

    def ask(self, number: int, broadcast: Broadcast, progress: Progress | None) -> list[Answer]:
        """Return the answer to a run's question, while the other runs have their turns."""
        mine = self._asked[number] = _Asked(broadcast=broadcast, progress=progress)
        # Whoever finds that all have asked does the asking; the others wake up to their answers.
        while not mine.is_settled:
            waiting = [self._asked[run] for run in sorted(self._running)]
            open_questions = [asked for asked in waiting if asked and not asked.is_settled]
            if len(open_questions) == len(self._running):
                self._settle(open_questions)
                self._turn.notify_all()
            else:
                self._turn.wait()
        self._asked[number] = None
        if mine.error is not None:
            raise mine.error
        assert mine.answers is not None
        return mine.answers

    def _settle(self, questions: Sequence[_Asked]) -> None:
        together: dict[object, list[_Asked]] = {}
        for asked in questions:
            together.setdefault(asked.broadcast.who, []).append(asked)
        for group in together.values():
            try:
                # All runs wait: who asks for them must not exit.
                with naming_plugins():
                    answers = self._answers(group)
            except Exception as error:
                for asked in group:
                    asked.error = error
            else:
                for asked in group:
                    asked.answers = [answers.pop(0) for _ in asked.broadcast.questions]

    def _answers(self, group: Sequence[_Asked]) -> list[Answer]:
        def progress(num_clients: int) -> None:
            for asked in group:
                if asked.progress is not None:
                    asked.progress(num_clients)

        questions = tuple(each for asked in group for each in asked.broadcast.questions)
        joint = Broadcast(questions=questions, who=group[0].broadcast.who)
        return self._executor.answer(joint, progress)


class _Run(Executor):
    """One run's way to the clients."""

    def __init__(self, shared: SharedDrawing, number: int) -> None:
        self._shared = shared
        self._number = number

    def __enter__(self) -> _Run:
        self._shared.begin()
        return self

    def answer(self, broadcast: Broadcast, progress: Progress | None = None) -> list[Answer]:
        return self._shared.ask(self._number, broadcast, progress)

    def close(self) -> None:
        self._shared.end(self._number)
