"""The round loop, written once; it knows no protocol, no client and no oracle."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

from fedhh.protocol import DiscoveryProtocol, RunState
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.question import Aggregate, AnyQuestion
from fedhh.simulation.executor import Broadcast, Executor, Progress
from fedhh.simulation.fidelity import PER_REPORT, Fidelity
from fedhh.simulation.log import Log, LoggedRound
from fedhh.simulation.roster import Roster, RoundRoster
from fedhh.validation import InputError

_log = logging.getLogger(__name__)

State = TypeVar("State")
Result = TypeVar("Result")

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

    Attributes:
        error: What it is stopped by; None as long as it is not.
    """

    def __init__(
        self,
        protocol: DiscoveryProtocol[State, Any],
        *,
        roster: Roster | None = None,
        fidelity: Fidelity | None = None,
        fakes: FakeAnswer | None = None,
        heard: Iterable[LoggedRound] = (),
        log: Log | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Begin a run.

        Args:
            protocol: The server.
            roster: Who answers; if None, everybody that is asked.
            fidelity: How clients are simulated; if None, by their reports. Anything else needs a
                roster, which has the seed.
            fakes: What those send who are fake, if any are.
            heard: The first rounds' answers, of a run of the same settings and clients that was
                stopped; nobody is asked again.
            log: Where rounds are logged once they were yielded; those that are there are heard.
            progress: Called with a number of clients whenever some have been asked.
        """
        assert roster is not None or fidelity is None
        self._protocol, self._plan = protocol, protocol.plan
        self._roster, self._fakes = roster, fakes
        self._fidelity = fidelity or Fidelity(name=PER_REPORT)
        self._log, self._state, self._seconds = log, protocol.initialize(), 0.0
        self.error: BaseException | None = None
        self.begin(heard or self.logged(), progress)

    def __getstate__(self) -> dict[str, Any]:
        # Of a copy elsewhere, `begin` says what it hears and who hears of it.
        return {**self.__dict__, "_log": None, "_heard": None, "_progress": None}

    def begin(self, heard: Iterable[LoggedRound], progress: Progress | None) -> None:
        """Have these rounds be heard first, and somebody told of clients that are asked."""
        self._heard, self._progress = iter(heard), progress

    def logged(self) -> Sequence[LoggedRound]:
        """Return the rounds that are logged by now."""
        return () if self._log is None else self._log.read()

    def ask(self) -> Broadcast | None:
        """Return what honest clients are asked next; None at the end.

        Raises:
            InputError: A question asks for more than is planned, or for a round that is over.
            MissedRoundError: Fewer clients answer than the round accepts.
        """
        if self.error is not None:
            raise self.error
        question = self._next_question()
        if question is None:
            return None
        self._question = question
        if self._roster is None:
            self._who = RoundRoster(cohort=question.cohort)
        else:
            self._who = self._roster.round(self._plan.planned(question.pass_index, question.layer))
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

    def hear_again(self) -> Round[State] | None:
        """Return the next round that a log has the answers to; None after the last.

        Raises:
            InputError: They are answers to another question.
        """
        logged = next(self._heard, None)
        question = None if logged is None else self._next_question()
        if logged is None or question is None:
            return None
        return self._finished(question, logged.answer_to(question), was_heard=True)

    def stop(self, error: BaseException) -> None:
        """Have the run end with an error before it asks again."""
        self.error = error

    def tell(self, num_clients: int) -> None:
        """Say that so many clients have been asked."""
        if self._progress is not None:
            self._progress(num_clients)

    def told(self, broadcast: Broadcast) -> Progress:
        """Return who hears of a round's whole cohort as those of a broadcast are worked off."""
        asked, drawn, done = self._question.cohort.size, broadcast.cohort.size, 0

        def tell(num_clients: int) -> None:
            nonlocal done
            before, done = done, done + num_clients
            self.tell(done * asked // drawn - before * asked // drawn)

        return tell

    def _next_question(self) -> AnyQuestion | None:
        started = time.process_time()
        question = self._protocol.next_question(self._state)
        if question is not None:
            self._plan.check_question(question)
            if self._plan.planned(question.pass_index, question.layer).place < self._state.place:
                raise InputError(
                    f"Expected each round once, got pass {question.pass_index + 1}, layer "
                    f"{question.layer} again: its clients would be asked twice, with the same "
                    "coins."
                )
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


Ended = BaseException | None
"""How a run ended: with what went wrong, or well."""


def together(
    walks: Sequence[Walk[Any]], executor: Executor
) -> Iterator[tuple[int, Round[Any] | Ended]]:
    """Yield the rounds of several runs in lockstep, each with its run's number, and how runs ended.

    Plans are walked from their first rounds to their last: who answers, what they answer, what
    fakes send besides, and what the server makes of it. Questions to the same clients are asked at
    once. What goes wrong in one run ends that run alone.
    """
    going = dict(enumerate(walks))
    for number, walk in going.items():
        while isinstance(again := attempt(walk.hear_again), Round):
            yield number, again
        if again is not None:
            walk.stop(again)
    while going:
        asked: dict[RoundRoster, dict[int, Broadcast]] = {}
        for number, walk in list(going.items()):
            broadcast = attempt(walk.ask)
            if isinstance(broadcast, Broadcast):
                asked.setdefault(broadcast.who, {})[number] = broadcast
            else:
                del going[number]
                yield number, broadcast
        for broadcasts in asked.values():
            told = [walks[number].told(each) for number, each in broadcasts.items()]
            answers = attempt(partial(_answers, executor, list(broadcasts.values()), told))
            for place, number in enumerate(broadcasts):
                finished = (
                    answers
                    if isinstance(answers, BaseException)
                    else attempt(partial(walks[number].hear, answers[place]))
                )
                if not isinstance(finished, Round):
                    del going[number]
                yield number, finished


def rounds(
    protocol: DiscoveryProtocol[State, Any], executor: Executor, **options: Any
) -> Iterator[Round[State]]:
    """Run a protocol and yield after each round.

    Args:
        protocol: The server.
        executor: The way to the clients.
        options: See `Walk`, also for what is raised.
    """
    for _, finished in together([Walk(protocol, **options)], executor):
        if isinstance(finished, Round):
            yield finished
        elif finished is not None:
            raise finished


def attempt(step: Callable[[], Result]) -> Result | BaseException:
    """Return what a step of one run returns, or what went wrong in it: it wanted to exit, too."""
    try:
        return step()
    except (Exception, SystemExit) as error:
        return error


def _answers(
    executor: Executor, broadcasts: Sequence[Broadcast], told: Sequence[Progress]
) -> list[Answer]:
    """Return the answers to broadcasts of one question each to the same clients."""
    questions = tuple(question for each in broadcasts for question in each.questions)
    joint = Broadcast(questions=questions, who=broadcasts[0].who)

    def progress(num_clients: int) -> None:
        for tell in told:
            tell(num_clients)

    return executor.answer(joint, progress) if joint.cohort.size else joint.unanswered
