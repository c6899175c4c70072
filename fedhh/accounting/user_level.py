"""User-level privacy: what all the contributions of one client together reveal.

A client sends exactly ``max_items`` reports. Valid bounds on the shuffle of all clients' reports,
of which the smallest counts:

* groups: the N B reports are shuffled together; going from one client's items to any others takes
  B steps between item-level neighbors.
* slots: cut the N B reports into B shuffles, the i-th with the i-th report of every client. The
  sum of all votes is a post-processing of the B shuffles. Each has N reports, of which the client
  changes one, so B mechanisms compose, each with n = N.

Composing B times the pair for n = N B is *not* valid: the other reports cannot hide the client B
times over. That is why the functions here take clients and items per client, never a number of
reports.

Group privacy, from one step between neighbors to many, each with an epsilon of its own:
Let D_x(P, Q) = sup_A P(A) - x Q(A) be the hockey-stick divergence. For every event A,
P(A) <= D_x(P, Q) + x Q(A) and Q(A) <= D_y(Q, R) + y R(A), so D_xy(P, R) <= D_x(P, Q) + x D_y(Q, R).
Over B steps between neighbors with delta(epsilon) each, and any epsilon_1, ..., epsilon_B >= 0,

    delta_B(epsilon_1 + ... + epsilon_B) <= sum over i of
        e**(epsilon_1 + ... + epsilon_{i-1}) delta(epsilon_i).

With equal epsilons this is the textbook's lemma. The best ones are not equal: an early step may
take a smaller epsilon, since its delta is multiplied by less. They are the slopes that an event
meets on its way: given a = P_B(A), the largest probability that neighbors allow is
min over e of delta(e) + e**e a, the minimum gives epsilon_B, and so on down to P_0. The search
starts from many values of a; what it returns is checked by the inequality alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fedhh.accounting.bounds.composition import (
    FINE,
    REMEMBERED,
    Precision,
    Use,
    remembered_epsilon,
)
from fedhh.accounting.bounds.shuffle_bound import NUM_REPORTS_RANGE, ShuffleBound, check_delta
from fedhh.accounting.guarantees import Guarantee, NotApplicable
from fedhh.accounting.sources import COMPOSITION, GROUPS
from fedhh.arrays import Floats
from fedhh.privacy_loss.convex_hull import lower_hull
from fedhh.privacy_loss.search import smallest_epsilon
from fedhh.validation import require_at_least, require_between, require_positive

Indices = npt.NDArray[np.intp]

_WIDE, _TAIL, _REFINED = 0.16, 0.08, 0.24
"""Shares of a precision's grid points: where delta is large, beyond, and again near the best."""
_STARTS, _ZOOMS = 40, 5
"""Probabilities from which a search sets out at once, and how often they are narrowed."""
_OF_GRID = 1e-3
"""Precision, relative, of where a grid ends."""
_ROUNDING = 1e-9
"""Relative error of a sum of exponentials in double precision is far below this."""
_LARGEST_EXPONENT = 600.0
"""Beyond it what is left for the last step is below the smallest double."""


def user_guarantees(
    uses: Sequence[Use],
    *,
    num_clients: int,
    max_items: int,
    delta: float,
    num_reports: int | None = None,
    precision: Precision = FINE,
    one_way: bool = False,
) -> list[Guarantee]:
    """Return the central guarantees of one client's ``max_items`` contributions: groups, slots.

    Args:
        uses: Rounds in which one client takes part, by their item-level bounds, at least one; the
            bounds' numbers of reports do not count.
        num_clients: N, clients in one cohort, the fewest of all rounds.
        max_items: B, most reports of one client.
        delta: Target, from 1e-14 to 0.1.
        num_reports: None if every client sends exactly B reports, dummies included. Otherwise the
            reports of a cohort; then slots do not exist, and groups compare data sets in which the
            client sends the same number of reports.
        precision: See `composed_epsilon`.
        one_way: Whether to leave out slots of a single round, and groups of several: what is left
            is hardly ever far above, and takes half of the time.
    """
    check_delta(delta)
    require_between(*NUM_REPORTS_RANGE, num_clients=num_clients)
    require_at_least(1, max_items=max_items, num_uses=len(uses))
    bound, rounds = uses[0].bound, sum(use.times for use in uses)
    together = num_clients * max_items if num_reports is None else num_reports
    has_slots = num_reports is None

    def stated(
        way: str, epsilon: float | NotApplicable, theorem: str, assumed: str = ""
    ) -> Guarantee:
        return Guarantee(
            unit="user",
            trust="central",
            method=f"{bound.name}, {way}",
            epsilon=epsilon,
            delta=delta,
            theorem=f"{bound.theorem}; {theorem}",
            assumptions=bound.assumptions + assumed,
            smallest_cohort=num_clients,
        )

    found = []
    if not (one_way and has_slots and rounds > 1):
        # More reports than the bounds' range hide no less.
        shuffled = min(together, NUM_REPORTS_RANGE[1])
        epsilon = sum(
            use.times
            * group_epsilon(
                use.bound.among(shuffled),
                steps=max_items,
                delta=delta / rounds,
                precision=precision,
            )
            for use in uses
        )
        found.append(stated("groups", epsilon, GROUPS))
    if not (one_way and found):
        slots: float | NotApplicable = NotApplicable(
            "clients do not send exactly max_items reports each, so there are no slots"
        )
        if has_slots:
            of_slots = tuple(
                Use(bound=use.bound.among(num_clients), times=max_items * use.times) for use in uses
            )
            slots = remembered_epsilon(of_slots, delta=delta, precision=precision)
        exactly = f"; exactly {max_items} reports from every client"
        found.append(stated("slots", slots, COMPOSITION, exactly))
    return found


