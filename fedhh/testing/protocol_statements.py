"""Whether a protocol does what it says: rounds, clients, privacy, words, and bad settings."""

from __future__ import annotations

import copy
import dataclasses
from functools import partial
from typing import Any

from fedhh.accounting.guarantees import NotApplicable
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.testing.checks import Checks, expect, expect_equal, expect_refusal
from fedhh.testing.protocol_trial import ProtocolTrial
from fedhh.validation import InputError
from fedhh.words.alphabet import BREAK, length_of

CHECKS: Checks[ProtocolTrial] = Checks()
"""What settings, summaries and discoveries state, against the run."""


@CHECKS.add()
def _questions_are_as_planned(trial: ProtocolTrial, seed: int) -> None:
    plan = trial.plan(seed)
    for past, summary in zip(trial.run(seed), trial.summaries(seed), strict=True):
        question = past.question
        where = f"pass {question.pass_index}, layer {question.layer}"
        try:
            plan.check_question(question)
        except InputError as problem:
            raise AssertionError(str(problem)) from None
        expect(
            question.domain_size in {None, summary.domain_size},
            f"the question of {where} has {question.domain_size} values, its summary "
            f"{summary.domain_size}",
        )
        if plan.padded:
            sent = past.aggregate.num_clients * question.max_items
            what = f"the number of reports of {where}, where each client is stated to pad,"
            expect_equal(past.aggregate.num_reports, sent, what)


@CHECKS.add()
def _accounting_knows_the_run(trial: ProtocolTrial, seed: int) -> None:
    report = privacy_of_run(
        trial.settled(seed), trial.summaries(seed), num_clients=trial.population.num_clients
    )
    worst = max(past.question.local_epsilon for past in trial.run(seed))
    for unit in ("item", "user"):
        for trust in ("local", "central"):
            marked = [
                each
                for each in report.guarantees
                if each.best and (each.unit, each.trust, each.realised) == (unit, trust, False)
            ]
            what = f"best guarantees for one {unit} against {trust} readers before the run"
            expect_equal(len(marked), 1, f"the number of {what}")
            epsilon = marked[0].epsilon
            # What clients send as it is has an infinite one.
            if trust == "local" and not isinstance(epsilon, NotApplicable):
                expect(
                    epsilon >= worst,
                    f"the privacy report claims local epsilon {epsilon} for one {unit}, but a "
                    f"question has {worst} per contribution",
                )


@CHECKS.add()
def _one_summary_per_round(trial: ProtocolTrial, seed: int) -> None:
    for number, past in enumerate(trial.run(seed), start=1):
        summaries, question, aggregate = past.after.history, past.question, past.aggregate
        expect_equal(len(summaries), number, f"the number of summaries after {number} rounds")
        last = summaries[-1]
        expect_equal(
            (last.pass_index, last.layer, last.num_clients, last.num_reports),
            (question.pass_index, question.layer, aggregate.num_clients, aggregate.num_reports),
            f"(pass_index, layer, num_clients, num_reports) in the summary of round {number}",
        )


@CHECKS.add()
def _discoveries_are_words_that_the_protocol_can_find(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    found = protocol.discoveries(trial.last_state(seed))
    words = list(found.words)
    for field in dataclasses.fields(found):
        values = getattr(found, field.name)
        if values is None:
            continue
        expect_equal(len(values), len(words), f"the number of discoveries' {field.name}")
    expect(len(set(words)) == len(words), "a word is discovered twice")
    for word in words:
        expect(
            0 < length_of(word) <= protocol.longest_word,
            f"the word {word!r} has {length_of(word)} symbols, expected 1 to "
            f"{protocol.longest_word}",
        )
        foreign = set(protocol.symbols.foreign(word)) - {BREAK}
        expect(not foreign, f"the word {word!r} has a symbol that is not in the alphabet")


@CHECKS.add()
def _small_populations_are_refused(trial: ProtocolTrial, seed: int) -> None:
    protocol = trial.settled(seed)
    protocol.check_population(trial.population.num_clients)
    cohorts = [past.question.cohort for past in trial.run(seed)]
    needed = max(cohort.start + cohort.size for cohort in cohorts)
    expect(
        needed <= trial.population.num_clients,
        f"check_population took {trial.population.num_clients} clients, but cohorts go up to "
        f"position {needed}",
    )
    expect_refusal(
        f"a population of {needed - 1} clients, where cohorts go up to position {needed},",
        partial(protocol.check_population, needed - 1),
        naming="clients",
    )


@CHECKS.add(lambda trial: bool(trial.refused))
def _bad_settings_are_refused(trial: ProtocolTrial, seed: int) -> None:
    for name, value in trial.refused:
        protocol: Any = copy.deepcopy(trial.protocol)
        changed = partial(dataclasses.replace, protocol, **{name: value})
        expect_refusal(f"{name}={value!r}", changed, naming=name)
