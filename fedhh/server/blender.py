"""BLENDER: clients who opt in to a trusted curator find the words, all together count them.

Source: Avent, Korolova, Zeber, Hovden, Livshits (2017), "BLENDER: enabling local search with a
hybrid differential privacy model", USENIX Security.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from fedhh.hashing import derived_seeds
from fedhh.mechanisms.base import PlannedLayer
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.mechanisms.opt_in import OptInBlend
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.protocol import Discoveries, RoundSummary
from fedhh.queries.base import Aggregate, PrefixQuery
from fedhh.queries.cohort import Cohort
from fedhh.queries.plain_words import PlainWordsQuery
from fedhh.server.blending import Floats, Shares, client_shares, with_floor
from fedhh.server.curator import Curator
from fedhh.server.found import Found
from fedhh.server.local_discovery import LocalProtocol
from fedhh.server.noise import Noise
from fedhh.settings import Count, FromConfig, Items, Layers, decided
from fedhh.validation import SMALLEST_EPSILON, InputError
from fedhh.words.trie import Codes

_HEAD, _OPT_IN, _CLIENTS, _RECOUNT = 1, 2, 3, 4
"""Layers of the one pass."""

_FEWEST = 2
"""Clients of a group: a variance needs two."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BlenderState:
    """Where a run of BLENDER stands; nothing in here but what the curator may publish.

    Attributes:
        head: ``(c, length) uint16``: the words of the head list, most frequent first.
        share: ``(c,) float64``: shares of the opt-in clients that contribute each; empty before.
        variance: ``(c,) float64``: of these estimates.
        found: The words with their blended estimates; empty before the clients' answers.
        history: One summary per finished round.
    """

    head: Codes
    share: Floats
    variance: Floats
    found: Found
    history: tuple[RoundSummary, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Blender(LocalProtocol[BlenderState, PlainWordsQuery | PrefixQuery]):
    """Settings of BLENDER, for words.

    Some clients have opted in: they trust a curator with plain words, which publishes only what is
    differentially private. A part of them finds the head list, words whose noisy count exceeds a
    threshold; the rest of them counts the list's words, with noise. All other clients randomize
    what they say about the list. Both estimates of each word's share of clients are averaged by
    their inverse variances (`blending`).

    A run makes two promises, one to each group: see `fedhh.mechanisms.opt_in`. No client is in two
    groups. A word is on the list only if somebody holds it, so that precision is 1 by construction.

    Where this differs from the paper: there are words only, no URLs below them; and clients choose
    their B contributions among the list's words, with the dummy for what is left, as in all
    protocols here, where the paper sends a wildcard for every record that is not on the list.

    Attributes:
        clients_per_layer: Clients of all groups together; "auto" for the whole population.
        opt_in_share: Share of the clients that opted in.
        head_share: Share of those that finds the head list; the rest counts it.
        opt_in_epsilon: Central privacy of a client who opted in, for all it contributes.
        delta: Its delta.
        head_items: Words that a client contributes to finding the list, at most. The noise grows
            with it.
        length: Symbols of the longest word.
        max_words: Most words of the list.
        oracle: Randomizer of the other clients: "grr" (the paper's), or "ss".
        noise_seed: Seed of the curator's noise, which no query carries; None for the run's. The
            seed of the names of words, which clients are told, is drawn from it by another stream.
    """

    name: ClassVar[str] = "blender"
    title: ClassVar[str] = "BLENDER"
    state_types: ClassVar[tuple[type[Any], ...]] = (BlenderState, Found, RoundSummary)

    opt_in_share: Annotated[float, Gt(0), Lt(1)] = 0.05
    head_share: Annotated[float, Gt(0), Lt(1)] = 0.5
    opt_in_epsilon: Annotated[float, Ge(SMALLEST_EPSILON), Le(100)] = 4.0
    delta: Annotated[float, Gt(0), Lt(1), FromConfig("privacy.delta")] = 1e-10
    head_items: Items = 1
    length: Layers = 10
    max_words: Count = 500
    oracle: Literal["grr", "ss"] = "grr"
    noise_seed: Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # Computed once here so that a delta without a threshold is refused before anything runs.
        _ = self.curator.threshold

    @property
    def curator(self) -> Curator:
        """Whom the clients trust that opted in."""
        return Curator(
            epsilon=self.opt_in_epsilon,
            delta=self.delta,
            head_items=self.head_items,
            max_items=self.max_items,
            seed=self.noise_seed or 0,
        )

    @property
    def longest_word(self) -> int:
        """The field ``length``."""
        return self.length

    @property
    def num_cohorts(self) -> int:
        """The groups share one cohort."""
        return 1

    @property
    def groups(self) -> tuple[Cohort, Cohort, Cohort]:
        """Who finds the list, who else opted in, and who did not."""
        clients = decided(self.clients_per_layer, "clients_per_layer")
        opted_in = round(clients * self.opt_in_share)
        head = round(opted_in * self.head_share)
        sizes = (head, opted_in - head, clients - opted_in)
        if min(sizes) < _FEWEST:
            raise InputError(
                f"Expected at least {_FEWEST} clients in each group, got {sizes[0]:,} that find "
                f"the list, {sizes[1]:,} that count it and {sizes[2]:,} that did not opt in, of "
                f"{clients:,}; change opt_in_share or head_share, or ask more clients."
            )
        starts = (0, head, opted_in)
        first, second, third = (
            Cohort(start=start, size=size) for start, size in zip(starts, sizes, strict=True)
        )
        return first, second, third

    @property
    def mechanism(self) -> OptInBlend:
        """The curator's two layers, and randomized reports of the clients that did not opt in."""
        head, opt_in, clients = self.groups
        words = self.records(head).domain_size

        def layer(number: int, cohort: Cohort, smallest: int, largest: int) -> PlannedLayer:
            return PlannedLayer(
                pass_index=0,
                layer=number,
                num_clients=cohort.size,
                smallest_domain=smallest,
                largest_domain=largest,
            )

        local = LocalReports(
            layers=(
                layer(_CLIENTS, clients, 2, self.max_words + 1),
                *self.planned_recount(0, _RECOUNT, most_words=self.max_words),
            ),
            max_items=self.max_items,
            padded=self.pad,
            false_discovery_rate=self.false_discovery_rate,
            anonymity_k=self.anonymity_k,
            randomizers=(self._randomizer,),
            recount_randomizer=self.recount_oracle if self.recounts else None,
        )
        return OptInBlend(
            layers=(
                layer(_HEAD, head, words, words),
                layer(_OPT_IN, opt_in, 2, self.max_words + 1),
                *local.layers,
            ),
            max_items=max(self.max_items, self.head_items),
            padded=self.pad,
            opt_in_epsilon=self.opt_in_epsilon,
            opt_in_delta=self.delta,
            local=local,
        )

    def with_central_epsilon(self, epsilon: float) -> Self:
        """Return the settings with this epsilon for the clients who opted in."""
        return replace(self, opt_in_epsilon=epsilon)

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with everybody in a group, and the run's noise."""
        settled = super().settle(num_clients=num_clients, seed=seed)
        return settled if self.noise_seed is not None else replace(settled, noise_seed=seed)

    def check_population(self, num_clients: int) -> None:
        """Raise InputError if there are too few clients for the groups and the recount."""
        clients = decided(self.clients_per_layer, "clients_per_layer")
        kept_back = self.num_recount_clients if self.recounts else 0
        _ = self.groups
        if clients + kept_back > num_clients:
            largest = int(num_clients * (1 - self.recount_share)) if kept_back else num_clients
            raise InputError(
                f"Expected clients_per_layer <= {largest}, of a population of {num_clients:,}, got "
                f"clients_per_layer={clients}."
            )

    def initialize(self) -> BlenderState:
        """Return the state before the first query."""
        return BlenderState(
            head=np.zeros((0, self.length), dtype=np.uint16),
            share=np.zeros(0),
            variance=np.zeros(0),
            found=Found.nothing(self.length),
        )

    def next_query(self, state: BlenderState) -> PlainWordsQuery | PrefixQuery | None:
        """Return the broadcast to the next group, the recount after the last, then None."""
        layer = len(state.history) + 1
        if layer == _HEAD:
            return self.records(self.groups[0])
        if not len(state.head) or layer > _RECOUNT:
            return None
        if layer < _RECOUNT:
            curated = layer == _OPT_IN
            query = self.words_query(
                state.head,
                OracleSpec(name="none", epsilon=math.inf) if curated else self._randomizer,
                pass_index=0,
                layer=layer,
            )
            # How many words a client who opted in holds is for nobody but the curator.
            return replace(query, pad=self.pad or curated)
        return self.recount_query(state.found.codes, pass_index=0, layer=layer)

    def finish_round(
        self, state: BlenderState, query: PlainWordsQuery | PrefixQuery, aggregate: Aggregate
    ) -> BlenderState:
        """Return the state after a group's answers."""
        if isinstance(query, PlainWordsQuery):
            return self._with_head(state, query, aggregate)
        if query.layer == _RECOUNT:
            found, summary = self.recounted(state.found, query, aggregate)
            return replace(state, found=found, history=(*state.history, summary))
        aggregate.check_answers(query)
        if query.layer == _OPT_IN:
            return self._with_opt_in(state, query, aggregate)
        return self._with_clients(state, query, aggregate)

    def discoveries(self, state: BlenderState) -> Discoveries:
        """Return the words found, most frequent first; none before the clients' answers.

        Estimates are blended shares, times the clients that did not opt in; their variances are
        the blended ones, in which who was drawn into the groups is a part.
        """
        return state.found.discoveries(self.symbols)

    def summaries(self, state: BlenderState) -> Sequence[RoundSummary]:
        """Return one summary per finished round.

        Of the first, ``num_candidates`` are all strings that the alphabet allows: how many words
        the group holds is nobody's to know. Thresholds are estimated counts, rounded up: of the
        first round the curator's, of the others the least, since nothing is dropped.
        """
        return state.history

    def records(self, cohort: Cohort) -> PlainWordsQuery:
        """Return the question for plain words."""
        return PlainWordsQuery(
            pass_index=0,
            layer=_HEAD,
            cohort=cohort,
            alphabet=self.symbols,
            max_items=self.head_items,
            sampler=self.sampler,
            longest_word=self.length,
            hash_seed=self._public_seed,
        )

    @property
    def _public_seed(self) -> int:
        """Seed of the names of words: whoever reads it does not know the curator's noise."""
        (seed,) = derived_seeds(self.noise_seed or 0, 1)
        return seed

    @property
    def _randomizer(self) -> OracleSpec:
        params = {"subset_size": "optimal"} if self.oracle == "ss" else {}
        return OracleSpec(name=self.oracle, epsilon=self.local_epsilon, params=params)

    def _with_head(
        self, state: BlenderState, query: PlainWordsQuery, aggregate: Aggregate
    ) -> BlenderState:
        messages = aggregate.messages
        if messages is None or messages.shape[1:] != (self.length + 1,):
            raise ValueError(
                f"Expected messages of {self.length + 1} numbers, got "
                f"{None if messages is None else messages.shape[1:]}."
            )
        curator = self.curator
        head = curator.head_list(messages, layer=_HEAD, most=self.max_words)
        summary = self._summary(
            query,
            aggregate,
            num_kept=len(head),
            threshold=curator.threshold,
            noise_std=curator.head_noise_std,
            report_bits=self.length * math.log2(query.alphabet.size),
        )
        return replace(state, head=head, history=(*state.history, summary))

    def _with_opt_in(
        self, state: BlenderState, query: PrefixQuery, aggregate: Aggregate
    ) -> BlenderState:
        curator, counts = self.curator, aggregate.tally[: query.num_candidates]
        shares, least = curator.shares(counts, layer=_OPT_IN, num_clients=aggregate.num_clients)
        summary = self._summary(
            query,
            aggregate,
            num_kept=query.num_candidates,
            threshold=least,
            noise_std=curator.opt_in_noise_std,
            report_bits=math.log2(query.domain_size),
        )
        return replace(
            state,
            share=shares.share,
            variance=shares.variance,
            history=(*state.history, summary),
        )

    def _with_clients(
        self, state: BlenderState, query: PrefixQuery, aggregate: Aggregate
    ) -> BlenderState:
        oracle = make_pure_oracle(query.oracle, query.domain_size)
        clients, reports = aggregate.num_clients, aggregate.num_reports
        votes = aggregate.tally[: query.num_candidates]
        local = client_shares(votes, oracle, num_clients=clients, num_reports=reports)
        local = with_floor(local, float(oracle.variance(0, max(reports, 1))) / clients**2)
        blended = Shares(share=state.share, variance=state.variance).blend(local)
        order = np.argsort(-blended.share, kind="stable")
        share, variance = blended.share[order], blended.variance[order]
        noise = Noise(oracle=oracle, num_reports=reports)
        counted = Found.counted(
            query, aggregate, noise, codes=state.head[order], support=votes[order]
        )
        found = replace(
            counted,
            estimate=share * clients,
            variance=variance * clients**2,
            z=share / np.sqrt(variance),
        )
        summary = self._summary(
            query,
            aggregate,
            num_kept=query.num_candidates,
            threshold=float(share.min()) * clients,
            noise_std=noise.std,
            report_bits=oracle.report_bits,
        )
        return replace(state, found=found, history=(*state.history, summary))

    def _summary(
        self,
        query: PlainWordsQuery | PrefixQuery,
        aggregate: Aggregate,
        *,
        num_kept: int,
        threshold: float,
        noise_std: float,
        report_bits: float,
    ) -> RoundSummary:
        """Return a round's summary; a threshold is given as a count above the noise's mean."""
        return RoundSummary(
            pass_index=0,
            layer=query.layer,
            num_prefixes=0,
            num_candidates=query.num_candidates,
            domain_size=query.domain_size,
            num_clients=aggregate.num_clients,
            num_reports=aggregate.num_reports,
            threshold=math.ceil(threshold),
            threshold_z=math.nan,
            noise_std=noise_std,
            num_kept=num_kept,
            num_finished=num_kept if query.layer == _CLIENTS else 0,
            report_bits=report_bits,
            download_bits=query.download_bits,
        )
