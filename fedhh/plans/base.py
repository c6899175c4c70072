"""What every plan says: which rounds a run may have, and what a client puts into one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from fedhh.questions.cohort import Cohort
from fedhh.validation import InputError, shown

if TYPE_CHECKING:  # Questions load compiled code, which accounting does not need.
    from fedhh.questions.question import AnyQuestion


@dataclass(frozen=True, kw_only=True)
class PlannedRound:
    """A round that a run may have, by what is known of it before the run.

    Attributes:
        pass_index: Which pass, from 0.
        layer: Which layer of the pass, from 1.
        num_clients: Clients to be asked.
        smallest_domain: Fewest values that the layer's randomizer may have, the dummy included.
        largest_domain: Most values that it may have.
        validates: Whether it is the validation round, about the words that earlier ones found.
        least_clients: Fewest clients whose answers it accepts; None if all of them answer. What is
            claimed before a run holds for every number of answers that it accepts, which must
            not depend on what clients hold.
        opens_with_previous: Whether its question needs no answer to the round before it, so that
            both may be open at the same time.
    """

    pass_index: int
    layer: int
    num_clients: int
    smallest_domain: int
    largest_domain: int
    validates: bool = False
    least_clients: int | None = None
    opens_with_previous: bool = False

    @property
    def fewest_clients(self) -> int:
        """Clients that answer at least."""
        if self.least_clients is None:
            return self.num_clients
        return min(self.least_clients, self.num_clients)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a run treats its clients' data. `fedhh.accounting.account` goes by the value's type.

    Attributes:
        layers: Every round that a run may have, in order; it may stop earlier.
        max_items: B, contributions of a client in a round at most.
        padded: Whether every client sends exactly as many reports as any other.
        reuses_clients: Whether a client may serve in several rounds.
        num_apart: With that, so many of the first rounds have clients of their own, whom no other
            round asks. All others then ask the rest, in one order; without any, each of them draws
            afresh from everybody.
        uploads_once: With that, whether what a client sends once answers all rounds.
    """

    layers: tuple[PlannedRound, ...]
    max_items: int = 1
    padded: bool = True
    reuses_clients: bool = False
    num_apart: int = 0
    uploads_once: bool = False

    @property
    def local_epsilon(self) -> float:
        """Local privacy of one contribution (item level); infinite without any."""
        return math.inf

    @property
    def most_rounds_per_client(self) -> int:
        """Rounds in which one client takes part, at most."""
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
            replace(self, layers=apart, reuses_clients=False, num_apart=0),
            replace(self, layers=others, num_apart=0),
        )

    @property
    def most_asked(self) -> int:
        """Clients that the population must have."""
        if not self.reuses_clients:
            return self.most_answers
        sizes = [layer.num_clients for layer in self.layers]
        return sum(sizes[: self.num_apart]) + max(sizes[self.num_apart :], default=0)

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
        """Fewest answers that a round accepts."""
        return min(layer.fewest_clients for layer in self.layers)

    @property
    def most_uploads(self) -> int:
        """Answers that clients send at most: `most_answers`, or one of each client for all."""
        return self.most_asked if self.uploads_once else self.most_answers

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

    def cohort(self, pass_index: int, layer: int) -> Cohort:
        """Return whom a planned round asks.

        The cohorts follow each other in the order of the plan, so that no two overlap. Where
        clients are reused, each round draws its cohort from a fresh order of all clients, which is
        numbered by the round's place in the plan; or, where the first rounds have clients of their
        own, from those behind them.

        Raises:
            InputError: The plan has no such round.
        """
        round_ = self.planned(pass_index, layer)
        place = self.layers.index(round_)
        if self.reuses_clients and not self.num_apart:
            return Cohort(start=0, size=round_.num_clients, redraw=place)
        before = min(place, self.num_apart) if self.reuses_clients else place
        start = sum(each.num_clients for each in self.layers[:before])
        return Cohort(start=start, size=round_.num_clients)

    def check_question(self, question: AnyQuestion) -> None:
        """Raise InputError unless a question asks for no more than the plan states.

        What accounting claims before a run rests on the plan, so a question has its epsilon,
        cohort, contributions, padding and domain from there.
        """
        if question.counts_only:
            raise InputError("Expected counts_only=False of a question, got True.")
        for name in ("pass_index", "layer"):
            _require_integer(getattr(question, name), name)
        planned = self.planned(question.pass_index, question.layer)
        where = f"pass {question.pass_index + 1}, layer {question.layer}"
        cohort = self.cohort(question.pass_index, question.layer)
        # A start of 0.0 is equal to 0, and addresses no client.
        if question.cohort != cohort or repr(question.cohort) != repr(cohort):
            raise InputError(
                f"Expected {cohort} in {where}, as planned, got {shown(question.cohort)}."
            )
        _require_integer(question.max_items, "max_items")
        if not 1 <= question.max_items <= self.max_items:
            raise InputError(
                f"Expected 1 <= max_items <= {self.max_items} in {where}, as planned, got "
                f"max_items={shown(question.max_items)}."
            )
        if self.padded and question.pad is not True:
            raise InputError(
                f"Expected pad=True in {where}, as planned, got pad={shown(question.pad)}; state "
                "padded=False."
            )
        size = stated_by(question, "domain_size")
        if size is not None and not planned.smallest_domain <= size <= planned.largest_domain:
            raise InputError(
                f"Expected a domain of {planned.smallest_domain} to {planned.largest_domain} "
                f"values in {where}, as planned, got {size}; state how much the round before may "
                "keep (most_prefixes of a trie)."
            )

    def values_per_report(self, domain_size: int) -> int | None:
        """Return d where a report is a set of d values of so large a domain; None otherwise."""
        return None


def stated_by(question: AnyQuestion, name: str) -> float | None:
    """Return a number that a question states of itself, None if it states none.

    Raises:
        InputError: Its fields are of another type, so that the number does not follow from them.
    """
    try:
        number = getattr(question, name)
        if number is not None:
            math.isnan(number)
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise InputError(
            f"Expected fields of a question from which its {name} follows, got others: {error}."
        ) from error
    return number  # type: ignore[no-any-return]


def _require_integer(value: object, name: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InputError(f"Expected {name} of a question as an integer, got {name}={shown(value)}.")
