"""What discoveries under local differential privacy share: how a client contributes."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Generic, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from fedhh.mechanisms.base import PlannedLayer
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.protocol import DiscoveryProtocol, QueryType, RoundSummary, State
from fedhh.queries.base import Aggregate, PrefixQuery
from fedhh.server.evidence import Evidence
from fedhh.server.found import Found
from fedhh.server.noise import Noise
from fedhh.settings import (
    AUTO,
    CountOrAuto,
    FromConfig,
    Items,
    PrivacyBudget,
    check_settings,
    decided,
)
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.rows import match_rows
from fedhh.words.trie import Codes, PrefixTrie

FalseDiscoveryRate = Annotated[float, Ge(0), Lt(1)]
"""A bound on the expected share of false discoveries; 0 for none."""

AnonymityK = Annotated[int, Ge(0), Le(1_000)]
"""Clients that may hold a word which is still not to be returned."""

RecountShare = Annotated[float, Gt(0), Lt(1)]
"""Part of all clients."""


@dataclass(frozen=True, kw_only=True)
class CohortProtocol(DiscoveryProtocol[State, QueryType], Generic[State, QueryType]):
    """A discovery under local privacy that asks cohorts of clients, and may recount its words.

    Attributes:
        local_epsilon: Privacy of one contribution.
        alphabet: "printable", "lower", or the symbols themselves.
        clients_per_layer: N, size of each cohort; "auto" divides the whole population among the
            cohorts.
        false_discovery_rate: Of the words that a run returns, the expected share that at most
            ``anonymity_k`` clients hold is at most this: a last cohort is held out and asked about
            the found words only (the validation round), and those return that Benjamini and
            Hochberg's rule lets through. 0 for no validation round.
        anonymity_k: k of the validation round: a word that at most so many clients of the
            population hold is returned with probability at most ``false_discovery_rate``. With 0,
            the round tests only whether anybody holds it.
        recount_share: Share of all clients that the validation round asks, where there is one.
    """

    local_epsilon: Annotated[PrivacyBudget, FromConfig("privacy.local_epsilon")] = 8.0
    alphabet: Annotated[str, FromConfig("population.alphabet")] = "lower"
    clients_per_layer: CountOrAuto = AUTO
    false_discovery_rate: FalseDiscoveryRate = 0.0
    anonymity_k: AnonymityK = 20
    recount_share: RecountShare = 0.25

    def __post_init__(self) -> None:
        check_settings(self)
        # Made once here so that a bad alphabet is refused before anything runs.
        _ = self.symbols

    @property
    def symbols(self) -> Alphabet:
        """The alphabet as an object."""
        return Alphabet.named(self.alphabet)

    @property
    @abstractmethod
    def max_items(self) -> int:
        """B, contributions per client."""

    @property
    @abstractmethod
    def sampler(self) -> Literal["random", "greedy"]:
        """How a client with more than B values chooses."""

    @property
    @abstractmethod
    def pad(self) -> bool:
        """Whether every client sends exactly B contributions."""

    @property
    @abstractmethod
    def num_cohorts(self) -> int:
        """Cohorts that share the population; 1 where each may be drawn from all clients."""

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with the largest cohorts that fit, unless their size is given."""
        settled = self
        if self.clients_per_layer == AUTO:
            size = int(num_clients - self.kept_back(num_clients)) // self.num_cohorts
            if size < 1:
                left = " without the recount's part" if self.recounts else ""
                raise InputError(
                    f"The population has {num_clients:,} clients,{left} fewer than the "
                    f"{self.num_cohorts} layers that ask fresh ones; ask for fewer passes or "
                    "layers."
                )
            settled = replace(self, clients_per_layer=size)
        settled.check_population(num_clients)
        return settled

    def check_population(self, num_clients: int) -> None:
        """Raise InputError if there are too few clients for the layers and the recount."""
        mechanism = self.mechanism
        if not self.recounts or mechanism.reuses_clients or mechanism.most_answers <= num_clients:
            super().check_population(num_clients)
            return
        largest = int(num_clients - self.kept_back(num_clients)) // self.num_cohorts
        raise InputError(
            f"The population has {num_clients:,} clients, but {len(mechanism.layers) - 1} layers "
            f"and a recount need {mechanism.most_answers:,}, since no client is asked twice. Set "
            f"clients_per_layer <= {largest:,}, or ask for fewer passes or layers."
        )

    def kept_back(self, num_clients: int) -> float:
        """Return how many of all clients the validation round asks, 0 if there is none."""
        return num_clients * self.recount_share if self.recounts else 0

    @property
    def recounts(self) -> bool:
        """Whether a last cohort says which words are real."""
        return self.false_discovery_rate > 0

    @property
    def recount_oracle(self) -> OracleSpec:
        """The recount's randomizer, which spends a contribution's whole budget."""
        params = {"subset_size": "optimal"}
        return OracleSpec(name="ss", epsilon=self.local_epsilon, params=params)

    @property
    def num_recount_clients(self) -> int:
        """Clients of the recount, so that ``recount_share`` of all are its."""
        size = decided(self.clients_per_layer, "clients_per_layer") * self.num_cohorts
        return max(1, int(size * self.recount_share / (1 - self.recount_share)))

    @property
    def fewest_validated(self) -> int:
        """Words that the validation round asks about at least, at most the alphabet's size.

        If there are fewer candidates, words of at most one symbol fill them up, whose votes do not
        count: a larger domain of Subset Selection amplifies more.
        """
        return 1

    def planned_recount(
        self, pass_index: int, layer: int, *, most_words: int
    ) -> tuple[PlannedLayer, ...]:
        """Return the recount as a last round, if there is one.

        Args:
            pass_index: The pass that it counts as.
            layer: The layer that it counts as.
            most_words: Words that it may be about.
        """
        if not self.recounts:
            return ()
        planned = PlannedLayer(
            pass_index=pass_index,
            layer=layer,
            num_clients=self.num_recount_clients,
            smallest_domain=self.fewest_validated + 1,
            largest_domain=max(most_words, self.fewest_validated) + 1,
        )
        return (planned,)

    def recount_query(self, codes: Codes, *, pass_index: int, layer: int) -> PrefixQuery | None:
        """Return a broadcast of words to vote on; None if there is no recount, or no word.

        Args:
            codes: ``(c, width) uint16``, at most `longest_word` symbols and the end symbol each.
            pass_index: The pass that it counts as.
            layer: The layer that it counts as.
        """
        if not (self.recounts and len(codes)):
            return None
        short = np.zeros((self.symbols.size, codes.shape[1]), dtype=np.uint16)
        short[:-1, 0] = np.arange(1, len(short))
        missing = max(0, self.fewest_validated - len(codes))
        filling = short[match_rows(short, codes) < 0][:missing]
        return self.words_query(
            np.concatenate([codes, filling]),
            self.recount_oracle,
            pass_index=pass_index,
            layer=layer,
        )

    def words_query(
        self, codes: Codes, oracle: OracleSpec, *, pass_index: int, layer: int
    ) -> PrefixQuery:
        """Return a broadcast that asks which of some whole words clients hold.

        Args:
            codes: ``(c, width) uint16``, at most `longest_word` symbols and the end symbol each.
            oracle: The randomizer.
            pass_index: The pass that it counts as.
            layer: The layer that it counts as.
        """
        width = self.longest_word + 1
        words = np.zeros((len(codes), width), dtype=np.uint16)
        words[:, : codes.shape[1]] = codes
        alphabet = self.symbols
        return PrefixQuery(
            pass_index=pass_index,
            layer=layer,
            cohort=self.mechanism.cohort(pass_index, layer),
            alphabet=alphabet,
            trie=PrefixTrie.empty(alphabet.size),
            finished=words,
            excluded=np.zeros((0, width), dtype=np.uint16),
            oracle=oracle,
            max_items=self.max_items,
            sampler=self.sampler,
            pad=self.pad,
        )

    def recounted(
        self,
        found: Found,
        query: PrefixQuery,
        aggregate: Aggregate,
        *,
        earlier: Evidence | None = None,
    ) -> tuple[Found, RoundSummary]:
        """Return the words that a recount lets through, and its summary.

        Args:
            found: The words that it was about.
            query: Its broadcast, in which these come first.
            aggregate: Its answers.
            earlier: What other clients said about the words after these were found.

        Raises:
            ValueError: The aggregate does not belong to the query.
        """
        aggregate.check_answers(query)
        oracle = make_pure_oracle(query.oracle, query.domain_size)
        votes = aggregate.tally[: len(found.codes)]
        recount = Evidence.nothing(len(votes)).heard(oracle, votes, aggregate)
        evidence = recount if earlier is None else earlier.heard(oracle, votes, aggregate)
        accepted, chosen = evidence.accepted(
            found, self.false_discovery_rate, recount=recount, anonymity_k=self.anonymity_k
        )
        least = int(votes[chosen].min()) if chosen.any() else int(votes.max()) + 1
        noise = Noise(oracle=oracle, num_reports=aggregate.num_reports)
        dropped = len(votes) - len(accepted.codes)
        # Votes of several rounds decide together.
        alone = earlier is None
        threshold_z = noise.threshold_z(least, num_dropped=dropped) if alone else math.nan
        summary = RoundSummary(
            pass_index=query.pass_index,
            layer=query.layer,
            num_prefixes=0,
            num_candidates=query.num_candidates,
            domain_size=query.domain_size,
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            threshold=least,
            threshold_z=threshold_z,
            noise_std=noise.std,
            num_kept=len(accepted.codes),
            num_finished=len(accepted.codes),
            report_bits=oracle.report_bits,
            download_bits=query.download_bits,
            kept_by="recount" if earlier is None else "evidence",
        )
        return accepted, summary


@dataclass(frozen=True, kw_only=True)
class LocalProtocol(CohortProtocol[State, QueryType], Generic[State, QueryType]):
    """A discovery whose clients choose B items each and randomize every one of them.

    Attributes:
        max_items: B, contributions per client.
        sampler: How a client with more than B values chooses: "random" or "greedy".
        pad: Fill up with dummies to exactly B contributions. Without it, the number of a client's
            reports depends on its data.
    """

    max_items: Items = 10
    sampler: Literal["random", "greedy"] = "random"
    pad: bool = True
