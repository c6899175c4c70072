"""Aggregate-level sampling with the exact joint distribution: the way to cohorts of any size.

Clients choose their contributions as ever, but nobody randomizes them: workers bring noise-free
counts of what clients would report, and the whole tally is drawn from these (`Channel.sample`). The
distribution of the tally, given the contributions, is that of reports, dependence between values
included. This is a simulator's way, never a device's; so it lives on the clients' side of the trust
boundary, and what leaves it is the tally.

Of a cohort whose devices are not all there, the counts are of those that are.

If a cohort is larger than ``drawn_clients``, only so many clients are asked, and their counts are
scaled up; that is approximate. A count c of N clients then has a standard error of at most
sqrt(c (N / m - 1)) for m drawn ones, since a client contributes a value at most once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

import numpy as np

from fedhh.questions.answer import Answer
from fedhh.questions.channel import Channel
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import Aggregate, AnyQuestion, Tally
from fedhh.questions.reports import VoteQuestion
from fedhh.random import Stream, generator
from fedhh.simulation.executor import Executor, Progress
from fedhh.validation import InputError, require_at_least


@dataclass(frozen=True, kw_only=True)
class ScaledProgress:
    """Reports clients of the whole cohort, as fewer of them answer.

    Attributes:
        listener: Hears it.
        scale: Clients of the cohort for each that answers.
        carried: Clients reported so far, one number that is changed in place.
    """

    listener: Progress
    scale: float
    carried: list[float] = field(default_factory=lambda: [0.0])

    def __call__(self, num_clients: int) -> None:
        before, after = self.carried[0], self.carried[0] + num_clients * self.scale
        self.carried[0] = after
        self.listener(round(after) - round(before))


class ExactTallyExecutor(Executor):
    """Samples tallies from noise-free counts of another executor, where it can and it pays."""

    def __init__(
        self,
        executor: Executor,
        *,
        seed: int,
        always: bool = False,
        drawn_clients: int | None = None,
    ) -> None:
        """Ask clients through this executor.

        Args:
            executor: The way to the clients; closed with this one.
            seed: The run's seed.
            always: Sample every tally; otherwise those alone where that is cheaper, by
                sizes, so that the choice is the same for any number of workers.
            drawn_clients: Most clients of a cohort that are drawn; all if None.
        """
        if drawn_clients is not None:
            require_at_least(1, drawn_clients=drawn_clients)
        self._executor = executor
        self._seed = seed
        self._always = always
        self._drawn_clients = drawn_clients

    def answer(self, question: AnyQuestion, progress: Progress | None = None) -> Iterator[Answer]:
        """Yield answers for the whole cohort: one, if its tally is sampled.

        Raises:
            InputError: The question has to be answered without reports, and cannot be.
        """
        if self._is_sampled(question):
            yield self._sample(question, progress)
        else:
            yield from self._executor.answer(question, progress)

    def _is_sampled(self, question: AnyQuestion) -> bool:
        scaled = self._drawn_clients is not None and self._drawn_clients < question.cohort.size
        require_sampling(question, always=self._always, scaled=scaled)
        if self._always or scaled:
            return True
        channel: Channel = question.channel
        num_reports = question.cohort.size * question.max_items
        return channel.can_sample and channel.nanoseconds_saved(num_reports) > 0

    def _sample(self, question: AnyQuestion, progress: Progress | None) -> Answer:
        cohort = question.cohort
        drawn = replace(cohort, size=min(cohort.size, self._drawn_clients or cohort.size))
        scale = cohort.size / drawn.size
        if progress is not None and scale > 1:
            progress = ScaledProgress(listener=progress, scale=scale)
        asked = replace(question, cohort=drawn, counts_only=True)
        answer = reduce(Answer.merge, self._executor.answer(asked, progress))
        diagnostics = replace(answer.diagnostics, is_sampled=True)
        counts, num_reports = answer.aggregate.tally, answer.aggregate.num_reports
        num_clients = answer.aggregate.num_clients
        if drawn.size < cohort.size:
            present, num_clients = num_clients, _answers(cohort)
            if not present:
                raise InputError(
                    f"Expected simulation.drawn_clients above {drawn.size:,}, got "
                    f"{drawn.size:,}: none of the clients that were drawn was there to answer."
                )
            scale = num_clients / present
            counts, num_reports = _scaled(counts, question, num_clients, scale)
            diagnostics = replace(
                diagnostics,
                num_dummies=int(counts[question.channel.nothing]),
                num_clients_with_items=round(diagnostics.num_clients_with_items * scale),
            )

        def rng_of(part: int) -> np.random.Generator:
            path = (question.pass_index, question.layer, part)
            return generator(self._seed, Stream.TALLY, *path)

        # In one place: that takes a second where all reports take a minute of all workers.
        aggregate = Aggregate(
            tally=question.channel.sample(counts, rng_of),
            num_reports=num_reports,
            num_clients=num_clients,
        )
        return Answer(aggregate=aggregate, diagnostics=diagnostics)

    def close(self) -> None:
        self._executor.close()


def require_sampling(question: AnyQuestion, *, always: bool, scaled: bool) -> None:
    """Raise InputError if a question is to be answered without reports, and cannot be.

    Args:
        question: A question.
        always: Whether every tally is to be sampled.
        scaled: Whether fewer clients are to be drawn than the cohort has.
    """
    if scaled and not question.channel.can_scale:
        raise InputError(
            f"Expected simulation.drawn_clients = 'all' for {_kind(question)}, got fewer "
            f"than its cohort of {question.cohort.size:,}: its counts cannot be scaled up."
        )
    if always and not question.channel.can_sample:
        raise InputError(
            f"Expected simulation.fidelity 'auto' or 'per-report' for {_kind(question)} "
            "with its oracle, got 'exact-tally': the joint distribution of its tally is not known, "
            "so that it cannot be sampled."
        )


def _kind(question: AnyQuestion) -> str:
    """Return what a user calls the question's channel."""
    return type(question.channel).__name__


def _answers(cohort: Cohort) -> int:
    """Return how many of a cohort's clients answer."""
    return cohort.size if cohort.presence is None else cohort.presence.answers


def _scaled(
    drawn: Tally, question: VoteQuestion, num_clients: int, scale: float
) -> tuple[Tally, int]:
    counts, nothing = np.rint(drawn * scale).astype(np.int64), question.names.nothing
    if not question.pad:
        return counts, int(counts.sum())
    # Every client that answers sends exactly B reports, so the dummies make up for rounding.
    num_reports = num_clients * question.max_items
    real = int(counts.sum() - counts[nothing])
    counts[nothing] = max(num_reports - real, 0)
    return counts, int(counts.sum())
