"""Differential privacy of a run: local and central, of an item and of a user, by every bound."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast

from fedhh.accounting.blanket import (
    Blanket,
    dominating_blanket,
    subset_selection_blanket,
    worst_blankets,
)
from fedhh.accounting.clones import Clones, Clones2023
from fedhh.accounting.closed_form import (
    CLOSED_FORM_ASSUMPTIONS,
    CLOSED_FORM_THEOREM,
    closed_form_epsilon,
)
from fedhh.accounting.composition import (
    COMPOSITION_THEOREM,
    QUICK,
    Use,
    composed_epsilon,
    disjoint_epsilon,
)
from fedhh.accounting.guarantees import Guarantee, NotApplicable, Unit
from fedhh.accounting.layer_record import LayerRecord
from fedhh.accounting.local import (
    USER_THEOREM,
    item_theorem,
    local_item_epsilon,
    local_user_epsilon,
)
from fedhh.accounting.shuffle_bound import NUM_REPORTS_RANGE, ShuffleBound, out_of_range
from fedhh.accounting.user_level import GROUP_THEOREM, UserLevelEpsilon, user_level_from

CLAIMED_ORACLE = "ss"
"""The randomizer of the runs whose privacy Sun et al. (2024) state."""

_CLAIMED = ("clones", "closed-form")
"""Theorem 2 of Sun et al. (2024), and the bound whose public implementation gave their number."""
Bounds = tuple[ShuffleBound, ...]
"""Bounds of one kind, one for each layer that may be the worst."""
_REMEMBERED = 256
"""Results kept for later runs: a sweep's seeds mostly ask the same numbers again."""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What has to be known about a run to account for it.

    Attributes:
        oracle: Registry key of the oracle.
        layers: What took part, one record for each layer of each pass.
        local_epsilon: Privacy of one report, math.inf without a randomizer.
        max_items: B, most contributions of one client in one layer.
        delta: Central target.
        padded: Whether every client sent exactly B reports.
        uses: Most layers in which one client took part.
    """

    oracle: str
    layers: tuple[LayerRecord, ...]
    local_epsilon: float
    max_items: int
    delta: float
    padded: bool
    uses: int

    @property
    def cohort(self) -> int:
        """Fewest clients in one layer."""
        return min(record.num_clients for record in self.layers)

    @property
    def same_size(self) -> str:
        """What must be assumed of neighbors if the number of a client's reports tells of it."""
        return "" if self.padded else "; neighbors send equally many reports"

    @property
    def reports(self) -> int:
        """Fewest reports in one layer, cut to what the bounds are computed for."""
        return min(NUM_REPORTS_RANGE[1], *(record.num_reports for record in self.layers))


def local_guarantees(run: RunFacts) -> list[Guarantee]:
    """Return what holds against the server, which reads every report."""
    item = Guarantee(
        unit="item",
        trust="local",
        method="randomizer",
        epsilon=local_item_epsilon(run.local_epsilon, uses=run.uses),
        delta=0.0,
        theorem=item_theorem(run.oracle),
        assumptions="an item enters one report of each round its client takes part in"
        + run.same_size,
        smallest_cohort=run.cohort,
        best=True,
        claimed_in_paper=run.oracle == CLAIMED_ORACLE,
    )
    user = replace(
        item,
        unit="user",
        epsilon=local_user_epsilon(run.local_epsilon, max_items=run.max_items, uses=run.uses),
        theorem=USER_THEOREM,
        assumptions=f"a client sends at most {run.max_items} reports in one round{run.same_size}",
        claimed_in_paper=False,
    )
    return [item, user]


def central_guarantees(run: RunFacts) -> list[Guarantee]:
    """Return what holds against readers of the results, the best of each unit marked."""
    problem = out_of_range(
        local_epsilon=run.local_epsilon, num_reports=min(run.cohort, run.reports)
    )
    if problem:
        # Results are computed from reports, so no bound on them is above the local one.
        return [
            replace(
                each,
                trust="central",
                assumptions=f"no amplification: {problem}",
                claimed_in_paper=False,
            )
            for each in local_guarantees(run)
        ]
    closed = closed_form_epsilon(
        local_epsilon=run.local_epsilon, num_reports=run.reports, delta=run.delta
    )
    if run.uses > 1:
        closed = NotApplicable("clients take part in several rounds, the theorem covers one")
    proven, compared = _bounds_of_layers(run)
    return [
        *_with_best([_item(run, bounds) for bounds in proven]),
        *(_item(run, bounds) for bounds in compared),
        _central(
            run,
            unit="item",
            method="closed-form",
            epsilon=closed,
            theorem=CLOSED_FORM_THEOREM,
            assumptions=CLOSED_FORM_ASSUMPTIONS,
        ),
        *_with_best([each for bounds in proven for each in _user(run, bounds)]),
    ]


