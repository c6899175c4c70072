"""Differential privacy of a run: local and central, of an item and of a user, by every bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.clones import (
    CLOSED_FORM_ASSUMPTIONS,
    Clones,
    Clones2023,
    SelectionClones2023,
    closed_form_epsilon,
)
from fedhh.accounting.bounds.composition import (
    QUICK,
    Precision,
    Use,
    composed_epsilon,
    disjoint_epsilon,
)
from fedhh.accounting.bounds.selection import (
    dominating_blanket,
    worst_blankets,
)
from fedhh.accounting.bounds.shuffle_bound import NUM_REPORTS_RANGE, ShuffleBound, out_of_range
from fedhh.accounting.guarantees import (
    Guarantee,
    NotApplicable,
    Unit,
    or_infinite,
    place_of_smallest,
)
from fedhh.accounting.local import local_guarantees
from fedhh.accounting.run_blankets import (
    blankets_of,
    domains_reachable,
    reachable_of,
)
from fedhh.accounting.run_facts import RunFacts
from fedhh.accounting.sources import (
    CLOSED_FORM_OF_SELECTION,
    COMPOSITION,
    EPOCHS,
    GROUPS,
    SUN_CENTRAL,
)
from fedhh.accounting.user_level import UserLevelEpsilon, user_level_from

_CLAIMED = ("clones", "closed-form")
"""Theorem 2 of Sun et al. (2024), and the bound whose public implementation gave their number."""
Bounds = tuple[ShuffleBound, ...]
"""Bounds of one kind, one for each layer that may be the worst."""
REACHABLE = "blanket, any domain"
"""The method of the guarantees by `reachable_blanket`, where votes decide domains."""

LINKED = "a client's reports are counted together, and the theorems are about shuffled reports"
"""Why nothing is amplified where each client has one vote for a value; see docs/accounting.md."""

SECRET_COHORTS = "readers do not learn who answered in which round"
"""What is assumed of epochs, whose orders are secret; see docs/accounting.md, section 14."""

_NUM_LATER = 2
"""Bounds of 2023 in `central_guarantees`: by optimal differences, and in closed form."""
_GROUPS = "a client is in one of two groups of rounds, the maximum of both"

_REMEMBERED = 256
"""Results kept for later runs: a sweep's seeds mostly ask the same numbers again."""


def central_guarantees(run: RunFacts, *, broken: str | None = None) -> list[Guarantee]:
    """Return what holds before the run against readers of the results, the best marked.

    Where the first rounds have clients of their own, each bound is the maximum over two groups of
    clients, each with its own rounds, smallest cohort and domains. A client is in one group,
    whatever its data. Given what was heard before, the other group's answers have the same
    distribution for neighbors: they are post-processing, or an adaptive choice of the next round,
    which composition allows.

    Args:
        run: The planned rounds.
        broken: Why the run did not keep to them, so that nothing that rests on them holds.
    """
    groups, not_computed = _computed_groups(run)
    if problem := broken or not_computed:
        return _without_amplification(run, problem)
    found = _worst_of_groups(run, [_by_every_bound(each) for each in groups])
    item = [each for each in found if each.unit == "item"]
    user = [each for each in found if each.unit == "user"]
    if not run.plan.is_subset_selection:
        # Without the proofs for Subset Selection, the later bounds are for comparison only.
        num_proven = len(item) - _NUM_LATER
        return [*_with_best(item[:num_proven]), *item[num_proven:], *_with_best(user)]
    return [*_with_best(item), *_with_best(user)]


def _by_every_bound(run: RunFacts) -> list[Guarantee]:
    """Return what `central_guarantees` does, of one group of clients: the item's, the later last.

    Of the bounds of 2023, proven or not, none is below the blanket's at user level.
    """
    closed = closed_form_epsilon(
        local_epsilon=run.local_epsilon, num_reports=run.reports, delta=run.delta
    )
    if run.uses > 1:
        closed = NotApplicable("clients take part in several rounds, the theorem covers one")
    selection = run.plan.is_subset_selection
    proven = _bounds_of_layers(run)
    of_2023 = SelectionClones2023 if selection else Clones2023
    return [
        *(_item(run, bounds) for bounds in proven),
        _item(run, (of_2023(local_epsilon=run.local_epsilon, num_reports=run.reports),)),
        _central(
            run,
            unit="item",
            method="closed-form",
            epsilon=closed,
            theorem=CLOSED_FORM_OF_SELECTION if selection else SUN_CENTRAL,
            assumptions=of_2023.assumptions if selection else CLOSED_FORM_ASSUMPTIONS,
        ),
        *(each for bounds in proven for each in _user(run, bounds)),
    ]


