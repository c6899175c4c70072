"""What shuffling adds to local reports: the best central bound of an item and of a user.

Of Subset Selection that is its blanket, of any other randomizer clones. Before a run, a bound holds
for every domain and every number of answers that the plan allows; realised, for those of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from fedhh.accounting.bounds.blanket import Blanket, SlotwiseBlanket
from fedhh.accounting.bounds.clones import Clones, SelectionClones2023
from fedhh.accounting.bounds.composition import (
    REMEMBERED,
    Use,
    disjoint_epsilon,
    remembered_epsilon,
)
from fedhh.accounting.bounds.selection import (
    dominating_blanket,
    reachable_blanket,
    subset_selection_blanket,
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
from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.sources import EPOCHS
from fedhh.accounting.user_level import user_guarantees

if TYPE_CHECKING:
    from fedhh.accounting.local_reports import LocalReports
    from fedhh.accounting.terms import PrivacyTerms

Bounds = tuple[ShuffleBound, ...]
"""Bounds of one kind, one for each layer that may be the worst."""

REACHABLE = "blanket, any domain"
"""The method of guarantees by `reachable_blanket`, where votes decide domains."""
LINKED = "a client's reports are counted together, and the theorems are about shuffled reports"
"""Why nothing is amplified where each client has one vote for a value; see docs/accounting.md."""
SECRET_COHORTS = "readers do not learn who answered in which round"
"""What is assumed of epochs, whose orders are secret; see docs/accounting.md, section 14."""
_FEW = 5e-3
"""Share of weights ``both`` of ``neither`` that may count as that of ``one`` at hardly any cost."""
_GROUPS = "a client is in one of two groups of rounds, the maximum of both"


def central_before_run(
    plan: LocalReports, unit: Unit, terms: PrivacyTerms, *, broken: str | None = None
) -> Guarantee:
    """Return the best guarantee that holds before the run against readers of the results.

    Where the first rounds have clients of their own, each bound is the maximum over two groups of
    clients, each with its own rounds, smallest cohort and domains. A client is in one group,
    whatever its data. Given what was heard before, the other group's answers have the same
    distribution for neighbors: they are post-processing, or an adaptive choice of the next round,
    which composition allows.

    Left out are bounds that another one is never above: of Subset Selection clones of 2021.

    Args:
        plan: How clients report.
        unit: "item" or "user".
        terms: Delta of the guarantee, and precision of what is composed.
        broken: Why the run did not keep to the plan, so that nothing that rests on it holds.
    """
    groups = [
        _Shuffled(plan=each, uses=each.most_rounds_per_client, terms=terms) for each in plan.groups
    ]
    amplified = [each for each in groups if each.problem is None]
    problem = broken or (None if amplified else groups[0].problem)
    if problem is not None:
        return _without_amplification(plan, unit, problem)
    found = [each.guarantees(unit) for each in amplified]
    if len(groups) == 1:
        return _smallest(found[0])
    local = [
        _without_amplification(each.plan, unit, each.problem)
        for each in groups
        if each.problem is not None
    ]
    return _smallest(
        [
            replace(_worst((*of_bound, *local)), smallest_cohort=plan.fewest_answers)
            for of_bound in zip(*found, strict=True)
        ]
    )


def central_realised(
    plan: LocalReports, rounds: Sequence[PlannedRound], unit: Unit, terms: PrivacyTerms
) -> list[Guarantee]:
    """Return the best guarantee of a unit for the rounds, domains and reports that a run had.

    Empty where the plan says all of it: clients fill up to B reports, as many answered as it
    accepts at least, and no vote decides the domain of a layer. With clients that are reused and
    fill up, or that hide in epochs, `central_of_answers` says what is realised. Empty, too, where
    nothing is amplified: each client has one vote for a value.

    Args:
        plan: How clients report.
        rounds: Those of its rounds that took place, with what came.
        unit: "item" or "user".
        terms: As in `central_before_run`.
    """
    uses = plan.most_rounds_per_client
    if not rounds or plan.votes_per_client == "one":
        return []
    votes_decide = plan.is_subset_selection and plan.domains_vary
    others_answered = any(
        each.num_clients != plan.layers[each.place].fewest_clients for each in rounds
    )
    if plan.padded and not (uses == 1 and (votes_decide or others_answered)):
        return []
    if uses > 1:
        # What a client's later rounds ask is decided by earlier ones: any domain of the plan.
        smallest, largest = plan.domains
        rounds = [
            replace(each, smallest_domain=smallest, largest_domain=largest) for each in rounds
        ]
    happened = replace(plan, layers=tuple(rounds), participation="one-round", epochs=1, num_apart=0)
    shuffled = _Shuffled(plan=happened, uses=uses, terms=terms, realised=True)
    if out_of_range(local_epsilon=plan.local_epsilon, num_reports=shuffled.fewest):
        return []
    return [_smallest(shuffled.guarantees(unit))]


def central_of_answers(
    plan: LocalReports, answered: LocalReports, unit: Unit, terms: PrivacyTerms
) -> list[Guarantee]:
    """Return the best guarantee of a unit where rounds share clients, for the answers that came.

    It is the one before the run of a plan that accepts no fewer, whatever the domains: the fewest
    answers of a round, or of an epoch of secret cohorts, count in each that is composed. Votes
    decide whether a round takes place, so one that did not counts as the plan has it. Empty where
    the plan says all of it, or nothing is amplified.

    Args:
        plan: How clients report.
        answered: The plan whose rounds accept at least the answers that came to them.
        unit: "item" or "user".
        terms: As in `central_before_run`.
    """
    if [each.fewest_answers for each in plan.groups] == [
        each.fewest_answers for each in answered.groups
    ]:
        return []
    found = central_before_run(answered, unit, terms)
    return [replace(found, realised=True)] if found.delta else []


@dataclass(frozen=True, kw_only=True)
class _Shuffled:
    """Rounds whose reports are shuffled, with clients that share none with other rounds.

    Attributes:
        plan: With the rounds that a claim is about as its own.
        uses: Most of them in which one client may take part.
        terms: Of what is claimed.
        realised: Whether the rounds took place.
    """

    plan: LocalReports
    uses: int
    terms: PrivacyTerms
    realised: bool = False

    @property
    def reports(self) -> int:
        """Fewest reports that are shuffled together, cut to what bounds are computed for."""
        return min(NUM_REPORTS_RANGE[1], self.plan.fewest_reports)

    @property
    def fewest(self) -> int:
        """The fewest of clients and of reports."""
        return min(self.plan.fewest_answers, self.reports)

    @property
    def problem(self) -> str | None:
        """Why no amplification is computed; None if it is."""
        if self.plan.votes_per_client == "one":
            return LINKED
        problem = out_of_range(local_epsilon=self.plan.local_epsilon, num_reports=self.fewest)
        if not self.plan.padded:
            problem = problem or "before the run it is not known how many reports clients send"
        return problem

    def guarantees(self, unit: Unit) -> list[Guarantee]:
        """Return the bounds of which the best counts."""
        uses = self._planned_uses()
        bounds = tuple(use.bound for use in uses) or self._bounds()
        uses = uses or (Use(bound=_dominating(bounds).among(self.reports), times=self.uses),)
        if unit == "user":
            return self._of_user(uses)
        found = [self._of_item(bounds, uses)]
        if self.plan.is_subset_selection and not self.realised:
            later = SelectionClones2023(
                local_epsilon=self.plan.local_epsilon, num_reports=self.reports
            )
            found.append(self._of_item((later,), (Use(bound=later, times=self.uses),)))
        return found

    def _planned_uses(self) -> tuple[Use, ...]:
        """Return the rounds, or epochs, of one client, with the laws of their own domains.

        Empty where it takes part in one round, or nothing is known of domains.
        """
        if not (self.plan.is_subset_selection and self.plan.reuses_clients):
            return ()
        orders = groupby(self.plan.layers, lambda each: each.cohort.redraw)
        laws = Counter(self._law(tuple(rounds)) for _, rounds in orders)
        return tuple(Use(bound=law, times=times) for law, times in laws.items())

    def _law(self, rounds: Sequence[PlannedRound]) -> Blanket:
        """Return the blanket of an epoch of secret order, or one above those of all rounds."""
        plan, sizes = self.plan, Counter[tuple[int, int]]()
        for each in rounds:
            sizes[each.smallest_domain, each.largest_domain] += each.fewest_reports
        laws = [
            reachable_blanket(
                local_epsilon=plan.local_epsilon,
                num_reports=max(2, min(NUM_REPORTS_RANGE[1], reports)),
                smallest_domain=smallest,
                largest_domain=largest,
            )
            for (smallest, largest), reports in sizes.items()
        ]
        if plan.participation == "every-round":
            laws = [each.spread if each.both < _FEW * each.neither else each for each in laws]
        one = dominating_blanket(laws)
        # Where more may answer than counted, a bound has to fall with their number.
        exact = plan.hides_epochs and plan.max_items == 1 and not plan.may_miss_answers
        if exact and SlotwiseBlanket.suits(laws):
            return SlotwiseBlanket.of(laws, above=one.among(sum(sizes.values())))
        return one.among(self.reports)

    def _bounds(self) -> Bounds:
        """Return the bound of each layer that no other one dominates, the worst first."""
        plan, epsilon = self.plan, self.plan.local_epsilon
        if not plan.is_subset_selection:
            return (Clones(local_epsilon=epsilon, num_reports=self.reports),)
        if self.uses > 1 or plan.domains_vary:
            return (self._law(plan.layers),)
        sizes = {
            (min(each.fewest_reports, NUM_REPORTS_RANGE[1]), each.largest_domain)
            for each in plan.layers
        }
        blankets = [
            subset_selection_blanket(
                local_epsilon=epsilon,
                num_reports=num_reports,
                domain_size=domain_size,
                subset_size=subset_size,
            )
            for num_reports, domain_size in sizes
            if (subset_size := plan.values_per_report(domain_size)) is not None
        ]
        return tuple(worst_blankets(blankets))

    def _of_item(self, bounds: Bounds, uses: tuple[Use, ...]) -> Guarantee:
        kind = bounds[0]
        if self.uses == 1:
            epsilon = _item_epsilon(bounds, delta=self.terms.delta)
        else:
            epsilon = remembered_epsilon(
                uses, delta=self.terms.delta, precision=self.terms.precision
            )
        return self._stated(
            Guarantee(
                unit="item",
                trust="central",
                method=kind.name,
                epsilon=epsilon,
                delta=self.terms.delta,
                theorem=kind.theorem,
                assumptions=kind.assumptions,
                smallest_cohort=self.plan.fewest_answers,
            ),
            kind,
        )

    def _of_user(self, uses: tuple[Use, ...]) -> list[Guarantee]:
        found = user_guarantees(
            uses,
            num_clients=self.plan.fewest_answers,
            max_items=self.plan.max_items,
            delta=self.terms.delta,
            num_reports=None if self.plan.padded else self.reports,
            precision=self.terms.precision,
            # Both ways are of the same shuffles where a client sends one report in each.
            one_way=self.terms.one_way or self.plan.max_items == 1,
        )
        return [self._stated(each, uses[0].bound) for each in found]

    def _stated(self, guarantee: Guarantee, kind: ShuffleBound) -> Guarantee:
        """Return a bound's guarantee with what the plan adds to it."""
        method, theorem, assumed = guarantee.method, guarantee.theorem, guarantee.assumptions
        if isinstance(kind, Blanket) and self.plan.domains_vary:
            method = method.replace(kind.name, REACHABLE, 1)
        if self.plan.hides_epochs:
            theorem, assumed = f"{theorem}; {EPOCHS}", f"{assumed}; {SECRET_COHORTS}"
        return replace(
            guarantee,
            method=method,
            theorem=theorem,
            assumptions=assumed + self.plan.same_size,
            realised=self.realised,
        )


