"""Plans of a trie that reads noisy sums: by secure aggregation, or by two servers.

Both state a noise, and `fedhh.accounting.noise_privacy` says what it is worth. Where a client votes
for up to B distinct candidates of a layer, a replacement moves up to 2 B counts by one each (B that
fall, B that rise); one item moves two. In one round each, cohorts are disjoint, and layers do not
add up. Where all clients vote in every layer they do, and a word may be voted for in each of them.
What is asked of later layers depends on the sums of earlier ones, as adaptive composition allows
(Zhu, Dong, Wang 2022, Theorem 10; numbering not verified). Which candidates a client draws in a
layer depends on its words and its coins alone; given the coins the moves are as above, and a
mixture over coins, which both neighbors share, costs no more (joint convexity).

Where one upload answers all layers of two servers, layers add up, too. An item moves two counts of
every layer. B words of a client may share a prefix, so that a user may move one count down and one
up by B in every layer, which costs most of all moves (proof in `fedhh.accounting.noise_privacy`;
it is reached where the words differ in their last symbols alone).

**Wrap-around.** Sums are read modulo M, as representatives nearest to 0. A sum of votes and noise
is between -T and n + T unless the noise is beyond T, so that with M >= 2 (n + T + 1) it is read as
it is. T is such that no noise of any candidate of any layer is beyond it, but for a probability of
`WRAP_CHANCE` in all. To read a sum modulo M is post-processing: privacy does not depend on M.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.collusion import UNCHANGED
from fedhh.accounting.guarantees import NEIGHBORS, Guarantee, NotApplicable, Unit
from fedhh.accounting.noise_privacy import least_noise, noise_epsilon, pure_epsilon
from fedhh.accounting.plan import Participation, Plan
from fedhh.accounting.rounds import PlannedRound, Rounds
from fedhh.accounting.sources import NOISY_SUMS, PURE_NOISY_SUMS
from fedhh.accounting.terms import PrivacyTerms
from fedhh.questions.noise_shares import WRAP_CHANCE, DiscreteLaplace, NoiseName, NoiseShares
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.questions.question import Question

EVERY_LAYER = (
    "All {} layers that the settings allow ask the same clients and are composed, however many "
    "took place; a word may be voted for in each of them."
)
MOST_MODULUS = 2**62
"""Sums of residues are 64-bit integers."""


@dataclass(frozen=True, kw_only=True)
class NoisySums(Plan):
    """Every layer publishes votes with noise.

    Attributes:
        noise: Of each candidate's votes, all of it.
    """

    noise: NoiseShares

    noise_setting: ClassVar[str] = "central_epsilon"

    def _moves(self, unit: Unit) -> dict[str, int]:
        """Return which counts a unit moves in all its layers, and by how much each."""
        return moves_of(
            self.max_items if unit == "user" else 1,
            num_rounds=self.most_rounds_per_client,
            uploads_once=self.uploads_once,
        )

    @property
    def least_part(self) -> float:
        """The smallest part of the noise that a layer may have."""
        return 1.0

    def epsilon(self, unit: Unit, delta: float, *, part: float | None = None) -> float:
        """Return the central epsilon of all layers, each of which has a part of its noise.

        Args:
            unit: "item" or "user".
            delta: Of the guarantee.
            part: `least_part` if None.

        Returns:
            Infinite where none is proven.
        """
        moves = self._moves(unit)
        if not is_proven(self.noise.name, moves):
            return math.inf
        part = self.least_part if part is None else part
        return noise_epsilon(self.noise, delta=delta, part=part, **moves)

    def _stated(self, unit: Unit, delta: float, assumptions: str, part: float) -> list[Guarantee]:
        """Return the guarantee at delta, and the one at delta 0, which discrete Laplace has."""
        check_delta(delta)
        moves = self._moves(unit)
        epsilon: float | NotApplicable = self.epsilon(unit, delta, part=part)
        if not is_proven(self.noise.name, moves):
            epsilon = NotApplicable(
                f"no bound is proven for {self.noise.name} noise where a client's "
                f"{self.max_items} words may share a prefix; take discrete-laplace, or one word"
            )
        elif epsilon == math.inf:
            epsilon = NotApplicable("double precision certifies none; raise noise_std or delta")
        central = Guarantee(
            unit=unit,
            trust="central",
            method=f"noisy sums, {self.noise.name}",
            epsilon=epsilon,
            delta=delta,
            theorem=NOISY_SUMS,
            assumptions=assumptions,
            smallest_cohort=self.smallest_cohort,
            best=True,
        )
        # A sum that moves by B has at most B times the loss of one that moves by one.
        pure = pure_epsilon(self.noise, total=math.prod(moves.values()), part=part)
        if math.isinf(pure):
            return [central]
        method = f"{central.method}, pure"
        at_zero = replace(central, method=method, epsilon=pure, delta=0.0, theorem=PURE_NOISY_SUMS)
        return [central, replace(at_zero, best=False)]

    def check_question(self, question: Question) -> None:
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

    rests_on_clients: ClassVar[bool] = True
    trusted: ClassVar[str] = "secure aggregation, which shows the server noisy sums alone"
    without_event: ClassVar[str] = (
        "shares of discrete noise, of which some may be missing; it has none."
    )

    def guarantees(self, unit: Unit, terms: PrivacyTerms, rounds: Rounds = ()) -> list[Guarantee]:
        """Return what a run by secure aggregation guarantees.

        Before the run, every layer may lack as many shares as the plan allows. A realised guarantee
        is for the shares that arrived. Shares that colluders tell the server are no noise to it,
        and count as missing.
        """
        collusion = terms.collusion

        def part_of(planned: PlannedRound, shares: int) -> float:
            if collusion is not None:
                shares = collusion.fewest_honest(planned.num_clients, shares)
            return shares / planned.num_clients

        part = min(part_of(each, self.fewest_shares(each)) for each in self.layers)
        asked = [self.planned(each.pass_index, each.layer) for each in rounds]
        arrived = map(part_of, asked, (each.num_clients for each in rounds))
        trusted = (
            "secure aggregation shows a server that follows the protocol the sums alone, modulo "
            f"M = {self.modulus:,}; "
        )
        honest = f"at least {part:.4%} of each cohort's shares arrive and are nobody else's to know"

        found = self._stated(unit, terms.delta, trusted + honest, part)
        if (least := min(arrived, default=0.0)) > part:
            # Whether a client drops out must not depend on its data for this.
            whose = "" if collusion is None else " from clients who keep theirs to themselves"
            said = f"{least:.4%} of the shares arrived{whose}, whatever the clients hold"
            realised = self._stated(unit, terms.delta, trusted + said, least)[0]
            found.append(replace(realised, realised=True))
        added = terms.added_delta(self)
        return [replace(each, delta=each.delta + added) for each in found]

    def notes(
        self, terms: PrivacyTerms, rounds: Rounds, central: Sequence[Guarantee]
    ) -> Sequence[str]:
        return (
            NEIGHBORS,
            EVERY_LAYER.format(len(self.layers))
            if self.reuses_clients
            else "Cohorts are disjoint and chosen without the data: maximum over layers.",
            "A client's own share of the noise hides nothing: whoever reads one vector before the "
            "sum reads the votes.",
            *(() if terms.collusion is None else (f"{terms.collusion}.",)),
        )

    def fewest_shares(self, planned: PlannedRound) -> int:
        """Return how many clients' shares a layer must have."""
        return planned.num_clients - allowed_dropouts(self.max_dropout, planned.num_clients)

    @property
    def least_part(self) -> float:
        return min(self.fewest_shares(each) / each.num_clients for each in self.layers)

    def check_question(self, question: Question) -> None:
        super().check_question(question)
        modulus = getattr(question.channel, "modulus", None)
        if modulus != self.modulus:
            raise InputError(
                f"Expected modulus={self.modulus} in pass {question.pass_index + 1}, layer "
                f"{question.layer}, as planned, got {modulus}."
            )


