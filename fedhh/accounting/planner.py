"""What a planner asks backwards: how much local epsilon, or how many reports, for a central target.

Item level, swap neighbors; bounds by the names of `fedhh.accounting.shuffling`.
"""

from __future__ import annotations

import math

from fedhh.accounting.bounds.closed_form import closed_form_epsilon
from fedhh.accounting.bounds.selection import paper_subset_size
from fedhh.accounting.bounds.shuffle_bound import (
    LOCAL_EPSILON_RANGE,
    NUM_REPORTS_RANGE,
    check_delta,
    check_epsilon,
    check_local_epsilon,
)
from fedhh.accounting.guarantees import NotApplicable
from fedhh.accounting.shuffling import BOUNDS, shuffle_bound
from fedhh.privacy_loss.search import largest_true, smallest_true
from fedhh.validation import require_choice


def largest_local_epsilon(
    bound: str,
    *,
    epsilon: float,
    delta: float,
    num_reports: int,
    domain_size: int | None = None,
) -> float | NotApplicable:
    """Return the largest local epsilon whose shuffle stays (epsilon, delta)-private.

    The returned value was checked against the bound. That no larger one passes rests on the bound
    rising with the local epsilon (for "blanket": between jumps of d = ceil(s / (e**eps0 + 1)), and
    over the points right after them), which holds in every case computed.

    Args:
        bound: One of `fedhh.accounting.shuffling.BOUNDS`.
        epsilon: Central target, at least 0.
        delta: Central target, from 1e-14 to 0.1.
        num_reports: Reports in one shuffle.
        domain_size: Number of values s; needed by "blanket" only.

    Returns:
        In [0.1, 16], to a relative 1e-8, rounded down; NotApplicable if even 0.1 is too much.
    """
    require_choice(BOUNDS, bound=bound)
    check_epsilon(epsilon)
    check_delta(delta)
    low, high = LOCAL_EPSILON_RANGE

    def holds(local_epsilon: float, subset_size: int | None = None) -> bool:
        return _is_private(
            bound,
            epsilon=epsilon,
            delta=delta,
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            domain_size=domain_size,
            subset_size=subset_size,
        )

    if bound == "blanket" and domain_size is not None:
        # The bound falls whenever d jumps down by one. The points right after the jumps,
        # eps0 = ln(s / d - 1), give the smallest d; then comes the stretch of that d.
        least, most = (paper_subset_size(end, domain_size) for end in (high, low))
        size = smallest_true(lambda d: holds(_after_jump(domain_size, d), d), low=least, high=most)
        found = None
        if size is not None:
            start = _after_jump(domain_size, size)
            # Ends just before the next jump, so that the rule for d still gives this one.
            end = high if size == least else _after_jump(domain_size, size - 1) - 1e-9
            found = largest_true(lambda local: holds(local, size), low=start, high=max(start, end))
    else:
        found = largest_true(holds, low=low, high=high)
    if found is None:
        return NotApplicable(
            f"even local_epsilon = {low} does not reach epsilon={epsilon:g} at delta={delta:g} "
            f"with num_reports={num_reports}"
        )
    return found


def smallest_num_reports(
    bound: str,
    *,
    epsilon: float,
    delta: float,
    local_epsilon: float,
    domain_size: int | None = None,
    subset_size: int | None = None,
) -> int | NotApplicable:
    """Return the fewest reports whose shuffle is (epsilon, delta)-private.

    The bounds fall with the number of reports, so no smaller number passes.

    Args:
        bound: One of `fedhh.accounting.shuffling.BOUNDS`.
        epsilon: Central target, at least 0.
        delta: Central target, from 1e-14 to 0.1.
        local_epsilon: Privacy of one report.
        domain_size: Number of values s; needed by "blanket" only.
        subset_size: Values in a report, for "blanket"; Sun et al.'s choice if None.

    Returns:
        At least 2; NotApplicable if 10**9 reports are not enough.
    """
    require_choice(BOUNDS, bound=bound)
    check_epsilon(epsilon)
    check_delta(delta)
    check_local_epsilon(local_epsilon)

    def holds(num_reports: int) -> bool:
        return _is_private(
            bound,
            epsilon=epsilon,
            delta=delta,
            local_epsilon=local_epsilon,
            num_reports=num_reports,
            domain_size=domain_size,
            subset_size=subset_size,
        )

    found = smallest_true(holds, low=NUM_REPORTS_RANGE[0], high=NUM_REPORTS_RANGE[1])
    if found is None:
        return NotApplicable(
            f"even num_reports = {NUM_REPORTS_RANGE[1]} does not reach epsilon={epsilon:g} at "
            f"delta={delta:g} with local_epsilon={local_epsilon:g}"
        )
    return found


def _is_private(
    bound: str,
    *,
    epsilon: float,
    delta: float,
    local_epsilon: float,
    num_reports: int,
    domain_size: int | None,
    subset_size: int | None,
) -> bool:
    """Return whether the bound proves (epsilon, delta)-privacy."""
    if bound == "closed-form":
        closed = closed_form_epsilon(
            local_epsilon=local_epsilon, num_reports=num_reports, delta=delta
        )
        return not isinstance(closed, NotApplicable) and closed <= epsilon
    numerical = shuffle_bound(
        bound,
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        domain_size=domain_size,
        subset_size=subset_size,
    )
    return numerical.delta(epsilon) <= delta


def _after_jump(domain_size: int, subset_size: int) -> float:
    """Return the smallest local epsilon in range at which Sun et al.'s rule gives this d."""
    ratio = domain_size / subset_size - 1
    low = LOCAL_EPSILON_RANGE[0]
    return max(low, math.log(ratio)) if ratio > 1 else low