def _worst(choices: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee that holds for clients of all groups."""
    unknown = [each for each in choices if isinstance(each.epsilon, NotApplicable)]
    one = unknown[0] if unknown else max(choices, key=lambda each: or_infinite(each.epsilon))
    return replace(one, assumptions=f"{one.assumptions}; {_GROUPS}")


def _smallest(guarantees: Sequence[Guarantee]) -> Guarantee:
    place = place_of_smallest([each.epsilon for each in guarantees]) or 0
    return replace(guarantees[place], best=True)


def _without_amplification(plan: LocalReports, unit: Unit, problem: str) -> Guarantee:
    """Return the local guarantee: results are computed from reports, so no bound is above."""
    local = plan.local_guarantee(unit)
    return replace(local, trust="central", assumptions=f"no amplification: {problem}")


def _dominating(bounds: Bounds) -> ShuffleBound:
    blankets = [bound for bound in bounds if isinstance(bound, Blanket)]
    return dominating_blanket(blankets) if blankets else bounds[0]


@lru_cache(maxsize=REMEMBERED)
def _item_epsilon(bounds: Bounds, *, delta: float) -> float:
    """Return the epsilon of disjoint rounds; copies do the work, so that what is kept is small."""
    return disjoint_epsilon([replace(each) for each in bounds], delta=delta)
