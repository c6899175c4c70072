"""Contributions reported through one frequency oracle each."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from fedhh.oracles import FrequencyOracle, OracleSpec, PureOracle, make_oracle, make_pure_oracle
from fedhh.oracles.client_votes import ClientVotes, VotesPerClient
from fedhh.questions.channel import Channel, RngOf
from fedhh.questions.choice import Attack
from fedhh.questions.clients import Coins, Held, Said, Sent, Values
from fedhh.questions.names import ItemSets, TrieNames
from fedhh.questions.noise import Noise
from fedhh.questions.question import SEED_BITS, Aggregate, Question, Tally


@dataclass(frozen=True, kw_only=True, eq=False)
class Reports(Channel):
    """One report of a frequency oracle for each contribution; the tally is its aggregate.

    Attributes:
        oracle: The local randomizer.
        num_values: Values of its domain.
        nothing: Value of a contribution with nothing to say; None where there is no such value.
        lists_values: Whether there are so few values that each can be counted. If not, reports
            reach the server as they are, unless they add up to a sketch; and a contribution with
            nothing to say has a uniformly random value, which crowds no cell: any input is as
            private as any other.
        epsilon: Local privacy of a report, if it is not the oracle's epsilon.
        votes_per_client: Whether each of a client's reports counts by itself ("all"), or all of
            them together, so that a value has at most "one" vote of a client.
    """

    oracle: OracleSpec
    num_values: int
    nothing: int | None = None
    lists_values: bool = True
    epsilon: float | None = None
    votes_per_client: VotesPerClient = "all"

    @classmethod
    def on(
        cls,
        names: TrieNames,
        oracle: OracleSpec,
        *,
        votes_per_client: VotesPerClient = "all",
        fewest: int = 1,
    ) -> Reports:
        """Return reports about the candidates of a trie, of which the last is the dummy.

        Where there are fewer candidates than ``fewest``, fillers stand behind the dummy: values
        that no client can say, and that need no name.
        """
        return cls(
            oracle=oracle,
            num_values=max(names.num_candidates, fewest) + 1,
            nothing=names.nothing,
            votes_per_client=votes_per_client,
        )

    @classmethod
    def padded(cls, names: ItemSets, oracle: OracleSpec, *, padded_size: int) -> Reports:
        """Return the reports of one member of a client's set that is padded to L.

        What is drawn with chance at most 1/L is hidden by that, too (`choice.PaddedMember`).
        Generalized randomized response may therefore be run with ``ln(L (e**epsilon - 1) + 1)``:
        any report has probability at least q, that of a value the client does not hold, and at most
        (p + (L - 1) q) / L, and their ratio is e**epsilon. That needs L dummies: a single one would
        be drawn with more than chance 1/L. Other randomizers say something about many values at
        once, and are run with epsilon.

        Args:
            names: What a client may hold; L dummies follow.
            oracle: The randomizer, with the epsilon of a report, and so of the client's whole set.
            padded_size: L.
        """
        epsilon = oracle.epsilon
        run_with = amplified(epsilon, padded_size) if oracle.name == "grr" else epsilon
        return cls(
            oracle=replace(oracle, epsilon=run_with),
            num_values=names.num_candidates + padded_size,
            epsilon=epsilon,
        )

    @cached_property
    def randomizer(self) -> FrequencyOracle:
        """The oracle over its domain."""
        return make_oracle(self.oracle, self.num_values)

    @cached_property
    def pure(self) -> PureOracle:
        """The oracle, if it has one p and one q; InputError if not."""
        return make_pure_oracle(self.oracle, self.num_values)

    def client_votes(self, max_items: int) -> ClientVotes | None:
        """Return how a client's reports are counted together; None where each counts by itself."""
        if self.votes_per_client == "all":
            return None
        return ClientVotes(oracle=self.pure, max_items=max_items)

    def noise_of(self, question: Question, aggregate: Aggregate) -> Noise:
        """Return what chance does to a value's support, in a sketch values that share its cells."""
        votes = self.client_votes(question.max_items)
        if votes is not None:
            return Noise(oracle=votes, num_reports=aggregate.num_clients)
        return Noise.of_aggregate(self.pure, aggregate.num_reports, aggregate.tally)

    @property
    def adds_up(self) -> bool:
        """Whether the server gets a sum, and not the reports themselves."""
        return self._is_sketch or self.lists_values

    @property
    def _is_sketch(self) -> bool:
        return self.randomizer.is_sketch

    @property
    def tally_size(self) -> int:
        if self.votes_per_client == "one":
            return self.num_values
        return self.randomizer.aggregate_size if self.adds_up else 0

    @property
    def local_epsilon(self) -> float:
        return self.oracle.epsilon if self.epsilon is None else self.epsilon

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        return (self.oracle,)

    @property
    def domain_size(self) -> int:
        return self.num_values

    @property
    def download_bits(self) -> float:
        if self._is_sketch:
            return SEED_BITS
        # Values behind the dummy are told by their number.
        filled = self.nothing is not None and self.nothing + 1 < self.num_values
        return math.log2(self.num_values) if filled else 0.0

    def report_bits(self, question: Question) -> float:
        return self.randomizer.report_bits

    def add(self, question: Question, said: Said, table: Any, coins: Coins, tally: Tally) -> Sent:
        rng = coins.randomizer
        votes = self.client_votes(question.max_items)
        if votes is not None:
            nothing = -1 if self.nothing is None else self.nothing
            values = np.where(said.values < 0, nothing, said.values)
            votes.add(values, rng=rng, out=tally)
            return Sent.of(said, values.size)
        values = self._filled(said.contributions(question.pad), rng)
        if not self.adds_up:
            reports = self.randomizer.privatize(values, rng=rng)
            return Sent.of(said, len(values), np.asarray(reports, dtype=np.int64))
        tell(question, self.randomizer, values, rng=rng, out=tally)
        return Sent.of(said, len(values))

    def _filled(self, values: Values, rng: np.random.Generator) -> Values:
        """Return the values with one for each contribution that says nothing."""
        if not self.lists_values:
            return or_random(values, self.num_values, rng)
        return values if self.nothing is None else np.where(values < 0, self.nothing, values)

    def support(
        self, question: Question, aggregate: Aggregate, values: Values | None = None
    ) -> Tally:
        """Return how many reports support each value.

        Raises:
            ValueError: The reports themselves are needed, and are not there.
        """
        if self.votes_per_client == "one":
            return super().support(question, aggregate, values)
        if self.adds_up:
            return self.randomizer.support(aggregate.tally, values)
        messages = aggregate.messages
        if messages is None or len(messages) != aggregate.num_reports:
            raise ValueError(
                f"Expected {aggregate.num_reports} messages for pass {question.pass_index + 1}, "
                f"layer {question.layer}, got {0 if messages is None else len(messages)}."
            )
        return self.randomizer.support(reports=messages, candidates=values)

    @property
    def _counts_values(self) -> bool:
        """Whether noise-free counts are how often each value is said."""
        from fedhh.oracles.families import SampledAggregates

        oracle = self.randomizer
        by_value = isinstance(oracle, SampledAggregates) and oracle.counts_values
        return self.lists_values and (by_value or self._is_sketch)

    @property
    def counts_size(self) -> int:
        return self.num_values if self._counts_values else self.tally_size

    @property
    def can_sample(self) -> bool:
        from fedhh.oracles.families import SampledAggregates
        from fedhh.oracles.hashed import SketchOracle

        # Of what a client's reports support together, no joint distribution is known.
        if self.votes_per_client == "one" or not self.adds_up:
            return False
        oracle = self.randomizer
        draws_sketch = isinstance(oracle, SketchOracle) and self._counts_values
        return draws_sketch or isinstance(oracle, SampledAggregates)

    @property
    def can_scale(self) -> bool:
        return self.can_sample and self._counts_values and self.nothing is not None

    def scale(
        self, question: Question, counts: Tally, drawn: int, num_clients: int
    ) -> tuple[Tally, int]:
        assert self.nothing is not None
        scaled = np.rint(counts * (num_clients / drawn)).astype(np.int64)
        if question.pad:
            # Whoever answers sends exactly B reports, so the dummies make up for rounding.
            real = int(scaled.sum() - scaled[self.nothing])
            scaled[self.nothing] = max(num_clients * question.max_items - real, 0)
        return scaled, int(scaled[self.nothing])

    @property
    def report_draws(self) -> int:
        return self.randomizer.report_draws

    def count(self, question: Question, held: Held, coins: Coins, tally: Tally) -> Sent | None:
        if not self._counts_values:
            return None
        sent: Sent = question.choice.count(question, held, coins, tally)
        if self.nothing is None or not question.pad:
            return sent
        reports = sent.num_clients * question.max_items
        dummies = reports - sent.num_reports
        tally[self.nothing] += dummies
        return replace(sent, num_reports=reports, num_dummies=sent.num_dummies + dummies)

    def sample(self, counts: Tally, rng_of: RngOf) -> Tally:
        from fedhh.oracles.families import SampledAggregates
        from fedhh.oracles.hashed import SketchOracle

        oracle = self.randomizer
        if isinstance(oracle, SketchOracle) and self._counts_values:
            return oracle.sample_sketch(counts, rng=rng_of(0))
        assert isinstance(oracle, SampledAggregates)
        return oracle.sample_aggregate(counts, rng=rng_of(0))

    def craft(self, attack: Attack) -> Sent:
        """Add the reports that support the words' values, or oppose them, more than any others.

        Where none of the words has a value in the question, reports are random.
        """
        values, sign = attack.aim
        oracle, count, rng = self.randomizer, attack.count, attack.rng
        votes = self.client_votes(attack.question.max_items)
        if votes is None and self.adds_up:
            from fedhh.oracles.attack import add_crafted

            add_crafted(oracle, values, sign=sign, count=count, rng=rng, out=attack.tally)
            return attack.sent(holds=sign != 0)
        reports = oracle.craft(values, sign=sign, count=count, rng=rng)
        if votes is None:
            return attack.sent(holds=sign != 0, messages=reports.astype(np.int64))
        # However many of its reports say the same, they are one vote.
        votes.add_reports(reports, out=attack.tally)
        return attack.sent(holds=sign != 0)


def tell(
    question: Question, oracle: Any, values: Values, *, rng: np.random.Generator, out: Tally
) -> None:
    """Add reports of some values to an aggregate, or their noise-free counts."""
    if question.counts_only:
        oracle.noise_free_counts(values, rng=rng, out=out)
    else:
        oracle.aggregate(values=values, rng=rng, out=out)


def or_random(values: Values, num_values: int, rng: np.random.Generator) -> Values:
    """Return the values, with a uniformly random one for each that says nothing."""
    random = rng.integers(num_values, size=len(values))
    return np.where(values >= 0, values, random)


def amplified(epsilon: float, padded_size: int) -> float:
    """Return ``ln(L (e**epsilon - 1) + 1)``: Wang, Li, Jha (2018).

    >>> round(amplified(1.0, 1), 12), round(amplified(1.0, 4), 3)
    (1.0, 2.063)
    """
    left = math.exp(-epsilon)
    return epsilon + math.log(padded_size * (1 - left) + left)
