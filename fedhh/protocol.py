"""The interface of a discovery protocol: a pure state machine on the server's side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

import numpy as np
import numpy.typing as npt

from fedhh.mechanisms.base import Mechanism
from fedhh.queries.base import Aggregate, Query
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet

State = TypeVar("State")
QueryType = TypeVar("QueryType", bound=Query)


@dataclass(frozen=True, kw_only=True, eq=False)
class Discoveries:
    """Discovered words, in the order of discovery; all arrays have one entry per word.

    Attributes:
        words: The words.
        pass_index: ``int64``; in which pass, from 0.
        layer: ``int64``; in which layer, from 1.
        estimate: ``float64``; unbiased estimate of the contributions for the word among the
            cohort's reports in that layer.
        z: ``float64``; how far above the noise the word's votes lie: the standard normal quantile
            of the chance that a word which nobody holds gets fewer. Votes of rare candidates are
            skewed, so that is less than the estimate over the noise's standard deviation.
        num_clients: ``int64``; size of the cohort that the estimate is about.
        variance: ``float64``; variance of the estimate by the oracle's formula, at the estimated
            count.
        interval_z: ``float64``; how many standard errors an interval around the estimate reaches
            to each side, so that of all returned words' intervals at most a twentieth miss, in
            expectation; NaN where none is claimed, as the votes that estimate a word also chose it.
            None for a protocol that claims none at all.
    """

    words: Sequence[str]
    pass_index: npt.NDArray[np.int64]
    layer: npt.NDArray[np.int64]
    estimate: npt.NDArray[np.float64]
    z: npt.NDArray[np.float64]
    num_clients: npt.NDArray[np.int64]
    variance: npt.NDArray[np.float64]
    interval_z: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, kw_only=True)
class RoundSummary:
    """What the server knows after a round; counts unless said otherwise.

    Attributes:
        pass_index: Which pass, from 0.
        layer: Which layer, from 1.
        num_prefixes: Prefixes broadcast.
        num_candidates: Candidates voted on.
        domain_size: Candidates and the dummy.
        num_clients: Clients that answered.
        num_reports: Reports received, dummies included.
        threshold: Votes of the last candidate kept.
        threshold_z: Standard deviations of the noise, above its mean, at which the votes stand that
            decide (`Noise.threshold_z`); NaN where the round drops nothing, or decides by something
            else than the votes of this round against their noise.
        noise_std: Standard deviation of a count's estimate where nobody holds the candidate.
        num_kept: Candidates kept.
        num_finished: Kept candidates that are words.
        kept_by: What the candidates were kept by: the most "votes" of the round; the "posterior"
            of all rounds; a "recount", of words that have enough votes; or "evidence", a recount
            that adds up the votes of several rounds.
        report_bits: Bits of one report.
        download_bits: Bits of the broadcast to one client.
    """

    pass_index: int
    layer: int
    num_prefixes: int
    num_candidates: int
    domain_size: int
    num_clients: int
    num_reports: int
    threshold: int
    threshold_z: float
    noise_std: float
    num_kept: int
    num_finished: int
    report_bits: float
    download_bits: float
    kept_by: Literal["votes", "posterior", "recount", "evidence"] = "votes"

    @property
    def decides(self) -> bool:
        """Whether the layer dropped a candidate; its votes say something only then."""
        return self.num_kept < self.num_candidates


class DiscoveryProtocol(ABC, Generic[State, QueryType]):
    """A server's side of a discovery: it emits queries and digests aggregates.

    Subclasses are frozen dataclasses of settings, see `fedhh.settings`. There is no I/O, no
    randomness and no client in here, and a state says all that is needed to go on: a run can stop
    and resume at any round. Settings may be "auto" until `settle` has decided them.
    """

    name: ClassVar[str]
    """What a configuration calls the protocol."""

    title: ClassVar[str]
    """What tables and figures call it."""

    state_types: ClassVar[tuple[type[Any], ...]]
    """The dataclasses that a state is made of, for the checkpoint."""

    truncates_words: ClassVar[bool] = False
    """Whether words that are longer take part, by as many of their first symbols."""

    @property
    @abstractmethod
    def symbols(self) -> Alphabet:
        """Symbols that a discovered word may have."""

    @property
    @abstractmethod
    def longest_word(self) -> int:
        """Symbols of the longest word that can be discovered."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What a run does with its clients' data; known once the settings are settled."""

    @abstractmethod
    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings for one population and seed: nothing is "auto", hashes are drawn.

        Args:
            num_clients: Clients of the population.
            seed: The run's seed.

        Raises:
            InputError: There are too few clients; with the numbers and a cure.
        """

    def with_central_epsilon(self, epsilon: float) -> Self:
        """Return the settings for a central epsilon that they state themselves, at their delta.

        Protocols with a trusted aggregator replace the settings that noise, samples and thresholds
        follow from. Others return themselves: accounting says what their local epsilon is worth.

        Args:
            epsilon: Central privacy of a user, above 0.

        Raises:
            InputError: The settings are such that nothing follows from a central epsilon.
        """
        return self

    def check_population(self, num_clients: int) -> None:
        """Raise InputError, with the numbers and a cure, if there are too few clients."""
        mechanism = self.mechanism
        largest = max(layer.num_clients for layer in mechanism.layers)
        if mechanism.reuses_clients or len(mechanism.layers) == 1:
            if largest > num_clients:
                raise InputError(
                    f"Expected clients_per_layer <= {num_clients}, the population's size, got "
                    f"clients_per_layer={largest}."
                )
            return
        if mechanism.most_answers > num_clients:
            rounds = len(mechanism.layers)
            raise InputError(
                f"The population has {num_clients:,} clients, but {rounds} layers of up to "
                f"{largest:,} clients need {mechanism.most_answers:,}, since no client is asked "
                f"twice. Set clients_per_layer <= {num_clients // rounds:,}, or ask for fewer "
                "passes or layers."
            )

    @abstractmethod
    def initialize(self) -> State:
        """Return the state before the first query."""

    @abstractmethod
    def next_query(self, state: State) -> QueryType | None:
        """Return what to broadcast next, or None when the discovery is over."""

    @abstractmethod
    def finish_round(self, state: State, query: QueryType, aggregate: Aggregate) -> State:
        """Return the state after the answers to a query.

        Raises:
            ValueError: The aggregate does not belong to the query.
        """

    @abstractmethod
    def discoveries(self, state: State) -> Discoveries:
        """Return the words found so far."""

    @abstractmethod
    def summaries(self, state: State) -> Sequence[RoundSummary]:
        """Return one summary per finished round."""


AnyProtocol = DiscoveryProtocol[Any, Any]
