"""Amplification by shuffling: every bound, delta for epsilon and epsilon for delta.

Item level, swap neighbors, one report per contribution; ``num_reports`` is the number of reports in
one shuffle (clients times items per client, dummies included, if every client pads).

=============  =================================================================================
clones         every local_epsilon-LDP randomizer; the default
blanket        Subset Selection only; about half of clones
clones-2023    proven for Subset Selection (docs/accounting.md, section 2), where it is never below
               the blanket; for others a comparison only: its theorem has an erratum
closed-form    Gboard's Theorem 2, looser than clones-2023 and proven where that is (section 3)
=============  =================================================================================
"""

from __future__ import annotations

from fedhh.accounting.bounds.clones import (
    Clones,
    Clones2023,
    closed_form_delta,
    closed_form_epsilon,
)
from fedhh.accounting.bounds.selection import paper_subset_size, subset_selection_blanket
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.guarantees import NotApplicable
from fedhh.validation import InputError, require_choice

BOUNDS = ("clones", "blanket", "closed-form", "clones-2023")


def shuffle_bound(
    bound: str,
    *,
    local_epsilon: float,
    num_reports: int,
    domain_size: int | None = None,
    subset_size: int | None = None,
) -> ShuffleBound:
    """Return a numerical bound by name, to be asked for many deltas or epsilons.

    Args:
        bound: "clones", "clones-2023" or "blanket".
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_reports: Reports in one shuffle, from 2 to 10**9.
        domain_size: Number of values of Subset Selection; needed by "blanket" only.
        subset_size: Values in a report, for "blanket"; Sun et al.'s choice if None.
    """
    require_choice([name for name in BOUNDS if name != "closed-form"], bound=bound)
    if bound == "clones":
        return Clones(local_epsilon=local_epsilon, num_reports=num_reports)
    if bound == "clones-2023":
        return Clones2023(local_epsilon=local_epsilon, num_reports=num_reports)
    if domain_size is None:
        raise InputError("Expected domain_size for bound='blanket', got domain_size=None.")
    if subset_size is None:
        subset_size = paper_subset_size(local_epsilon, domain_size)
    return subset_selection_blanket(
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        domain_size=domain_size,
        subset_size=subset_size,
    )


def shuffle_epsilon(
    bound: str,
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float,
    domain_size: int | None = None,
    subset_size: int | None = None,
) -> float | NotApplicable:
    """Return the central epsilon of a shuffle at ``delta``, rounded up.

    Args:
        bound: One of `BOUNDS`.
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_reports: Reports in one shuffle, from 2 to 10**9.
        delta: From 1e-14 to 0.1.
        domain_size: See `shuffle_bound`.
        subset_size: See `shuffle_bound`.

    Returns:
        In [0, local_epsilon]; NotApplicable only for the closed form outside its condition.

    >>> gboard = {"local_epsilon": 10.0, "num_reports": 30_000_000, "delta": 1e-10}
    >>> round(shuffle_epsilon("clones", **gboard), 6)
    0.307466
    >>> round(shuffle_epsilon("blanket", **gboard, domain_size=1_000_001), 4)
    0.1493
    """
    require_choice(BOUNDS, bound=bound)
    if bound == "closed-form":
        return closed_form_epsilon(
            local_epsilon=local_epsilon, num_reports=num_reports, delta=delta
        )
    return shuffle_bound(
        bound,
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        domain_size=domain_size,
        subset_size=subset_size,
    ).epsilon(delta)


def shuffle_delta(
    bound: str,
    *,
    local_epsilon: float,
    num_reports: int,
    epsilon: float,
    domain_size: int | None = None,
    subset_size: int | None = None,
) -> float | NotApplicable:
    """Return the delta of a shuffle at a central ``epsilon``, rounded up; see `shuffle_epsilon`."""
    require_choice(BOUNDS, bound=bound)
    if bound == "closed-form":
        return closed_form_delta(
            local_epsilon=local_epsilon, num_reports=num_reports, epsilon=epsilon
        )
    return shuffle_bound(
        bound,
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        domain_size=domain_size,
        subset_size=subset_size,
    ).delta(epsilon)
