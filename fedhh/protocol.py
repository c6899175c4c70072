"""The interface of a discovery protocol: a pure state machine on the server's side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt

from fedhh.alphabet import Alphabet
from fedhh.queries import Aggregate, Query

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
    """

    words: Sequence[str]
    pass_index: npt.NDArray[np.int64]
    layer: npt.NDArray[np.int64]
    estimate: npt.NDArray[np.float64]
    z: npt.NDArray[np.float64]
    num_clients: npt.NDArray[np.int64]
    variance: npt.NDArray[np.float64]

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
        subset_size: Values in a report, where the oracle has such a number; 0 otherwise.
        num_clients: Clients that answered.
        num_reports: Reports received, dummies included.
        threshold: Votes of the last candidate kept.
        threshold_z: The same in standard deviations of the noise, above its mean.
        noise_std: Standard deviation of a count's estimate where nobody holds the candidate.
        num_kept: Candidates kept.
        num_finished: Kept candidates that are words.
        report_bits: Bits of one report.
        download_bits: Bits of the broadcast to one client.
    """

    pass_index: int
    layer: int
    num_prefixes: int
    num_candidates: int
    domain_size: int
    subset_size: int
    num_clients: int
    num_reports: int
    threshold: int
    threshold_z: float
    noise_std: float
    num_kept: int
    num_finished: int
    report_bits: float
    download_bits: float

    @property
    def decides(self) -> bool:
        """Whether the layer dropped a candidate; its votes say something only then."""
        return self.num_kept < self.num_candidates


class DiscoveryProtocol(ABC, Generic[State, QueryType]):
    """A server's side of a discovery: it emits queries and digests aggregates.

    Subclasses are frozen dataclasses of settings. There is no I/O, no randomness and no client in
    here, and a state says all that is needed to go on: a run can stop and resume at any round.
    """

    title: ClassVar[str]
    """What tables and figures call the protocol."""

    state_types: ClassVar[tuple[type[Any], ...]]
    """The dataclasses that a state is made of, for the checkpoint."""

    @property
    @abstractmethod
    def symbols(self) -> Alphabet:
        """Symbols that a discovered word may have."""

    @property
    @abstractmethod
    def longest_word(self) -> int:
        """Symbols of the longest word that can be discovered."""

    @property
    def truncates_words(self) -> bool:
        """Whether words that are longer take part, by as many of their first symbols."""
        return False

    def for_run(self, seed: int) -> Self:
        """Return these settings with what a run draws from its seed before it starts."""
        return self

    @property
    @abstractmethod
    def contribution_epsilon(self) -> float:
        """Local privacy of one contribution (item level); infinite without any."""

    @property
    @abstractmethod
    def contributions_per_client(self) -> int:
        """Contributions that a client makes at most, in all its reports together."""

    @property
    @abstractmethod
    def randomizer(self) -> str:
        """What reports go through, for accounting: an oracle's key; "none" for no randomizer."""

    @property
    def pads_reports(self) -> bool:
        """Whether every client sends exactly as many reports as any other."""
        return True

    @property
    def reuses_clients(self) -> bool:
        """Whether a client may serve in several rounds."""
        return False

    @property
    @abstractmethod
    def rounds_expected(self) -> int:
        """Rounds of a run at most."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Passes, and the number of a pass's last layer."""

    @property
    @abstractmethod
    def answers_expected(self) -> int:
        """Answers of clients that a run collects at most; a client reused counts each time."""

    @abstractmethod
    def check_population(self, num_clients: int) -> None:
        """Raise InputError, with the numbers and a cure, if there are too few clients."""

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
