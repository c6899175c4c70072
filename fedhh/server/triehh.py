"""TrieHH: interactive discovery with central privacy from sampling and a threshold, no noise.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy.stats import hypergeom

from fedhh.alphabet import END, Alphabet
from fedhh.oracles import OracleSpec, PureOracle, make_oracle
from fedhh.protocol import Discoveries, DiscoveryProtocol, RoundSummary
from fedhh.queries import Aggregate, Cohort, WordVoteQuery
from fedhh.server.found import Found
from fedhh.server.noise import Noise
from fedhh.trie import PrefixTrie
from fedhh.validation import InputError, require_at_least


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteState:
    """Where a run of TrieHH stands.

    Attributes:
        trie: Kept prefixes; its length is the number of rounds done.
        found: Words found so far.
        history: One summary per finished round.
    """

    trie: PrefixTrie
    found: Found
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrieHH(DiscoveryProtocol[VoteState, WordVoteQuery]):
    """Settings of TrieHH.

    Each round samples clients afresh from all, without noise. A client draws one of its words by
    its own typing and votes for its prefix, one symbol longer than the kept ones, if that extends
    a kept one. Prefixes with enough votes are kept; those that end in the end symbol are words.
    The discovery ends after a round that keeps nothing to extend.

    The server (or a secure sum) is trusted with the plain votes. Central privacy follows from the
    sampling and the threshold: `fedhh.accounting.triehh` has both for a target.

    A word that enough voters hold is never invented: precision is 1 by construction. With one word
    per client, `discovery_probability` says exactly how likely a word is found.

    Attributes:
        clients_per_layer: m, clients sampled per round.
        threshold: theta, votes that keep a prefix.
        depth: Symbols of the longest word; there are ``depth + 1`` rounds, the end symbol's
            included.
        alphabet: "printable", "lower", or the symbols themselves.
    """

    title: ClassVar[str] = "TrieHH (central)"
    state_types: ClassVar[tuple[type[Any], ...]] = (VoteState, Found, PrefixTrie, RoundSummary)

    clients_per_layer: int = 10_000
    threshold: int = 15
    depth: int = 10
    alphabet: str = "lower"

    def __post_init__(self) -> None:
        require_at_least(
            1,
            clients_per_layer=self.clients_per_layer,
            threshold=self.threshold,
            depth=self.depth,
        )
        # Made once here so that a bad alphabet is refused before anything runs.
        _ = self.symbols

    @property
    def symbols(self) -> Alphabet:
        """The alphabet as an object."""
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
    def contribution_epsilon(self) -> float:
        """Infinite: votes are not randomized."""
        return math.inf

    @property
    def contributions_per_client(self) -> int:
        """One vote in each round that samples the client."""
        return 1

    @property
    def randomizer(self) -> str:
        """No randomizer."""
        return "none"

    @property
    def reuses_clients(self) -> bool:
        """Every round samples from all clients."""
        return True

    @property
    def rounds_expected(self) -> int:
        """One per symbol of the longest word, and one for the end symbol."""
        return self.num_rounds

    @property
    def shape(self) -> tuple[int, int]:
        """One pass."""
        return 1, self.num_rounds

    @property
    def answers_expected(self) -> int:
        """The sample of every round."""
        return self.clients_per_layer * self.num_rounds

    def check_population(self, num_clients: int) -> None:
        """Raise InputError if a population is smaller than a sample."""
        if self.clients_per_layer > num_clients:
            raise InputError(
                f"Expected clients_per_layer <= {num_clients}, the population's size, got "
                f"clients_per_layer={self.clients_per_layer}."
            )

    def initialize(self) -> VoteState:
        """Return the state before the first query."""
        return VoteState(
            trie=PrefixTrie(alphabet_size=self.symbols.size), found=Found.nothing(self.num_rounds)
        )

    def next_query(self, state: VoteState) -> WordVoteQuery | None:
        """Return the broadcast of the kept prefixes, or None when nothing is left to extend."""
        rounds_done = state.trie.length
        if rounds_done == self.num_rounds or state.trie.width == 0:
            return None
        nothing = np.zeros((0, self.num_rounds), dtype=np.uint16)
        return WordVoteQuery(
            pass_index=0,
            layer=rounds_done + 1,
            cohort=Cohort(start=0, size=self.clients_per_layer, redraw=rounds_done),
            alphabet=self.symbols,
            trie=state.trie,
            finished=nothing,
            excluded=nothing,
            oracle=OracleSpec(name="none", epsilon=math.inf),
            max_items=1,
            sampler="random",
        )

    def finish_round(
        self, state: VoteState, query: WordVoteQuery, aggregate: Aggregate
    ) -> VoteState:
        """Return the state after a round's votes."""
        if len(aggregate.tally) != query.tally_size:
            raise ValueError(
                f"Expected a tally of {query.tally_size} values for layer {query.layer}, got "
                f"{len(aggregate.tally)}."
            )
        votes = aggregate.tally[: query.num_candidates]
        kept = np.flatnonzero(votes >= self.threshold)
        words = kept[kept % query.trie.alphabet_size == END]
        oracle = make_oracle(query.oracle, query.domain_size)
        assert isinstance(oracle, PureOracle)
        codes = np.zeros((len(words), self.num_rounds), dtype=np.uint16)
        codes[:, : query.layer] = query.trie.spell(words)
        noise = Noise(oracle=oracle, num_reports=aggregate.num_reports)
        found = Found.counted(query, aggregate, noise, codes=codes, support=votes[words])
        summary = RoundSummary(
            pass_index=0,
            layer=query.layer,
            num_prefixes=query.trie.width,
            num_candidates=query.num_candidates,
            domain_size=query.domain_size,
            subset_size=0,
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            threshold=self.threshold,
            threshold_z=math.inf,
            noise_std=0.0,
            num_kept=len(kept),
            num_finished=len(words),
            report_bits=oracle.report_bits,
            download_bits=query.download_bits,
        )
        return replace(
            state,
            trie=query.trie.extend(kept),
            found=state.found.append(found),
            history=(*state.history, summary),
        )

    def discoveries(self, state: VoteState) -> Discoveries:
        """Return the words found so far; ``estimate`` is the number of votes in the sample."""
        return state.found.discoveries(self.symbols)

    def summaries(self, state: VoteState) -> Sequence[RoundSummary]:
        """Return one summary per finished round."""
        return state.history


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
    counts = np.asarray(prefix_counts, dtype=np.int64)
    kept = hypergeom.sf(threshold - 1, num_clients, counts, sample_size)
    return float(np.prod(kept))