@dataclass(frozen=True, kw_only=True)
class TwoServerSums(NoisySums):
    """Clients send secret shares to two servers, which open noisy sums, layer by layer.

    Either a client uploads its words once, for all layers, or it votes in each layer afresh.
    """

    participation: Participation = "every-round"

    trusted: ClassVar[str] = "that two servers do not work together, which open noisy sums alone"
    without_event: ClassVar[str] = (
        "discrete noise on counts of the same words in every layer; it has none."
    )

    def guarantees(self, unit: Unit, terms: PrivacyTerms, rounds: Rounds = ()) -> list[Guarantee]:
        """Return what a run by two servers guarantees: all layers are about the same clients."""
        said = (
            "the two servers do not work together and follow the protocol; all "
            f"{len(self.layers)} layers are about the same "
            f"{'uploads' if self.uploads_once else 'clients'} and compose"
        )
        return self._stated(unit, terms.delta, said, self.least_part)

    def notes(
        self, terms: PrivacyTerms, rounds: Rounds, central: Sequence[Guarantee]
    ) -> Sequence[str]:
        return (
            NEIGHBORS,
            "One upload answers every layer: all layers that the settings allow are composed, "
            "however many took place."
            if self.uploads_once
            else EVERY_LAYER.format(len(self.layers)),
            "Two servers that work together read every word.",
            *(() if terms.collusion is None else (UNCHANGED,)),
        )


