"""Settings that protocols share, and the one way in which those that are "auto" are decided."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, Gt, Le, Lt

from fedhh.accounting.rounds import PlannedRound
from fedhh.oracles.consistency import PostProcessing
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.channel import Channel
from fedhh.questions.choice import SampleB
from fedhh.questions.names import Names
from fedhh.questions.question import Question
from fedhh.settings import AUTO, CountOrAuto, FromConfig, Items, Layers, decided
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet

Delta = Annotated[float, Gt(0), Lt(1), FromConfig("privacy.delta")]
"""Of a central guarantee."""

CentralEpsilon = Annotated[float, Gt(0), Le(100)]
"""Of an item or a user."""

RunSeed = Annotated[Annotated[int, Ge(0)] | None, FromConfig("seed")]
"""A seed; None for the run's, so that each run draws its own."""

_SEEDS = ("hash_seed", "noise_seed")
"""Settings that are the run's seed where they are None."""


@dataclass(frozen=True, kw_only=True)
class Cohorts(DiscoveryProtocol):
    """A discovery that asks cohorts of clients for words over an alphabet.

    Attributes:
        alphabet: "printable", "lower", or the symbols themselves.
        clients_per_layer: N, size of each cohort; "auto" divides the whole population among the
            cohorts.
    """

    alphabet: Annotated[str, FromConfig("population.alphabet")] = "lower"
    clients_per_layer: CountOrAuto = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made once here so that a bad alphabet is refused before anything runs.
        _ = self.symbols

    @property
    def symbols(self) -> Alphabet:
        return Alphabet.named(self.alphabet)

    @property
    def max_items(self) -> int:
        """B, contributions per client; one where a client has no choice."""
        return 1

    @property
    def sampler(self) -> Literal["random", "greedy"]:
        """How a client with more than B values chooses."""
        return "random"

    @property
    def pad(self) -> bool:
        """Whether every client sends exactly B contributions."""
        return True

    @property
    def post_processing(self) -> PostProcessing:
        """What is done with the estimates of a round's candidates, and of nothing before."""
        return "none"

    @property
    def num_cohorts(self) -> int:
        """Cohorts that share the population; 1 where each may be drawn from all clients."""
        return 1

    @property
    def cohort_clients(self) -> int:
        """``clients_per_layer``, once it is decided."""
        return decided(self.clients_per_layer, "clients_per_layer")

    def kept_back(self, num_clients: int) -> float:
        """Return how many of all clients are kept for other rounds than those of the cohorts."""
        return 0

    def largest_cohort(self, num_clients: int) -> int:
        return int(num_clients - self.kept_back(num_clients)) // self.num_cohorts

    def settle(self, *, num_clients: int, seed: int) -> Self:
        """Return the settings for one population and seed: what `resolve` decides, and the seeds.

        A ``hash_seed`` or ``noise_seed`` that is None becomes the run's.
        """
        settled = self
        while changes := settled.resolve(num_clients):
            settled = replace(settled, **changes)
        settled.check_population(num_clients)
        unset = [name for name in _SEEDS if getattr(settled, name, 0) is None]
        drawn: dict[str, Any] = dict.fromkeys(unset, seed)
        return replace(settled, **drawn) if drawn else settled

    def resolve(self, num_clients: int) -> dict[str, Any]:
        """Return what some "auto" settings are, the next ones to be decided; none if all are.

        `settle` asks again after each change. So a protocol returns what has to be known before
        its cohorts, then what is returned here, and, once that is nothing, what follows from them.
        Here the cohorts are the largest that fit, unless their size is given.

        Args:
            num_clients: Clients of the population.

        Raises:
            InputError: There are too few clients.
        """
        if self.clients_per_layer != AUTO:
            return {}
        size = self.largest_cohort(num_clients)
        if size < 1:
            left = " without the validation round's part" if self.kept_back(num_clients) else ""
            raise InputError(
                f"The population has {num_clients:,} clients,{left} fewer than the "
                f"{self.num_cohorts} layers that ask fresh ones; ask for fewer passes or layers."
            )
        return {"clients_per_layer": size}

    def asking(self, names: Names, channel: Channel) -> Question:
        """Return the question for up to B of a client's values, which the sampler chooses."""
        return Question(names=names, choice=SampleB(sampler=self.sampler), channel=channel)

    def seeds(self, number: int) -> list[int]:
        """Return so many public seeds, which do not tell the one that they are drawn from.

        That is a protocol's ``hash_seed``, or else its ``noise_seed``.
        """
        # It loads compiled code, which settings alone do not need.
        from fedhh.hashing import derived_seeds

        (seed,) = [getattr(self, name) for name in _SEEDS if hasattr(self, name)]
        return derived_seeds(seed or 0, number)

    def planned_round(
        self,
        layer: int,
        num_clients: int,
        smallest_domain: int,
        largest_domain: int | None = None,
        *,
        pass_index: int = 0,
    ) -> PlannedRound:
        """Return a round that may happen; with one domain size, that is the only one."""
        return PlannedRound(
            pass_index=pass_index,
            layer=layer,
            num_clients=num_clients,
            smallest_domain=smallest_domain,
            largest_domain=smallest_domain if largest_domain is None else largest_domain,
            max_items=self.max_items,
            padded=self.pad,
        )


@dataclass(frozen=True, kw_only=True)
class Contributing(Cohorts):
    """A discovery whose clients choose up to B of their words.

    Attributes:
        max_items: B, contributions per client.
        sampler: How a client with more than B values chooses: "random" or "greedy".
    """

    max_items: Items = 10
    sampler: Literal["random", "greedy"] = "random"


@dataclass(frozen=True, kw_only=True)
class BoundedWords(Cohorts):
    """A discovery whose words have a length that is set.

    Attributes:
        length: Symbols of the longest word.
    """

    length: Layers = 10

    @property
    def longest_word(self) -> int:
        return self.length


@dataclass(frozen=True, kw_only=True)
class Central(Cohorts):
    """A discovery with a central guarantee of its own, by noise, samples or thresholds.

    Attributes:
        delta: Of the central privacy that "auto" settings are to give.
        central_epsilon: Its epsilon, of all rounds.
    """

    delta: Delta = 1e-10
    central_epsilon: CentralEpsilon = 1.0

    @property
    def claiming(self) -> tuple[str, ...]:
        """Names of settings that alone say what a run can claim, unless they are "auto"."""
        return ()

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        """Return the settings whose "auto" ones are to give this epsilon.

        Raises:
            InputError: They are given.
        """
        given = {name: getattr(self, name) for name in self.claiming}
        if given and AUTO not in given.values():
            wanted = " and ".join(f'{name}="auto"' for name in given)
            got = " and ".join(f"{name}={value}" for name, value in given.items())
            raise InputError(
                f"Expected {wanted} for central_epsilon={epsilon:g}, got {got}: what the run can "
                "claim follows from that alone."
            )
        return replace(self, central_epsilon=epsilon)
