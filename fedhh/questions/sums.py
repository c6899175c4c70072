"""Plain contributions of which nobody sees less than a sum with integer noise."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhh.questions.channel import Channel
from fedhh.questions.choice import Attack
from fedhh.questions.clients import Coins, Known, Said, Sent, Values
from fedhh.questions.names import TrieNames, UploadNames
from fedhh.questions.noise import SumNoise
from fedhh.questions.noise_shares import WRAP_CHANCE, NoiseShares
from fedhh.questions.question import Aggregate, Question, Tally
from fedhh.random import Stream


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyVotes(Channel):
    """The number of votes of each candidate, to which noise has been added.

    Nobody sees less than the noisy sum over the cohort. A client with fewer than B candidates adds
    zeros, which nobody can tell.

    Attributes:
        num_candidates: What is voted on.
        noise: The noise of each candidate's votes.
    """

    num_candidates: int
    noise: NoiseShares

    @property
    def tally_size(self) -> int:
        return self.num_candidates

    @property
    def domain_size(self) -> int:
        return self.num_candidates + 1

    @abstractmethod
    def part(self, num_clients: int, cohort: int) -> float:
        """Return which part of the noise is in the sum over so many clients of a cohort."""

    def noise_of(self, question: Question, aggregate: Aggregate) -> SumNoise:
        part = self.part(aggregate.num_clients, question.cohort.size)
        return SumNoise(noise=self.noise, part=part)


@dataclass(frozen=True, kw_only=True, eq=False)
class SecureVotes(NoisyVotes):
    """A sum modulo M of the clients' vectors, each with a share of the noise in it.

    A share is one of as many as the cohort has clients. Of a client that drops out, vote and share
    are missing.

    Attributes:
        modulus: M.
        dropout: Probability that a client drops out after it agreed to answer.
    """

    modulus: int
    dropout: float = 0.0

    def part(self, num_clients: int, cohort: int) -> float:
        """Return the part of the shares that so many clients bring."""
        return num_clients / cohort

    def support(
        self, question: Question, aggregate: Aggregate, values: Values | None = None
    ) -> Tally:
        """Return the sums modulo M, as the representatives nearest to 0."""
        half = self.modulus // 2
        sums = super().support(question, aggregate, values)
        return np.asarray((sums + half) % self.modulus - half, dtype=np.int64)

    def report_bits(self, question: Question) -> float:
        """Bits of the masked vector, over the contributions in it; keys and masks not counted."""
        return self.num_candidates * math.log2(self.modulus) / question.max_items

    def add(self, question: Question, said: Said, table: Any, coins: Coins, tally: Tally) -> Sent:
        """Add up votes and noise shares of those clients that do not drop out.

        The shares of a block's clients are drawn as their sum, which has the distribution of their
        sum: equal shares of a negative binomial, or of a Poisson variable, add up to one of the
        kind.
        """
        values, sizes = said.values, said.sizes
        if self.dropout:
            stays = coins.rng(Stream.DROPOUT).random(len(values)) >= self.dropout
            values, sizes = values[stays], sizes[stays]
        if len(values):
            tally += np.bincount(values[values >= 0], minlength=len(tally))
            rng = coins.randomizer
            tally += self.noise.draw(
                self.part(len(values), question.cohort.size), len(tally), rng=rng
            )
        number = len(values) * question.max_items
        return Sent(
            num_clients=len(values),
            num_reports=number,
            num_dummies=number - int(sizes.sum()),
            num_clients_with_items=int(np.count_nonzero(sizes)),
        )

    def room(self, sign: int, cohort: int) -> int:
        """Return what all fake clients together may add to a sum, or take from it.

        With noise below T but for a chance of `WRAP_CHANCE`, and votes of at most n clients, a sum
        has room for M / 2 - 1 - n - T more, and M / 2 - T less.
        """
        at_most = self.noise.reach(math.log(WRAP_CHANCE / 2 / max(self.num_candidates, 1)))
        half = self.modulus // 2
        if sign < 0:
            return max(0, half - at_most)
        return max(0, half - 1 - cohort - at_most)

    def craft(self, attack: Attack) -> Sent:
        """Add a vector of which nothing is checked: any numbers.

        The attacker's clients agree on what they add in all, so that no sum wraps around, see
        `room`; a fake's own vote is among the n. They subtract from several sums at a time, too. So
        one fake client decides a sum. They add no share of the noise: it would help nobody but
        honest clients. What is in the tally already is theirs. Random vectors are uniform modulo M:
        no sum says anything then.
        """
        tally = attack.tally
        if not attack.sign:
            if attack.num_clients:
                # The sum of uniform vectors is uniform. Modulo M, it does not outgrow 64 bits.
                tally += attack.rng.integers(self.modulus, size=len(tally))
                tally %= self.modulus
            return attack.sent(holds=False)
        values, sign = attack.question.choice.wanted(attack)
        values = np.unique(values)
        if attack.num_clients:
            fresh = values[tally[values] == 0]
            room = self.room(sign, attack.question.cohort.size)
            tally[fresh] += sign * room
        if sign > 0:
            tally[values] += attack.num_clients
        return attack.sent(holds=len(values) > 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class OpenedVotes(NoisyVotes):
    """Two servers open how many votes each candidate has, which clients send in secret shares.

    The servers check that a vote is for one candidate, and add the noise to the sums together.
    """

    def part(self, num_clients: int, cohort: int) -> float:
        """Return 1: the noise does not come from clients."""
        return 1.0

    def add(self, question: Question, said: Said, table: Any, coins: Coins, tally: Tally) -> Sent:
        """Count the votes of each candidate, as two servers would together.

        The servers' noise comes with the first block, so that no count without it is ever passed
        on.
        """
        values = said.values if table is None else np.append(table, -1)[said.values]
        tally += np.bincount(values[values >= 0], minlength=len(tally))
        if coins.block == 0:
            tally += self.noise.draw(1.0, len(tally), rng=coins.of_round(Stream.CURATOR))
        return Sent.of(said, len(values) * question.max_items)

    def chances(self, question: Question) -> Values:
        """Return ``(c,) float64``: how often a uniform vote is for each candidate."""
        return np.full(self.num_candidates, 1 / (self.num_candidates + 1))

    def craft(self, attack: Attack) -> Sent:
        """Add votes as honest clients; at random, uniform over what may be sent."""
        if attack.sign:
            return super().craft(attack)
        chances = self.chances(attack.question)
        votes = attack.rng.multinomial(attack.count, [*chances, max(0.0, 1 - chances.sum())])
        np.add(attack.tally, votes[:-1], out=attack.tally)
        return attack.sent(holds=False)


@dataclass(frozen=True, kw_only=True, eq=False)
class UploadVotes(OpenedVotes):
    """Two servers say how many of the uploaded words begin with each candidate.

    A client chooses B of its words before the first layer, by `UploadNames`, and uploads each once,
    in two secret shares; the upload answers every layer. The servers add fresh noise once a layer.
    The upload's size is that of an implementation, see docs/accounting.md, section 11.
    """

    def table(self, question: Question, known: Known) -> Values:
        """Return the candidates that the words begin with."""
        names: UploadNames = question.names
        return names.candidates(known.words, question.alphabet)

    def chances(self, question: Question) -> Values:
        """Return the chance of each candidate for a string of uniform symbols, ends among them.

        The servers check that an upload is one string. A candidate of i symbols, the end included,
        gets each with a chance of A**-i.
        """
        names: TrieNames = question.names
        lengths = np.full(names.num_candidates, names.trie.length + 1)
        lengths[names.num_extensions :] = (names.finished != 0).sum(axis=1) + 1
        return np.asarray(float(question.alphabet.size) ** -lengths)
