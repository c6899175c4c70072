"""The round loop, written once; it knows no protocol, no client and no oracle."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from fedhh.protocol import DiscoveryProtocol, RunState
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.question import Aggregate, AnyQuestion
from fedhh.simulation.executor import Broadcast, Executor, Progress
from fedhh.simulation.fidelity import PER_REPORT, Fidelity
from fedhh.simulation.log import LoggedRound
from fedhh.simulation.roster import Roster, RoundRoster

_log = logging.getLogger(__name__)

State = TypeVar("State")

FakeAnswer = Callable[[AnyQuestion, tuple[int, ...]], Answer]
"""Returns what fake clients, so many of each group, send in answer to a question."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Round(Generic[State]):
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

    question: AnyQuestion
    aggregate: Aggregate
    diagnostics: Diagnostics
    state: RunState[State]
    was_heard: bool
    server_seconds: float


class Walk(Generic[State]):
    """A run's way through its plan, a round at a time: `ask`, then `hear` what was answered.

    Every question is held against the plan before it is sent, since the plan is what the run
    claims: `Plan.check_question`.
    """

    def __init__(
        self,
        protocol: DiscoveryProtocol[State, Any],
        *,
        roster: Roster | None = None,
        fidelity: Fidelity | None = None,
        fakes: FakeAnswer | None = None,
    ) -> None:
        """Begin a run.

        Args:
            protocol: The server.
            roster: Who answers; if None, everybody that is asked.
            fidelity: How clients are simulated; if None, by their reports. Anything else needs a
                roster, which has the seed.
            fakes: What those send who are fake, if any are.
        """
        assert roster is not None or fidelity is None
        self._protocol, self._plan = protocol, protocol.plan
        self._roster, self._fakes = roster, fakes
        self._fidelity = fidelity or Fidelity(name=PER_REPORT)
        self._state = protocol.initialize()
        self._seconds = 0.0

    def ask(self) -> Broadcast | None:
        """Return what honest clients are asked next; None at the end.

        Raises:
            InputError: A question asks for more than is planned.
            MissedRoundError: Fewer clients answer than the round accepts.
        """
        question = self._next_question()
        if question is None:
            return None
        self._question = question
        if self._roster is None:
            self._who = RoundRoster(cohort=question.cohort)
        else:
            self._who = self._roster.round(question.cohort, question.pass_index, question.layer)
        return self._fidelity.broadcast(question, self._who)

    def hear(self, answer: Answer) -> Round[State]:
        """Return the round that ends with the answer of the clients that were asked."""
        question, who = self._question, self._who
        if self._roster is not None:
            answer = self._fidelity.answer(question, who, answer, seed=self._roster.seed)
        if who.attendance is not None:
            diagnostics = replace(answer.diagnostics, attendance=who.attendance)
            answer = replace(answer, diagnostics=diagnostics)
        if self._fakes is not None and any(who.fakes):
            answer = answer.merge(self._fakes(question, who.fakes))
        return self._finished(question, answer, was_heard=False)

    def hear_again(self, logged: LoggedRound) -> Round[State] | None:
        """Return the round that a log has the answers to; None at the end.

        Raises:
            InputError: They are answers to another question.
        """
        question = self._next_question()
        if question is None:
            return None
        return self._finished(question, logged.answer_to(question), was_heard=True)

    def told(self, progress: Progress, broadcast: Broadcast) -> Progress:
        """Return who hears of a round's whole cohort as those of a broadcast are worked off."""
        asked, drawn, done = self._question.cohort.size, broadcast.cohort.size, 0

        def tell(num_clients: int) -> None:
            nonlocal done
            before, done = done, done + num_clients
            progress(done * asked // drawn - before * asked // drawn)

        return tell

    def _next_question(self) -> AnyQuestion | None:
        started = time.process_time()
        question = self._protocol.next_question(self._state)
        if question is not None:
            self._plan.check_question(question)
        self._seconds = time.process_time() - started
        return question

    def _finished(self, question: AnyQuestion, answer: Answer, *, was_heard: bool) -> Round[State]:
        started = time.process_time()
        self._state = self._protocol.finish_round(self._state, question, answer.aggregate)
        summary = self._state.history[-1]
        _log.info(
            "pass %d, layer %d: %d reports of %d clients, %d prefixes kept",
            summary.pass_index + 1,
            summary.layer,
            summary.num_reports,
            summary.num_clients,
            summary.num_kept,
        )
        return Round(
            question=question,
            aggregate=answer.aggregate,
            diagnostics=answer.diagnostics,
            state=self._state,
            was_heard=was_heard,
            server_seconds=self._seconds + time.process_time() - started,
        )


def rounds(
    protocol: DiscoveryProtocol[State, Any],
    executor: Executor,
    *,
    heard: Iterable[LoggedRound] = (),
    progress: Progress | None = None,
    **options: Any,
) -> Iterator[Round[State]]:
    """Run a protocol and yield after each round.

    The plan is walked from its first round to its last: who answers, what they answer, what fakes
    send besides, and what the server makes of it.

    Args:
        protocol: The server.
        executor: The way to the clients.
        heard: The first rounds' answers, of a run of the same settings and clients that was
            stopped; these rounds are yielded, too, and nobody is asked again.
        progress: Called with a number of clients whenever some have been asked.
        options: See `Walk`, also for what is raised.
    """
    walk = Walk(protocol, **options)
    for logged in heard:
        again = walk.hear_again(logged)
        if again is None:
            return
        yield again
    while (broadcast := walk.ask()) is not None:
        (answer,) = (
            executor.answer(broadcast, progress and walk.told(progress, broadcast))
            if broadcast.cohort.size
            else broadcast.unanswered
        )
        yield walk.hear(answer)
