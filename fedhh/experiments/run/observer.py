"""Holds rounds against the truth: at once, or in the end where clients are counted as they answer.

Clients that are drawn when asked would have to be drawn twice if their words were counted first. So
each round's broadcast waits until all clients are counted, in memory and next to the checkpoint.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from fedhh.clients.populations.population import CountProgress, Population
from fedhh.experiments.run.checkpoint import RoundRecords
from fedhh.experiments.run.layers import LayerRow
from fedhh.experiments.run.round_record import RoundRecord
from fedhh.experiments.run.truth import Observed, Truth
from fedhh.plans.base import PlannedRound
from fedhh.protocol import AnyProtocol, Discoveries, RunState
from fedhh.questions.answer import Counted
from fedhh.questions.question import AnyQuestion
from fedhh.questions.reports import VoteQuestion
from fedhh.server.local_discovery import CohortProtocol
from fedhh.simulation.checkpoint import load_checkpoint, save_checkpoint
from fedhh.simulation.engine import Round

_ROUNDS = "rounds"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Seen:
    """A round, as far as the truth is asked about it; see `Truth.observe`."""

    question: AnyQuestion
    kept: npt.NDArray[Any] | None
    discoveries: Discoveries


class Observer:
    """The outcome of the true words, round by round.

    Attributes:
        last_record: The outcome of the last round's candidates; None where nobody asks, or for a
            round that is about no prefixes.
        validation: The validation round's broadcast; None before it, and without one.
    """

    def __init__(
        self,
        protocol: AnyProtocol,
        population: Population,
        *,
        rows: list[LayerRow],
        folder: Path | None,
        progress: CountProgress,
        state: Any,
        round_records: RoundRecords | None,
    ) -> None:
        """Count the population, unless that can wait.

        What ``rows`` of before a resume still lack is filled in. ``folder``, the checkpoint's, and
        ``round_records``, which keeps the outcome of the candidates, are None for a run without
        them.
        """
        self._protocol = protocol
        self._population = population
        self._folder = None if folder is None else folder / _ROUNDS
        self._progress = progress
        self._seen: list[_Seen] = []
        self._counted: Counted | None = None
        self._round_records = round_records
        self.last_record: RoundRecord | None = None
        self.validation = self._stored_validation(round_records)
        self._before = protocol.discoveries(state)
        self._truth: Truth | None = None
        # A client that may answer again cannot be counted as it answers. What had been counted
        # before a resume is gone.
        waits = not (population.is_counted or protocol.plan.reuses_clients or rows)
        if not waits:
            self._truth = self._make_truth()
            # In the order of the rounds: what is found stays found.
            _fill(rows, self._stored(rows), self._truth)

    def observe(self, finished: Round[Any]) -> Observed:
        """Return the outcome of the truth in a round; NaN if that is known in the end only."""
        seen = self._seen_after(finished.question, finished.state)
        question = finished.question
        if self._planned(question).validates:
            self.validation = question
        self.last_record = None
        if self._round_records is not None:
            self.last_record = self._round_records.record_of(
                finished, before=self._before, after=seen.discoveries
            )
        self._before = seen.discoveries
        if self._truth is not None:
            return self._truth.observe(seen.question, seen.kept, seen.discoveries)
        self._seen.append(seen)
        part = finished.diagnostics.counted
        if part is not None:
            self._counted = part if self._counted is None else self._counted.merge(part)
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            save_checkpoint(self._file(len(self._seen)), finished.state, {})
        return Observed()

    def finish(self, rows: list[LayerRow]) -> Truth:
        if self._truth is None:
            self._truth = self._make_truth()
            _fill(rows, self._seen, self._truth)
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

    def _seen_after(self, question: AnyQuestion, state: RunState[Any]) -> _Seen:
        return _Seen(
            question=question, kept=state.kept, discoveries=self._protocol.discoveries(state)
        )

    def _stored(self, rows: Sequence[LayerRow]) -> Iterator[_Seen]:
        """Yield the rounds that wait since before a resume; questions follow from states."""
        state = self._protocol.initialize()
        for number in range(1, 1 + sum(map(_waits, rows))):
            question = self._protocol.next_question(state)
            state, _ = load_checkpoint(self._file(number), self._protocol.checkpoint_types)
            assert question is not None
            yield self._seen_after(question, state)

    def _planned(self, asked: AnyQuestion | RoundRecord) -> PlannedRound:
        return self._protocol.plan.planned(asked.pass_index, asked.layer)

    def _stored_validation(self, round_records: RoundRecords | None) -> VoteQuestion | None:
        """Return the validation round's broadcast where that was heard before a resume."""
        protocol = self._protocol
        if (
            round_records is None
            or not round_records.all
            or not isinstance(protocol, CohortProtocol)
        ):
            return None
        last = round_records.all[-1]
        planned = self._planned(last)
        if not planned.validates:
            return None
        return protocol.words_question(planned, last.finished, protocol.validation_oracle)

    def _file(self, number: int) -> Path:
        assert self._folder is not None
        return self._folder / f"{number}.npz"


def _waits(row: LayerRow) -> bool:
    return math.isnan(row.coverage)


def _fill(rows: list[LayerRow], rounds: Iterable[_Seen], truth: Truth) -> None:
    """Put the outcome of the truth into the rows that wait for it."""
    waiting = [i for i, row in enumerate(rows) if _waits(row)]
    for i, seen in zip(waiting, rounds, strict=True):
        observed = truth.observe(seen.question, seen.kept, seen.discoveries)
        rows[i] = replace(rows[i], coverage=observed.coverage, missed_mass=observed.missed_mass)
