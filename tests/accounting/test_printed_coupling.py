"""The coupling of Sun et al. (2024), Lemma 1, as printed: it does not draw Subset Selection.

Enumerated for s = 6, d = 3, e**epsilon = 2, as docs/reproduction-gboard.md says.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import combinations
from math import comb

import pytest

S, D, GROWTH = 6, 3, 2
P = Fraction(D * GROWTH, D * GROWTH + S - D)  # a report holds the client's own value, 1
Q = (D - P) / (S - 1)  # a report holds another value, such as 0

Distribution = dict[tuple[int, ...], Fraction]


def subset_selection() -> Distribution:
    return {
        drawn: P / comb(S - 1, D - 1) if 1 in drawn else (1 - P) / comb(S - 1, D)
        for drawn in combinations(range(S), D)
    }


def printed(*, fill_own: bool) -> Distribution:
    """Return the distribution of Case 2; `fill_own`: the last step may pick the own value."""
    reports: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    in_drawn = Fraction(D - 2, S - 1)
    change = (P - in_drawn) / (1 - in_drawn)
    for first, drawn in ((f, d) for f in (0, 1) for d in combinations(range(1, S), D - 2)):
        weight = (Q if first else 1 - Q) / comb(S - 1, D - 2)
        held = {*drawn, *([0] if first else [])}
        added = [(held, Fraction(1))] if 1 in held else [(held | {1}, change), (held, 1 - change)]
        for members, share in added:
            free = [v for v in range(1, S) if v not in members and (fill_own or v != 1)]
            ways = list(combinations(free, D - len(members)))
            for filled in ways:
                reports[tuple(sorted(members | set(filled)))] += weight * share / len(ways)
    return reports


def probability(of: Distribution, *values: int) -> float:
    return float(sum(weight for report, weight in of.items() if set(values) <= set(report)))


@pytest.mark.parametrize(
    ("fill_own", "own", "both", "distance"),
    [(True, 0.7944, 0.3500, 0.1278), (False, 0.6667, 0.3111, 0.0889)],
)
def test_reports_of_the_printed_coupling_are_not_of_subset_selection(
    fill_own: bool, own: float, both: float, distance: float
) -> None:
    right, wrong = subset_selection(), printed(fill_own=fill_own)
    assert sum(right.values()) == sum(wrong.values()) == 1
    assert probability(wrong, 1) == pytest.approx(own, abs=5e-5)
    assert probability(wrong, 0, 1) == pytest.approx(both, abs=5e-5)
    differences = (abs(wrong.get(report, Fraction(0)) - right[report]) for report in right)
    assert float(sum(differences)) / 2 == pytest.approx(distance, abs=5e-5)
    assert (probability(right, 1), probability(right, 0, 1)) == pytest.approx((2 / 3, 4 / 15))
