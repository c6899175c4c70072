"""Plans of a trie that reads noisy sums: by secure aggregation, or by two servers.

Both state a noise, and `fedhh.accounting.noise_privacy` says what it is worth. In a layer of secure
aggregation a client moves up to 2 B counts by one each under a swap (B that fall, B that rise), one
item two. Cohorts are disjoint, so layers do not add up.

Under two servers all layers are about the same uploads, so they do. An item moves two counts of
every layer. B words of a client may share a prefix, so that a user may move one count down and one
up by B in every layer, which costs most of all moves (proof in `fedhh.accounting.noise_privacy`;
it is reached where the words differ in their last symbols alone). What is asked of later layers
depends on the sums of earlier ones, as adaptive composition allows (Zhu, Dong, Wang 2022, Theorem
10; numbering not verified).

**Wrap-around.** Sums are read modulo M, as representatives nearest to 0. A sum of votes and noise
is between -T and n + T unless the noise is beyond T, so that with M >= 2 (n + T + 1) it is read as
it is. T is such that no noise of any candidate of any layer is beyond it, but for a probability of
`WRAP_CHANCE` in all. To read a sum modulo M is post-processing: privacy does not depend on M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from fedhh.accounting.noise_privacy import least_noise, noise_epsilon
from fedhh.accounting.plan import Participation, Plan, PlannedRound
from fedhh.questions.noise_shares import WRAP_CHANCE, DiscreteLaplace, NoiseName, NoiseShares
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.questions.question import AnyQuestion

Unit = Literal["item", "user"]

MOST_MODULUS = 2**62
"""Sums of residues are 64-bit integers."""


@dataclass(frozen=True, kw_only=True)
class NoisySums(Plan):
    """Every layer publishes votes with noise.

    Attributes:
        noise: Of each candidate's votes, all of it.
    """

    noise: NoiseShares

    def check_question(self, question: AnyQuestion) -> None:
        """Raise InputError unless a question asks for no less noise than the plan states."""
        super().check_question(question)
        noise = getattr(question.channel, "noise", None)
        if noise != self.noise:
            raise InputError(
                f"Expected {self.noise} in pass {question.pass_index + 1}, layer "
                f"{question.layer}, as planned, got {noise}."
            )


@dataclass(frozen=True, kw_only=True)
class SecureSums(NoisySums):
    """Clients add their votes and a share of the noise into a sum that hides who gave what.

    Attributes:
        modulus: M of the sums.
        max_dropout: Part of a cohort whose shares may be missing, rounded down to clients.
    """

    modulus: int
    max_dropout: float = 0.0

    def fewest_shares(self, planned: PlannedRound) -> int:
        """Return how many clients' shares a layer must have."""
        return planned.num_clients - allowed_dropouts(self.max_dropout, planned.num_clients)

    @property
    def least_part(self) -> float:
        """The smallest part of the noise that a layer may have."""
        return min(self.fewest_shares(each) / each.num_clients for each in self.layers)

    def epsilon(self, unit: Unit, delta: float, *, part: float | None = None) -> float:
        """Return the central epsilon of all layers, each of which has a part of its noise.

        Args:
            unit: "item" or "user".
            delta: Of the guarantee.
            part: `least_part` if None.
        """
        return noise_epsilon(
            self.noise,
            counts=2 * (self.max_items if unit == "user" else 1),
            delta=delta,
            part=self.least_part if part is None else part,
        )

    def check_question(self, question: AnyQuestion) -> None:
        super().check_question(question)
        modulus = getattr(question.channel, "modulus", None)
        if modulus != self.modulus:
            raise InputError(
                f"Expected modulus={self.modulus} in pass {question.pass_index + 1}, layer "
                f"{question.layer}, as planned, got {modulus}."
            )


@dataclass(frozen=True, kw_only=True)
class TwoServerSums(NoisySums):
    """Clients upload words in secret shares; two servers open noisy sums, layer by layer."""

    participation: Participation = "every-round"
    uploads_once: bool = True

    def epsilon(self, unit: Unit, delta: float) -> float:
        """Return the central epsilon of all layers together, infinite where none is proven."""
        move = self.max_items if unit == "user" else 1
        if move > 1 and not isinstance(self.noise, DiscreteLaplace):
            return math.inf
        return noise_epsilon(self.noise, counts=2 * len(self.layers), delta=delta, move=move)


def allowed_dropouts(max_dropout: float, num_clients: int) -> int:
    """Return how many clients of a cohort may drop out."""
    # A product such as 0.29 * 100 may fall short of a whole number by a rounding.
    return math.floor(max_dropout * num_clients * (1 + 1e-12))


def secure_sum_noise(
    name: NoiseName,
    *,
    unit: Unit,
    epsilon: float,
    delta: float,
    max_items: int,
    num_clients: int,
    max_dropout: float,
) -> float:
    """Return about the least standard deviation with which `SecureSums` has a guarantee.

    Args:
        name: Of the noise.
        unit: "item" or "user".
        epsilon: Of the guarantee.
        delta: Its delta.
        max_items: B.
        num_clients: Clients of a cohort.
        max_dropout: Part of them whose shares may be missing.

    Raises:
        InputError: There is none; with the nearest epsilon.
    """
    fewest = num_clients - allowed_dropouts(max_dropout, num_clients)
    return least_noise(
        name,
        epsilon=epsilon,
        counts=2 * (max_items if unit == "user" else 1),
        delta=delta,
        part=fewest / num_clients,
    )


def two_server_noise(
    name: NoiseName, *, unit: Unit, epsilon: float, delta: float, max_items: int, num_layers: int
) -> float:
    """Return about the least standard deviation with which `TwoServerSums` has a guarantee.

    The arguments are those of `secure_sum_noise`, and the layers at most.

    Raises:
        InputError: There is none; with the nearest epsilon, or a noise that has one.
    """
    move = max_items if unit == "user" else 1
    if move > 1 and name != DiscreteLaplace.name:
        raise InputError(
            f'Expected noise="{DiscreteLaplace.name}", max_items=1 or unit="item" where all words '
            f'of a client go to two servers, got noise="{name}", max_items={max_items} and '
            f'unit="{unit}": for words that share a prefix no bound is proven with it.'
        )
    return least_noise(name, epsilon=epsilon, counts=2 * num_layers, delta=delta, move=move)


def least_modulus(noise: NoiseShares, *, num_clients: int, num_sums: int) -> int:
    """Return the least M with which sums wrap around with probability at most `WRAP_CHANCE`.

    Args:
        noise: Of each sum.
        num_clients: Votes of a sum at most.
        num_sums: Sums of a run at most.
    """
    beyond = noise.reach(math.log(WRAP_CHANCE / 2 / num_sums))
    return 2 * (num_clients + beyond + 1)
