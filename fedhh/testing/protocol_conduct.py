"""How a protocol has to behave: a pure state machine that sees aggregates and nothing else."""

from __future__ import annotations

import copy
import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.clients.population import Population
from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.questions.question import Aggregate
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import Executor
from fedhh.simulation.log import Log
from fedhh.testing.checks import Checks, expect, first_difference, holdings
from fedhh.testing.protocol_trial import (
    GroupedExecutor,
    PoisonedExecutor,
    ProtocolTrial,
    Round,
    run_rounds,
)
from fedhh.words.lexicon import Lexicon

CHECKS: Checks[ProtocolTrial] = Checks()
"""Purity, resuming, the order of answers, and the trust boundary."""

_TRUTH = (Population, ClientWorker, Lexicon, Executor, Diagnostics, Answer)


def _expect_same(first: Any, second: Any, path: str, when: str) -> None:
    difference = first_difference(first, second, path)
    expect(difference is None, f"{when}: {difference}")


def _expect_same_run(got: list[Round], expected: list[Round], when: str) -> None:
    for number, (one, other) in enumerate(zip(got, expected, strict=False), start=1):
        for part, name in (("question", "question"), ("after", "state")):
            at = f"{when}, round {number}"
            _expect_same(getattr(one, part), getattr(other, part), name, at)
    expect(len(got) == len(expected), f"{when}: {len(got)} rounds in place of {len(expected)}")


@CHECKS.add()
def _settings_are_a_frozen_dataclass(trial: ProtocolTrial, seed: int) -> None:
    protocol: Any = trial.settled(seed)
    expect(dataclasses.is_dataclass(protocol), "the class is no dataclass")
    name = dataclasses.fields(protocol)[0].name
    try:
        setattr(protocol, name, getattr(protocol, name))
    except dataclasses.FrozenInstanceError:
        return
    raise AssertionError(f"{name} can be assigned to; expected a frozen dataclass")


