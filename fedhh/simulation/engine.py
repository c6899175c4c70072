"""The round loop, written once; it knows no protocol, no client and no oracle."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fedhh.protocol import DiscoveryProtocol, RunState
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.question import Aggregate, Question
from fedhh.simulation.executor import Broadcast, Executor, Progress
from fedhh.simulation.fidelity import BY_REPORT, Fidelity
from fedhh.simulation.log import LoggedRound
from fedhh.simulation.roster import Roster
from fedhh.validation import InputError

_log = logging.getLogger(__name__)


FakeAnswer = Callable[[Question, tuple[int, ...]], Answer]
"""Returns what fake clients, so many of each group, send in answer to a question."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """One broadcast and one aggregate.

    Attributes:
        question: What the server broadcast.
        aggregate: What came back to it.
        diagnostics: What only a simulator can know of the answers.
        state: Where the run stands after the round.
        was_heard: Whether the answers are those of a log.
        server_seconds: Processor time that the protocol took to make the question and to digest the
            answers; it does not depend on what else the machine does.
    """

    question: Question
    aggregate: Aggregate
    diagnostics: Diagnostics
    state: RunState
    was_heard: bool
    server_seconds: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Walk:
    """A run's way through its plan: who answers, what they answer, and what the server makes of it.

    Every question is held against the plan before it is sent, since the plan is what the run
    claims: `Plan.check_question`.

    Attributes:
        protocol: The server.
        roster: Who answers; if None, everybody that is asked.
        fidelity: How clients are simulated; anything but by their reports needs a roster, which has
            the seed.
        fakes: What those send who are fake, if any are.
    """

    protocol: DiscoveryProtocol
    roster: Roster | None = None
    fidelity: Fidelity = BY_REPORT
    fakes: FakeAnswer | None = None

    def rounds(
        self,
        executor: Executor,
        *,
        heard: Iterable[LoggedRound] = (),
        progress: Progress | None = None,
    ) -> Iterator[Round]:
        """Yield after each round.

        Args:
            executor: The way to the clients.
            heard: The first rounds' answers, of a run of the same settings and clients that was
                stopped; nobody is asked again.
            progress: Called with a number of clients whenever some have been asked.

        Raises:
            InputError: A question asks for more than is planned, or for a round that is over; or
                what was heard are answers to another question.
            MissedRoundError: Fewer clients answer than the round accepts.
        """
        protocol, logged = self.protocol, iter(heard)
        state = protocol.initialize()
        while True:
            started = time.process_time()
            question = protocol.next_question(state)
            if question is None:
                return
            self._check(question, state)
            seconds = time.process_time() - started
            if (known := next(logged, None)) is None:
                answer = self._answer(question, executor, progress)
            else:
                answer = known.answer_to(question)
            started = time.process_time()
            state = protocol.finish_round(state, question, answer.aggregate)
            summary = state.history[-1]
            _log.info(
                "pass %d, layer %d: %d reports of %d clients, %d prefixes kept",
                summary.pass_index + 1,
                summary.layer,
                summary.num_reports,
                summary.num_clients,
                summary.num_kept,
            )
            yield Round(
                question=question,
                aggregate=answer.aggregate,
                diagnostics=answer.diagnostics,
                state=state,
                was_heard=known is not None,
                server_seconds=seconds + time.process_time() - started,
            )

    def _check(self, question: Question, state: RunState) -> None:
        plan = self.protocol.plan
        plan.check_question(question)
        if plan.planned(question.pass_index, question.layer).place < state.place:
            raise InputError(
                f"Expected each round once, got pass {question.pass_index + 1}, layer "
                f"{question.layer} again: its clients would be asked twice, with the same coins."
            )

    def _answer(self, question: Question, executor: Executor, progress: Progress | None) -> Answer:
        """Return what honest clients say, and fake ones besides."""
        if self.roster is None:
            return executor.answer(Broadcast.to_all(question), progress)
        planned = self.protocol.plan.planned(question.pass_index, question.layer)
        who = self.roster.round(planned)
        answer = self.fidelity.asked(question, who, executor, self.roster.order.seed, progress)
        if who.attendance is not None:
            diagnostics = replace(answer.diagnostics, attendance=who.attendance)
            answer = replace(answer, diagnostics=diagnostics)
        if self.fakes is not None and any(who.fakes):
            answer = answer.merge(self.fakes(question, who.fakes))
        return answer


def rounds(
    protocol: DiscoveryProtocol,
    executor: Executor,
    *,
    heard: Iterable[LoggedRound] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[Round]:
    """Run a protocol and yield after each round; see `Walk`, also for ``options``."""
    return Walk(protocol=protocol, **options).rounds(executor, heard=heard, progress=progress)
