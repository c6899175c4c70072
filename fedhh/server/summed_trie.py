"""The loop of LDP TrieHH where the server reads votes as sums with known noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Gt, Le, Lt

from fedhh.found import Found
from fedhh.plans.base import PlannedRound
from fedhh.plans.noisy_sums import NoisySums
from fedhh.protocol import DiscoveryProtocol, Heard, KeptBy, RunState
from fedhh.questions.choice import SampleB
from fedhh.questions.names import TrieNames
from fedhh.questions.noise_shares import LEAST_STD, MOST_STD, NoiseName, NoiseShares, noise_of
from fedhh.questions.plain import NoisyVotes
from fedhh.questions.question import Aggregate, Question
from fedhh.server.noise import by_votes, counted
from fedhh.server.pruning import top_eta
from fedhh.server.sum_noise import SumNoise
from fedhh.server.trie_layers import (
    TrieState,
    domains_of,
    initial_trie,
    next_layer,
    split_kept,
    word_codes,
)
from fedhh.settings import (
    AUTO,
    CountOrAuto,
    FromConfig,
    Items,
    Layers,
    Positive,
    check_settings,
    decided,
)
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import Codes, PrefixTrie

MostPrefixes = Annotated[int, Ge(1), Le(10_000_000)]
"""Prefixes kept per layer."""

NoiseStd = Annotated[float, Ge(LEAST_STD), Le(MOST_STD)]
"""Standard deviation of the noise on each sum."""

Modulus = Annotated[int, Ge(2), Le(2**62)] | Literal["auto"]
"""M of sums modulo M."""

SumQuestion = TypeVar("SumQuestion", bound=Question[TrieNames, SampleB, NoisyVotes])


@dataclass(frozen=True, kw_only=True)
class SummedTrie(DiscoveryProtocol[TrieState, SumQuestion], Generic[SumQuestion]):
    """A trie whose layers are decided by noisy sums of plain votes.

    Attributes:
        alphabet: "printable", "lower", or the symbols themselves.
        delta: Of the central privacy that "auto" noise is to give.
        central_epsilon: Its epsilon, of all layers.
        unit: Whose it is: "item", one contribution, or "user", all of a client's.
        noise: "discrete-laplace" or "skellam", the difference of two Poisson variables.
        noise_std: Standard deviation of the noise on each sum; "auto" for about the least with
            the guarantee. If it is given, it alone says what the run can claim.
        clients_per_layer: N, size of each cohort; "auto" for the largest that the population has.
        max_items: B, contributions per client.
        sampler: How a client with more than B values chooses: "random" or "greedy".
        depth: D, layers per pass; the longest word has D symbols.
        eta_max: Prefixes kept per layer, at most.
        pruning: "threshold" keeps what noise does not explain, see ``noise_kept``; "top-eta" keeps
            the ``eta_max`` largest sums, whatever they are.
        noise_kept: With "threshold", candidates that no client holds and that a layer keeps, in
            expectation at most.
        skip_free_layers: Begin at the first layer with more than ``eta_max`` candidates; the words
            that end before it are candidates of that layer, too.
    """

    alphabet: Annotated[str, FromConfig("population.alphabet")] = "lower"
    delta: Annotated[float, Gt(0), Lt(1), FromConfig("privacy.delta")] = 1e-10
    central_epsilon: Annotated[float, Gt(0), Le(100)] = 1.0
    unit: Literal["item", "user"] = "item"
    noise: NoiseName = "discrete-laplace"
    noise_std: NoiseStd | Literal["auto"] = AUTO
    clients_per_layer: CountOrAuto = AUTO
    max_items: Items = 10
    sampler: Literal["random", "greedy"] = "random"
    depth: Layers = 15
    eta_max: MostPrefixes = 1_000
    pruning: Literal["threshold", "top-eta"] = "threshold"
    noise_kept: Positive = 0.1
    skip_free_layers: bool = True

    def __post_init__(self) -> None:
        check_settings(self)
        # Made once here so that a bad alphabet is refused before anything runs.
        _ = self.symbols

    @property
    def symbols(self) -> Alphabet:
        return Alphabet.named(self.alphabet)

    @property
    def longest_word(self) -> int:
        return self.depth

    @property
    def cohort_clients(self) -> int:
        """``clients_per_layer``, once it is decided."""
        return decided(self.clients_per_layer, "clients_per_layer")

    @property
    def summed_noise(self) -> NoiseShares:
        """The noise, once its standard deviation is decided."""
        std: Any = self.noise_std
        return noise_of(self.noise, float(decided(std, "noise_std")))

    @property
    @abstractmethod
    def plan(self) -> NoisySums: ...

    @property
    @abstractmethod
    def num_passes(self) -> int:
        """Tries built one after the other."""

    @property
    @abstractmethod
    def num_cohorts(self) -> int:
        """Cohorts that share the population."""

    @property
    @abstractmethod
    def least_noise(self) -> float:
        """The standard deviation that "auto" is, once the cohorts are known."""

    @abstractmethod
    def question(self, names: TrieNames) -> SumQuestion:
        """Return a layer's question about some candidates."""

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        """Return the settings whose noise is to give this epsilon to one item, or one user.

        Raises:
            InputError: The noise is given.
        """
        if self.noise_std != AUTO:
            raise InputError(
                f'Expected noise_std="auto" for central_epsilon={epsilon:g}, got '
                f"noise_std={self.noise_std}, which alone says what the run can claim."
            )
        return replace(self, central_epsilon=epsilon, unit=unit)

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with the largest cohorts and the least noise, unless given."""
        settled = self
        if self.clients_per_layer == AUTO:
            size = num_clients // self.num_cohorts
            if size < 1:
                raise InputError(
                    f"The population has {num_clients:,} clients, fewer than the "
                    f"{self.num_cohorts} layers that ask fresh ones; ask for fewer passes or "
                    "layers."
                )
            settled = replace(self, clients_per_layer=size)
        if self.noise_std == AUTO:
            settled = replace(settled, noise_std=settled.least_noise)
        settled.check_population(num_clients)
        return settled

    def domains(self) -> list[tuple[int, int, int]]:
        """Return, for each layer that asks, its fewest and its most values, the dummy included."""
        trie, finished = self._initial_trie()
        return domains_of(
            trie,
            len(finished),
            depth=self.depth,
            most_prefixes=lambda candidates: min(candidates, self.eta_max),
        )

    def planned_rounds(self) -> tuple[PlannedRound, ...]:
        """Return all layers of all passes."""
        return tuple(
            PlannedRound(
                pass_index=pass_index,
                layer=layer,
                num_clients=self.cohort_clients,
                smallest_domain=smallest,
                largest_domain=largest,
                max_items=self.max_items,
            )
            for pass_index in range(self.num_passes)
            for layer, smallest, largest in self.domains()
        )

    def begin(self) -> TrieState:
        return self._start_pass(0, Found.nothing(self.longest_word + 1).codes)

    def ask(self, planned: PlannedRound, run: RunState[TrieState]) -> SumQuestion | None:
        """Return the question of a layer; None where the pass has ended before it."""
        state = run.own
        if (planned.pass_index, planned.layer) != (state.pass_index, state.layer):
            return None
        return self.question(
            TrieNames(trie=state.trie, finished=state.finished, excluded=state.excluded)
        )

    def hear(
        self,
        planned: PlannedRound,
        run: RunState[TrieState],
        question: SumQuestion,
        aggregate: Aggregate,
    ) -> Heard[TrieState]:
        """Return the prefixes kept by their noisy sums; ``estimate`` is a word's sum."""
        noise, sums = SumNoise.of(question, aggregate), question.votes(aggregate)
        kept, threshold, kept_by = self.kept(sums, noise)
        extensions, words = split_kept(question.names, kept)
        codes = word_codes(question.names, words, self.depth)
        found = counted(question, aggregate, noise, codes=codes, support=sums[words])
        found = found.without(question.names.excluded)
        following = next_layer(
            run.own, question.layer, question.names, extensions, depth=self.depth
        )
        own = following
        if own is None:
            own = self._start_pass(planned.pass_index + 1, run.found.append(found).codes)
        decision = by_votes(
            noise,
            threshold=threshold,
            num_candidates=question.num_candidates,
            num_kept=len(kept),
            kept_by=kept_by,
        )
        return Heard(
            own=own,
            decision=decision,
            found=found,
            kept=None if following is None else following.trie.levels[-1],
        )

    def kept(
        self, sums: npt.NDArray[np.int64], noise: SumNoise
    ) -> tuple[npt.NDArray[np.int64], int, KeptBy]:
        """Return which candidates a layer keeps, ascending, the sum that keeps one, and by what."""
        if self.pruning == "top-eta":
            return (*top_eta(sums, self.eta_max, ties="strict"), "votes")
        chance = min(self.noise_kept / len(sums), 0.5)
        threshold = noise.noise.least_sum(chance, noise.part)
        above = np.flatnonzero(sums >= threshold)
        if len(above) <= self.eta_max:
            return above, threshold, "threshold"
        best, threshold = top_eta(sums[above], self.eta_max, ties="strict")
        return above[best], threshold, "votes"

    def _start_pass(self, pass_index: int, excluded: Codes) -> TrieState:
        trie, finished = self._initial_trie()
        return TrieState(
            pass_index=pass_index,
            layer=trie.length,
            trie=trie,
            finished=finished,
            excluded=excluded,
        )

    def _initial_trie(self) -> tuple[PrefixTrie, Codes]:
        return initial_trie(
            self.symbols.size,
            depth=self.depth,
            most_kept=self.eta_max,
            skip_free_layers=self.skip_free_layers,
        )
