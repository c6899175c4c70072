"""A round: what a plan says of it, and, once it took place, what the server knows of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fedhh.questions.cohort import NOBODY, Cohort
from fedhh.validation import InputError, shown

KeptBy = Literal["votes", "threshold", "estimates", "posterior", "validation", "evidence"]


def epoch_of(place: int, num_rounds: int, epochs: int) -> int:
    """Return in which of some epochs a round is: in each as many rounds, up to one."""
    return place * epochs // num_rounds


def check_epochs(epochs: int, num_rounds: int) -> None:
    """Raise InputError unless each of some epochs has a round."""
    if not 1 <= epochs <= num_rounds:
        raise InputError(
            f"Expected 1 <= epochs <= {num_rounds}, got epochs={shown(epochs)}; the plan has "
            f"{num_rounds} rounds, one epoch for each at most: set epochs <= {num_rounds}, or "
            "participation='every-round'."
        )


@dataclass(frozen=True, kw_only=True)
class PlannedRound:
    """A round that a run may have, by what is known of it before the run.

    Attributes:
        layer: Which layer of the pass, from 1.
        num_clients: Clients to be asked.
        smallest_domain: Fewest values that the layer's randomizer may have, the dummy included.
        largest_domain: Most values that it may have.
        pass_index: Which pass, from 0.
        max_items: B, contributions of a client at most.
        padded: Whether every client sends exactly B.
        local_epsilon: Local privacy of one contribution; infinite without any.
        place: Its place in the plan, from 0; the plan gives it.
        cohort: Whom it asks; the plan gives it.
        validates: Whether it is the validation round, about the words that earlier ones found.
        least_clients: Fewest clients whose answers it accepts; None if all of them answer. What is
            claimed before a run holds for every number of answers that it accepts, which must
            not depend on what clients hold.
        opens_with_previous: Whether its question needs no answer to the round before it, so that
            both may be open at the same time.
        num_reports: Reports that came, once the round took place; None before.
    """

    layer: int
    num_clients: int
    smallest_domain: int
    largest_domain: int
    pass_index: int = 0
    max_items: int = 1
    padded: bool = True
    local_epsilon: float = math.inf
    place: int = 0
    cohort: Cohort = NOBODY
    validates: bool = False
    least_clients: int | None = None
    opens_with_previous: bool = False
    num_reports: int | None = None

    @property
    def fewest_clients(self) -> int:
        """Clients that answer at least."""
        if self.least_clients is None:
            return self.num_clients
        return min(self.least_clients, self.num_clients)

    @property
    def fewest_reports(self) -> int:
        """Reports that come at least, where every client sends B."""
        if self.num_reports is None:
            return self.fewest_clients * self.max_items
        return self.num_reports


@dataclass(frozen=True, kw_only=True)
class RoundSizes:
    """What a round asked, and what came back; counts unless said otherwise.

    Attributes:
        pass_index: Which pass, from 0.
        layer: Which layer, from 1.
        num_prefixes: Prefixes broadcast.
        domain_size: Values of the randomizer, the dummy included.
        num_clients: Clients that answered.
        num_reports: Reports received, dummies included.
        num_finished: Words that the round found.
        report_bits: Bits of one report.
        download_bits: Bits of the broadcast to one client.
    """

    pass_index: int
    layer: int
    num_prefixes: int
    domain_size: int
    num_clients: int
    num_reports: int
    num_finished: int
    report_bits: float
    download_bits: float


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What a round made of its candidates.

    Attributes:
        num_candidates: Candidates that it judged.
        num_kept: Candidates kept.
        threshold: Fewest votes with which a candidate was kept, or would have been if none was; 0
            where the round drops nothing by design, or decides by estimates and not by votes.
        threshold_z: Standard deviations of the noise, above its mean, at which ``threshold`` stands
            (`Noise.threshold_z`); NaN where the round drops nothing, or decides by something else
            than the votes of this round.
        threshold_estimate: Least estimated count with which a candidate was kept, in the unit of
            the round's estimates; 0 unless it decides by "estimates", and if it keeps none.
        noise_std: Standard deviation of a count's estimate where no client holds the candidate.
        kept_by: What the candidates were kept by: the most "votes" of the round; votes above a
            "threshold" that noise hardly reaches; "estimates" that follow from all answers
            together, or have noise of the server's; the "posterior" of all rounds; a "validation",
            of words that have enough votes; or "evidence", a validation round that adds up the
            votes of several rounds.
        num_exceeding: Kept prefixes whose estimated share of clients exceeds their parents' by more
            than chance, by five standard deviations of both layers; 0 where no two layers are
            compared.
    """

    num_candidates: int
    num_kept: int
    threshold: int = 0
    threshold_z: float = math.nan
    threshold_estimate: float = 0.0
    noise_std: float = 0.0
    kept_by: KeptBy = "votes"
    num_exceeding: int = 0

    @property
    def decides(self) -> bool:
        """Whether the layer dropped a candidate; its votes say something only then."""
        return self.num_kept < self.num_candidates


@dataclass(frozen=True, kw_only=True)
class RoundSummary(Decision, RoundSizes):
    """What the server knows after a round: its sizes, and what it decided."""


Rounds = Sequence[RoundSummary]
"""Rounds that took place."""
