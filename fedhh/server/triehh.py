"""TrieHH: interactive discovery with central privacy from sampling and a threshold, no noise.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.accounting.sampled_threshold import SampledThreshold, triehh_parameters
from fedhh.arrays import Ints
from fedhh.oracles import OracleSpec
from fedhh.protocol import Answers, Decision
from fedhh.questions.choice import OneTyped
from fedhh.questions.names import TrieNames
from fedhh.questions.plain import PlainVotes
from fedhh.questions.question import Question
from fedhh.server.cohorts import Central, CentralEpsilon
from fedhh.server.trie import Trie
from fedhh.settings import AUTO, CountOrAuto, Layers, decided
from fedhh.validation import InputError
from fedhh.words.trie import Codes, PrefixTrie


@dataclass(frozen=True, kw_only=True)
class TrieHH(Trie, Central):
    """Settings of TrieHH.

    Each round samples clients afresh from all, without noise. A client draws one of its words by
    its own typing and votes for its prefix, one symbol longer than the kept ones, if that extends
    a kept one. Prefixes with enough votes are kept; those that end in the end symbol are words.
    The discovery ends after a round that keeps nothing to extend.

    The server (or a secure sum) is trusted with the plain votes. Which prefixes are kept is
    centrally private by the sampling and the threshold; `fedhh.accounting.sampled_threshold` has
    both for a target. Numbers of votes are not: they are for evaluation.

    A word that enough voters hold is never invented: precision is 1 by construction. With one word
    per client, `discovery_probability` says exactly how likely a word is found.

    Attributes:
        clients_per_layer: m, clients sampled per round. "auto" together with the threshold: the
            two that keep a prefix with the fewest holders, at ``central_epsilon`` and ``delta``. If
            they are given, they alone say what the run can claim.
        threshold: theta, votes that keep a prefix.
        depth: Symbols of the longest word; there are ``depth + 1`` rounds, the end symbol's
            included.
    """

    name: ClassVar[str] = "triehh"
    title: ClassVar[str] = "TrieHH (central)"

    threshold: CountOrAuto = AUTO
    central_epsilon: CentralEpsilon = 4.0
    depth: Layers = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.threshold == AUTO) != (self.clients_per_layer == AUTO):
            raise InputError(
                'Expected threshold and clients_per_layer both as numbers or both "auto", got '
                f"threshold={self.threshold!r} and clients_per_layer={self.clients_per_layer!r}."
            )

    @property
    def num_cohorts(self) -> int:
        """One: each round samples from all clients."""
        return 1

    @property
    def num_rounds(self) -> int:
        """L of the paper: rounds, the end symbol's included."""
        return self.depth + 1

    @property
    def plan(self) -> SampledThreshold:
        return SampledThreshold(
            layers=self.planned_layers(),
            sample_size=self.cohort_clients,
            threshold=self.least_votes,
        )

    @property
    def least_votes(self) -> int:
        """``threshold``, once it is decided."""
        return decided(self.threshold, "threshold")

    @property
    def claiming(self) -> tuple[str, ...]:
        return ("clients_per_layer", "threshold")

    def resolve(self, num_clients: int) -> dict[str, Any]:
        if self.clients_per_layer != AUTO:
            return {}
        found = triehh_parameters(
            num_clients=num_clients,
            epsilon=self.central_epsilon,
            delta=self.delta,
            num_rounds=self.num_rounds,
        )
        return {"clients_per_layer": found.sample_size, "threshold": found.threshold}

    def initial(self) -> tuple[PrefixTrie, Codes]:
        """Return the empty prefix: the first layer asks for the first symbol."""
        _, nothing = super().initial()
        return PrefixTrie(alphabet_size=self.symbols.size), nothing

    def layer_of(self, trie: PrefixTrie) -> int:
        return trie.length + 1

    def most_prefixes(self, candidates: int) -> int:
        """As many prefixes as votes may keep, but no more than there are."""
        return min(candidates, max(self.cohort_clients // self.least_votes, 1))

    def question(self, names: TrieNames) -> Question:
        channel = PlainVotes.on(names, OracleSpec(name="none", epsilon=math.inf))
        return Question(names=names, choice=OneTyped(), channel=channel)

    def keep(self, answers: Answers) -> tuple[Ints, int]:
        """Return the prefixes with enough votes; ``estimate`` is the votes in the sample."""
        return np.flatnonzero(answers.votes >= self.least_votes), self.least_votes

    def decision(self, answers: Answers, *, threshold: int, num_kept: int) -> Decision:
        # There is no noise.
        candidates = answers.question.num_candidates
        return Decision(num_candidates=candidates, num_kept=num_kept, threshold=threshold)


def discovery_probability(
    prefix_counts: npt.ArrayLike, *, num_clients: int, sample_size: int, threshold: int
) -> float:
    """Return how likely TrieHH finds a word, if every client holds one word.

    Rounds sample independently, and a round's votes for a prefix in the trie are hypergeometric.

    Args:
        prefix_counts: Clients whose word begins with each prefix of the word, from one symbol to
            the whole word with its end symbol.
        num_clients: Clients in all.
        sample_size: Clients sampled per round.
        threshold: Votes that keep a prefix.
    """
    from scipy.stats import hypergeom  # It takes a second, and no run needs it.

    counts = np.asarray(prefix_counts, dtype=np.int64)
    kept = hypergeom.sf(threshold - 1, num_clients, counts, sample_size)
    return float(np.prod(kept))
