"""The round loop, written once; it knows no protocol, no client and no oracle."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any, Generic, TypeVar

from fedhh.protocol import DiscoveryProtocol, RunState
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.question import Aggregate, AnyQuestion
from fedhh.simulation.executor import Executor, Progress
from fedhh.simulation.log import LoggedRound

_log = logging.getLogger(__name__)

State = TypeVar("State")


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


def rounds(
    protocol: DiscoveryProtocol[State, Any],
    executor: Executor,
    *,
    heard: Iterable[LoggedRound] = (),
    progress: Progress | None = None,
) -> Iterator[Round[State]]:
    """Run a protocol and yield after each round.

    The plan is walked from its first round to its last. Every question is held against it before it
    is sent, since the plan is what the run claims: `Plan.check_question`.

    Args:
        protocol: The server.
        executor: The way to the clients.
        heard: The first rounds' answers, of a run of the same settings and clients that was
            stopped; these rounds are yielded, too, and nobody is asked again.
        progress: Called with a number of clients whenever some have answered.

    Raises:
        InputError: A question asks for more than is planned; nothing is sent. An answer that was
            heard is to another question.
    """
    state, plan, again = protocol.initialize(), protocol.plan, iter(heard)
    while True:
        started = time.process_time()
        question = protocol.next_question(state)
        if question is None:
            return
        plan.check_question(question)
        asked = time.process_time()
        logged = next(again, None)
        if logged is None:
            answer = reduce(Answer.merge, executor.answer(question, progress))
        else:
            answer = logged.answer_to(question)
        answered = time.process_time()
        state = protocol.finish_round(state, question, answer.aggregate)
        finished = Round(
            question=question,
            aggregate=answer.aggregate,
            diagnostics=answer.diagnostics,
            state=state,
            was_heard=logged is not None,
            server_seconds=(asked - started) + (time.process_time() - answered),
        )
        summary = state.history[-1]
        _log.info(
            "pass %d, layer %d: %d reports of %d clients, %d prefixes kept",
            summary.pass_index + 1,
            summary.layer,
            summary.num_reports,
            summary.num_clients,
            summary.num_kept,
        )
        yield finished
