"""TrieHH: interactive discovery with central privacy from sampling and a threshold, no noise.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Gt, Le, Lt

from fedhh.plans.base import PlannedRound
from fedhh.plans.sampled_threshold import SampledThreshold, triehh_parameters
from fedhh.protocol import Decision, DiscoveryProtocol, Heard, RunState
from fedhh.questions.choice import OneTyped
from fedhh.questions.names import TrieNames
from fedhh.questions.plain import PlainVotes, WordVoteQuestion
from fedhh.questions.question import Aggregate, Question
from fedhh.server.noise import counted, noise_of
from fedhh.settings import AUTO, CountOrAuto, FromConfig, Layers, check_settings, decided
from fedhh.validation import InputError
from fedhh.words.alphabet import END, Alphabet
from fedhh.words.trie import PrefixTrie


@dataclass(frozen=True, kw_only=True)
class TrieHH(DiscoveryProtocol[PrefixTrie, WordVoteQuestion]):
    """Settings of TrieHH.

    Each round samples clients afresh from all, without noise. A client draws one of its words by
    its own typing and votes for its prefix, one symbol longer than the kept ones, if that extends
    a kept one. Prefixes with enough votes are kept; those that end in the end symbol are words.
    The discovery ends after a round that keeps nothing to extend.

    The server (or a secure sum) is trusted with the plain votes. Which prefixes are kept is
    centrally private by the sampling and the threshold; `fedhh.plans.sampled_threshold` has
    both for a target. Numbers of votes are not: they are for evaluation.

    A word that enough voters hold is never invented: precision is 1 by construction. With one word
    per client, `discovery_probability` says exactly how likely a word is found.

    Attributes:
        alphabet: "printable", "lower", or the symbols themselves.
        delta: Of the central privacy that "auto" settings are to give.
        central_epsilon: Likewise its epsilon.
        clients_per_layer: m, clients sampled per round. "auto" together with the threshold: the
            two that keep a prefix with the fewest holders, at ``central_epsilon`` and ``delta``. If
            they are given, they alone say what the run can claim.
        threshold: theta, votes that keep a prefix.
        depth: Symbols of the longest word; there are ``depth + 1`` rounds, the end symbol's
            included.
    """

    name: ClassVar[str] = "triehh"
    title: ClassVar[str] = "TrieHH (central)"

    alphabet: Annotated[str, FromConfig("population.alphabet")] = "lower"
    delta: Annotated[float, Gt(0), Lt(1), FromConfig("privacy.delta")] = 1e-10
    clients_per_layer: CountOrAuto = AUTO
    threshold: CountOrAuto = AUTO
    central_epsilon: Annotated[float, Gt(0), Le(100)] = 4.0
    depth: Layers = 10

    def __post_init__(self) -> None:
        check_settings(self)
        if (self.threshold == AUTO) != (self.clients_per_layer == AUTO):
            raise InputError(
                'Expected threshold and clients_per_layer both as numbers or both "auto", got '
                f"threshold={self.threshold!r} and clients_per_layer={self.clients_per_layer!r}."
            )
        # Made once here so that a bad alphabet is refused before anything runs.
        _ = self.symbols

    @property
    def symbols(self) -> Alphabet:
        return Alphabet.named(self.alphabet)

    @property
    def longest_word(self) -> int:
        """The depth; the end symbol takes one more round."""
        return self.depth

    @property
    def num_rounds(self) -> int:
        """L of the paper: rounds, the end symbol's included."""
        return self.depth + 1

    @property
    def plan(self) -> SampledThreshold:
        sample_size = decided(self.clients_per_layer, "clients_per_layer")
        alphabet = self.symbols.size
        return SampledThreshold(
            layers=tuple(
                PlannedRound(
                    layer=layer,
                    num_clients=sample_size,
                    smallest_domain=alphabet + 1,
                    # As many prefixes as votes may keep, but no more than there are.
                    largest_domain=min(
                        (alphabet - 1) ** (layer - 1),
                        max(sample_size // decided(self.threshold, "threshold"), 1),
                    )
                    * alphabet
                    + 1,
                )
                for layer in range(1, self.num_rounds + 1)
            ),
            sample_size=sample_size,
            threshold=decided(self.threshold, "threshold"),
        )

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        """Return the settings whose sample and threshold are to give this epsilon.

        Raises:
            InputError: Sample and threshold are given.
        """
        if self.clients_per_layer != AUTO:
            raise InputError(
                f'Expected clients_per_layer="auto" and threshold="auto" for central_epsilon='
                f"{epsilon:g}, got clients_per_layer={self.clients_per_layer} and threshold="
                f"{self.threshold}, which alone say what the run can claim."
            )
        return replace(self, central_epsilon=epsilon)

    def settle(self, *, num_clients: int, seed: int) -> Self:
        settled = self
        if self.clients_per_layer == AUTO:
            found = triehh_parameters(
                num_clients=num_clients,
                epsilon=self.central_epsilon,
                delta=self.delta,
                num_rounds=self.num_rounds,
            )
            settled = replace(self, clients_per_layer=found.sample_size, threshold=found.threshold)
        settled.check_population(num_clients)
        return settled

    def begin(self) -> PrefixTrie:
        """Return the empty trie; kept prefixes have as many symbols as rounds are done."""
        return PrefixTrie(alphabet_size=self.symbols.size)

    def ask(self, planned: PlannedRound, run: RunState[PrefixTrie]) -> WordVoteQuestion | None:
        if run.own.width == 0:
            return None
        nothing = np.zeros((0, self.num_rounds), dtype=np.uint16)
        names = TrieNames(trie=run.own, finished=nothing, excluded=nothing)
        return Question(
            names=names,
            choice=OneTyped(),
            channel=PlainVotes(num_candidates=names.num_candidates),
        )

    def hear(
        self,
        planned: PlannedRound,
        run: RunState[PrefixTrie],
        question: WordVoteQuestion,
        aggregate: Aggregate,
    ) -> Heard[PrefixTrie]:
        """Return the prefixes with enough votes; ``estimate`` is the votes in the sample."""
        votes = question.votes(aggregate)
        threshold = decided(self.threshold, "threshold")
        kept = np.flatnonzero(votes >= threshold)
        words = kept[kept % question.names.trie.alphabet_size == END]
        codes = np.zeros((len(words), self.num_rounds), dtype=np.uint16)
        codes[:, : question.layer] = question.names.trie.spell(words)
        noise = noise_of(question, aggregate)
        trie = question.names.trie.extend(kept)
        return Heard(
            own=trie,
            decision=Decision(
                num_candidates=question.num_candidates, num_kept=len(kept), threshold=threshold
            ),
            found=counted(question, aggregate, noise, codes=codes, support=votes[words]),
            kept=trie.levels[-1] if planned.layer < self.num_rounds else None,
        )


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
