"""How faithfully a run simulates its clients: by their reports, or a whole tally at once.

Aggregate-level sampling draws a layer's tally from noise-free counts of what clients would report
(a channel's `sample`). Clients choose their contributions as ever, but nobody randomizes them. The
distribution of the tally, given the contributions, is that of reports, dependence between values
included. This is a simulator's way, never a device's, and what a server gets of it is the tally.

If more clients are asked than ``drawn_clients``, only so many are drawn, and their counts are
scaled up; that is approximate. A count c of N clients then has a standard error of at most
sqrt(c (N / m - 1)) for m drawn ones, since a client contributes a value at most once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.answer import Answer
from fedhh.questions.channel import Channel
from fedhh.questions.question import Aggregate, Question
from fedhh.random import Stream, generator
from fedhh.simulation.executor import Broadcast, Executor, Progress
from fedhh.simulation.roster import RoundRoster
from fedhh.validation import InputError, require_at_least, require_choice

AUTO = "auto"
EXACT_TALLY = "exact-tally"
PER_REPORT = "per-report"

MIXED = "mixed"
"""What a result says if some of its layers' tallies were drawn at once, and others by report."""

_DRAWS_PER_NUMBER = 256
"""Random numbers of reports that take as long as one number of a tally that is drawn at once."""


