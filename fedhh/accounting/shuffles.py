"""One shuffle, by every bound: of one item, and of all items of a user.

Replace-one neighbors, one report per contribution; ``num_reports`` is the number of reports in one
shuffle (clients times items per client, dummies included, if every client pads).

=============  =================================================================================
clones         every local_epsilon-LDP randomizer; the default
blanket        Subset Selection only; about half of clones
clones-2023    proven for Subset Selection (docs/accounting.md, section 2), where it is never below
               the blanket; for others a comparison only: its theorem has an erratum
closed-form    Gboard's Theorem 2, looser than clones-2023 and proven where that is (section 3)
=============  =================================================================================
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from fedhh.accounting.bounds.clones import (
    CLOSED_FORM_ASSUMPTIONS,
    COMPARISON,
    Clones,
    Clones2023,
    SelectionClones2023,
    closed_form_epsilon,
)
from fedhh.accounting.bounds.composition import Use
from fedhh.accounting.bounds.selection import paper_subset_size, subset_selection_blanket
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.collusion import Collusion, honest_part_of
from fedhh.accounting.guarantees import (
    NEIGHBORS,
    Guarantee,
    NotApplicable,
    PrivacyReport,
    place_of_smallest,
)
from fedhh.accounting.sources import (
    CLOSED_FORM_OF_SELECTION,
    SUN_CENTRAL,
    USER_LOCAL,
)
from fedhh.accounting.user_level import user_guarantees
from fedhh.validation import InputError, require_at_least, require_choice

BOUNDS = ("clones", "blanket", "closed-form", "clones-2023")

_MOST_STEPS = 2_000
"""Of a group: a bound on them takes seconds, and grows with their number."""


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


def account_shuffle(
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float = 1e-10,
    domain_size: int | None = None,
    honest_share: float | None = None,
    collusion: Collusion | None = None,
    max_items: int = 1,
) -> PrivacyReport:
    """Return the central privacy of one item in one shuffle, by every bound.

    Neighbors replace one item. The best bound is the smallest that is proven for the randomizer;
    what others assume begins with "comparison only".

    Args:
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_reports: Reports in the shuffle, from 2 to 10**9.
        delta: Central target, from 1e-14 to 0.1.
        domain_size: Values of Subset Selection, the dummy included; None for any randomizer.
        honest_share: Of the reports, if that is known: the others are told to the reader.
        collusion: Clients who tell the reader their reports, of a population from which the
            shuffle's clients are drawn; either this or ``honest_share``.
        max_items: B, reports of every client; of use with ``collusion`` alone.

    Raises:
        InputError: A value is out of range, or fewer than two reports are honest.

    >>> gboard = {"local_epsilon": 10.0, "num_reports": 30_000_000}
    >>> round(account_shuffle(**gboard, honest_share=0.5).by("clones").epsilon, 5)
    0.44453
    """
    clients, added, notes = _honest(num_reports, max_items, honest_share, collusion)
    of: dict[str, Any] = {"local_epsilon": local_epsilon, "num_reports": clients * max_items}
    bounds: list[ShuffleBound] = [Clones(**of)]
    if domain_size is None:
        bounds.append(Clones2023(**of))
        closed = SUN_CENTRAL, CLOSED_FORM_ASSUMPTIONS
        notes.append("Without the values of Subset Selection (domain_size), no blanket is known.")
    else:
        bounds += [
            SelectionClones2023(**of),
            shuffle_bound("blanket", **of, domain_size=domain_size),
        ]
        closed = CLOSED_FORM_OF_SELECTION, bounds[1].assumptions
    found = [
        Guarantee(
            unit="item",
            trust="central",
            method=method,
            epsilon=epsilon,
            delta=delta + added,
            theorem=theorem,
            assumptions=assumptions,
            smallest_cohort=clients,
        )
        for method, epsilon, theorem, assumptions in (
            ("closed-form", closed_form_epsilon(**of, delta=delta), *closed),
            *((x.name, x.epsilon(delta), x.theorem, x.assumptions) for x in bounds),
        )
    ]
    return PrivacyReport(guarantees=_with_best(found), anonymity=(), notes=tuple(notes))


def account_user(
    *,
    local_epsilon: float,
    num_clients: int,
    max_items: int,
    delta: float = 1e-10,
    domain_size: int | None = None,
    honest_share: float | None = None,
    collusion: Collusion | None = None,
    rounds: int = 1,
) -> PrivacyReport:
    """Return the privacy of all items of a user: local, and central by groups and by slots.

    Neighbors replace all items of one user. The theorems are those of
    `fedhh.accounting.user_level`.

    Args:
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_clients: N, clients in one cohort.
        max_items: B, reports of every client, dummies included; exactly so many.
        delta: Central target, from 1e-14 to 0.1.
        domain_size: Values of Subset Selection, the dummy included; None for any randomizer.
        honest_share: Of the cohort's clients, if that is known: the others tell the reader their
            reports.
        collusion: Clients who tell the reader their reports, of a population from which the cohort
            is drawn; either this or ``honest_share``.
        rounds: In which a client takes part, with all its items in each.

    Raises:
        InputError: A value is out of range, or fewer than two reports are honest.
    """
    require_at_least(1, num_clients=num_clients, max_items=max_items, rounds=rounds)
    if max_items > _MOST_STEPS:
        raise InputError(
            f"Expected max_items <= {_MOST_STEPS:,}, got max_items={max_items}; groups of more "
            "take too long: state the local epsilon times max_items."
        )
    clients, added, notes = _honest(num_clients * max_items, max_items, honest_share, collusion)
    local = Guarantee(
        unit="user",
        trust="local",
        method="randomizer",
        epsilon=local_epsilon * max_items * rounds,
        delta=0.0,
        theorem=USER_LOCAL,
        assumptions=f"a client sends at most {max_items} reports in one round",
        smallest_cohort=clients,
        best=True,
    )
    central: list[Guarantee] = []
    for name in ("clones",) if domain_size is None else ("clones", "blanket"):
        bound = shuffle_bound(
            name, local_epsilon=local_epsilon, num_reports=2, domain_size=domain_size
        )
        central += [
            replace(
                each,
                delta=delta + added * rounds,
                assumptions=f"{bound.assumptions}; exactly {max_items} reports from every client",
            )
            for each in user_guarantees(
                [Use(bound=bound, times=rounds)],
                num_clients=clients,
                max_items=max_items,
                delta=delta,
            )
        ]
    return PrivacyReport(guarantees=(local, *_with_best(central)), anonymity=(), notes=tuple(notes))


def _with_best(found: list[Guarantee]) -> tuple[Guarantee, ...]:
    """Return guarantees of which the smallest is marked that is no comparison only."""
    compared = [each.assumptions.startswith(COMPARISON) for each in found]
    epsilons = [
        math.inf if only else each.epsilon for each, only in zip(found, compared, strict=True)
    ]
    best = place_of_smallest(epsilons)
    return tuple(replace(each, best=place == best) for place, each in enumerate(found))


def _honest(
    num_reports: int, max_items: int, honest_share: float | None, collusion: Collusion | None
) -> tuple[int, float, list[str]]:
    """Return how many clients are honest at least, what adds to delta, and what to know of it."""
    require_at_least(1, max_items=max_items)
    clients, rest = divmod(num_reports, max_items)
    if rest:
        raise InputError(
            f"Expected num_reports as a multiple of max_items={max_items}, the reports of every "
            f"client, got num_reports={num_reports}."
        )
    if honest_share is not None and collusion is not None:
        raise InputError("Expected honest_share or collusion, got both; leave one out.")
    honest, added = clients, 0.0
    if honest_share is not None:
        honest = honest_part_of(clients, honest_share)
    elif collusion is not None:
        honest, added = collusion.fewest_honest(clients), collusion.added_delta(1)
    if num_reports >= 2 > honest * max_items:
        raise InputError(
            f"Expected at least 2 honest reports of {num_reports:,}, got {honest * max_items}: "
            "nothing is amplified, and the local epsilon holds."
        )
    notes = [NEIGHBORS]
    if honest < clients:
        notes.append(
            f"{honest * max_items:,} of {num_reports:,} reports are honest, at least; these alone "
            "count."
        )
    return honest, added, notes
