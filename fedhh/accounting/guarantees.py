"""What a run can claim: guarantees, each with its unit, neighbors, theorem and assumptions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

Unit = Literal["item", "event", "day", "24 hours", "user"]
"""What one of the two neighboring data sets changes.

One contribution, or all of one client's; of a device that lives for some days, also all that it
sends about one event, in one day, or in any 24 hours.
"""

Trust = Literal["local", "central"]
"""Who may be curious: the server that reads each report, or whoever reads what it publishes."""

SWAP = "swap"
"""Neighbors have the same size; one item (or one client's items) is replaced by any other."""
VALUE_SWAP = "swap of values"
"""A swap under permanent responses: each value in question is replaced, wherever the client has it,
by one that the client has nowhere else. That two records are about the same value is not hidden."""


@dataclass(frozen=True)
class NotApplicable:
    """The answer of a theorem whose conditions do not hold: a reason, never a number."""

    reason: str

    def __str__(self) -> str:
        return f"not applicable: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Guarantee:
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
        neighboring: "swap", or "swap of values" where permanent responses answer.
        best: True for the smallest valid epsilon of its unit and trust.
        claimed_in_paper: True for what Sun et al. (2024) claim of their own run.
        realised: True if the number rests on what happened: the rounds that took place and the
            domains that earlier votes decided, or the reports that clients sent; all others hold
            before the run.
    """

    unit: Unit
    trust: Trust
    method: str
    epsilon: float | NotApplicable
    delta: float
    theorem: str
    assumptions: str
    smallest_cohort: int
    neighboring: str = SWAP
    best: bool = False
    claimed_in_paper: bool = False
    realised: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-ready dictionary; an infinite epsilon becomes the string "inf"."""
        return {
            "kind": "differential-privacy",
            "unit": self.unit,
            "trust": self.trust,
            "method": self.method,
            "epsilon": _json_number(self.epsilon),
            "delta": self.delta,
            "theorem": self.theorem,
            "assumptions": self.assumptions,
            "smallest_cohort": self.smallest_cohort,
            "neighboring": self.neighboring,
            "best": self.best,
            "claimed_in_paper": self.claimed_in_paper,
            "realised": self.realised,
            "reason": self.epsilon.reason if isinstance(self.epsilon, NotApplicable) else None,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Guarantee:
        """Return the guarantee that `to_dict` made this of."""
        known = {field.name: content[field.name] for field in fields(cls)}
        epsilon = content["epsilon"]
        known["epsilon"] = NotApplicable(content["reason"]) if epsilon is None else float(epsilon)
        return cls(**known)


@dataclass(frozen=True, kw_only=True)
class AnonymityGuarantee:
    """Approximate k-anonymity: a value held at most k times surfaces rarely.

    Attributes:
        k: Largest number of contributions in one layer with which a value is kept with
            probability at most 1 - alpha; None if even a value that nobody holds is kept more
            often; NotApplicable if the layer decides nothing.
        alpha: Required probability of not being kept.
        variant: "tight" or "lemma".
        probability: Probability that a value held k times is kept (k = 0 where k is None); None
            where the layer decides nothing.
        theorem: Source.
        assumptions: One line.
        pass_index: Pass of the layer; None for the claim over all passes.
        layer: Layer of its pass; None for the claim over all layers.
        smallest_cohort: Clients of the layer, the fewest of the layers for a claim over several.
        claimed_in_paper: True for what Sun et al. (2024) claim of their own run.
        realised: True if it rests on the domains, reports and kept candidates of the run; all
            others hold before the run.
    """

    k: int | NotApplicable | None
    alpha: float
    variant: str
    probability: float | None
    theorem: str
    assumptions: str
    pass_index: int | None = None
    layer: int | None = None
    smallest_cohort: int = 0
    claimed_in_paper: bool = False
    realised: bool = False

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-ready dictionary."""
        known = None if isinstance(self.k, NotApplicable) else self.k
        return {
            "kind": "approximate-k-anonymity",
            "unit": "item",
            "k": known,
            "alpha": self.alpha,
            "variant": self.variant,
            "probability": self.probability,
            "theorem": self.theorem,
            "assumptions": self.assumptions,
            "pass": self.pass_index,
            "layer": self.layer,
            "smallest_cohort": self.smallest_cohort,
            "claimed_in_paper": self.claimed_in_paper,
            "realised": self.realised,
            "reason": self.k.reason if isinstance(self.k, NotApplicable) else None,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> AnonymityGuarantee:
        """Return the guarantee that `to_dict` made this of."""
        content = {**content, "pass_index": content["pass"]}
        known = {field.name: content[field.name] for field in fields(cls)}
        if content["reason"] is not None:
            known["k"] = NotApplicable(content["reason"])
        return cls(**known)


def _json_number(value: float | NotApplicable) -> float | str | None:
    """Return a number that JSON can hold."""
    if isinstance(value, NotApplicable):
        return None
    return value if math.isfinite(value) else "inf"