@lru_cache(maxsize=REMEMBERED)
def group_epsilon(
    bound: ShuffleBound, *, steps: int, delta: float, precision: Precision = FINE
) -> float:
    """Return the epsilon of ``steps`` steps between neighbors, by group privacy, rounded up.

    Args:
        bound: Bound for one step, the same in both directions.
        steps: Size of a group, at least 1.
        delta: Target, above 0.
        precision: Its tolerance is that of the bound, its grid that of the epsilons to choose from.

    Returns:
        At most ``steps`` times the local epsilon.
    """
    require_positive(delta=delta)
    require_at_least(1, steps=steps)
    bound = replace(bound, tolerance=max(bound.tolerance, precision.tolerance))
    most = bound.local_epsilon
    coarse, tail, refined = (
        round(share * precision.grid_points) + 2 for share in (_WIDE, _TAIL, _REFINED)
    )
    if steps == 1:
        return smallest_epsilon(bound.delta, delta=delta, upper=most)
    rare = 1e-4 * delta / steps
    dense = smallest_epsilon(bound.delta, delta=rare, upper=most, precision=_OF_GRID)
    epsilons = np.linspace(0.0, dense, coarse)
    if dense < most:
        epsilons = np.append(epsilons, np.geomspace(max(dense, 1e-9), most, tail)[1:])
    deltas = np.minimum.accumulate(bound.deltas(epsilons))
    path = epsilons[_best_path(epsilons, deltas, steps=steps, delta=delta)]
    reach = dense / coarse
    near = np.linspace(max(0.0, path[0] - reach), min(most, path[-1] + reach), refined)
    order = np.argsort(np.append(epsilons, near), kind="stable")
    epsilons = np.append(epsilons, near)[order]
    deltas = np.minimum.accumulate(np.append(deltas, bound.deltas(near))[order])
    chosen = _best_path(epsilons, deltas, steps=steps, delta=delta)
    spent, last = math.fsum(epsilons[chosen[:-1]]), float(epsilons[chosen[-1]])
    before = float(epsilons[max(chosen[-1] - 1, 0)])
    if spent < _LARGEST_EXPONENT:
        # The last step takes exactly what the others leave.
        left = delta * (1 - _ROUNDING) - _delta_of_group(epsilons[chosen[:-1]], deltas[chosen[:-1]])
        left *= math.exp(-spent)
        if left > 0:
            last = smallest_epsilon(bound.delta, delta=left, upper=last, lower=before)
    return min(steps * most, spent + last)


def _delta_of_group(epsilons: Floats, deltas: Floats) -> float:
    """Return the right-hand side of the inequality above, for exponents that do not overflow."""
    paid = np.cumsum(epsilons) - epsilons
    return math.fsum(deltas * np.exp(paid))


def _best_path(epsilons: Floats, deltas: Floats, *, steps: int, delta: float) -> Indices:
    """Return ``(steps,)`` indices of ascending epsilons that keep to ``delta``, of a small sum.

    Args:
        epsilons: ``(m,)``, ascending, the last one with delta 0.
        deltas: ``(m,)``, of one step, falling.
        steps: Steps.
        delta: Target.
    """
    # Other epsilons are the slope at no event.
    corners = lower_hull(np.exp(epsilons), deltas)
    epsilons, deltas = epsilons[corners], deltas[corners]
    target = math.log(delta) + math.log1p(-_ROUNDING)
    with np.errstate(divide="ignore"):
        log_deltas = np.log(deltas)
        turns = np.log(np.diff(np.exp(epsilons))) - np.log(-np.diff(deltas))
    best, smallest = np.full(steps, epsilons.size - 1), steps * float(epsilons[-1])
    low, high = target - smallest, 0.0
    for _ in range(_ZOOMS):
        starts = np.linspace(low, high, _STARTS)
        chosen = np.empty((steps, _STARTS), dtype=np.intp)
        log_probability = starts
        # On the way from P_B to P_0 an event's probability rises, and the epsilons fall.
        for step in reversed(range(steps)):
            chosen[step] = np.searchsorted(turns, -log_probability)
            log_probability = np.logaddexp(
                epsilons[chosen[step]] + log_probability, log_deltas[chosen[step]]
            )
        spent = np.cumsum(epsilons[chosen], axis=0)
        paid = np.vstack([np.zeros(_STARTS), spent[:-1]])
        reached = np.logaddexp.reduce(log_deltas[chosen] + paid, axis=0)
        sums = np.where(reached <= target, spent[-1], math.inf)
        i = int(np.argmin(sums))
        if sums[i] < smallest:
            best, smallest = chosen[:, i], float(sums[i])
        low, high = float(starts[max(i - 1, 0)]), float(starts[min(i + 1, _STARTS - 1)])
    return np.asarray(corners[best])
