"""The round loop, written once; it knows no protocol, no client and no oracle."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Generic, TypeVar

from fedhh.protocol import DiscoveryProtocol
from fedhh.queries.base import Aggregate, Answer, Diagnostics, Query
from fedhh.simulation.executor import Executor, Progress
from fedhh.validation import InputError

_log = logging.getLogger(__name__)

State = TypeVar("State")
QueryType = TypeVar("QueryType", bound=Query)


@dataclass(frozen=True, kw_only=True, eq=False)
class Round(Generic[State, QueryType]):
    """One broadcast and one aggregate.

    Attributes:
        query: What the server broadcast.
        aggregate: What came back to it.
        diagnostics: What only a simulator can know of the answers.
        state: The protocol's state after the round.
        server_seconds: Processor time that the protocol took to make the query and to digest the
            answers; it does not depend on what else the machine does.
    """

    query: QueryType
    aggregate: Aggregate
    diagnostics: Diagnostics
    state: State
    server_seconds: float


def rounds(
    protocol: DiscoveryProtocol[State, QueryType],
    executor: Executor,
    *,
    state: State | None = None,
    progress: Progress | None = None,
) -> Iterator[Round[State, QueryType]]:
    """Run a protocol and yield after each round.

    Every query is held against the protocol's plan before it is sent, since the plan is what the
    run claims: `Mechanism.check_query`; and no planned round takes place twice.

    Args:
        protocol: The server.
        executor: The way to the clients.
        state: Where to go on; the beginning if None.
        progress: Called with a number of clients whenever some have answered.

    Raises:
        InputError: A query is not in the plan, or asks for more than is planned; nothing is sent.
    """
    if state is None:
        state = protocol.initialize()
    plan = protocol.mechanism
    asked_rounds = {(each.pass_index, each.layer) for each in protocol.summaries(state)}
    while True:
        started = time.process_time()
        query = protocol.next_query(state)
        if query is None:
            return
        plan.check_query(query)
        if (query.pass_index, query.layer) in asked_rounds:
            raise InputError(
                f"Expected each round once, got pass {query.pass_index + 1}, layer {query.layer} "
                "again: its clients would be asked twice, with the same coins."
            )
        asked_rounds.add((query.pass_index, query.layer))
        asked = time.process_time()
        answer = reduce(Answer.merge, executor.answer(query, progress))
        answered = time.process_time()
        state = protocol.finish_round(state, query, answer.aggregate)
        finished = Round(
            query=query,
            aggregate=answer.aggregate,
            diagnostics=answer.diagnostics,
            state=state,
            server_seconds=(asked - started) + (time.process_time() - answered),
        )
        summary = protocol.summaries(state)[-1]
        _log.info(
            "pass %d, layer %d: %d reports of %d clients, %d prefixes kept",
            summary.pass_index + 1,
            summary.layer,
            summary.num_reports,
            summary.num_clients,
            summary.num_kept,
        )
        yield finished
