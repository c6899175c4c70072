"""How Adaptive TrieHH divides its clients, and how many prefixes these are enough for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Literal

from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.server.local_discovery import ValidationShare
from fedhh.settings import AUTO, CountOrAuto, decided
from fedhh.validation import InputError

_FRONT_LOADED = (40, 40, 40, 40, 30, 24, 20, 14, 10, 5)
"""Sizes of front-loaded cohorts, relative to each other; the last one is that of all later ones."""

_LARGE_DOMAIN = 100_000
"""The noise of Subset Selection hardly depends on the domain beyond so many values."""

_DETECTABLE = 2.5
_PREFIXES_PER_WORD = 0.15
_FEWEST_PREFIXES, _MOST_PREFIXES = 1_000, 30_000


@dataclass(frozen=True, kw_only=True)
class AdaptiveCohorts(LdpTrieHH):
    """Settings of a trie whose layers ask cohorts of different sizes, none below a floor.

    Attributes:
        ranking: What a layer keeps: the prefixes with the most "votes", as the paper, or those
            that are likeliest to be held, by the "posterior" of all layers.
        front_loaded: Ask most clients in the first layers, where prefixes are decided, and few
            where chains repeat themselves.
        least_cohort: Fewest clients of a layer, and of the validation round, where cohorts differ;
            "auto" for the cohorts that `LdpTrieHH` with its default settings would have, of the
            same clients, alphabet and depth: then the central guarantee before the run is no
            weaker than its. Without that limit (1), late layers are small and little amplified.
        validation_share: See `LdpTrieHH`; at least ``least_cohort`` clients.
    """

    ranking: Literal["posterior", "votes"] = "posterior"
    front_loaded: bool = True
    least_cohort: CountOrAuto = AUTO
    validation_share: ValidationShare = 0.1

    @property
    def has_posterior(self) -> bool:
        """Whether what earlier layers showed counts."""
        return self.ranking == "posterior"

    @property
    def num_cohorts(self) -> int:
        """As many as symbols, however many layers decide, so that N says what is asked in all."""
        return self.depth if self.has_posterior else super().num_cohorts

    def resolve(self, num_clients: int) -> dict[str, Any]:
        """Return ``least_cohort`` before the cohorts.

        If there are too many layers for cohorts as large as those of `LdpTrieHH`, all are alike.
        """
        if self.least_cohort == AUTO:
            return {"least_cohort": self._fitting_cohort(num_clients)}
        return super().resolve(num_clients)

    def _fitting_cohort(self, num_clients: int) -> int:
        """Return N of `LdpTrieHH` with its default settings, or less if more layers share it."""
        share = self.validation_share if self.validates else 0
        cohorts, layers = self.num_cohorts, self.rounds_per_pass * self.passes
        asked, size = num_clients, int(num_clients * (1 - share)) // cohorts
        if self.clients_per_layer != AUTO:
            size = decided(self.clients_per_layer, "clients_per_layer")
            asked = min(asked, int(size * cohorts / (1 - share)))
        papers = LdpTrieHH(alphabet=self.alphabet, depth=self.depth)
        # If all cohorts are alike, with the validation round's share of the clients, or with less.
        alike = min(size * cohorts // layers, (asked - cohorts) // (layers + self.validates))
        return max(1, min(asked // papers.num_cohorts, alike))

    def kept_back(self, num_clients: int) -> float:
        """Return the validation round's clients of all; no fewer than any layer's."""
        share = super().kept_back(num_clients)
        return max(share, self._least_cohort) if self.validates else share

    @property
    def num_validation_clients(self) -> int:
        """As in `LdpTrieHH`, and no fewer than any layer's."""
        return max(super().num_validation_clients, self._least_cohort)

    @property
    def fewest_validated(self) -> int:
        """As many as the fewest candidates of a layer: no domain is smaller than a layer's."""
        return self.symbols.size if self.has_posterior else super().fewest_validated

    def cohort_size(self, pass_index: int, layer: int) -> int:
        if not self._has_own_cohorts:
            return super().cohort_size(pass_index, layer)
        return self._cohort_sizes[layer - self._first_layer]

    @property
    def _has_own_cohorts(self) -> bool:
        return self.participation == "one-round" and (self.front_loaded or self.has_posterior)

    @property
    def _least_cohort(self) -> int:
        return decided(self.least_cohort, "least_cohort") if self._has_own_cohorts else 1

    @cached_property
    def _first_layer(self) -> int:
        return self.initial()[0].length

    @cached_property
    def _cohort_sizes(self) -> tuple[int, ...]:
        rounds = self.rounds_per_pass
        total = decided(self.clients_per_layer, "clients_per_layer")
        total *= self.num_cohorts if self.has_posterior else rounds
        least = self._least_cohort
        return cohort_sizes(rounds, total, front_loaded=self.front_loaded, least=least)