@CHECKS.add()
def _questions_are_pure(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    _expect_same(protocol.initialize(), protocol.initialize(), "state", "initialize() called twice")
    for number, past in enumerate(trial.run(seed), start=1):
        before = copy.deepcopy(past.before)
        first, second = (protocol.next_question(past.before) for _ in range(2))
        _expect_same(first, second, "question", f"next_question called twice in round {number}")
        _expect_same(
            first, past.question, "question", f"next_question asked again in round {number}"
        )
        _expect_same(
            past.before, before, "state", f"next_question changed the state, round {number}"
        )


@CHECKS.add()
def _rounds_are_pure(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    settings = copy.deepcopy(protocol)
    for number, past in enumerate(trial.run(seed), start=1):
        when = f"round {number}"
        given = (past.before, past.question, past.aggregate)
        kept = copy.deepcopy(given)
        first, second = (protocol.finish_round(*given) for _ in range(2))
        for name, now, then in zip(("state", "question", "aggregate"), given, kept, strict=True):
            _expect_same(now, then, name, f"finish_round changed what it was given, {when}")
        _expect_same(first, second, "state", f"finish_round called twice, {when}")
        _expect_same(first, past.after, "state", f"finish_round called again, {when}")
    _expect_same(protocol, settings, "settings", "a run changed the protocol's settings")


@CHECKS.add()
def _results_can_be_read_at_any_time(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    for number, past in enumerate(trial.run(seed), start=1):
        state = copy.deepcopy(past.after)
        first, second = (protocol.discoveries(past.after) for _ in range(2))
        when = f"discoveries after round {number}"
        _expect_same(first, second, "result", f"{when}, called twice")
        _expect_same(past.after, state, "state", f"{when}, changed the state")


@CHECKS.add()
def _a_run_resumes_at_every_round(trial: ProtocolTrial, seed: int) -> None:
    executor = PoisonedExecutor(ClientWorker(trial.population, seed=seed))
    run = run_rounds(
        trial.settled(seed), executor, between=lambda _, state: (trial.settled(seed), state)
    )
    past = trial.run(seed)
    _expect_same_run(list(run), past, "a run whose protocol is made anew after each round")
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder), run=str(seed))
        for place, each in enumerate(past):
            log.write(place, each.question, Answer(aggregate=each.aggregate), 0.0)
        protocol = trial.settled(seed)
        state = protocol.initialize()
        for number, (heard, each) in enumerate(zip(log.read(), past, strict=True), start=1):
            question: Any = protocol.next_question(state)
            state = protocol.finish_round(state, question, heard.answer_to(question).aggregate)
            _expect_same(state, each.after, "state", f"a log heard again, round {number}")


@CHECKS.add()
def _answers_come_in_any_order(trial: ProtocolTrial, seed: int) -> None:
    blocks = max(past.question.cohort.num_blocks for past in trial.run(seed))
    expect(blocks > 1, "no cohort of the trial has several blocks; let one have over 256 clients")
    for num_groups in (2, 5, 1_000_000):
        worker = ClientWorker(trial.population, seed=seed)
        executor = GroupedExecutor(worker, num_groups=num_groups)
        run = list(run_rounds(trial.settled(seed), executor))
        shown = "every block by itself" if num_groups == 1_000_000 else f"{num_groups} workers"
        _expect_same_run(run, trial.run(seed), f"answers of {shown}, last one first")


@CHECKS.add()
def _order_of_messages_does_not_matter(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    rng = np.random.default_rng(seed)
    for number, past in enumerate(trial.run(seed), start=1):
        if past.aggregate.messages is not None:
            shuffled = dataclasses.replace(
                past.aggregate, messages=rng.permutation(past.aggregate.messages)
            )
            after = protocol.finish_round(past.before, past.question, shuffled)
            _expect_same(after, past.after, "state", f"messages in another order, round {number}")


@CHECKS.add(lambda trial: bool(trial.workers))
def _ray_workers_give_the_same_bits(trial: ProtocolTrial, seed: int) -> None:
    # Ray takes a second to import, and most trials do without.
    from fedhh.simulation.ray.executor import RayExecutor

    for num_workers in trial.workers:
        worker = ClientWorker(trial.population, seed=seed)
        with RayExecutor(worker, num_workers=num_workers) as executor:
            run = list(run_rounds(trial.settled(seed), executor))
        _expect_same_run(run, trial.run(seed), f"a run with {num_workers} Ray workers")


@CHECKS.add()
def _truth_is_never_read(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    places = [("protocol", protocol), ("state", trial.last_state(seed))]
    for name, place in places:
        for where, value in holdings(place, name):
            expect(
                not isinstance(value, _TRUTH),
                f"{where} holds a {type(value).__name__}, which only clients or a simulator may "
                "know; a server has settings, aggregates and what follows from them",
            )
    executor = PoisonedExecutor(ClientWorker(trial.population, seed=seed))
    *_, last = rounds(protocol, executor)
    _expect_same(last.state, trial.last_state(seed), "state", "a run without diagnostics")


@CHECKS.add()
def _questions_do_not_carry_the_runs_seed(trial: ProtocolTrial, seed: int) -> None:
    # A number that stands nowhere by chance.
    secret = int(np.random.default_rng(seed).integers(2**40, 2**62))
    protocol = trial.settled(secret)
    for number, past in enumerate(trial.run(seed), start=1):
        for where, value in holdings(protocol.next_question(past.before), "question"):
            carries = isinstance(value, int | np.integer | np.ndarray) and np.any(value == secret)
            expect(
                not carries,
                f"{where} of round {number} is the run's seed, from which noise can be computed; "
                "draw what clients may know with fedhh.hashing.derived_seeds",
            )


@CHECKS.add()
def _strange_aggregates_are_refused(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    for number, past in enumerate(trial.run(seed), start=1):
        strange = Aggregate.empty(past.question.tally_size + 1)
        try:
            protocol.finish_round(
                past.before,
                past.question,
                dataclasses.replace(strange, num_reports=past.aggregate.num_reports),
            )
        except ValueError:
            continue
        raise AssertionError(
            f"finish_round of round {number} took a tally of {past.question.tally_size + 1} "
            f"numbers, but its question has tally_size={past.question.tally_size}; expected a "
            "ValueError"
        )
