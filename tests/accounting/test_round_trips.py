"""Over the whole range of arguments: a number, in range, that satisfies its own bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedhh.accounting import (
    LayerAnonymity,
    NotApplicable,
    anonymity,
    closed_form_epsilon,
    paper_subset_size,
    shuffle_bound,
)
from tests.thinned import thinned

# Found by random search: here narrow bins were looser than wide ones.
KNOWN = [
    (16.0, 278_789, 3.109331660484094e-11, 1_128_176),
    (11.47487787960727, 1_478_756, 1.0836720277414507e-11, 2_544),
    (12.637543943396953, 1_879_661, 1.2074280094657152e-13, 7_199),
]


def _points():
    """Corners of the range, and points between them, even in logarithms."""
    rng = np.random.default_rng(6)
    ranges = ((0.1, 16.0), (2, 1e9), (1e-14, 0.1), (2, 1e8))
    corners = [tuple(side[i >> k & 1] for k, side in enumerate(ranges)) for i in range(16)]
    between = [
        tuple(math.exp(rng.uniform(math.log(low), math.log(high))) for low, high in ranges)
        for _ in range(12)
    ]
    for local_epsilon, n, delta, s in [*KNOWN, *corners, *between]:
        yield min(local_epsilon, 16.0), round(n), delta, round(s)


@pytest.mark.parametrize(
    "point", thinned(list(_points()), single=True), ids=lambda p: "{:.3g}-{}-{:.1e}-{}".format(*p)
)
def test_epsilons_are_in_range_ordered_and_satisfy_their_own_delta(point):
    local_epsilon, n, delta, s = point
    found = {}
    # The last blanket is that of the paper's subset size.
    for name, d in [("clones", None), ("clones-2023", None)] + [
        ("blanket", d) for d in (1, s - 1, None)
    ]:
        domain = {"domain_size": s, "subset_size": d} if name == "blanket" else {}
        bound = shuffle_bound(name, local_epsilon=local_epsilon, num_reports=n, **domain)
        found[name] = bound.epsilon(delta)
        assert 0 <= found[name] <= local_epsilon
        assert bound.delta(found[name]) <= delta
        if found[name] > 1e-8:
            assert bound.delta(found[name] * (1 - 1e-5)) > delta * (1 - 1e-6)
        values = [bound.delta(local_epsilon * share) for share in (0, 0.01, 0.2, 0.6, 0.99, 1)]
        assert values == sorted(values, reverse=True)
        assert 1 >= values[0] >= values[-1] == 0
    slack = 1 + 1e-6
    assert found["clones-2023"] <= found["clones"] * slack + 2e-9
    assert found["blanket"] <= found["clones"] * slack + 2e-9
    closed = closed_form_epsilon(local_epsilon=local_epsilon, num_reports=n, delta=delta)
    assert isinstance(closed, NotApplicable) or found["blanket"] <= closed < math.inf


@pytest.mark.parametrize("variant", ["tight", "lemma"])
def test_anonymity_is_a_probability_everywhere(variant):
    for local_epsilon, n, _, s in list(_points())[::4]:
        if s < 4:
            continue
        layer = LayerAnonymity(
            local_epsilon=local_epsilon,
            domain_size=s,
            subset_size=paper_subset_size(local_epsilon, s),
            num_kept=max(1, s // 100),
            num_reports=n,
            variant=variant,
        )
        claim = anonymity([layer], alpha=0.95)
        if isinstance(claim.k, NotApplicable):
            assert claim.probability is None
            continue
        assert 0 <= claim.probability <= 1
        if claim.k is not None:
            assert claim.probability <= 0.05
            assert claim.k == n or layer.probability_kept(claim.k + 1) > 0.05
