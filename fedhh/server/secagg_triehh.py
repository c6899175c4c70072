"""LDP TrieHH's loop with plain votes, secure aggregation and noise that clients make together.

Source: Sun et al. (2024), Algorithm 2, for the loop; shares of discrete Laplace noise after
Goryczka, Xiong (2017), "A comprehensive comparison of multiparty secure additions with differential
privacy"; Skellam noise after Agarwal, Kairouz, Liu (2021), "The Skellam mechanism for
differentially private federated learning", whose bound is not used. Sections not verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from fedhh.accounting.noisy_sums import MOST_MODULUS, SecureSums, allowed_dropouts, least_modulus
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.questions.sums import SecureVotes
from fedhh.server.summed_trie import Modulus, SummedTrie
from fedhh.settings import AUTO, Passes, ShareOrNone, decided
from fedhh.validation import InputError, RunFailedError


@dataclass(frozen=True, kw_only=True)
class SecAggTrieHH(SummedTrie):
    """Settings of TrieHH by secure aggregation.

    Layers, cohorts and contributions are those of LDP TrieHH. A client adds one to the counts of
    the up to B prefixes that it chose, and a share of noise to every count; a secure sum modulo M
    shows the server the cohort's total and nothing else. The shares of a whole cohort add up to
    discrete Laplace noise (Polya shares: differences of negative binomials with shape 1/N), or to
    Skellam noise (differences of Poisson variables). Secure aggregation itself is not simulated:
    fedhh draws what it lets the server see.

    A client that drops out takes its share of the noise with it. ``max_dropout`` states how many
    may: the guarantee before the run is for so many missing shares, exactly, and a layer in which
    more are missing ends the run before the layer is published. Clients that tell the server
    their share count as missing.

    Distributed discrete Gaussian noise is not offered: the sum of n discrete Gaussians is none, and
    what that costs is 10 times the sum over k < n of exp(-2 pi**2 s**2 k / (k + 1)) in the privacy
    loss (Kairouz, Liu, Steinke 2021; numbering not verified), where n s**2 is the variance of the
    sum: 4.9 million at a standard deviation of 25 from 500,000 clients, and .02 at 700. It needs
    votes that are scaled up.

    Attributes:
        passes: Tries built one after the other; each leaves out what the earlier ones found.
        max_dropout: Part of a cohort whose shares of the noise may be missing.
        dropout: Part of the clients that drop out in a simulated run after they agreed to answer,
            each by itself; at most ``max_dropout``, and well below it for a run to succeed.
        modulus: M; "auto" for the least power of two with which sums wrap around with probability
            at most 1e-12 in a run. A smaller one than that probability allows is refused.
    """

    name: ClassVar[str] = "secagg-triehh"
    title: ClassVar[str] = "TrieHH, secure aggregation"
    trust_model: ClassVar[str] = "secure aggregation"

    passes: Passes = 1
    max_dropout: ShareOrNone = 0.0
    dropout: ShareOrNone = 0.0
    modulus: Modulus = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dropout > self.max_dropout:
            raise InputError(
                f"Expected dropout <= max_dropout={self.max_dropout:g}, for whose missing shares "
                f"the noise is made, got dropout={self.dropout:g}; set max_dropout >= "
                f"{self.dropout:g}, or dropout <= {self.max_dropout:g}."
            )

    @property
    def num_passes(self) -> int:
        return self.passes

    @property
    def least_noise(self) -> float:
        size = self.cohort_clients
        return self.noise_for(
            num_rounds=self.num_layers if self.participation == "every-round" else 1,
            part=(size - allowed_dropouts(self.max_dropout, size)) / size,
        )

    @property
    def least_modulus(self) -> int:
        """The least M that is not refused."""
        sums = self.passes * sum(largest - 1 for _, _, largest in self.domains())
        least = least_modulus(self.summed_noise, num_clients=self.cohort_clients, num_sums=sums)
        if least > MOST_MODULUS:
            raise InputError(
                f"Expected clients_per_layer < {MOST_MODULUS // 2:,} with noise_std="
                f"{self.noise_std}, got {self.cohort_clients:,}: sums have 64 bits."
            )
        return least

    @property
    def plan(self) -> SecureSums:
        return SecureSums(
            layers=self.planned_layers(),
            participation=self.participation,
            noise=self.summed_noise,
            modulus=decided(self.modulus, "modulus"),
            max_dropout=self.max_dropout,
        )

    def resolve(self, num_clients: int) -> dict[str, Any]:
        """Return the modulus, after the noise, of which the least one follows."""
        changes = super().resolve(num_clients)
        if changes:
            return changes
        least = self.least_modulus
        if self.modulus == AUTO:
            return {"modulus": 1 << (least - 1).bit_length()}
        modulus = decided(self.modulus, "modulus")
        if modulus < least:
            largest = (modulus - least) // 2 + self.cohort_clients
            fewer = f", or clients_per_layer <= {largest:,}" if largest > 0 else ""
            raise InputError(
                f"Expected modulus >= {least:,} for sums of {self.cohort_clients:,} votes with "
                f"noise_std={self.noise_std:.4g}, got modulus={modulus:,}, by which "
                f'they may wrap around; set modulus="auto"{fewer}.'
            )
        return {}

    def question(self, names: TrieNames) -> Question:
        channel = SecureVotes(
            num_candidates=names.num_candidates,
            noise=self.summed_noise,
            modulus=decided(self.modulus, "modulus"),
            dropout=self.dropout,
        )
        return self.asking(names, channel)

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return what a layer keeps.

        Raises:
            RunFailedError: More clients than allowed dropped out; nothing of the layer is
                published.
        """
        planned, num_clients = answers.planned, answers.aggregate.num_clients
        fewest = self.plan.fewest_shares(planned)
        if num_clients < fewest:
            missing = planned.num_clients - num_clients
            where = f"pass {planned.pass_index + 1}, layer {planned.layer}"
            raise RunFailedError(
                f"{self.name}: in {where}, {missing:,} of {planned.num_clients:,} clients dropped "
                f"out, and max_dropout="
                f"{self.max_dropout:g} allows {planned.num_clients - fewest:,}; without their "
                "noise the stated guarantee does not hold, and the layer is not published. Raise "
                "max_dropout."
            )
        return super().hear(run, answers)
