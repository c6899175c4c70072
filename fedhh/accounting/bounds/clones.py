"""Privacy amplification by shuffling through clones.

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

from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.sources import CLONES, CLONES_2023, CLONES_2023_OF_SELECTION
from fedhh.privacy_loss.binomial import Lattice, fair_excess, lattice


@dataclass(frozen=True, kw_only=True)
class _ClonePair(ShuffleBound):
    """The pair above, for the clone probability that a subclass proves."""

    @property
    @abstractmethod
    def clone_probability(self) -> float:
        """Probability r that another report is a clone."""

    @cached_property
    def _clones(self) -> Lattice:
        return lattice(self.num_reports - 1, self.clone_probability, tolerance=self.tolerance)

    def _delta(self, epsilon: float) -> float:
        clones = self._clones
        slope = math.tanh(self.local_epsilon / 2) * (1 + math.exp(epsilon))
        half_shift = math.tanh(epsilon / 2) / math.tanh(self.local_epsilon / 2) / 2
        # The last entry stands for all counts to the right of the lattice.
        copies = np.append(clones.first, clones.last[-1] + 1) + 1
        weights = np.append(clones.probability, clones.above)
        excess = fair_excess(copies, copies * (0.5 + half_shift))
        inside = 2 * slope * float(np.sum(weights * excess / copies))
        # Left of the lattice the divergence is at most that of no clone at all.
        return inside + clones.below * victim_alone(self.local_epsilon, epsilon)


def victim_alone(local_epsilon: float, epsilon: float) -> float:
    """Return (E - x) / (E + 1), the divergence of randomized response with nobody to hide among."""
    return max(0.0, -math.expm1(epsilon - local_epsilon) / (1 + math.exp(-local_epsilon)))


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
        "comparison only: by the authors' erratum proven for some randomizers, not for all"
    )

    @property
    def clone_probability(self) -> float:
        """Return 2 / (e**local_epsilon + 1)."""
        return 2 / (math.exp(self.local_epsilon) + 1)


@dataclass(frozen=True, kw_only=True)
class SelectionClones2023(Clones2023):
    """The same bound where every report is Subset Selection's, for which it is proven.

    The pair is the blanket with ``one`` = 1 / (e**eps0 + 1), the largest that
    `fedhh.accounting.bounds.blanket.dominating_blanket` knows: it dominates the blanket of every
    domain and subset size. docs/accounting.md, section 2, has the proof.
    """

    theorem: ClassVar[str] = CLONES_2023_OF_SELECTION
    assumptions: ClassVar[str] = "every report is Subset Selection's, independent, shuffled"
