"""Holds each round against the truth."""

from __future__ import annotations

from fedhh.clients.population import CountProgress, Population
from fedhh.experiments.run.round_record import RoundRecord, record_of
from fedhh.experiments.run.truth import Observed, Truth
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.question import Question
from fedhh.simulation.engine import Round


class Observer:
    """The outcome of the true words, round by round.

    Attributes:
        truth: Who holds which words.
        records: The outcome of the rounds' candidates; None where nobody asks.
        last_record: That of the last round; None, too, for one that is about no prefixes.
        validation: The validation round's broadcast; None before it, and without one.
    """

    def __init__(
        self,
        protocol: DiscoveryProtocol,
        population: Population,
        *,
        records: bool,
        progress: CountProgress,
    ) -> None:
        """Count the population; ``records``: whether the outcome of the candidates is kept."""
        self._protocol = protocol
        self.truth = Truth(population, protocol.symbols, protocol.longest_word, progress=progress)
        self._before = protocol.discoveries(protocol.initialize())
        self.records: list[RoundRecord] | None = [] if records else None
        self.last_record: RoundRecord | None = None
        self.validation: Question | None = None

    def observe(self, finished: Round) -> Observed:
        """Return the outcome of the truth in a round."""
        question, state = finished.question, finished.state
        discoveries = self._protocol.discoveries(state)
        if self._protocol.plan.planned(question.pass_index, question.layer).validates:
            self.validation = question
        if self.records is not None:
            before = self._before.words
            self.last_record = record_of(finished, before=before, after=discoveries)
            self.records += [] if self.last_record is None else [self.last_record]
        self._before = discoveries
        return self.truth.observe(question, state.kept, discoveries)
