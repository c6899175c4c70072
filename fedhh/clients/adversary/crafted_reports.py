"""Fake answers to questions that one local randomizer answers: any report of its report space.

Nothing of such a report can be checked but that it is one: local randomizers hide what they say.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from fedhh.clients.adversary.crafter import Crafter, Goal
from fedhh.clients.answers.base import BlockCounts
from fedhh.clients.answers.matching import Values
from fedhh.oracles import FrequencyOracle, make_oracle
from fedhh.oracles.base import Reports, Tally
from fedhh.oracles.crafted_reports import aggregate_in_parts
from fedhh.oracles.poisoning import (
    add_supporting_reports,
    opposing_reports,
    random_reports,
    supporting_reports,
)
from fedhh.questions.base import Messages, PrefixQuestion
from fedhh.questions.sets import HeldSetQuestion, PaddedSampleQuestion, SetSizeQuestion
from fedhh.questions.sketches import BlindPrefixQuestion
from fedhh.words.rows import match_rows

ReportMaker = Callable[[int], Reports]


def report_maker(
    oracle: FrequencyOracle, values: Values, goal: Goal, rng: np.random.Generator
) -> ReportMaker:
    """Return what makes reports for or against values."""
    make = supporting_reports if goal == "promote" else opposing_reports
    return partial(make, oracle, values, rng=rng)


class OracleCrafter(Crafter):
    """Makes up the reports of one oracle, B a client."""

    @property
    @abstractmethod
    def oracle(self) -> FrequencyOracle:
        """The question's oracle."""

    @abstractmethod
    def _values(self, targets: Sequence[int]) -> Values:
        """Return the values that targets have, in any order, perhaps several times."""

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        values = self._values(targets)
        if not len(values):
            return self.add_random_reports(num_clients, rng=rng, tally=tally)
        messages = self._send(report_maker(self.oracle, values, goal, rng), num_clients, tally)
        return self._counts(num_clients, messages=messages)

    def add_random_reports(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        messages = self._send(partial(random_reports, self.oracle, rng=rng), num_clients, tally)
        return self._counts(num_clients, holders=0, messages=messages)

    def add_random_values(
        self, num_clients: int, *, rng: np.random.Generator, tally: Tally
    ) -> BlockCounts:
        values = rng.integers(self.oracle.domain_size, size=num_clients * self._reports_per_client)
        messages = self._randomize(values, rng, tally)
        return self._counts(num_clients, holders=0, messages=messages)

    def _send(self, make: ReportMaker, num_clients: int, tally: Tally) -> Messages | None:
        """Add reports of so many clients to the tally, or return them."""
        sums = np.zeros(self.oracle.aggregate_size, dtype=np.int64)
        aggregate_in_parts(self.oracle, make, num_clients * self._reports_per_client, sums)
        self._add(sums, tally)
        return None

    def _randomize(self, values: Values, rng: np.random.Generator, tally: Tally) -> Messages | None:
        """Add honest reports of values to the tally, or return them."""
        self._add(self.oracle.aggregate(values=values, rng=rng), tally)
        return None

    def _add(self, aggregate: Tally, tally: Tally) -> None:
        """Add sums of reports to the tally."""
        tally += aggregate


class PrefixCrafter(OracleCrafter):
    """Supports, or opposes, the candidates that the targets begin with."""

    _question: PrefixQuestion

    @cached_property
    def oracle(self) -> FrequencyOracle:
        return make_oracle(self._question.oracle, self._question.domain_size)

    def _values(self, targets: Sequence[int]) -> Values:
        return live_values(self._word_values, targets)

    @cached_property
    def _word_values(self) -> Values:
        """Of all targets: groups ask for theirs, one after the other."""
        return self._words.prefix_values(self._question)

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        values = self._values(targets)
        if goal == "demote" or not len(values) or self._question.client_votes is not None:
            return super().add(targets, num_clients, goal=goal, rng=rng, tally=tally)
        sums = np.zeros(self.oracle.aggregate_size, dtype=np.int64)
        number = num_clients * self._reports_per_client
        add_supporting_reports(self.oracle, values, number, rng=rng, out=sums)
        self._add(sums, tally)
        return self._counts(num_clients)

    def _send(self, make: ReportMaker, num_clients: int, tally: Tally) -> Messages | None:
        votes = self._question.client_votes
        if votes is None:
            return super()._send(make, num_clients, tally)
        # However many of its reports say the same, they are one vote.
        votes.add_reports(make(num_clients * self._reports_per_client), out=tally)
        return None

    def _randomize(self, values: Values, rng: np.random.Generator, tally: Tally) -> Messages | None:
        votes = self._question.client_votes
        if votes is None:
            return super()._randomize(values, rng, tally)
        votes.add_reports(votes.oracle.privatize(values, rng=rng), out=tally)
        return None

    def _add(self, aggregate: Tally, tally: Tally) -> None:
        is_support = self.oracle.aggregate_form == "values"
        tally += aggregate if is_support else self.oracle.support(aggregate)


class BlindPrefixCrafter(OracleCrafter):
    """Supports, or opposes, the prefixes of the targets."""

    _question: BlindPrefixQuestion

    @property
    def oracle(self) -> FrequencyOracle:
        return self._question.prefixes

    def _values(self, targets: Sequence[int]) -> Values:
        question, lexicon = self._question, self._words.lexicon
        codes = lexicon.encoded(question.alphabet, question.prefix_length)
        usable = lexicon.reachable(question.alphabet, question.longest_word)
        return live_values(np.where(usable, question.names.keys(codes), -1), targets)

    @property
    def _adds_up(self) -> bool:
        return self.oracle.aggregate_form == "sketch"

    def _send(self, make: ReportMaker, num_clients: int, tally: Tally) -> Messages | None:
        if self._adds_up:
            return super()._send(make, num_clients, tally)
        return make(num_clients * self._reports_per_client).astype(np.int64)

    def _randomize(self, values: Values, rng: np.random.Generator, tally: Tally) -> Messages | None:
        if self._adds_up:
            return super()._randomize(values, rng, tally)
        return self.oracle.privatize(values, rng=rng).astype(np.int64)


class HeldSetCrafter(OracleCrafter):
    """What questions about held sets share: one report of each client."""

    _question: HeldSetQuestion

    @property
    def oracle(self) -> FrequencyOracle:
        return self._question.randomizer

    @property
    def _reports_per_client(self) -> int:
        return 1

    def _held(self, targets: Sequence[int]) -> Values:
        """Return the candidates all of whose words are targets."""
        question = self._question
        codes = self._words.lexicon.encoded(question.alphabet, question.words.shape[1])
        places = match_rows(codes[np.asarray(targets, dtype=np.int64)], question.words)
        is_target = np.zeros(len(question.words) + 1, dtype=np.bool_)
        is_target[places[places >= 0]] = True
        # The last entry stands for no word, which fills up itemsets.
        is_target[-1] = True
        return np.flatnonzero(is_target[question.itemsets].all(axis=1))


class PaddedSampleCrafter(HeldSetCrafter):
    """Supports, or opposes, the candidates that consist of targets."""

    _question: PaddedSampleQuestion

    def _values(self, targets: Sequence[int]) -> Values:
        return self._held(targets)


class SetSizeCrafter(HeldSetCrafter):
    """Supports the size of a set that has the targets, or of an empty one, to demote them.

    The size is of no target: it lets the server choose how far sets are padded.
    """

    _question: SetSizeQuestion

    def add(
        self,
        targets: Sequence[int],
        num_clients: int,
        *,
        goal: Goal,
        rng: np.random.Generator,
        tally: Tally,
    ) -> BlockCounts:
        held = () if goal == "demote" else targets
        return super().add(held, num_clients, goal="promote", rng=rng, tally=tally)

    def _values(self, targets: Sequence[int]) -> Values:
        size = min(len(self._held(targets)), self._question.largest_size)
        return np.array([size], dtype=np.int64)


def live_values(values: Values, targets: Sequence[int]) -> Values:
    """Return the values of those targets that have one; the others' are negative."""
    own = values[np.asarray(targets, dtype=np.int64)]
    return np.asarray(own[own >= 0])
