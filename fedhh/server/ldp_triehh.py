"""LDP TrieHH: Gboard's interactive discovery of words under local differential privacy.

Source: Sun, Kairouz, Sun, Gascon, Suresh (2024), "Private federated discovery of out-of-vocabulary
words for Gboard", Algorithm 2 and "Multiple-pass algorithm".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.alphabet import END, Alphabet
from fedhh.oracles import OracleSpec, PureOracle, make_oracle
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.queries import Aggregate, Cohort, PrefixQuery
from fedhh.server.found import Found
from fedhh.server.local_protocol import LocalProtocol
from fedhh.server.noise import Noise
from fedhh.server.pruning import TIES, top_eta
from fedhh.trie import Codes, PrefixTrie
from fedhh.validation import InputError, require_at_least, require_choice, require_positive


@dataclass(frozen=True, kw_only=True, eq=False)
class TrieState:
    """Where a run of LDP TrieHH stands.

    Attributes:
        pass_index: Current pass, from 0; equal to the number of passes when all is done.
        layer: Layer to be asked next, from 1.
        trie: Prefixes of length ``layer``.
        finished: Words shorter than the candidates that wait to be voted on, see `LdpTrieHH`.
        excluded: Words found by earlier passes.
        found: Words found so far, those of this pass included.
        history: One summary per finished round.
    """

    pass_index: int
    layer: int
    trie: PrefixTrie
    finished: Codes
    excluded: Codes
    found: Found
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class LdpTrieHH(LocalProtocol[TrieState, PrefixQuery]):
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

    Attributes:
        local_epsilon: Privacy of one contribution.
        clients_per_layer: N, size of each cohort.
        depth: D, layers per pass; the longest word has D symbols.
        eta_max: Prefixes kept per layer.
        max_items: B, contributions per client.
        sampler: How a client with more than B prefixes chooses: "random" or "greedy" (paper,
            section 3).
        passes: Tries built one after the other; each leaves out what the earlier ones found.
        alphabet: "printable", "lower", or the symbols themselves.
        oracle: Local randomizer by name; "ss" is the paper's.
        subset_size: For "ss": "paper" or "optimal".
        ties: "strict" or "paper", see `pruning.top_eta`.
        skip_free_layers: See above.
        pad: Fill up with the dummy to exactly B contributions, as in the paper. Without it, the
            number of a client's reports depends on its data.
        reuse_clients: Draw each cohort from all clients again, so that one may serve repeatedly.
            Off in the paper; needed only for populations too small for fresh cohorts.
    """

    title: ClassVar[str] = "LDP TrieHH"
    state_types: ClassVar[tuple[type[Any], ...]] = (TrieState, Found, PrefixTrie, RoundSummary)

    local_epsilon: float = 8.0
    clients_per_layer: int = 30_000
    depth: int = 15
    eta_max: int = 1_000
    max_items: int = 10
    sampler: str = "random"
    passes: int = 2
    alphabet: str = "lower"
    oracle: str = "ss"
    subset_size: str = "optimal"
    ties: str = "strict"
    skip_free_layers: bool = True
    pad: bool = True
    reuse_clients: bool = False

    def __post_init__(self) -> None:
        self.check_contributions()
        if self.oracle != "none":
            require_positive(local_epsilon=self.local_epsilon)
        require_at_least(
            1,
            clients_per_layer=self.clients_per_layer,
            depth=self.depth,
            eta_max=self.eta_max,
            passes=self.passes,
        )
        require_choice(TIES, ties=self.ties)
        # Made once here so that a bad oracle or alphabet is refused before anything runs.
        self._oracle(self.symbols.size)

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
    def longest_word(self) -> int:
        """As many symbols as layers."""
        return self.depth

    @property
    def contribution_epsilon(self) -> float:
        """The randomizer's epsilon."""
        return self.oracle_spec.epsilon

    @property
    def randomizer(self) -> str:
        """The oracle's key."""
        return self.oracle

    @property
    def reuses_clients(self) -> bool:
        """As set."""
        return self.reuse_clients

    @property
    def rounds_expected(self) -> int:
        """Every layer that asks, in every pass."""
        return self.rounds_per_pass * self.passes

    @property
    def shape(self) -> tuple[int, int]:
        """Passes and depth."""
        return self.passes, self.depth

    @property
    def answers_expected(self) -> int:
        """N for every layer that asks."""
        return self.clients_per_layer * self.rounds_per_pass * self.passes

    def check_population(self, num_clients: int) -> None:
        """Raise InputError if a population has too few clients for the cohorts."""
        needed = self.clients_per_layer if self.reuse_clients else self.answers_expected
        if needed <= num_clients:
            return
        if self.reuse_clients:
            raise InputError(
                f"Expected clients_per_layer <= {num_clients}, the population's size, got "
                f"clients_per_layer={self.clients_per_layer}."
            )
        rounds = self.rounds_per_pass * self.passes
        raise InputError(
            f"The population has {num_clients:,} clients, but {self.passes} passes x "
            f"{self.rounds_per_pass} layers x {self.clients_per_layer:,} clients per layer need "
            f"{needed:,}, since no client is asked twice. Set clients_per_layer <= "
            f"{num_clients // rounds:,}, or lower passes or depth."
        )

    def initialize(self) -> TrieState:
        """Return the state before the first query."""
        width = self.depth + 1
        found = Found.nothing(width)
        return self._start_pass(0, found, ())

    def next_query(self, state: TrieState) -> PrefixQuery | None:
        """Return the broadcast of the state's layer, or None when all passes are done."""
        if state.pass_index == self.passes:
            return None
        asked = len(state.history)
        return PrefixQuery(
            pass_index=state.pass_index,
            layer=state.layer,
            cohort=Cohort(
                start=0 if self.reuse_clients else asked * self.clients_per_layer,
                size=self.clients_per_layer,
                redraw=asked if self.reuse_clients else None,
            ),
            alphabet=self.symbols,
            trie=state.trie,
            finished=state.finished,
            excluded=state.excluded,
            oracle=self.oracle_spec,
            max_items=self.max_items,
            sampler=self.sampler,
            pad=self.pad,
        )

    def finish_round(self, state: TrieState, query: PrefixQuery, aggregate: Aggregate) -> TrieState:
        """Return the state after a layer's votes: the kept prefixes become the next broadcast."""
        if len(aggregate.tally) != query.domain_size:
            raise ValueError(
                f"Expected a tally of {query.domain_size} values for pass {query.pass_index + 1}, "
                f"layer {query.layer}, got {len(aggregate.tally)}."
            )
        noise = Noise(oracle=self._oracle(query.domain_size), num_reports=aggregate.num_reports)
        votes = aggregate.tally[: query.num_candidates]
        kept, threshold = top_eta(votes, self.eta_max, ties=self.ties)
        extensions = kept[kept < query.num_extensions]
        words = kept[(kept >= query.num_extensions) | (kept % query.trie.alphabet_size == END)]

        found = state.found.append(
            self._found(query, aggregate, noise, words).without(query.excluded)
        )
        history = (
            *state.history,
            self._summary(
                query, aggregate, noise, threshold=threshold, kept=len(kept), words=len(words)
            ),
        )
        trie = query.trie.extend(extensions)
        if query.layer == self.depth or trie.width == 0:
            return self._start_pass(state.pass_index + 1, found, history)
        return replace(
            state,
            layer=query.layer + 1,
            trie=trie,
            finished=state.finished[:0],
            found=found,
            history=history,
        )

    def discoveries(self, state: TrieState) -> Discoveries:
        """Return the words found so far, in the order of discovery."""
        return state.found.discoveries(self.symbols)

    def summaries(self, state: TrieState) -> Sequence[RoundSummary]:
        """Return one summary per finished layer."""
        return state.history

    def _oracle(self, domain_size: int) -> PureOracle:
        oracle = make_oracle(self.oracle_spec, domain_size)
        if not isinstance(oracle, PureOracle):
            raise InputError(
                f"Expected an oracle that votes for values, got oracle={self.oracle!r}; use ss."
            )
        return oracle

    def _start_pass(
        self, pass_index: int, found: Found, history: tuple[RoundSummary, ...]
    ) -> TrieState:
        trie, finished = self._initial_trie(self.symbols)
        return TrieState(
            pass_index=pass_index,
            layer=trie.length,
            trie=trie,
            finished=finished,
            excluded=found.codes,
            found=found,
            history=history,
        )

    def _initial_trie(self, alphabet: Alphabet) -> tuple[PrefixTrie, Codes]:
        """Return the prefixes that the first asked layer extends, and the shorter words."""
        width = self.depth + 1
        trie = PrefixTrie.all_of_length_one(alphabet.size)
        finished = np.zeros((0, width), dtype=np.uint16)
        if not self.skip_free_layers:
            return trie, finished
        while (
            trie.length < self.depth and trie.width * alphabet.size + len(finished) <= self.eta_max
        ):
            candidates = np.arange(trie.width * alphabet.size)
            words = trie.spell(candidates[candidates % alphabet.size == END])
            padding = np.zeros((len(words), width - words.shape[1]), dtype=np.uint16)
            finished = np.concatenate([finished, np.concatenate([words, padding], axis=1)])
            trie = trie.extend(candidates)
        return trie, finished

    def _found(
        self,
        query: PrefixQuery,
        aggregate: Aggregate,
        noise: Noise,
        words: npt.NDArray[np.int64],
    ) -> Found:
        extended = query.trie.spell(words[words < query.num_extensions])
        codes = np.zeros((len(words), self.depth + 1), dtype=np.uint16)
        codes[: len(extended), : extended.shape[1]] = extended
        codes[len(extended) :] = query.finished[
            words[words >= query.num_extensions] - query.num_extensions
        ]
        return Found.counted(query, aggregate, noise, codes=codes, support=aggregate.tally[words])

    def _summary(
        self,
        query: PrefixQuery,
        aggregate: Aggregate,
        noise: Noise,
        *,
        threshold: int,
        kept: int,
        words: int,
    ) -> RoundSummary:
        return RoundSummary(
            pass_index=query.pass_index,
            layer=query.layer,
            num_prefixes=query.trie.width,
            num_candidates=query.num_candidates,
            domain_size=query.domain_size,
            subset_size=int(getattr(noise.oracle, "d", 0)),
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            threshold=threshold,
            threshold_z=float(noise.z(np.array([threshold]))[0]),
            noise_std=noise.std,
            num_kept=kept,
            num_finished=words,
            report_bits=noise.oracle.report_bits,
            download_bits=query.download_bits,
        )
