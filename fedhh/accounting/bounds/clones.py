"""Privacy amplification by shuffling through clones, summed numerically or in closed form.

Each of the other n - 1 reports is, with some probability r, a clone: a report of one of the
victim's two possible values, each equally likely. With C ~ Bin(n - 1, r), A ~ Bin(C, 1/2) and
D ~ Bernoulli(E / (E + 1)), E = e**eps0, the shuffle is dominated by the pair
(A + D, C - A + 1 - D), (A + 1 - D, C - A + D). Given C = T - 1 its hockey-stick divergence at
epsilon, x = e**epsilon, is (2 / (E + 1)) E[(mean of T copies of W)_+] where W is E - x or 1 - x E,
each with probability 1/2. A mean of more copies is less spread out (a reversed martingale), so
this falls with T: taking each bin of C at its smallest count gives an upper bound.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedhh.accounting.bounds.pair_lattice import PairLattice
from fedhh.accounting.bounds.shuffle_bound import (
    ShuffleBound,
    check_delta,
    check_local_epsilon,
    check_num_reports,
)
from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.sources import CLONES, CLONES_2023, CLONES_2023_OF_SELECTION
from fedhh.arrays import Floats
from fedhh.privacy_loss.binomial import lattice

COMPARISON = "comparison only"
"""How the assumptions of a bound begin that is not proven for the randomizer."""


@dataclass(frozen=True, kw_only=True)
class _ClonePair(ShuffleBound):
    """The pair above, for the clone probability that a subclass proves."""

    @property
    @abstractmethod
    def clone_probability(self) -> float:
        """Probability r that another report is a clone."""

    @cached_property
    def _copies(self) -> PairLattice:
        """Lattice of T, the copies: what is beside the clones reveals nothing."""
        trials = self.num_reports - 1
        clones = lattice(trials, self.clone_probability, tolerance=self.tolerance)
        nothing = np.zeros((clones.first.size + 1, 1))
        return PairLattice.of(clones, trials, others=nothing, weights=nothing + 1)

    def _deltas(self, epsilons: Floats) -> Floats:
        growth = math.tanh(self.local_epsilon / 2)
        shift = np.tanh(epsilons / 2) / growth / 2
        mean = self._copies.mean_excesses(above_half=shift, per_other=np.zeros_like(shift))
        # Left of the lattice the divergence is at most that of no clone at all.
        alone = -np.expm1(epsilons - self.local_epsilon) / (1 + math.exp(-self.local_epsilon))
        return 2 * growth * (1 + np.exp(epsilons)) * mean + self._copies.below * alone


@dataclass(frozen=True, kw_only=True)
class Clones(_ClonePair):
    """Clones with r = e**-eps0, for every eps0-LDP randomizer.

    Feldman, McMillan, Talwar (2021), "Hiding among the clones: a simple and nearly optimal
    analysis of privacy amplification by shuffling", FOCS, Theorem 3.1, evaluated without its
    closed-form relaxation.
    """

    name: ClassVar[str] = "clones"
    theorem: ClassVar[str] = CLONES
    assumptions: ClassVar[str] = "reports are local_epsilon-LDP, independent, shuffled"

    @property
    def clone_probability(self) -> float:
        """Return e**-local_epsilon."""
        return math.exp(-self.local_epsilon)


@dataclass(frozen=True, kw_only=True)
class Clones2023(_ClonePair):
    """Clones with r = 2 / (e**eps0 + 1); for comparison, not proven for every randomizer.

    Feldman, McMillan, Talwar (2023), "Stronger privacy amplification by shuffling for Renyi and
    approximate differential privacy", SODA, Theorem 3.1. Its authors published an erratum: the
    proof covers a restricted class of randomizers. See `SelectionClones2023` for Subset Selection.
    """

    name: ClassVar[str] = "clones-2023"
    theorem: ClassVar[str] = CLONES_2023
    assumptions: ClassVar[str] = (
        f"{COMPARISON}: by the authors' erratum proven for some randomizers, not for all"
    )

    @property
    def clone_probability(self) -> float:
        """Return 2 / (e**local_epsilon + 1)."""
        return 2 / (math.exp(self.local_epsilon) + 1)


@dataclass(frozen=True, kw_only=True)
class SelectionClones2023(Clones2023):
    """The same bound where every report is Subset Selection's, for which it is proven.

    The pair is the blanket with ``one`` = 1 / (e**eps0 + 1), the largest that
    `fedhh.accounting.bounds.selection.dominating_blanket` knows: it dominates the blanket of every
    domain and subset size. docs/accounting.md, section 2, has the proof.
    """

    theorem: ClassVar[str] = CLONES_2023_OF_SELECTION
    assumptions: ClassVar[str] = "every report is Subset Selection's, independent, shuffled"


CLOSED_FORM_ASSUMPTIONS = (
    f"{COMPARISON}: rests on Feldman et al. (2023), Theorem 3.2, which has an erratum"
)


def closed_form_epsilon(
    *, local_epsilon: float, num_reports: int, delta: float
) -> float | NotApplicable:
    """Return ln(1 + (E - 1)(4 sqrt(2 ln(4 / delta)) / sqrt((E + 1) n) + 4 / n)), E = e**eps0.

    Sun et al. (2024), Theorem 2, from Feldman, McMillan, Talwar (2023), Theorem 3.2, whose authors
    published an erratum. The step from the clones of 2023 to this formula does not depend on what
    the erratum is about, so it is proven wherever those are: for Subset Selection
    (docs/accounting.md, sections 2 and 3). For other randomizers it is for comparison only.

    Returns:
        At most ``local_epsilon``; NotApplicable unless
        ``local_epsilon <= ln(n / (8 ln(2 / delta)) - 1)``.
    """
    check_local_epsilon(local_epsilon)
    check_num_reports(num_reports)
    check_delta(delta)
    room = num_reports / (8 * math.log(2 / delta)) - 1
    growth = math.exp(local_epsilon)
    if growth > room:
        largest = f"{math.log(room):.4g}" if room > 1 else "0"
        return NotApplicable(
            f"the closed form needs local_epsilon <= {largest} for num_reports={num_reports}, "
            f"delta={delta:g}, got local_epsilon={local_epsilon:g}"
        )
    spread = 4 * math.sqrt(2 * math.log(4 / delta)) / math.sqrt((growth + 1) * num_reports)
    return min(local_epsilon, math.log1p((growth - 1) * (spread + 4 / num_reports)))