def _bounds_of_layers(run: RunFacts) -> tuple[list[Bounds], list[Bounds]]:
    """Return the proven bounds, and those for comparison, each over the layers of the run.

    Of the layers, those that another one dominates are left out, and the worst comes first.
    """
    local_epsilon, num_reports = run.local_epsilon, run.reports
    proven: list[Bounds] = [(Clones(local_epsilon=local_epsilon, num_reports=num_reports),)]
    if run.oracle == "ss":
        sizes = {
            (min(record.num_reports, NUM_REPORTS_RANGE[1]), record.domain_size, record.subset_size)
            for record in run.layers
        }
        blankets = [
            subset_selection_blanket(
                local_epsilon=local_epsilon,
                num_reports=layer_reports,
                domain_size=domain_size,
                subset_size=subset_size or 0,
            )
            for layer_reports, domain_size, subset_size in sizes
        ]
        proven.append(tuple(worst_blankets(blankets)))
    return proven, [(Clones2023(local_epsilon=local_epsilon, num_reports=num_reports),)]


def _item(run: RunFacts, bounds: Bounds) -> Guarantee:
    """Return the item-level guarantee by one kind of bound."""
    epsilon = _item_epsilon(bounds, delta=run.delta, num_reports=run.reports, uses=run.uses)
    kind = bounds[0]
    return _central(
        run,
        unit="item",
        method=kind.name,
        epsilon=epsilon,
        theorem=kind.theorem,
        assumptions=kind.assumptions,
    )


def _user(run: RunFacts, bounds: Bounds) -> list[Guarantee]:
    """Return the user-level guarantees by groups and by slots."""
    found = _user_epsilon(
        _dominating(bounds),
        num_clients=run.cohort,
        max_items=run.max_items,
        delta=run.delta,
        num_reports=None if run.padded else run.reports,
        uses=run.uses,
    )
    kind = bounds[0]
    return [
        _central(
            run,
            unit="user",
            method=f"{kind.name}, groups",
            epsilon=found.groups,
            theorem=f"{kind.theorem}; {GROUP_THEOREM}",
            assumptions=kind.assumptions,
        ),
        _central(
            run,
            unit="user",
            method=f"{kind.name}, slots",
            epsilon=found.slots,
            theorem=f"{kind.theorem}; {COMPOSITION_THEOREM}",
            assumptions=f"{kind.assumptions}; exactly {run.max_items} reports from every client",
        ),
    ]


def _central(
    run: RunFacts,
    *,
    unit: Unit,
    method: str,
    epsilon: float | NotApplicable,
    theorem: str,
    assumptions: str,
) -> Guarantee:
    return Guarantee(
        unit=unit,
        trust="central",
        method=method,
        epsilon=epsilon,
        delta=run.delta,
        theorem=theorem,
        assumptions=assumptions + run.same_size,
        smallest_cohort=run.cohort,
        claimed_in_paper=run.oracle == CLAIMED_ORACLE and unit == "item" and method in _CLAIMED,
    )


def _dominating(bounds: Bounds) -> ShuffleBound:
    """Return a bound at least as large as each of these."""
    blankets = [bound for bound in bounds if isinstance(bound, Blanket)]
    return dominating_blanket(blankets) if blankets else bounds[0]


@lru_cache(maxsize=_REMEMBERED)
def _item_epsilon(
    bounds: Bounds, *, delta: float, num_reports: int, uses: int
) -> float | NotApplicable:
    """Return the item-level epsilon; copies do the work, so that what is kept stays small."""
    if uses == 1:
        return disjoint_epsilon([replace(each) for each in bounds], delta=delta)
    use = Use(bound=replace(_dominating(bounds), num_reports=num_reports), times=uses)
    return composed_epsilon([use], delta=delta, precision=QUICK)


@lru_cache(maxsize=_REMEMBERED)
def _user_epsilon(
    bound: ShuffleBound,
    *,
    num_clients: int,
    max_items: int,
    delta: float,
    num_reports: int | None,
    uses: int,
) -> UserLevelEpsilon:
    """Return the user-level epsilons; see `user_level_from`."""
    return user_level_from(
        lambda num_reports: replace(bound, num_reports=num_reports),
        num_clients=num_clients,
        max_items=max_items,
        delta=delta,
        num_reports=num_reports,
        uses=uses,
        precision=QUICK,
    )


def _with_best(guarantees: list[Guarantee]) -> list[Guarantee]:
    """Return the guarantees, the one with the smallest epsilon marked."""
    known = [each for each in guarantees if not isinstance(each.epsilon, NotApplicable)]
    best = min(known, key=lambda each: cast(float, each.epsilon), default=None)
    return [replace(each, best=each is best) for each in guarantees]