def guarantee_before_run(run: RunFacts, unit: Unit, precision: Precision = QUICK) -> Guarantee:
    """Return the best of `central_guarantees` of one unit, and compute no other.

    Left out are bounds that another one is never above: of Subset Selection the clones and the
    closed form.

    Args:
        run: The planned rounds.
        unit: "item" or "user".
        precision: Of what is composed; the guarantees of `central_guarantees` are `QUICK`.
    """
    groups, problem = _computed_groups(run)
    if problem:
        return next(each for each in _without_amplification(run, problem) if each.unit == unit)
    found = _worst_of_groups(run, [_by_best_bounds(each, unit, precision) for each in groups])
    return next(each for each in _with_best(found) if each.best)


def _by_best_bounds(run: RunFacts, unit: Unit, precision: Precision) -> list[Guarantee]:
    """Return what `guarantee_before_run` chooses from, of one group of clients."""
    bounds = _bounds_of_layers(run)[-1]
    if unit == "user":
        return _user(run, bounds, precision)
    found = [_item(run, bounds, precision)]
    if run.plan.is_subset_selection:
        later = SelectionClones2023(local_epsilon=run.local_epsilon, num_reports=run.reports)
        found.append(_item(run, (later,), precision))
    return found


def _computed_groups(run: RunFacts) -> tuple[list[RunFacts], str]:
    """Return the groups that amplification is computed for, and, if there are none, why not."""
    computed = [each for each in run.groups if _not_computed(each) is None]
    return computed, "" if computed else str(_not_computed(run))


def _worst_of_groups(run: RunFacts, found: Sequence[list[Guarantee]]) -> list[Guarantee]:
    """Return the worst of each bound, among groups without amplification too.

    Args:
        run: The planned rounds.
        found: The same bounds of each group that amplification is computed for.
    """
    if len(run.groups) == 1:
        return found[0]
    local = [
        guarantee
        for each in run.groups
        if (problem := _not_computed(each)) is not None
        for guarantee in _without_amplification(each, problem)
    ]
    worst = []
    for of_bound in zip(*found, strict=True):
        unit = of_bound[0].unit
        choices = [*of_bound, *(each for each in local if each.unit == unit)]
        unknown = [each for each in choices if isinstance(each.epsilon, NotApplicable)]
        one = unknown[0] if unknown else max(choices, key=lambda each: or_infinite(each.epsilon))
        assumptions = f"{one.assumptions}; {_GROUPS}"
        worst.append(replace(one, assumptions=assumptions, smallest_cohort=run.cohort))
    return worst


def realised_guarantees(run: RunFacts) -> list[Guarantee]:
    """Return what holds for the rounds, domains and reports that a run had, the best marked.

    Empty where the plan says all of it: clients fill up to B reports, as many answered as it
    accepts at least, and no vote decides the domain of a layer. With clients that are reused, only
    the plan counts, and with epochs of secret cohorts, whose rounds hide each other's clients.
    Empty, too, where nothing is amplified: each client has one vote for a value.

    Args:
        run: The rounds that took place.
    """
    votes_decide = run.plan.is_subset_selection and run.uses == 1 and run.domains_vary
    others_answered = run.uses == 1 and _others_answered(run)
    if run.plan.votes_per_client == "one" or run.plan.hides_epochs:
        return []
    if not run.layers or (run.plan.padded and not (votes_decide or others_answered)):
        return []
    num_reports = min(run.cohort, run.reports)
    if out_of_range(local_epsilon=run.local_epsilon, num_reports=num_reports):
        return []
    proven = _bounds_of_layers(run)
    if run.plan.padded and not others_answered:
        proven = [bounds for bounds in proven if isinstance(bounds[0], Blanket)]
    return [
        *_with_best([_item(run, bounds) for bounds in proven]),
        *_with_best([each for bounds in proven for each in _user(run, bounds)]),
    ]


def _others_answered(run: RunFacts) -> bool:
    """Return whether more or fewer clients answered a round than it accepts at least."""
    fewest = {(each.pass_index + 1, each.layer): each.fewest_clients for each in run.plan.layers}
    return any(
        record.num_clients != fewest.get((record.pass_index, record.layer), record.num_clients)
        for record in run.layers
    )


def _not_computed(run: RunFacts) -> str | None:
    """Return why no amplification is computed for the planned rounds; None if it is."""
    problem = out_of_range(
        local_epsilon=run.local_epsilon, num_reports=min(run.cohort, run.reports)
    )
    if not run.plan.padded:
        problem = problem or "before the run it is not known how many reports clients send"
    if run.plan.votes_per_client == "one":
        problem = LINKED
    return problem


