"""The blanket of Subset Selection for the domains of a run: planned, reachable, or realised."""

from __future__ import annotations

from collections.abc import Iterable

from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.selection import reachable_blanket, subset_selection_blanket
from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.run_facts import RunFacts


def domains_reachable(run: RunFacts) -> bool:
    """Return whether votes decide domains, and what is stated must hold for all of them."""
    return run.domains_vary and (run.uses > 1 or not run.realised)


def reachable_of(plan: LocalReports, *, num_reports: int) -> Blanket:
    """Return the blanket of whatever domain a planned layer may have, for so many reports."""
    return reachable_blanket(
        local_epsilon=plan.local_epsilon,
        num_reports=num_reports,
        smallest_domain=min(each.smallest_domain for each in plan.layers),
        largest_domain=max(each.largest_domain for each in plan.layers),
    )


def blankets_of(plan: LocalReports, sizes: Iterable[tuple[int, int]]) -> list[Blanket]:
    """Return the blankets of layers, given the reports and the values of each."""
    return [
        subset_selection_blanket(
            local_epsilon=plan.local_epsilon,
            num_reports=num_reports,
            domain_size=domain_size,
            subset_size=subset_size,
        )
        for num_reports, domain_size in sizes
        if (subset_size := plan.values_per_report(domain_size)) is not None
    ]