def allowed_dropouts(max_dropout: float, num_clients: int) -> int:
    """Return how many clients of a cohort may drop out."""
    # A product such as 0.29 * 100 may fall short of a whole number by a rounding.
    return math.floor(max_dropout * num_clients * (1 + 1e-12))


def moves_of(items: int, *, num_rounds: int, uploads_once: bool = False) -> dict[str, int]:
    """Return how many counts a replacement moves ("counts"), and by how much each ("move").

    Args:
        items: Contributions replaced, in each round at most.
        num_rounds: Rounds that they are counted in.
        uploads_once: Whether they are the same in all rounds, where they may share a prefix.
    """
    if uploads_once:
        return {"counts": 2 * num_rounds, "move": items}
    return {"counts": 2 * num_rounds * items, "move": 1}


def is_proven(name: NoiseName, moves: Mapping[str, int]) -> bool:
    """Return whether a bound is proven for a noise and `moves_of`."""
    return moves["move"] == 1 or name == DiscreteLaplace.name


def least_sum_noise(
    name: NoiseName,
    *,
    items: int,
    num_rounds: int,
    epsilon: float,
    delta: float,
    uploads_once: bool = False,
    part: float = 1.0,
) -> float:
    """Return about the least standard deviation with which noisy sums have a guarantee.

    Args:
        name: Of the noise.
        items: See `moves_of`, as the two other arguments of that name are.
        num_rounds: As there.
        epsilon: Of the guarantee.
        delta: Its delta.
        uploads_once: As there.
        part: Of the noise's shares, what arrives at least.

    Raises:
        InputError: There is none; with the nearest epsilon, or a noise that has one.
    """
    moves = moves_of(items, num_rounds=num_rounds, uploads_once=uploads_once)
    if not is_proven(name, moves):
        raise InputError(
            f'Expected noise="{DiscreteLaplace.name}", max_items=1 or unit="item" where all words '
            f'of a client go to two servers at once, got noise="{name}" for {items} words: for '
            "words that share a prefix no bound is proven with it."
        )
    return least_noise(name, epsilon=epsilon, delta=delta, part=part, **moves)


def least_modulus(noise: NoiseShares, *, num_clients: int, num_sums: int) -> int:
    """Return the least M with which sums wrap around with probability at most `WRAP_CHANCE`.

    Args:
        noise: Of each sum.
        num_clients: Votes of a sum at most.
        num_sums: Sums of a run at most.
    """
    beyond = noise.reach(math.log(WRAP_CHANCE / 2 / num_sums))
    return 2 * (num_clients + beyond + 1)
