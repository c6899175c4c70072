"""The loop of LDP TrieHH where the server reads votes as sums with known noise."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.noisy_sums import NoisySums, least_sum_noise
from fedhh.arrays import Ints
from fedhh.protocol import Answers, Decision
from fedhh.questions.noise_shares import LEAST_STD, MOST_STD, NoiseName, NoiseShares, noise_of
from fedhh.server.cohorts import Central, Contributing
from fedhh.server.pruning import top_eta
from fedhh.server.trie import EtaTrie
from fedhh.settings import AUTO, Positive, decided

NoiseStd = Annotated[float, Ge(LEAST_STD), Le(MOST_STD)]
"""Standard deviation of the noise on each sum."""

Modulus = Annotated[int, Ge(2), Le(2**62)] | Literal["auto"]
"""M of sums modulo M."""


@dataclass(frozen=True, kw_only=True)
class SummedTrie(EtaTrie, Contributing, Central):
    """A trie whose layers are decided by noisy sums of plain votes.

    Attributes:
        participation: "one-round": a client sends once. "every-round": all clients vote in each
            layer, for candidates that they draw afresh, and the noise protects all layers together.
        unit: Whose the central epsilon is: "item", one contribution, or "user", all of a client's.
        noise: "discrete-laplace" or "skellam", the difference of two Poisson variables.
        noise_std: Standard deviation of the noise on each sum; "auto" for about the least with
            the guarantee. If it is given, it alone says what the run can claim.
        pruning: "threshold" keeps what noise does not explain, see ``noise_kept``; "top-eta" keeps
            the ``eta_max`` largest sums, whatever they are.
        noise_kept: With "threshold", candidates that no client holds and that a layer keeps, in
            expectation at most.
    """

    participation: Literal["one-round", "every-round"] = "one-round"
    unit: Literal["item", "user"] = "item"
    noise: NoiseName = "discrete-laplace"
    noise_std: NoiseStd | Literal["auto"] = AUTO
    pruning: Literal["threshold", "top-eta"] = "threshold"
    noise_kept: Positive = 0.1

    @property
    def claiming(self) -> tuple[str, ...]:
        return ("noise_std",)

    @property
    def summed_noise(self) -> NoiseShares:
        """The noise, once its standard deviation is decided."""
        std: Any = self.noise_std
        return noise_of(self.noise, float(decided(std, "noise_std")))

    @property
    def num_cohorts(self) -> int:
        return 1 if self.participation == "every-round" else super().num_cohorts

    @property
    def num_layers(self) -> int:
        """Layers of all passes that ask clients, at most."""
        return self.rounds_per_pass * self.num_passes

    @property
    @abstractmethod
    def plan(self) -> NoisySums: ...

    @property
    @abstractmethod
    def least_noise(self) -> float:
        """The standard deviation that "auto" is, once the cohorts are known."""

    def noise_for(self, *, num_rounds: int, **more: Any) -> float:
        """Return the least standard deviation with the guarantee where so many rounds compose.

        Args:
            num_rounds: In which a client counts.
            more: What else `least_sum_noise` is told.
        """
        return least_sum_noise(
            self.noise,
            items=self.max_items if self.unit == "user" else 1,
            num_rounds=num_rounds,
            epsilon=self.central_epsilon,
            delta=self.delta,
            **more,
        )

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        return replace(super().with_central_epsilon(epsilon), unit=unit)

    def resolve(self, num_clients: int) -> dict[str, Any]:
        """Return the least noise that has the guarantee, after the cohorts."""
        changes = super().resolve(num_clients)
        if changes or self.noise_std != AUTO:
            return changes
        return {"noise_std": self.least_noise}

    def keep(self, answers: Answers) -> tuple[Ints, int]:
        if self.pruning == "top-eta":
            return super().keep(answers)
        threshold = self._least_sum(answers)
        above = np.flatnonzero(answers.votes >= threshold)
        if len(above) <= self.eta_max:
            return above, threshold
        best, threshold = top_eta(answers.votes[above], self.eta_max, ties="strict")
        return above[best], threshold

    def decision(self, answers: Answers, *, threshold: int, num_kept: int) -> Decision:
        decision = super().decision(answers, threshold=threshold, num_kept=num_kept)
        by_noise = self.pruning == "threshold" and threshold == self._least_sum(answers)
        return replace(decision, kept_by="threshold" if by_noise else "votes")

    def _least_sum(self, answers: Answers) -> int:
        """Return the least sum that keeps a candidate."""
        chance = min(self.noise_kept / len(answers.votes), 0.5)
        return int(answers.noise.noise.least_sum(chance, answers.noise.part))