def _without_amplification(run: RunFacts, problem: str) -> list[Guarantee]:
    """Return the local guarantees: results are computed from reports, so no bound is above."""
    return [
        replace(
            each,
            trust="central",
            assumptions=f"no amplification: {problem}",
            claimed_in_paper=False,
        )
        for each in local_guarantees(run)
    ]


def _bounds_of_layers(run: RunFacts) -> list[Bounds]:
    """Return the bounds that no other proven one is always below, each over the run's layers.

    Of the layers, those that another one dominates are left out, and the worst comes first.
    """
    local_epsilon, num_reports = run.local_epsilon, run.reports
    proven: list[Bounds] = [(Clones(local_epsilon=local_epsilon, num_reports=num_reports),)]
    if not run.plan.is_subset_selection:
        return proven
    if run.uses > 1 or run.plan.hides_epochs or (run.domains_vary and not run.realised):
        return [*proven, (reachable_of(run.plan, num_reports=num_reports),)]
    sizes = {
        (min(record.num_reports, NUM_REPORTS_RANGE[1]), record.domain_size) for record in run.layers
    }
    return [*proven, tuple(worst_blankets(blankets_of(run.plan, sizes)))]


def _name(run: RunFacts, bounds: Bounds) -> str:
    name = bounds[0].name
    return REACHABLE if name == Blanket.name and domains_reachable(run) else name


def _item(run: RunFacts, bounds: Bounds, precision: Precision = QUICK) -> Guarantee:
    epsilon = _item_epsilon(
        bounds, delta=run.delta, num_reports=run.reports, uses=run.uses, precision=precision
    )
    kind = bounds[0]
    return _central(
        run,
        unit="item",
        method=_name(run, bounds),
        epsilon=epsilon,
        theorem=kind.theorem,
        assumptions=kind.assumptions,
    )


def _user(run: RunFacts, bounds: Bounds, precision: Precision = QUICK) -> list[Guarantee]:
    found = _user_epsilon(
        _dominating(bounds),
        num_clients=run.cohort,
        max_items=run.plan.max_items,
        delta=run.delta,
        num_reports=None if run.plan.padded else run.reports,
        uses=run.uses,
        precision=precision,
    )
    kind, name, max_items = bounds[0], _name(run, bounds), run.plan.max_items
    return [
        _central(
            run,
            unit="user",
            method=f"{name}, groups",
            epsilon=found.groups,
            theorem=f"{kind.theorem}; {GROUPS}",
            assumptions=kind.assumptions,
        ),
        _central(
            run,
            unit="user",
            method=f"{name}, slots",
            epsilon=found.slots,
            theorem=f"{kind.theorem}; {COMPOSITION}",
            assumptions=f"{kind.assumptions}; exactly {max_items} reports from every client",
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
    of_paper = run.plan.is_subset_selection and unit == "item" and method in _CLAIMED
    if run.plan.hides_epochs:
        theorem, assumptions = f"{theorem}; {EPOCHS}", f"{assumptions}; {SECRET_COHORTS}"
    return Guarantee(
        unit=unit,
        trust="central",
        method=method,
        epsilon=epsilon,
        delta=run.delta,
        theorem=theorem,
        assumptions=assumptions + run.same_size,
        smallest_cohort=run.cohort,
        claimed_in_paper=of_paper,
        realised=run.realised,
    )


def _dominating(bounds: Bounds) -> ShuffleBound:
    blankets = [bound for bound in bounds if isinstance(bound, Blanket)]
    return dominating_blanket(blankets) if blankets else bounds[0]


@lru_cache(maxsize=_REMEMBERED)
def _item_epsilon(
    bounds: Bounds, *, delta: float, num_reports: int, uses: int, precision: Precision
) -> float | NotApplicable:
    """Return the item-level epsilon; copies do the work, so that what is kept stays small."""
    if uses == 1:
        return disjoint_epsilon([replace(each) for each in bounds], delta=delta)
    use = Use(bound=replace(_dominating(bounds), num_reports=num_reports), times=uses)
    return composed_epsilon([use], delta=delta, precision=precision)


@lru_cache(maxsize=_REMEMBERED)
def _user_epsilon(
    bound: ShuffleBound,
    *,
    num_clients: int,
    max_items: int,
    delta: float,
    num_reports: int | None,
    uses: int,
    precision: Precision,
) -> UserLevelEpsilon:
    return user_level_from(
        lambda num_reports: replace(bound, num_reports=num_reports),
        num_clients=num_clients,
        max_items=max_items,
        delta=delta,
        num_reports=num_reports,
        uses=uses,
        precision=precision,
    )


def _with_best(guarantees: list[Guarantee]) -> list[Guarantee]:
    best = place_of_smallest([each.epsilon for each in guarantees])
    return [replace(each, best=place == best) for place, each in enumerate(guarantees)]
