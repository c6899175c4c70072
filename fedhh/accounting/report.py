"""The privacy report of a run: every guarantee that holds, from what took part in it.

Layers ask disjoint cohorts, so epsilons are maxima over layers; where clients are asked again,
their rounds compose. Central guarantees are for readers of everything that the server publishes
(prefixes, words, estimates) and who see no single report.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from fedhh.accounting.guarantees import AnonymityGuarantee, Guarantee, NotApplicable
from fedhh.accounting.layer_anonymity import anonymity_of_run
from fedhh.accounting.layer_record import LayerRecord
from fedhh.accounting.run_guarantees import (
    RunFacts,
    central_guarantees,
    local_guarantees,
)
from fedhh.accounting.shuffle_bound import check_delta
from fedhh.validation import InputError, require_at_least, require_inside

NO_RANDOMIZER = "none"
"""Registry key of the oracle that reports values as they are."""


@dataclass(frozen=True, kw_only=True)
class PrivacyReport:
    """Everything that a run can claim, and what has to be known about the claims.

    Attributes:
        guarantees: Differential privacy; `Guarantee.best` marks the smallest valid epsilon of each
            unit and trust.
        anonymity: Approximate k-anonymity by layer, then over the run (no layer given), for each
            variant.
        notes: One line each.
    """

    guarantees: tuple[Guarantee, ...]
    anonymity: tuple[AnonymityGuarantee, ...]
    notes: tuple[str, ...]

    def best(self, unit: str, trust: str) -> Guarantee:
        """Return the guarantee with the smallest valid epsilon for a unit and a reader."""
        return next(
            each
            for each in self.guarantees
            if each.best and each.unit == unit and each.trust == trust
        )

    def to_dict(self) -> dict[str, object]:
        """Return a JSON-ready dictionary."""
        return {
            "guarantees": [each.to_dict() for each in self.guarantees],
            "anonymity": [each.to_dict() for each in self.anonymity],
            "notes": list(self.notes),
        }

    def rows(self) -> list[dict[str, str]]:
        """Return one row of text per guarantee; k-anonymity only over the whole run.

        After the method, "*" marks the best of its unit and trust, "P" what the paper would claim.
        """
        rows = [
            {
                "unit": each.unit,
                "trust": each.trust,
                "method": each.method
                + (" *" if each.best else "")
                + (" P" if each.claimed_in_paper else ""),
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
                + (" P" if each.claimed_in_paper else ""),
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


def account_run(
    *,
    oracle: str,
    layers: Sequence[LayerRecord],
    local_epsilon: float,
    max_items: int,
    delta: float,
    alpha: float,
    padded: bool = True,
    rounds_per_client: int = 1,
) -> PrivacyReport:
    """Return the privacy report of a run.

    Args:
        oracle: Registry key: "ss" for Subset Selection, "none" for no randomizer; every other
            oracle gets the bounds that hold for all randomizers.
        layers: What took part, one record for each layer of each pass; at least one.
        local_epsilon: Privacy of one report.
        max_items: B, most contributions of one client in one layer.
        delta: Central target, from 1e-14 to 0.1.
        alpha: Required probability that a rare value does not surface, in (0, 1).
        padded: Whether every client sent exactly B reports.
        rounds_per_client: Most layers in which one client took part; 1 if cohorts are disjoint.

    Raises:
        InputError: A value is out of range, or the records contradict the flags.
    """
    check_delta(delta)
    require_inside(0, 1, alpha=alpha)
    require_at_least(1, num_layers=len(layers), rounds_per_client=rounds_per_client)
    _check_records(oracle, layers, max_items=max_items if padded else None)
    randomized = oracle != NO_RANDOMIZER
    each = local_epsilon if randomized else math.inf
    run = RunFacts(
        oracle=oracle,
        layers=tuple(layers),
        local_epsilon=each,
        max_items=max_items,
        delta=delta,
        padded=padded,
        uses=rounds_per_client,
    )
    return PrivacyReport(
        guarantees=(*local_guarantees(run), *central_guarantees(run)),
        anonymity=tuple(
            anonymity_of_run(layers, local_epsilon=each, alpha=alpha) if oracle == "ss" else ()
        ),
        notes=tuple(_notes(run)),
    )


def _check_records(oracle: str, layers: Sequence[LayerRecord], *, max_items: int | None) -> None:
    """Raise InputError where records contradict the oracle or, if padded, the items per client."""
    for record in layers:
        where = f"pass {record.pass_index}, layer {record.layer}"
        if oracle == "ss" and record.subset_size is None:
            raise InputError(f"Expected subset_size for oracle='ss' in {where}, got None.")
        if max_items is not None and record.num_reports != record.num_clients * max_items:
            raise InputError(
                f"Expected num_reports = num_clients * max_items = "
                f"{record.num_clients * max_items} in {where}, got {record.num_reports}; if "
                "clients do not send exactly max_items reports, say padded=False."
            )


def _notes(run: RunFacts) -> list[str]:
    """Return what a reader of the numbers has to know."""
    notes = ["Neighbors are swaps: one item, or all items of one client, replaced by others."]
    if run.uses > 1:
        notes.append(
            f"Clients took part in up to {run.uses} rounds, so rounds are composed; with "
            "disjoint cohorts the maximum over rounds would hold."
        )
    else:
        notes.append("Cohorts are disjoint and chosen without the data: maximum over layers.")
    if not run.padded:
        notes.append(
            "Clients did not send exactly max_items reports each: the composition over slots "
            "does not hold and is dropped, and how many reports a client sends is not hidden."
        )
    lost = sum(record.lost_clients for record in run.layers)
    if lost:
        notes.append(
            f"{lost} clients' reports were lost; cohorts are counted without them, which is "
            "valid if what is lost does not depend on the data."
        )
    if run.local_epsilon == math.inf:
        notes.append("Without a randomizer nothing is private.")
    return notes


def _text(epsilon: float | NotApplicable) -> str:
    """Return an epsilon for a table, rounded up."""
    if isinstance(epsilon, NotApplicable):
        return str(epsilon)
    if not math.isfinite(epsilon):
        return "inf"
    return (
        f"{math.ceil(epsilon * 1e4 * (1 - 1e-12)) / 1e4:g}" if epsilon < 100 else f"{epsilon:.1f}"
    )
