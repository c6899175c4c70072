"""How a protocol has to behave: a pure state machine that sees aggregates and nothing else."""

from __future__ import annotations

import copy
import dataclasses
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.clients.population import Population
from fedhh.clients.worker import ClientWorker
from fedhh.questions.answer import Answer, Diagnostics
from fedhh.simulation.executor import Executor
from fedhh.simulation.log import Log
from fedhh.testing.checks import (
    Checks,
    expect,
    expect_frozen,
    expect_pure,
    expect_refusal,
    expect_same,
    holdings,
)
from fedhh.testing.protocol_trial import (
    GroupedExecutor,
    ProtocolTrial,
    Round,
    run_rounds,
)
from fedhh.words.lexicon import Lexicon

CHECKS: Checks[ProtocolTrial] = Checks()
"""Purity, resuming, the order of answers, and the trust boundary."""

_TRUTH = (Population, ClientWorker, Lexicon, Executor, Diagnostics, Answer)


def _expect_same_run(got: list[Round], expected: list[Round], when: str) -> None:
    for number, (one, other) in enumerate(zip(got, expected, strict=False), start=1):
        for part, name in (("question", "question"), ("after", "state")):
            at = f"{when}, round {number}"
            expect_same(getattr(one, part), getattr(other, part), name, at)
    expect(len(got) == len(expected), f"{when}: {len(got)} rounds in place of {len(expected)}")


@CHECKS.add()
def _settings_are_a_frozen_dataclass(trial: ProtocolTrial, seed: int) -> None:
    expect_frozen(trial.settled(seed))


@CHECKS.add()
def _questions_are_pure(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    expect_pure(protocol.initialize, {}, protocol.initialize(), "initialize")
    for number, past in enumerate(trial.run(seed), start=1):
        given = {"state": past.before}
        expect_pure(protocol.next_question, given, past.question, f"next_question, round {number}")


@CHECKS.add()
def _rounds_are_pure(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    settings = copy.deepcopy(protocol)
    for number, past in enumerate(trial.run(seed), start=1):
        given = {"state": past.before, "question": past.question, "aggregate": past.aggregate}
        expect_pure(protocol.finish_round, given, past.after, f"finish_round, round {number}")
    expect_same(protocol, settings, "settings", "a run changed the protocol's settings")


@CHECKS.add()
def _results_can_be_read_at_any_time(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    for number, past in enumerate(trial.run(seed), start=1):
        given, read = {"state": past.after}, protocol.discoveries(past.after)
        expect_pure(protocol.discoveries, given, read, f"discoveries, round {number}")


@CHECKS.add()
def _a_run_resumes_at_every_round(trial: ProtocolTrial, seed: int) -> None:
    past = trial.run(seed)
    with tempfile.TemporaryDirectory() as folder:
        log = Log(Path(folder), run=str(seed))
        for place, each in enumerate(past):
            log.write(place, each.question, Answer(aggregate=each.aggregate), 0.0)
        state = trial.settled(seed).initialize()
        for number, (heard, each) in enumerate(zip(log.read(), past, strict=True), start=1):
            # Made anew, it knows of earlier rounds what the state says.
            protocol = trial.settled(seed)
            question: Any = protocol.next_question(state)
            state = protocol.finish_round(state, question, heard.answer_to(question).aggregate)
            expect_same(state, each.after, "state", f"a log heard again, round {number}")


@CHECKS.add()
def _answers_come_in_any_order(trial: ProtocolTrial, seed: int) -> None:
    blocks = max(past.question.cohort.num_blocks for past in trial.run(seed))
    expect(blocks > 1, "no cohort of the trial has several blocks; let one have over 256 clients")
    for num_groups in (2, blocks):
        worker = ClientWorker(trial.population, seed=seed)
        executor = GroupedExecutor(worker, num_groups=num_groups)
        run = list(run_rounds(trial.settled(seed), executor))
        _expect_same_run(run, trial.run(seed), f"answers of {num_groups} groups, last one first")


@CHECKS.add()
def _order_of_messages_does_not_matter(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    rng = np.random.default_rng(seed)
    for number, past in enumerate(trial.run(seed), start=1):
        if past.aggregate.messages is not None:
            messages = rng.permutation(past.aggregate.messages)
            shuffled = dataclasses.replace(past.aggregate, messages=messages)
            after = protocol.finish_round(past.before, past.question, shuffled)
            expect_same(after, past.after, "state", f"messages in another order, round {number}")


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
        size = past.question.tally_size
        longer = np.zeros(size + 1, dtype=np.int64)
        strange = dataclasses.replace(past.aggregate, tally=longer, messages=None)
        what = f"round {number}: a tally of {size + 1} numbers for a question of {size}"
        finished = partial(protocol.finish_round, past.before, past.question, strange)
        expect_refusal(what, finished, naming="", kind=ValueError)
