"""LDP TrieHH: Gboard's interactive discovery of words under local differential privacy.

Source: Sun, Kairouz, Sun, Gascon, Suresh (2024), "Private federated discovery of out-of-vocabulary
words for Gboard", Algorithm 2 and "Multiple-pass algorithm".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from fedhh.found import Found
from fedhh.oracles import OracleSpec, PureOracle, make_pure_oracle
from fedhh.oracles.client_votes import ClientVotes, VotesPerClient
from fedhh.plans.base import PlannedRound
from fedhh.plans.local_reports import LocalReports
from fedhh.protocol import Heard, RunState
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Aggregate
from fedhh.questions.reports import VoteQuestion
from fedhh.server.layer_consistency import shares_of
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.noise import Noise, by_votes, counted
from fedhh.server.post_processed import PostProcessed
from fedhh.server.pruning import top_eta
from fedhh.server.trie_layers import (
    TrieState,
    domains_of,
    initial_trie,
    next_layer,
    shares_after,
    split_kept,
    word_codes,
)
from fedhh.settings import Layers, Passes, decided
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import Codes, PrefixTrie

MOST_PREFIXES = 10_000_000
"""Kept per layer: candidates are so many times the alphabet's size, and tallies hold them all."""

EtaMax = Annotated[int, Ge(1), Le(MOST_PREFIXES)]
"""Prefixes kept per layer."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerVotes:
    """A layer's answers as its server reads them.

    Attributes:
        question: The broadcast.
        aggregate: The answers.
        noise: What chance does to votes.
        votes: ``(num_candidates,) int64``.
    """

    question: VoteQuestion
    aggregate: Aggregate
    noise: Noise
    votes: npt.NDArray[np.int64]

    @classmethod
    def of(cls, question: VoteQuestion, aggregate: Aggregate) -> Self:
        """Return what a question's answers say."""
        return cls(
            question=question,
            aggregate=aggregate,
            noise=Noise.of_votes(question, aggregate),
            votes=question.votes(aggregate),
        )


