"""Heavy hitters by two servers that open noisy prefix counts of secret-shared words, as Poplar1.

Source: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai (2021), "Lightweight techniques for private
heavy hitters", IEEE Symposium on Security and Privacy (Poplar); the VDAF draft's Poplar1. No noise
is in either; it is added here, once a layer, by both servers together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedhh.accounting.noisy_sums import TwoServerSums
from fedhh.questions.choice import SampleB
from fedhh.questions.names import TrieNames, UploadNames
from fedhh.questions.question import Question
from fedhh.questions.sums import OpenedVotes, UploadVotes
from fedhh.server.summed_trie import SummedTrie

_BEFORE_ALL = 0
"""The layer whose randomness chooses what is uploaded once for all layers."""


@dataclass(frozen=True, kw_only=True)
class TwoServers(SummedTrie):
    """Settings of discovery by two servers.

    A client uploads B of its words once, each in two secret shares. The servers then walk down the
    trie by themselves: layer by layer, they open how many uploaded words begin with each extension
    of a kept prefix, with noise that they make together, and keep what exceeds it. Neither learns
    more as long as the two do not work together. So one upload of the same clients answers every
    layer, all of them count in every layer, and no device waits for a layer; but the noise of all
    layers protects the same words, and the guarantee is that of all layers together.

    A word counts for each of its prefixes: a client's words that share a prefix move its count by
    several. With ``participation`` "every-round" clients upload in each layer instead, B distinct
    candidates that they draw afresh, so that none of their votes is for a prefix that was dropped.
    Nothing of the cryptography is simulated: fedhh draws what the servers open.
    """

    name: ClassVar[str] = "two-servers"
    title: ClassVar[str] = "Two servers (Poplar1)"
    trust_model: ClassVar[str] = "two servers"

    @property
    def num_cohorts(self) -> int:
        return 1

    @property
    def least_noise(self) -> float:
        return self.noise_for(num_rounds=self.num_layers, uploads_once=self.uploads_once)

    @property
    def uploads_once(self) -> bool:
        """Whether one upload of a client answers every layer."""
        return self.participation == "one-round"

    @property
    def plan(self) -> TwoServerSums:
        return TwoServerSums(
            layers=self.planned_layers(), noise=self.summed_noise, uploads_once=self.uploads_once
        )

    def question(self, names: TrieNames) -> Question:
        if not self.uploads_once:
            channel = OpenedVotes(num_candidates=names.num_candidates, noise=self.summed_noise)
            return self.asking(names, channel)
        return Question(
            names=UploadNames(**vars(names)),
            choice=SampleB(sampler=self.sampler, layer=_BEFORE_ALL),
            channel=UploadVotes(num_candidates=names.num_candidates, noise=self.summed_noise),
        )
