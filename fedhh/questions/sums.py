"""Questions whose answer is a sum of plain votes with integer noise, and nothing else."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from fedhh.questions.base import Aggregate, PrefixQuestion, Tally
from fedhh.questions.noise_shares import NoiseShares


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisySumQuestion(PrefixQuestion):
    """Asks for the number of votes of each candidate, to which noise has been added.

    Nobody sees less than the noisy sum over the cohort. The dummy is not counted: a client with
    fewer than B candidates adds zeros, which nobody can tell.

    Attributes:
        noise: The noise of each candidate's votes.
    """

    noise: NoiseShares

    @abstractmethod
    def part(self, num_clients: int) -> float:
        """Return which part of the noise is in the sum over so many clients."""

    def sums(self, aggregate: Aggregate) -> Tally:
        """Return ``(num_candidates,) int64``: what the server reads from an aggregate."""
        return aggregate.tally[: self.num_candidates]


@dataclass(frozen=True, kw_only=True, eq=False)
class SecureSumQuestion(NoisySumQuestion):
    """Asks for a sum modulo M of the clients' vectors, each with a share of the noise in it.

    A share is one of as many as the cohort has clients. Of a client that drops out, vote and share
    are missing.

    Attributes:
        modulus: M.
        dropout: Probability that a client drops out after it agreed to answer.
    """

    modulus: int
    dropout: float = 0.0

    def part(self, num_clients: int) -> float:
        """Return the part of the shares that so many clients bring."""
        return num_clients / self.cohort.size

    def sums(self, aggregate: Aggregate) -> Tally:
        """Return the sums modulo M, as the representatives nearest to 0."""
        half = self.modulus // 2
        tally = aggregate.tally[: self.num_candidates]
        return np.asarray((tally + half) % self.modulus - half, dtype=np.int64)

    @property
    def report_bits(self) -> float:
        """Bits of the masked vector, over the contributions in it; keys and masks not counted."""
        return self.num_candidates * math.log2(self.modulus) / self.max_items


@dataclass(frozen=True, kw_only=True, eq=False)
class SecretSharedQuestion(NoisySumQuestion):
    """Asks two servers how many of the uploaded words begin with each candidate.

    A client chooses B of its words before the first layer and uploads each once, in two secret
    shares; the upload answers every layer. A word that the alphabet cannot spell, or longer than
    the trie is deep, is not chosen. The servers add the noise to the sums together, once a layer.

    Clients download nothing. The upload's size is that of an implementation, see
    docs/accounting.md, section 11.
    """

    def part(self, num_clients: int) -> float:
        """Return 1: the noise does not come from clients."""
        return 1.0

    @property
    def report_bits(self) -> float:
        return math.nan

    @property
    def download_bits(self) -> float:
        return 0.0
