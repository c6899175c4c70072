"""What every plan says: which rounds a run may have, and what a client puts into one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from fedhh.accounting.guarantees import (
    NEIGHBORS,
    NO_RANDOMIZER,
    UNITS,
    AnonymityGuarantee,
    Guarantee,
    PrivacyReport,
    Unit,
    or_infinite,
    unprotected,
)
from fedhh.accounting.rounds import (
    PlannedRound,
    Rounds,
    check_epochs,
    epoch_of,
)
from fedhh.questions.cohort import Cohort
from fedhh.validation import InputError, require_choice, shown

if TYPE_CHECKING:  # Questions load compiled code, which accounting does not need.
    from fedhh.accounting.terms import PrivacyTerms
    from fedhh.questions.question import Question

Participation = Literal["one-round", "every-round", "epochs"]
"""In which rounds a client answers: in that of its cohort, in all, or in one of each epoch."""

_ROUNDING = 1e-9
"""Relative rounding of epsilons that follow from probabilities."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a run treats its clients' data, and what that guarantees: a class for each mechanism.

    It gives each round its place and its cohort. In one round each, cohorts follow each other in
    the order of the plan, so that no two overlap. In every round, each draws its cohort from a
    fresh order of all clients, which is numbered by the round's place; or, where the first rounds
    have clients of their own, from those behind them. In epochs, the cohorts of an epoch follow
    each other in a fresh order, which is numbered by the epoch.

    Attributes:
        layers: Every round that a run may have, in order; it may stop earlier.
        participation: In which of them a client answers.
        epochs: In "epochs", how many of them; as many rounds in each, up to one.
        secret_cohorts: In "epochs", whether readers of the results do not learn who answered in
            which round, so that all clients of an epoch hide each other.
        num_apart: In "every-round", so many of the first rounds have clients of their own, whom no
            other round asks. All others then ask the rest, in one order; without any, each of them
            draws afresh from everybody.
        uploads_once: In "every-round", whether what a client sends once answers all rounds.
        is_of_whole_set: Whether a client's contribution is about all of its items at once, so that
            its local epsilon is that of the client, and not of one item alone.
        false_discovery_rate: Of what the validation round returns; 0 without one. All words that
            a run returns have passed it, and it is the last layer.
    """

    layers: tuple[PlannedRound, ...]
    participation: Participation = "one-round"
    epochs: int = 1
    secret_cohorts: bool = False
    num_apart: int = 0
    uploads_once: bool = False
    is_of_whole_set: bool = False
    false_discovery_rate: float = 0.0

    rests_on_clients: ClassVar[bool] = False
    """Whether central guarantees rest on what other clients randomize, so that colluders weaken
    them."""
    trusted: ClassVar[str] = ""
    """Whom clients trust that send in clear; empty where nobody is."""
    draws_samples: ClassVar[bool] = False
    """Whether each round draws a sample as large as the guarantee allows, and shares no total."""
    noise_setting: ClassVar[str] = "local_epsilon"
    """The setting that makes less noise when it is raised."""
    without_event: ClassVar[str] = "a mechanism of its own; it has none."
    """What its results are that dp-accounting has no event for."""

    def report(self, terms: PrivacyTerms, rounds: Rounds = ()) -> PrivacyReport:
        """Return what a run guarantees: before it, and for the rounds that took place.

        Args:
            terms: What guarantees are stated for.
            rounds: That took place; none before the run.

        Raises:
            InputError: The plan's class states no guarantees, or a value is out of range.
        """
        central = [each for unit in UNITS for each in self.guarantees(unit, terms, rounds)]
        central.sort(key=lambda each: each.realised)
        return PrivacyReport(
            guarantees=(*map(self.local_guarantee, UNITS), *central),
            anonymity=tuple(self.anonymity(terms, rounds)),
            notes=tuple(self.notes(terms, rounds, central)),
        )

    def guarantees(self, unit: Unit, terms: PrivacyTerms, rounds: Rounds = ()) -> list[Guarantee]:
        """Return what is guaranteed of a unit besides `local_guarantee`, the best of all marked.

        Args:
            unit: "item" or "user".
            terms: What guarantees are stated for.
            rounds: That took place; what they realise, too, is then stated.
        """
        raise InputError(
            f"Expected a plan that states what it guarantees, got {type(self).__name__}; give it a "
            "method guarantees."
        )

    def anonymity(self, terms: PrivacyTerms, rounds: Rounds) -> Sequence[AnonymityGuarantee]:
        """Return what is claimed of approximate k-anonymity."""
        return ()

    def notes(
        self, terms: PrivacyTerms, rounds: Rounds, central: Sequence[Guarantee]
    ) -> Sequence[str]:
        """Return what has to be known about the guarantees, in a line each.

        Args:
            terms: What they are stated for.
            rounds: That took place.
            central: `guarantees` of both units.
        """
        return (NEIGHBORS,)

    def local_guarantee(self, unit: Unit) -> Guarantee:
        """Return what holds against the server, over all rounds of a client."""
        return unprotected(unit, self.smallest_cohort)

    def before_run(self, unit: Unit, terms: PrivacyTerms) -> Guarantee:
        """Return the best guarantee of a unit before the run against readers of the results."""
        require_choice(UNITS, unit=unit)
        stated = tuple(self.guarantees(unit, terms))
        return PrivacyReport(guarantees=stated, anonymity=(), notes=()).before_run(unit)

    def central_epsilon(self, unit: Unit, terms: PrivacyTerms) -> float:
        """Return the epsilon of `before_run`, infinite where there is none at this delta."""
        found = self.before_run(unit, terms)
        fits = found.delta <= terms.delta + terms.added_delta(self)
        return or_infinite(found.epsilon) if fits else math.inf

    def epsilons_before_run(self, terms: PrivacyTerms) -> dict[str, float]:
        """Return what is claimed of an item and of a user, by the names of a run's result.

        Central, local, and both of a user, in this order; infinite where it is nothing.
        """
        found = {}
        for unit, of in zip(UNITS, ("", "_user"), strict=True):
            found[f"central_epsilon{of}_before_run"] = self.central_epsilon(unit, terms)
            found[f"local_epsilon{of}"] = or_infinite(self.local_guarantee(unit).epsilon)
        return found

    @property
    def why_nothing(self) -> str:
        """Why a run found no word where that is known, and what would help; empty otherwise."""
        return ""

    @property
    def item_theorem(self) -> str:
        """Why a contribution is private that goes through the randomizers."""
        return NO_RANDOMIZER

    @property
    def who_trust(self) -> str:
        """Whom `who_randomize` leaves out, in a sentence; empty if nobody."""
        return ""

    def in_collections(self, times: int) -> Plan | None:
        """Return a plan of a user's privacy after so many collections; None if it is not known."""
        return None

    @property
    def who_randomize(self) -> Plan:
        """The plan of those who randomize what they send, where others trust a curator."""
        return self

    @property
    def epsilons_of_contribution(self) -> tuple[float, ...]:
        """Local epsilons of the reports that one contribution is made of, which add up."""
        return (self.local_epsilon,)

    def __post_init__(self) -> None:
        if self.participation == "epochs":
            check_epochs(self.epochs, len(self.layers))
        placed = []
        apart = sum(each.num_clients for each in self.layers[: self.num_apart])
        for order, rounds in groupby(range(len(self.layers)), self._order_of):
            start = 0
            for place in rounds:
                if self.participation == "every-round" and place >= self.num_apart:
                    start = apart
                each = self.layers[place]
                cohort = Cohort(start=start, size=each.num_clients, redraw=order)
                placed.append(replace(each, place=place, cohort=cohort))
                start += each.num_clients
        object.__setattr__(self, "layers", tuple(placed))

    def _order_of(self, place: int) -> int | None:
        """Return which fresh order a round's cohort is cut from; None for the run's one order."""
        if self.participation == "epochs":
            return epoch_of(place, len(self.layers), self.epochs)
        if self.participation == "one-round" or self.num_apart or self.uploads_once:
            return None
        return place

    @property
    def reuses_clients(self) -> bool:
        """Whether a client may serve in several rounds."""
        return self.participation != "one-round"

    @property
    def hides_epochs(self) -> bool:
        """Whether all clients of an epoch hide each other."""
        return self.participation == "epochs" and self.secret_cohorts

    @property
    def realises_answers(self) -> bool:
        """Whether a run realises its answers alone: its rounds share clients, or hide each other's.

        What a client is asked then follows from its earlier answers, or from those of an epoch.
        """
        return self.padded and (self.most_rounds_per_client > 1 or self.hides_epochs)

    @property
    def shuffles(self) -> tuple[tuple[PlannedRound, ...], ...]:
        """The rounds whose clients hide each other, for each group of them."""
        if not self.hides_epochs:
            return tuple((each,) for each in self.layers)
        of_epoch = groupby(self.layers, lambda each: each.cohort.redraw)
        return tuple(tuple(rounds) for _, rounds in of_epoch)

    @property
    def max_items(self) -> int:
        """B, contributions of a client in a round at most."""
        return max(each.max_items for each in self.layers)

    @property
    def padded(self) -> bool:
        """Whether every client of a round sends exactly as many reports as any other."""
        return all(each.padded for each in self.layers)

    @property
    def local_epsilon(self) -> float:
        """Local privacy of one contribution (item level); infinite without any."""
        return max(each.local_epsilon for each in self.layers)

    @property
    def most_rounds_per_client(self) -> int:
        """Rounds in which one client takes part, at most."""
        if self.participation == "epochs":
            return self.epochs
        if not self.reuses_clients:
            return 1
        return max(len(self.layers) - self.num_apart, min(self.num_apart, 1))

    @property
    def groups(self) -> tuple[Self, ...]:
        """The plan by groups of clients, for accounting: a client takes part in one group's rounds.

        Where the first rounds have clients of their own and later ones share theirs, two plans:
        that of the first rounds, whose cohorts do not overlap, and that of all others. Otherwise
        the plan itself. Who belongs to which group does not depend on the data.
        """
        if not self.num_apart or self.most_rounds_per_client == 1:
            return (self,)
        apart, others = self.layers[: self.num_apart], self.layers[self.num_apart :]
        return (
            replace(self, layers=apart, participation="one-round", num_apart=0),
            replace(self, layers=others, num_apart=0),
        )

    @property
    def most_asked(self) -> int:
        """Clients that the population must have."""
        if not self.reuses_clients:
            return self.most_answers
        return max(each.cohort.start + each.num_clients for each in self.layers)

    @property
    def most_answers(self) -> int:
        """Answers of clients that a run collects at most; a client reused counts each time."""
        return sum(layer.num_clients for layer in self.layers)

    @property
    def smallest_cohort(self) -> int:
        """Fewest clients that a round asks."""
        return min(layer.num_clients for layer in self.layers)

    @property
    def fewest_answers(self) -> int:
        """Fewest answers that hide each other: of a round, or of an epoch of secret cohorts."""
        return min(sum(each.fewest_clients for each in rounds) for rounds in self.shuffles)

    @property
    def fewest_reports(self) -> int:
        """The same of reports."""
        return min(sum(each.fewest_reports for each in rounds) for rounds in self.shuffles)

    @property
    def most_uploads(self) -> int:
        """Answers that clients send at most: `most_answers`, or one of each client for all."""
        return self.most_asked if self.uploads_once else self.most_answers

    def most_of_client(self, numbers: Mapping[int, float]) -> float:
        """Return the most that one client may have in all, of what it has in a round.

        Args:
            numbers: By the rounds' places.
        """
        if self.participation == "every-round" and not self.uploads_once:
            return sum(numbers.values())
        largest: dict[int | None, float] = {}
        for place, number in numbers.items():
            order = self.layers[place].cohort.redraw
            largest[order] = max(number, largest.get(order, 0.0))
        return sum(largest.values())

    @property
    def num_passes(self) -> int:
        """Passes of a run."""
        return 1 + max(layer.pass_index for layer in self.layers)

    def accepting(self, fewest: Callable[[int], int]) -> Self:
        """Return the plan whose rounds accept fewer answers than they ask for.

        Args:
            fewest: Returns the fewest that a round accepts which asks so many clients.
        """
        layers = (replace(layer, least_clients=fewest(layer.num_clients)) for layer in self.layers)
        return replace(self, layers=tuple(layers))

    @property
    def may_miss_answers(self) -> bool:
        """Whether a round accepts fewer answers than it asks for."""
        return any(layer.least_clients is not None for layer in self.layers)

    def planned(self, pass_index: int, layer: int) -> PlannedRound:
        """Return a planned round.

        Raises:
            InputError: The plan has no such round.
        """
        for each in self.layers:
            if (each.pass_index, each.layer) == (pass_index, layer):
                return each
        raise InputError(
            f"Expected a planned round, got pass {shown(pass_index + 1)}, layer {shown(layer)}; "
            f"the plan has {len(self.layers)} rounds: state it in the protocol's plan."
        )

    def check_question(self, question: Question) -> None:
        """Raise InputError unless a question asks for no more than its planned round states.

        What accounting claims before a run rests on the plan, so it is not taken on trust that a
        question has its address from there.
        """
        if question.counts_only:
            raise InputError("Expected counts_only=False of a question, got True.")
        planned = self.planned(question.pass_index, question.layer)
        where = f"pass {question.pass_index + 1}, layer {question.layer}"
        for name, asked, stated in (
            ("pass_index", question.pass_index, planned.pass_index),
            ("layer", question.layer, planned.layer),
            ("cohort", question.cohort, planned.cohort),
            ("max_items", question.max_items, planned.max_items),
            ("pad", question.pad, planned.padded),
        ):
            # 0.0 is equal to 0 and 1 to True, and addresses no client.
            if repr(asked) != repr(stated):
                raise InputError(
                    f"Expected {name}={stated} in {where}, as planned, got {name}={shown(asked)}."
                )
        epsilon = question.local_epsilon
        # Not a number is no epsilon that is stated.
        if epsilon is None or not epsilon <= planned.local_epsilon * (1 + _ROUNDING):
            raise InputError(
                f"Expected local_epsilon <= {planned.local_epsilon} per contribution in {where}, "
                f"as planned, got local_epsilon={epsilon}."
            )
        size = question.domain_size
        if size is not None and not planned.smallest_domain <= size <= planned.largest_domain:
            raise InputError(
                f"Expected a domain of {planned.smallest_domain} to {planned.largest_domain} "
                f"values in {where}, as planned, got {size}; state how much the round before may "
                "keep (most_prefixes of a trie)."
            )

    def values_per_report(self, domain_size: int) -> int | None:
        """Return d where a report is a set of d values of so large a domain; None otherwise."""
        return None
