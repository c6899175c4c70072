"""The privacy report of a run: every guarantee that holds, from what took part in it.

Layers ask disjoint cohorts, so epsilons are maxima over layers; where clients are asked again,
their rounds compose. Central guarantees are for readers of everything that the server publishes
(prefixes, words, estimates) and who see no single report.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.guarantees import AnonymityGuarantee, Guarantee, NotApplicable
from fedhh.accounting.layer_anonymity import anonymity_of_run
from fedhh.accounting.layer_record import LayerRecord
from fedhh.accounting.run_facts import RunFacts
from fedhh.accounting.run_guarantees import (
    REACHABLE,
    central_guarantees,
    local_guarantees,
    realised_guarantees,
)
from fedhh.mechanisms.bloom_reports import RapporReports
from fedhh.mechanisms.local_reports import LocalReports
from fedhh.validation import InputError, require_inside


@dataclass(frozen=True, kw_only=True)
class PrivacyReport:
    """Everything that a run can claim, and what has to be known about the claims.

    Attributes:
        guarantees: Differential privacy; `Guarantee.best` marks the smallest valid epsilon of each
            unit and trust, of those that hold before the run and of the realised ones.
        anonymity: Approximate k-anonymity by layer, then over the run (no layer given), for each
            variant.
        notes: One line each.
    """

    guarantees: tuple[Guarantee, ...]
    anonymity: tuple[AnonymityGuarantee, ...]
    notes: tuple[str, ...]

    def best(self, unit: str, trust: str) -> Guarantee:
        """Return the guarantee with the smallest valid epsilon for a unit and a reader.

        Central ones may be realised; `before_run` has the best of those that are not.
        """
        return min(self._marked(unit, trust), key=lambda each: _number(each.epsilon))

    def before_run(self, unit: str) -> Guarantee:
        """Return the central guarantee with the smallest epsilon that holds before the run."""
        return next(each for each in self._marked(unit, "central") if not each.realised)

    def _marked(self, unit: str, trust: str) -> list[Guarantee]:
        return [
            each
            for each in self.guarantees
            if each.best and (each.unit, each.trust) == (unit, trust)
        ]

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-ready dictionary."""
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

        After the method, "*" marks the best of its unit and trust, "P" what the paper would claim,
        "R" what is realised: it holds for the rounds, domains and reports that this run had.
        """
        rows = [
            {
                "unit": each.unit,
                "trust": each.trust,
                "method": each.method
                + (" *" if each.best else "")
                + (" P" if each.claimed_in_paper else "")
                + (" R" if each.realised else ""),
                "epsilon": _text(each.epsilon),
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
                "method": f"k-anonymity ({each.variant}), alpha={each.alpha:g}"
                + (" P" if each.claimed_in_paper else "")
                + (" R" if each.realised else ""),
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


def account_local(
    mechanism: LocalReports, layers: Sequence[LayerRecord], *, delta: float, alpha: float
) -> PrivacyReport:
    """Return the privacy report of a run whose clients randomize what they contribute.

    Subset Selection has bounds of its own; for other randomizers those that hold for all. All
    claims are the plan's, and hold before the run, but for those that say that they are realised.

    Args:
        mechanism: How clients report, and the plan.
        layers: What took part, one record for each round that took place; none before the run.
        delta: Central target, from 1e-14 to 0.1.
        alpha: Required probability that a rare value does not surface, in (0, 1).

    Raises:
        InputError: A value is out of range, or the records contradict the mechanism.
    """
    check_delta(delta)
    require_inside(0, 1, alpha=alpha)
    _check_records(layers, max_items=mechanism.max_items if mechanism.padded else None)
    run = RunFacts.planned(mechanism, layers, delta=delta)
    took_place = RunFacts(mechanism=mechanism, layers=tuple(layers), delta=delta, realised=True)
    realised = realised_guarantees(took_place)
    return PrivacyReport(
        guarantees=(*local_guarantees(run), *central_guarantees(run), *realised),
        anonymity=tuple(anonymity_of_run(layers, mechanism, alpha=alpha)),
        notes=tuple(_notes(run, layers, has_realised=bool(realised))),
    )


def _check_records(layers: Sequence[LayerRecord], *, max_items: int | None) -> None:
    """Raise InputError where records contradict, if padded, the items per client."""
    for record in layers:
        if max_items is not None and record.num_reports != record.num_clients * max_items:
            raise InputError(
                f"Expected num_reports = num_clients * max_items = "
                f"{record.num_clients * max_items} in pass {record.pass_index}, layer "
                f"{record.layer}, got {record.num_reports}; if clients do not send exactly "
                "max_items reports, say padded=False."
            )


def _notes(run: RunFacts, layers: Sequence[LayerRecord], *, has_realised: bool) -> list[str]:
    """Return what a reader of the numbers has to know."""
    notes = ["Neighbors are swaps: one item, or all items of one client, replaced by others."]
    if run.uses > 1:
        notes.append(
            f"A client may take part in up to {run.uses} rounds, all that the settings allow, so "
            "as many are composed, however many took place; with disjoint cohorts the maximum "
            "over rounds would hold."
        )
    else:
        notes.append("Cohorts are disjoint and chosen without the data: maximum over layers.")
    if has_realised:
        before = f'"{REACHABLE}"' if run.padded else "the local epsilon"
        notes.append(
            "R: realised, for the rounds, domains and reports that this run had. Before the run, "
            f"for all that the plan allows, {before} holds."
        )
    if not run.padded:
        notes.append(
            "Clients did not send exactly max_items reports each: the composition over slots "
            "does not hold and is dropped, and how many reports a client sends is not hidden."
        )
    lost = sum(record.lost_clients for record in layers)
    if lost:
        notes.append(
            f"{lost} clients' reports were lost; cohorts are counted without them, which is "
            "valid if what is lost does not depend on the data."
        )
    if isinstance(run.mechanism, RapporReports):
        bound = _text(run.mechanism.epsilon_of_all_reports)
        notes.append(
            "One report is collected about each contribution. Any number of reports made from the "
            f"same permanent response would have epsilon {bound} together."
        )
    if run.local_epsilon == math.inf:
        notes.append("Without a randomizer nothing is private.")
    return notes


def _number(epsilon: float | NotApplicable) -> float:
    return math.inf if isinstance(epsilon, NotApplicable) else epsilon


def _text(epsilon: float | NotApplicable) -> str:
    """Return an epsilon for a table, rounded up."""
    if isinstance(epsilon, NotApplicable):
        return str(epsilon)
    if not math.isfinite(epsilon):
        return "inf"
    return (
        f"{math.ceil(epsilon * 1e4 * (1 - 1e-12)) / 1e4:g}" if epsilon < 100 else f"{epsilon:.1f}"
    )
