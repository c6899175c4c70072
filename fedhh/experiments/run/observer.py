"""Holds rounds against the truth: at once, or in the end where clients are counted as they answer.

Clients that are drawn when asked would have to be drawn twice if their words were counted first. So
each round's broadcast waits until all clients are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy.typing as npt

from fedhh.clients.populations.population import CountProgress, Population
from fedhh.experiments.run.layers import LayerRow
from fedhh.experiments.run.round_record import RoundRecord, record_of
from fedhh.experiments.run.truth import Observed, Truth
from fedhh.protocol import AnyProtocol, Discoveries
from fedhh.questions.answer import Counted
from fedhh.questions.question import AnyQuestion
from fedhh.simulation.engine import Round


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """A round, as far as the truth is asked about it; see `Truth.observe`."""

    question: AnyQuestion
    kept: npt.NDArray[Any] | None
    discoveries: Discoveries


class Observer:
    """The outcome of the true words, round by round.

    Attributes:
        records: The outcome of the rounds' candidates; None where nobody asks.
        last_record: That of the last round; None, too, for one that is about no prefixes.
        validation: The validation round's broadcast; None before it, and without one.
    """

    def __init__(
        self,
        protocol: AnyProtocol,
        population: Population,
        *,
        resumes: bool,
        records: bool,
        progress: CountProgress,
    ) -> None:
        """Count the population, unless that can wait.

        ``resumes``: some of the clients answered before; ``records``: whether the outcome of the
        candidates is kept.
        """
        self._protocol, self._population, self._progress = protocol, population, progress
        self._waiting: list[_Seen] = []
        self._counted: Counted | None = None
        self._before = protocol.discoveries(protocol.initialize())
        self.records: list[RoundRecord] | None = [] if records else None
        self.last_record: RoundRecord | None = None
        self.validation: AnyQuestion | None = None
        # A client that may answer again, or answered before, is not counted as it answers.
        waits = not (population.is_counted or protocol.plan.reuses_clients or resumes)
        self._truth = None if waits else self._make_truth()

    def observe(self, finished: Round[Any]) -> Observed:
        """Return the outcome of the truth in a round; NaN if that is known in the end only."""
        question, state = finished.question, finished.state
        seen = _Seen(
            question=question, kept=state.kept, discoveries=self._protocol.discoveries(state)
        )
        if self._protocol.plan.planned(question.pass_index, question.layer).validates:
            self.validation = question
        if self.records is not None:
            before, after = self._before.words, seen.discoveries
            self.last_record = record_of(finished, before=before, after=after)
            self.records += [] if self.last_record is None else [self.last_record]
        self._before = seen.discoveries
        if self._truth is not None:
            return self._truth.observe(seen.question, seen.kept, seen.discoveries)
        self._waiting.append(seen)
        part = finished.diagnostics.counted
        if part is not None:
            self._counted = part if self._counted is None else self._counted.merge(part)
        return Observed()

    def finish(self, rows: list[LayerRow]) -> Truth:
        """Return the truth, and put its outcome into the rows of rounds that waited for it."""
        if self._truth is None:
            self._truth = self._make_truth()
            for place, seen in enumerate(self._waiting):
                observed = self._truth.observe(seen.question, seen.kept, seen.discoveries)
                rows[place] = replace(
                    rows[place], coverage=observed.coverage, missed_mass=observed.missed_mass
                )
        return self._truth

    def _make_truth(self) -> Truth:
        protocol = self._protocol
        return Truth(
            self._population,
            protocol.symbols,
            protocol.longest_word,
            progress=self._progress,
            counted=self._counted,
        )