def cohort_sizes(rounds: int, total: int, *, front_loaded: bool, least: int = 1) -> tuple[int, ...]:
    """Return the sizes of so many cohorts that together have exactly ``total`` clients.

    The smallest cohort decides what amplification by shuffling gives, so that front-loaded sizes
    have a floor: cohorts below it are raised to it, and the others share the rest by their weights.

    Args:
        rounds: Cohorts.
        total: Clients.
        front_loaded: Whether the first cohorts are the largest; otherwise all are alike.
        least: Fewest clients of a cohort, at least 1.

    Raises:
        InputError: There are too few clients.
    """
    if rounds * least > total:
        raise InputError(
            f"Expected at least {rounds * least:,} clients for {rounds} layers of at least "
            f"{least:,} each, got {total:,}; set least_cohort <= {max(1, total // rounds):,}, or "
            "ask more clients or fewer layers."
        )
    weights = [1] * rounds
    if front_loaded:
        later = [_FRONT_LOADED[-1]] * (rounds - len(_FRONT_LOADED))
        weights = [*_FRONT_LOADED, *later][:rounds]
    raised = 0
    while True:
        # Weights do not increase, so that those to be raised are the last ones.
        shared, rest = weights[: rounds - raised], total - raised * least
        if shared[-1] * rest >= least * sum(shared):
            break
        raised += 1
    ends = [rest * part // sum(shared) for part in accumulate(shared, initial=0)]
    return (*(end - start for start, end in pairwise(ends)), *[least] * raised)


def share_noise(spec: OracleSpec, *, max_items: int, num_clients: int) -> float:
    """Return the deviation of an estimated share of clients that hold a word, of nobody's word.

    Args:
        spec: The randomizer of a report.
        max_items: B, reports of a client.
        num_clients: Clients whose reports are estimated from.
    """
    oracle = make_pure_oracle(spec, _LARGE_DOMAIN)
    variance = float(oracle.variance(0, 1)) if math.isfinite(oracle.epsilon) else 0.0
    return math.sqrt(max(variance, 1e-9) * max_items / num_clients)


def fitting_eta(spec: OracleSpec, *, max_items: int, num_clients: int) -> int:
    """Return how many prefixes to keep per layer.

    The least share of clients that an estimate by all of them could tell from nothing is 2.5
    standard deviations of its noise. Words of that share, with B of them for each client, would
    be as many as B over the share. A seventh of that is kept, since clients hold less than B
    words and most are held by more; and between 1,000 and 30,000.

    Args:
        spec: The randomizer of a report.
        max_items: B, reports of a client.
        num_clients: Clients of all layers.
    """
    noise = share_noise(spec, max_items=max_items, num_clients=num_clients)
    wanted = round(_PREFIXES_PER_WORD * max_items / (_DETECTABLE * noise))
    return min(max(wanted, _FEWEST_PREFIXES), _MOST_PREFIXES)
