"""What discoveries under local differential privacy share: how a client contributes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Generic, Literal, Self

from fedhh.protocol import DiscoveryProtocol, QueryType, State
from fedhh.settings import AUTO, CountOrAuto, FromConfig, Items, PrivacyBudget, check_settings
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet


@dataclass(frozen=True, kw_only=True)
class LocalProtocol(DiscoveryProtocol[State, QueryType], Generic[State, QueryType]):
    """A discovery whose clients choose B items each and randomize every one of them.

    Attributes:
        local_epsilon: Privacy of one contribution.
        alphabet: "printable", "lower", or the symbols themselves.
        clients_per_layer: N, size of each cohort; "auto" divides the whole population among the
            cohorts.
        max_items: B, contributions per client.
        sampler: How a client with more than B values chooses: "random" or "greedy".
        pad: Fill up with dummies to exactly B contributions. Without it, the number of a client's
            reports depends on its data.
    """

    local_epsilon: Annotated[PrivacyBudget, FromConfig("privacy.local_epsilon")] = 8.0
    alphabet: Annotated[str, FromConfig("population.alphabet")] = "lower"
    clients_per_layer: CountOrAuto = AUTO
    max_items: Items = 10
    sampler: Literal["random", "greedy"] = "random"
    pad: bool = True

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
    def num_cohorts(self) -> int:
        """Cohorts that share the population; 1 where each may be drawn from all clients."""

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings with the largest cohorts that fit, unless their size is given."""
        settled = self
        if self.clients_per_layer == AUTO:
            size = num_clients // self.num_cohorts
            if size < 1:
                raise InputError(
                    f"The population has {num_clients:,} clients, fewer than the "
                    f"{self.num_cohorts} layers that ask fresh ones; ask for fewer passes or "
                    "layers."
                )
            settled = replace(self, clients_per_layer=size)
        settled.check_population(num_clients)
        return settled
