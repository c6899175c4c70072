"""A channel of one bit: a client says with noise whether a random candidate is its own."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedhh.questions import Channel, Noise, PureVotes, Sent
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.trie import EtaTrie


@dataclass(frozen=True, kw_only=True)
class RandomBits(PureVotes, Channel):
    """Each contribution draws one of ``size`` candidates, and sends it with a noisy bit."""

    size: int
    epsilon: float

    truth = property(lambda self: 1 / (1 + math.exp(-self.epsilon)))
    p = property(lambda self: self.truth / self.size)
    q = property(lambda self: (1 - self.truth) / self.size)
    tally_size = property(lambda self: self.size)
    domain_size = property(lambda self: self.size + 1)
    local_epsilon = property(lambda self: self.epsilon)

    def add(self, question, said, table, coins, tally):
        """Add the bits that say yes, by candidate."""
        own, rng = said.contributions(question.pad), coins.randomizer
        drawn = rng.integers(self.size, size=len(own))
        says_yes = rng.random(len(own)) < np.where(own == drawn, self.truth, 1 - self.truth)
        tally += np.bincount(drawn[says_yes], minlength=self.size)
        return Sent.of(said, len(own))

    def noise_of(self, question, aggregate):
        """Return that of independent votes with p and q."""
        return Noise(oracle=self, num_reports=aggregate.num_reports)


@dataclass(frozen=True, kw_only=True)
class BitTrieHH(LocalProtocol, EtaTrie):
    """The loop of LDP TrieHH, with one bit of each contribution."""

    name: ClassVar[str] = "bit-triehh"
    title: ClassVar[str] = "TrieHH of bits"

    @property
    def plan(self):
        """The layers; no frequency oracle, so that what is claimed holds for any randomizer."""
        most = sum(largest for _, _, largest in self.domains())
        return self.planned_reports(self.planned_layers(), most_words=most)

    def question(self, names):
        """Return the question about a layer's candidates."""
        return self.asking(names, RandomBits(size=names.num_candidates, epsilon=self.local_epsilon))
