"""Questions about the set of candidates that a client holds, answered with one report each.

Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE S&P;
padding and sampling is from Qin et al. (2016), "Heavy hitter estimation over set-valued data with
local differential privacy", CCS.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.oracles import FrequencyOracle, OracleSpec, make_oracle
from fedhh.questions.base import Question
from fedhh.words.trie import Codes

Itemsets = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldSetQuestion(Question):
    """Asks about the candidates that a client holds: those all of whose words it has.

    Attributes:
        words: ``(w, width) uint16``: distinct words, closed by the end symbol.
        itemsets: ``(c, r) int64``: the words of each candidate, distinct; rows with fewer than r
            are filled up with -1 behind. One column: candidates are words.
        epsilon: Local privacy of the client's report, and so of its whole set.
        oracle_name: The randomizer.
        oracle_params: Its further parameters.
    """

    words: Codes
    itemsets: Itemsets
    epsilon: float
    oracle_name: str
    oracle_params: dict[str, str | int | float] = field(default_factory=dict)

    @property
    def num_candidates(self) -> int:
        """Candidates, c."""
        return len(self.itemsets)

    @property
    @abstractmethod
    def domain_size(self) -> int:
        """Values of the randomizer."""

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        return (self.oracle,)

    @property
    def oracle_epsilon(self) -> float:
        """What the randomizer is run with."""
        return self.epsilon

    @property
    def oracle(self) -> OracleSpec:
        """The randomizer of the report, before its domain."""
        return OracleSpec(
            name=self.oracle_name, epsilon=self.oracle_epsilon, params=self.oracle_params
        )

    @cached_property
    def randomizer(self) -> FrequencyOracle:
        """The randomizer of the report."""
        return make_oracle(self.oracle, self.domain_size)

    @property
    def tally_size(self) -> int:
        return self.randomizer.aggregate_size

    @property
    def local_epsilon(self) -> float:
        return self.epsilon

    @property
    def report_bits(self) -> float:
        return self.randomizer.report_bits

    @property
    def download_bits(self) -> float:
        symbols = self.words.size * math.log2(self.alphabet.size)
        if self.itemsets.shape[1] == 1:
            return symbols
        return symbols + self.itemsets.size * math.log2(len(self.words) + 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class PaddedSampleQuestion(HeldSetQuestion):
    """Asks for one candidate, drawn from the client's set after it is padded to L.

    A client with h candidates pads its set with L - h distinct dummies, if h is below L, and
    reports one member, drawn uniformly. So a client with fewer than L candidates reports each with
    chance 1/L, and one with more each with chance 1/h. Values are the candidates, then L dummies.

    What is drawn with chance at most 1/L is hidden by that, too. Generalized randomized response
    may therefore be run with ``ln(L (e**epsilon - 1) + 1)``: any report has probability at least
    q, that of a value the client does not hold, and at most (p + (L - 1) q) / L, and their ratio
    is e**epsilon. That needs L dummies: a single one would be drawn with more than chance 1/L.
    Other randomizers say something about many values at once, and are run with epsilon.

    Attributes:
        padded_size: L.
    """

    padded_size: int

    @property
    def domain_size(self) -> int:
        return self.num_candidates + self.padded_size

    @property
    def oracle_epsilon(self) -> float:
        if self.oracle_name != "grr":
            return self.epsilon
        return amplified(self.epsilon, self.padded_size)


@dataclass(frozen=True, kw_only=True, eq=False)
class SetSizeQuestion(HeldSetQuestion):
    """Asks how many candidates a client holds: 0 to all of them.

    Attributes:
        largest: Clients that hold more say this; None for no such bound.
    """

    largest: int | None = None

    @property
    def largest_size(self) -> int:
        """The largest number that a client may say."""
        if self.largest is None:
            return self.num_candidates
        return min(self.largest, self.num_candidates)

    @property
    def domain_size(self) -> int:
        return self.largest_size + 1


def amplified(epsilon: float, padded_size: int) -> float:
    """Return ``ln(L (e**epsilon - 1) + 1)``: Wang, Li, Jha (2018).

    >>> round(amplified(1.0, 1), 12), round(amplified(1.0, 4), 3)
    (1.0, 2.063)
    """
    left = math.exp(-epsilon)
    return epsilon + math.log(padded_size * (1 - left) + left)


def singletons(num_words: int) -> Itemsets:
    """Return the itemsets of one word each, ``(w, 1) int64``."""
    return np.arange(num_words, dtype=np.int64)[:, None]
