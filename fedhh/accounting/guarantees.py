"""What a run can claim: guarantees, each with its unit, neighbors, theorem and assumptions.

Central guarantees are for readers of everything that the server publishes (prefixes, words,
estimates) and who see no single report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Self

Unit = Literal["item", "event", "day", "24 hours", "user"]
"""What one of the two neighboring data sets changes.

One contribution, or all of one client's; of a device over some days, also all that it
sends about one event, in one day, or in any 24 hours.
"""
UNITS: tuple[Unit, Unit] = ("item", "user")
"""Those of a run."""

Trust = Literal["local", "central"]
"""Who may be curious: the server that reads each report, or whoever reads what it publishes."""

REPLACE_ONE = "replace-one"
"""Neighbors have the same size; one item (or one client's items) is replaced by any other."""
REPLACE_VALUE = "replace-one of values"
"""A replacement under permanent responses: each value in question is replaced, wherever the client
has it, by one that the client has nowhere else. That two records are about the same value is not
hidden."""

NO_RANDOMIZER = "no randomizer"
"""The method where what clients hold is read as it is."""

ITEM_OF_USER = "; a user's guarantee covers each of its items"
NEIGHBORS = "Neighbors are replace-one: one item, or all items of one client, replaced by others."
"""The note of every report."""

_SAME = 1e-7
"""Relative difference of epsilons that are one; searches for them are finer."""


@dataclass(frozen=True)
class NotApplicable:
    """The answer of a theorem whose conditions do not hold: a reason, never a number."""

    reason: str

    def __str__(self) -> str:
        return f"not applicable: {self.reason}"


def or_infinite(epsilon: float | NotApplicable) -> float:
    """Return the epsilon, infinite where the theorem says nothing."""
    return math.inf if isinstance(epsilon, NotApplicable) else epsilon


def place_of_smallest(epsilons: Sequence[float | NotApplicable]) -> int | None:
    """Return the place of the first epsilon that none is below by more than rounding, if any.

    Bounds that coincide, such as those of groups and slots of one report, are computed in more than
    one way; which is named must not depend on the last digit.
    """
    numbers = [or_infinite(each) for each in epsilons]
    least = min(numbers, default=math.inf) * (1 + _SAME)
    known = (i for i, each in enumerate(epsilons) if not isinstance(each, NotApplicable))
    return next((i for i in known if numbers[i] <= least), None)


@dataclass(frozen=True, kw_only=True)
class _Claim:
    """What claims have in common: a number, or why there is none, which JSON has beside it."""

    kind: ClassVar[str]
    number: ClassVar[str]

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-ready dictionary; an infinite number becomes the string "inf"."""
        number = getattr(self, self.number)
        reason = number.reason if isinstance(number, NotApplicable) else None
        shown = "inf" if number == math.inf else number
        return {
            "kind": self.kind,
            "unit": "item",
            **asdict(self),
            self.number: None if reason else shown,
            "reason": reason,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return the claim that `to_dict` made this of."""
        known = {field.name: content[field.name] for field in fields(cls)}
        if content["reason"] is not None:
            known[cls.number] = NotApplicable(content["reason"])
        elif known[cls.number] == "inf":
            known[cls.number] = math.inf
        return cls(**known)


@dataclass(frozen=True, kw_only=True)
class Guarantee(_Claim):
    """(epsilon, delta)-differential privacy of one thing, against one reader, by one theorem.

    Attributes:
        unit: "item" or "user"; of a ledger also "event", "day" and "24 hours".
        trust: "local" (against the server) or "central" (against readers of the results).
        method: Short name of the bound, for example "clones".
        epsilon: An upper bound, math.inf for no privacy; NotApplicable with the reason if the
            theorem says nothing.
        delta: The delta at which epsilon holds; 0 for pure privacy.
        theorem: Source, down to the theorem.
        assumptions: One line.
        smallest_cohort: Fewest clients in one of the layers that the claim covers.
        neighboring: "replace-one", or "replace-one of values" where permanent responses answer.
        best: True for the smallest valid epsilon of its unit and trust.
        realised: True if the number rests on what happened: the rounds that took place and the
            domains that earlier votes decided, or the answers or reports that came; all others
            hold before the run.
    """

    kind: ClassVar[str] = "differential-privacy"
    number: ClassVar[str] = "epsilon"

    unit: Unit
    trust: Trust
    method: str
    epsilon: float | NotApplicable
    delta: float
    theorem: str
    assumptions: str
    smallest_cohort: int
    neighboring: str = REPLACE_ONE
    best: bool = False
    realised: bool = False


def unprotected(
    unit: Unit, cohort: int, *, assumptions: str = "votes are read as they are"
) -> Guarantee:
    """Return that nothing protects a unit against a server that reads what clients hold."""
    return Guarantee(
        unit=unit,
        trust="local",
        method=NO_RANDOMIZER,
        epsilon=math.inf,
        delta=0.0,
        theorem=NO_RANDOMIZER,
        assumptions=assumptions,
        smallest_cohort=cohort,
        best=True,
    )


@dataclass(frozen=True, kw_only=True)
class AnonymityGuarantee(_Claim):
    """Approximate k-anonymity: a value held at most k times surfaces rarely.

    Attributes:
        k: Largest number of contributions in one layer with which a value is kept with
            probability at most 1 - alpha; None if even a value that no client holds is kept more
            often; NotApplicable if the layer decides nothing.
        alpha: Required probability of not being kept.
        variant: "tight" or "lemma".
        probability: Probability that a value held k times is kept (k = 0 where k is None); None
            where the layer decides nothing.
        theorem: Source.
        assumptions: One line.
        pass_index: Pass of the layer, from 0; None for the claim over all passes.
        layer: Layer of its pass; None for the claim over all layers.
        smallest_cohort: Clients of the layer, the fewest of the layers for a claim over several.
        realised: True if it rests on the domains, reports and kept candidates of the run; all
            others hold before the run.
    """

    kind: ClassVar[str] = "approximate-k-anonymity"
    number: ClassVar[str] = "k"

    k: int | NotApplicable | None
    alpha: float
    variant: str
    probability: float | None
    theorem: str
    assumptions: str
    pass_index: int | None = None
    layer: int | None = None
    smallest_cohort: int = 0
    realised: bool = False


@dataclass(frozen=True, kw_only=True)
class PrivacyReport:
    """Everything that a run can claim, and what has to be known about the claims.

    Attributes:
        guarantees: Differential privacy; `Guarantee.best` marks the smallest valid epsilon of each
            unit and trust, of those that hold before the run and of the realised ones.
        anonymity: Approximate k-anonymity by layer, then over the run (no layer given).
        notes: One line each.
    """

    guarantees: tuple[Guarantee, ...]
    anonymity: tuple[AnonymityGuarantee, ...]
    notes: tuple[str, ...]

    def best(self, unit: str, trust: str) -> Guarantee:
        """Return the guarantee with the smallest valid epsilon for a unit and a reader.

        Central ones may be realised; `before_run` has the best of those that are not.
        """
        marked = self._marked(unit, trust)
        return marked[place_of_smallest([each.epsilon for each in marked]) or 0]

    def before_run(self, unit: str) -> Guarantee:
        """Return the central guarantee with the smallest epsilon that holds before the run."""
        return next(each for each in self._marked(unit, "central") if not each.realised)

    def by(self, method: str) -> Guarantee:
        """Return the guarantee by a bound."""
        return next(each for each in self.guarantees if each.method == method)

    def _marked(self, unit: str, trust: str) -> list[Guarantee]:
        return [
            each
            for each in self.guarantees
            if each.best and (each.unit, each.trust) == (unit, trust)
        ]

    def to_dict(self) -> dict[str, object]:
        return {
            "guarantees": [each.to_dict() for each in self.guarantees],
            "anonymity": [each.to_dict() for each in self.anonymity],
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> PrivacyReport:
        """Return the report that `to_dict` made this of."""
        return cls(
            guarantees=tuple(Guarantee.from_dict(each) for each in content["guarantees"]),
            anonymity=tuple(AnonymityGuarantee.from_dict(each) for each in content["anonymity"]),
            notes=tuple(content["notes"]),
        )

    def rows(self) -> list[dict[str, str]]:
        """Return one row of text per guarantee; k-anonymity only over the whole run.

        After the method, "*" marks the best of its unit and trust, "R" what is realised: it holds
        for the rounds, domains and reports that this run had.
        """
        rows = [
            {
                "unit": each.unit,
                "trust": each.trust,
                "method": each.method + (" *" if each.best else "") + _marks(each),
                "epsilon": epsilon_text(each.epsilon),
                "delta": f"{each.delta:g}",
                "k": "",
                "smallest cohort": str(each.smallest_cohort),
                "theorem": each.theorem,
                "note": each.assumptions,
            }
            for each in self.guarantees
        ]
        rows += [
            {
                "unit": "item",
                "trust": "central",
                "method": f"k-anonymity ({each.variant}), alpha={each.alpha:g}{_marks(each)}",
                "epsilon": "",
                "delta": "",
                "k": "none" if each.k is None else str(each.k),
                "smallest cohort": str(each.smallest_cohort),
                "theorem": each.theorem,
                "note": each.assumptions,
            }
            for each in self.anonymity
            if each.layer is None
        ]
        return rows


def _marks(claim: Guarantee | AnonymityGuarantee) -> str:
    return " R" if claim.realised else ""


def epsilon_text(epsilon: float | NotApplicable) -> str:
    """Return an epsilon for a table, rounded up."""
    if isinstance(epsilon, NotApplicable) or not math.isfinite(epsilon):
        return str(epsilon)
    return (
        f"{math.ceil(epsilon * 1e4 * (1 - 1e-12)) / 1e4:g}" if epsilon < 100 else f"{epsilon:.1f}"
    )
