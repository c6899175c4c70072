"""The closed form that Gboard states: Theorem 2 of Sun et al. (2024), with its condition."""

from __future__ import annotations

import math

from fedhh.accounting.bounds.shuffle_bound import (
    check_delta,
    check_epsilon,
    check_local_epsilon,
    check_num_reports,
)
from fedhh.accounting.guarantees import NotApplicable

CLOSED_FORM_ASSUMPTIONS = (
    "comparison only: rests on Feldman et al. (2023), Theorem 3.2, which has an erratum"
)


def closed_form_epsilon(
    *, local_epsilon: float, num_reports: int, delta: float
) -> float | NotApplicable:
    """Return ln(1 + (E - 1)(4 sqrt(2 ln(4 / delta)) / sqrt((E + 1) n) + 4 / n)), E = e**eps0.

    Sun et al. (2024), Theorem 2, from Feldman, McMillan, Talwar (2023), Theorem 3.2, whose authors
    published an erratum. The step from the clones of 2023 to this formula does not depend on what
    the erratum is about, so it is proven wherever those are: for Subset Selection
    (docs/accounting.md, sections 2 and 3). For other randomizers it is for comparison only.

    Returns:
        At most ``local_epsilon``; NotApplicable unless
        ``local_epsilon <= ln(n / (8 ln(2 / delta)) - 1)``.
    """
    check_local_epsilon(local_epsilon)
    check_num_reports(num_reports)
    check_delta(delta)
    room = num_reports / (8 * math.log(2 / delta)) - 1
    growth = math.exp(local_epsilon)
    if growth > room:
        largest = f"{math.log(room):.4g}" if room > 1 else "0"
        return NotApplicable(
            f"the closed form needs local_epsilon <= {largest} for num_reports={num_reports}, "
            f"delta={delta:g}, got local_epsilon={local_epsilon:g}"
        )
    spread = 4 * math.sqrt(2 * math.log(4 / delta)) / math.sqrt((growth + 1) * num_reports)
    return min(local_epsilon, math.log1p((growth - 1) * (spread + 4 / num_reports)))


def closed_form_delta(
    *, local_epsilon: float, num_reports: int, epsilon: float
) -> float | NotApplicable:
    """Return the smallest delta at which `closed_form_epsilon` is at most ``epsilon``.

    Returns:
        In [0, 1]; NotApplicable where no delta below 1 meets the condition of the theorem.
    """
    check_local_epsilon(local_epsilon)
    check_num_reports(num_reports)
    check_epsilon(epsilon)
    if epsilon >= local_epsilon:
        return 0.0
    growth = math.exp(local_epsilon)
    spread = math.expm1(epsilon) / (growth - 1) - 4 / num_reports
    allowed = 2 * math.exp(-num_reports / (8 * (growth + 1)))
    if spread <= 0 or allowed >= 1:
        return NotApplicable(
            f"the closed form says nothing for num_reports={num_reports}, "
            f"local_epsilon={local_epsilon:g}, epsilon={epsilon:g}"
        )
    needed = 4 * math.exp(-((spread / 4) ** 2) * (growth + 1) * num_reports / 2)
    return min(1.0, max(needed, allowed))
