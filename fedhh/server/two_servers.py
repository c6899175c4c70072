"""Heavy hitters by two servers that open noisy prefix counts of secret-shared words, as Poplar1.

Source: Boneh, Boyle, Corrigan-Gibbs, Gilboa, Ishai (2021), "Lightweight techniques for private
heavy hitters", IEEE Symposium on Security and Privacy (Poplar); the VDAF draft's Poplar1. No noise
is in either; it is added here, once a layer, by both servers together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedhh.accounting.noisy_sums import TwoServerSums, two_server_noise
from fedhh.questions.choice import SampleB
from fedhh.questions.names import TrieNames, UploadNames
from fedhh.questions.question import Question
from fedhh.questions.sums import UploadQuestion, UploadVotes
from fedhh.server.summed_trie import SummedTrie

_BEFORE_ALL = 0
"""The layer whose randomness chooses what is uploaded once for all layers."""


@dataclass(frozen=True, kw_only=True)
class TwoServers(SummedTrie[UploadQuestion]):
    """Settings of discovery by two servers.

    A client uploads B of its words once, each in two secret shares. The servers then walk down the
    trie by themselves: layer by layer, they open how many uploaded words begin with each extension
    of a kept prefix, with noise that they make together, and keep what exceeds it. Neither learns
    more as long as the two do not work together. So one upload of the same clients answers every
    layer, all of them count in every layer, and no device waits for a layer; but the noise of all
    layers protects the same words, and the guarantee is that of all layers together.

    A word counts for each of its prefixes: a client's words that share a prefix move its count by
    several. Nothing of the cryptography is simulated: fedhh draws what the servers open.
    """

    name: ClassVar[str] = "two-servers"
    title: ClassVar[str] = "Two servers (Poplar1)"
    trust_model: ClassVar[str] = "two servers"

    @property
    def num_cohorts(self) -> int:
        return 1

    @property
    def least_noise(self) -> float:
        return two_server_noise(
            self.noise,
            unit=self.unit,
            epsilon=self.central_epsilon,
            delta=self.delta,
            max_items=self.max_items,
            num_layers=len(self.domains()),
        )

    @property
    def plan(self) -> TwoServerSums:
        return TwoServerSums(layers=self.planned_layers(), noise=self.summed_noise)

    def question(self, names: TrieNames) -> UploadQuestion:
        return Question(
            names=UploadNames(**vars(names)),
            choice=SampleB(sampler=self.sampler, layer=_BEFORE_ALL),
            channel=UploadVotes(num_candidates=names.num_candidates, noise=self.summed_noise),
        )