def is_less_work(num_reports: int, *, report_draws: int, tally_size: int) -> bool:
    """Return whether a tally is drawn at once sooner than its reports are made.

    It follows from sizes, never from a clock: the choice that rests on it is part of a result.

    Args:
        num_reports: Reports behind the tally.
        report_draws: Random numbers that one of them takes.
        tally_size: Numbers of the tally.
    """
    return num_reports * report_draws > _DRAWS_PER_NUMBER * tally_size


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """A run's fidelity.

    Attributes:
        name: "per-report": every client randomizes every contribution. "exact-tally": tallies are
            drawn at once, with the same distribution. "auto": each layer's in the cheaper way, by
            sizes, so that the choice is the same for any number of workers.
        drawn_clients: The most clients of a layer that are drawn; all if None.
    """

    name: str = AUTO
    drawn_clients: int | None = None

    def __post_init__(self) -> None:
        require_choice((AUTO, EXACT_TALLY, PER_REPORT), fidelity=self.name)
        if self.drawn_clients is not None:
            require_at_least(1, drawn_clients=self.drawn_clients)

    def check(self, protocol: DiscoveryProtocol) -> None:
        """Raise InputError if a settled protocol's clients cannot be simulated in this way."""
        question = protocol.next_question(protocol.initialize())
        if question is None:
            return
        try:
            self.samples(question, question.cohort.size)
        except InputError as error:
            raise InputError(f"{protocol.name}: {error}") from None

    def samples(self, question: Question, num_clients: int) -> bool:
        """Return whether the tally of a question to so many clients is drawn at once.

        Raises:
            InputError: It has to be, and cannot.
        """
        channel: Channel = question.channel
        always, scaled = self.name == EXACT_TALLY, self._is_scaled(num_clients)
        if self.name == PER_REPORT:
            if scaled:
                raise InputError(
                    f"Expected simulation.drawn_clients = 'all' with fidelity {PER_REPORT!r}, got "
                    f"{self.drawn_clients:,} of {num_clients:,} clients per layer: clients that "
                    f"are not drawn make no reports. Set simulation.fidelity = {EXACT_TALLY!r}."
                )
            return False
        if scaled and not channel.can_scale:
            raise InputError(
                f"Expected simulation.drawn_clients = 'all' for {type(channel).__name__}, got "
                f"fewer than its cohort of {num_clients:,}: its counts cannot be scaled up."
            )
        if always and not channel.can_sample:
            raise InputError(
                f"Expected simulation.fidelity 'auto' or 'per-report' for {type(channel).__name__} "
                "with its oracle, got 'exact-tally': the joint distribution of its tally is not "
                "known, so that it cannot be sampled."
            )
        if always or scaled:
            return True
        return channel.can_sample and is_less_work(
            num_clients * question.max_items,
            report_draws=channel.report_draws,
            tally_size=channel.tally_size,
        )

    def asked(
        self,
        question: Question,
        who: RoundRoster,
        executor: Executor,
        seed: int,
        progress: Progress | None = None,
    ) -> Answer:
        """Return what clients say to a question: their reports' sum, or a tally drawn at once.

        Args:
            question: The question.
            who: Who answers it.
            executor: The way to them.
            seed: The run's seed.
            progress: Called with numbers of clients of the round, whether they are drawn or not.
        """
        size, is_sampled = who.cohort.size, self.samples(question, who.cohort.size)
        broadcast = Broadcast(question=question, who=who)
        if is_sampled:
            counts = replace(question, counts_only=True)
            broadcast = Broadcast(question=counts, who=who.first(self.drawn_clients))
        if progress is not None:
            progress = _of_all(question.cohort.size, broadcast.cohort.size, progress)
        answer = executor.answer(broadcast, progress)
        if not is_sampled:
            return answer
        if self._is_scaled(size):
            answer = self._scaled(answer, question, who.num_answers)

        def rng_of(part: int) -> np.random.Generator:
            path = (question.pass_index, question.layer, part)
            return generator(seed, Stream.TALLY, *path)

        # In one place: that takes a second where all reports take a minute of all workers.
        channel: Channel = question.channel
        tally = channel.sample(answer.aggregate.tally, rng_of)
        return Answer(
            aggregate=replace(answer.aggregate, tally=tally),
            diagnostics=replace(answer.diagnostics, is_sampled=True),
        )

    def facts(self, cohorts: Sequence[int], chosen: Sequence[str]) -> dict[str, Any]:
        """Return what a result states."""
        kinds = set(chosen)
        name = MIXED if len(kinds) > 1 else next(iter(kinds), self.name)
        facts: dict[str, Any] = {"fidelity": name}
        if EXACT_TALLY in kinds:
            facts["layers_without_reports"] = list(chosen).count(EXACT_TALLY)
        largest = max(cohorts, default=0)
        if self.drawn_clients is not None and self.drawn_clients < largest:
            facts["clients_drawn_per_layer"] = self.drawn_clients
            # Of a true count c of a layer, from drawing only some of its clients.
            facts["count_std_error_per_sqrt_count"] = (largest / self.drawn_clients - 1) ** 0.5
        return facts

    def _is_scaled(self, num_clients: int) -> bool:
        return self.drawn_clients is not None and self.drawn_clients < num_clients

    def _scaled(self, answer: Answer, question: Question, num_clients: int) -> Answer:
        """Return the noise-free counts of so many clients, estimated from those of some."""
        drawn = answer.aggregate
        if not drawn.num_clients:
            raise InputError(
                f"Expected simulation.drawn_clients above {self.drawn_clients:,}, got "
                f"{self.drawn_clients:,}: none of the clients that were drawn was there to answer."
            )
        channel: Channel = question.channel
        counts, num_dummies = channel.scale(question, drawn.tally, drawn.num_clients, num_clients)
        with_items = answer.diagnostics.num_clients_with_items
        return Answer(
            aggregate=Aggregate(
                tally=counts, num_reports=int(counts.sum()), num_clients=num_clients
            ),
            diagnostics=replace(
                answer.diagnostics,
                num_dummies=num_dummies,
                num_clients_with_items=round(with_items * num_clients / drawn.num_clients),
            ),
        )


BY_REPORT = Fidelity(name=PER_REPORT)


def _of_all(asked: int, drawn: int, progress: Progress) -> Progress:
    """Return what hears of clients that are asked whenever some of those are that are drawn."""
    done = 0

    def tell(num_clients: int) -> None:
        nonlocal done
        before, done = done, done + num_clients
        progress(done * asked // drawn - before * asked // drawn)

    return tell