@dataclass(frozen=True, kw_only=True)
class LdpTrieHH(LocalProtocol[TrieState, VoteQuestion], PostProcessed[TrieState, VoteQuestion]):
    """Settings of LDP TrieHH.

    Each layer asks a cohort of fresh clients for their prefixes that extend the kept ones by one
    symbol, tallies the randomized votes, and keeps the ``eta_max`` prefixes with the most. Kept
    prefixes that end in the end symbol are discovered words; they are not extended further (the
    paper's formula would, to no effect, since nothing can match).

    A layer with at most ``eta_max`` candidates decides nothing: it would keep them all, spend its
    clients, and let every short string into the result. With ``skip_free_layers`` a pass starts
    at the first layer that decides, and the words that end before it are candidates of that layer
    too, so that none is lost and none enters unasked. The paper asks those layers: set it to
    False to do the same.

    Four methods are there to be overridden: `keep`, which candidates a layer keeps, and
    `most_prefixes`, how many at most; `cohort_size`, how many clients it asks; `left_out`, what a
    pass takes for known.

    Attributes:
        depth: D, layers per pass; the longest word has D symbols.
        eta_max: Prefixes kept per layer.
        passes: Tries built one after the other; each leaves out what the earlier ones found.
        ties: "strict" or "paper", see `pruning.top_eta`.
        skip_free_layers: Begin each pass at the first layer that drops a candidate, see above.
        oracle: Local randomizer by name; "ss" is the paper's.
        subset_size: For "ss": "paper" or "optimal".
        votes_per_client: "one": a client's B reports are counted together, and a value has its vote
            if any of them supports it, so that a fake client has one vote for a value and not B.
            Whoever counts has to know which reports are of one client; no amplification by
            shuffling is claimed then. "all": each report is counted by itself, as in the paper.
    """

    name: ClassVar[str] = "ldp-triehh"
    title: ClassVar[str] = "LDP TrieHH"

    depth: Layers = 15
    eta_max: EtaMax = 1_000
    passes: Passes = 2
    ties: Literal["strict", "paper"] = "strict"
    skip_free_layers: bool = True
    oracle: str = "ss"
    subset_size: Literal["optimal", "paper"] = "optimal"
    votes_per_client: VotesPerClient = "all"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made once here so that a bad oracle is refused before anything runs, also one that fits no
        # large domain: extensions of all kept prefixes, short words that end earlier, the dummy.
        kept = self.eta_max if isinstance(self.eta_max, int) else 1
        oracle = self._oracle(kept * (self.symbols.size + 2) + 1)
        if self.votes_per_client == "one":
            ClientVotes(oracle=oracle, max_items=self.max_items)
            if not self.pad:
                raise InputError(
                    "Expected pad=true with votes_per_client='one', since a client's chance of a "
                    "vote follows from the number of its reports, got pad=false; set pad=true."
                )

    def most_prefixes(self, candidates: int) -> int:
        """Return how many prefixes a layer keeps at most that the next one extends.

        The domains that a run claims its privacy for rest on this bound, and a run ends where
        `keep` exceeds it: whoever overrides `keep` to keep more overrides this, too.

        Args:
            candidates: Prefixes that the layer may choose from, without words.
        """
        return min(candidates, self.most_kept) if self.ties == "strict" else candidates

    def keep(
        self, votes: npt.NDArray[np.int64], noise: Noise, question: VoteQuestion
    ) -> tuple[npt.NDArray[np.int64], int]:
        """Return which candidates a layer keeps, and the votes that keep one.

        Args:
            votes: ``(num_candidates,) int64``.
            noise: What chance does to them.
            question: The layer's broadcast.

        Returns:
            Ascending ``int64`` candidate numbers, and the threshold; the best ``eta_max`` here.
        """
        return top_eta(votes, self.most_kept, ties=self.ties)

    def cohort_size(self, pass_index: int, layer: int) -> int:
        """Return how many clients a layer asks: N here.

        Args:
            pass_index: Which pass, from 0.
            layer: Which layer of it, from 1.
        """
        return self.cohort_clients

    def left_out(self, found: Found) -> Codes:
        """Return the ``(x, depth + 1) uint16`` codes of words that a new pass takes for known.

        Args:
            found: What all earlier passes found, which is left out here.
        """
        return found.codes

    @property
    def most_kept(self) -> int:
        """``eta_max``, once it is decided."""
        return decided(self.eta_max, "eta_max")

    @property
    def oracle_spec(self) -> OracleSpec:
        """The randomizer's name and parameters, without a domain."""
        params = {"subset_size": self.subset_size} if self.oracle == "ss" else {}
        epsilon = float("inf") if self.oracle == "none" else self.local_epsilon
        return OracleSpec(name=self.oracle, epsilon=epsilon, params=params)

    @property
    def rounds_per_pass(self) -> int:
        """Layers of a pass that ask clients, at most: free layers are not counted if skipped."""
        return self.depth - self._initial_trie(self.symbols)[0].length + 1

    @property
    def num_cohorts(self) -> int:
        """One for every layer that asks."""
        return self.rounds_per_pass * self.passes

    @property
    def longest_word(self) -> int:
        return self.depth

    @property
    def validation_oracle(self) -> OracleSpec:
        return self.oracle_spec

    @property
    def plan(self) -> LocalReports:
        domains = self._domains()
        return self.planned_reports(
            [
                self.planned_round(
                    layer,
                    self.cohort_size(pass_index, layer),
                    smallest,
                    largest,
                    pass_index=pass_index,
                )
                for pass_index in range(self.passes)
                for layer, smallest, largest in domains
            ],
            most_words=self.most_found,
            randomizers=(self.oracle_spec,),
            validation_randomizer=None,
        )

    @property
    def most_found(self) -> int:
        """Words that all passes find at most."""
        return self.passes * sum(largest for _, _, largest in self._domains())

    def _domains(self) -> list[tuple[int, int, int]]:
        """Return, for each layer that asks, its fewest and its most values, the dummy included."""
        trie, finished = self._initial_trie(self.symbols)
        return domains_of(trie, len(finished), depth=self.depth, most_prefixes=self.most_prefixes)

    def begin(self) -> TrieState:
        return self._start_pass(0, Found.nothing(self.longest_word + 1))

    def ask(self, planned: PlannedRound, run: RunState[TrieState]) -> VoteQuestion | None:
        """Return the broadcast of a layer; None where the pass has ended before it."""
        state = run.own
        if (planned.pass_index, planned.layer) != (state.pass_index, state.layer):
            return None
        names = TrieNames(trie=state.trie, finished=state.finished, excluded=state.excluded)
        return self.votes_question(names, self.oracle_spec)

    def hear(
        self,
        planned: PlannedRound,
        run: RunState[TrieState],
        question: VoteQuestion,
        aggregate: Aggregate,
    ) -> Heard[TrieState]:
        layer = LayerVotes.of(question, aggregate)
        kept, threshold = self.keep(layer.votes, layer.noise, question)
        extensions, words = split_kept(question.names, kept)
        found = self._found(layer, words).without(question.names.excluded)
        shares, exceeding = self._shares_after(run.own, layer, extensions)
        following = next_layer(
            run.own, question.layer, question.names, extensions, depth=self.depth
        )
        own = None if following is None else replace(following, shares=shares)
        if own is None:
            own = self._start_pass(planned.pass_index + 1, run.found.append(found))
        decision = by_votes(
            layer.noise,
            threshold=threshold,
            num_candidates=question.num_candidates,
            num_kept=len(kept),
        )
        return Heard(
            own=own,
            decision=replace(decision, num_exceeding=exceeding),
            found=found,
            kept=None if following is None else following.trie.levels[-1],
        )

    def _oracle(self, domain_size: int) -> PureOracle:
        return make_pure_oracle(self.oracle_spec, domain_size)

    def _start_pass(self, pass_index: int, found: Found) -> TrieState:
        trie, finished = self._initial_trie(self.symbols)
        return TrieState(
            pass_index=pass_index,
            layer=trie.length,
            trie=trie,
            finished=finished,
            excluded=self.left_out(found),
        )

    def _initial_trie(self, alphabet: Alphabet) -> tuple[PrefixTrie, Codes]:
        """Return the prefixes that the first asked layer extends, and the shorter words."""
        return initial_trie(
            alphabet.size,
            depth=self.depth,
            most_kept=self.most_kept,
            skip_free_layers=self.skip_free_layers,
        )

    def _shares_after(
        self, own: TrieState, layer: LayerVotes, extensions: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.float64], int]:
        """Return `shares_after` a layer's votes."""
        estimate = layer.noise.estimate(layer.votes[extensions])
        variance = layer.noise.variance(estimate)
        shares = shares_of(estimate, variance, layer.aggregate.num_clients)
        return shares_after(own, layer.question.names, shares, extensions)

    def _found(self, layer: LayerVotes, words: npt.NDArray[np.int64]) -> Found:
        codes = word_codes(layer.question.names, words, self.depth)
        support = layer.votes[words]
        found = counted(layer.question, layer.aggregate, layer.noise, codes=codes, support=support)
        return self.with_reported(found, words, layer.noise, layer.votes)
