"""Central privacy of one shuffle, by every bound: of one item, and of all items of a user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fedhh.accounting.bounds.blanket import Blanket
from fedhh.accounting.bounds.clones import (
    CLOSED_FORM_ASSUMPTIONS,
    Clones,
    Clones2023,
    SelectionClones2023,
)
from fedhh.accounting.collusion import Collusion, honest_part_of
from fedhh.accounting.guarantees import SWAP, NotApplicable, or_none
from fedhh.accounting.shuffling import shuffle_epsilon
from fedhh.accounting.sources import CLOSED_FORM_OF_SELECTION, SUN_CENTRAL
from fedhh.accounting.user_level import UserLevelEpsilon, user_level_epsilon
from fedhh.validation import InputError, require_at_least

STATED_BOUNDS: Mapping[str, str] = {
    "closed_form": "closed-form",
    "clones": "clones",
    "clones_2023": "clones-2023",
    "ss_blanket": "blanket",
}
"""Bounds of `fedhh.accounting.BOUNDS` by their keys in an account."""

_PROVEN = {
    "closed-form": CLOSED_FORM_OF_SELECTION,
    "clones": Clones.theorem,
    "clones-2023": SelectionClones2023.theorem,
    "blanket": Blanket.theorem,
}
_FOR_COMPARISON = {
    "closed-form": (SUN_CENTRAL, CLOSED_FORM_ASSUMPTIONS),
    "clones-2023": (Clones2023.theorem, Clones2023.assumptions),
}
"""Without Subset Selection."""


_MOST_STEPS = 2_000
"""Of a group: a bound on them takes seconds, and grows with their number."""


@dataclass(frozen=True, kw_only=True)
class StatedBound:
    """One bound on the central epsilon of a shuffle.

    Attributes:
        epsilon: Upper bound; NotApplicable if the theorem's conditions do not hold.
        delta: At which it holds.
        proven: Whether the theorem covers the randomizer; if not, a comparison only.
        source: The theorem.
        note: Why it is a comparison only; None if it is proven.
    """

    epsilon: float | NotApplicable
    delta: float
    proven: bool
    source: str
    note: str | None

    def to_dict(self) -> dict[str, Any]:
        reason = str(self.epsilon) if isinstance(self.epsilon, NotApplicable) else None
        return {
            "epsilon": or_none(self.epsilon),
            "delta": self.delta,
            "applicable": reason is None,
            "proven": self.proven,
            "source": self.source,
            "note": self.note,
            "reason": reason,
        }


@dataclass(frozen=True, kw_only=True)
class ShuffleAccount:
    """Central privacy of one item in one shuffle; neighbors are swaps.

    Attributes:
        local_epsilon: Privacy of one report.
        num_reports: Reports in the shuffle.
        honest_reports: Of them, those that nobody tells the reader, at least; all of them where no
            client colludes. Bounds count these alone.
        delta: Of every bound, but for what colluders add; `StatedBound.delta` has it.
        domain_size: Values of Subset Selection; None for any randomizer.
        bounds: By the keys of `STATED_BOUNDS`.
    """

    local_epsilon: float
    num_reports: int
    honest_reports: int
    delta: float
    domain_size: int | None
    bounds: Mapping[str, StatedBound]

    def to_dict(self) -> dict[str, Any]:
        content = {
            "unit": "item",
            "neighboring": SWAP,
            "local_epsilon": self.local_epsilon,
            "reports": self.num_reports,
            "honest_reports": self.honest_reports,
            "delta": self.delta,
            "bounds": {key: bound.to_dict() for key, bound in self.bounds.items()},
        }
        if self.domain_size is not None:
            content["domain_size"] = self.domain_size
        return content


def account_shuffle(
    *,
    local_epsilon: float,
    num_reports: int,
    delta: float = 1e-10,
    domain_size: int | None = None,
    honest_share: float | None = None,
    collusion: Collusion | None = None,
    max_items: int = 1,
) -> ShuffleAccount:
    """Return the central privacy of one item in one shuffle, by every bound.

    Neighbors swap one item. `StatedBound.source` names the theorem of each epsilon.

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
    >>> round(account_shuffle(**gboard, honest_share=0.5).bounds["clones"].epsilon, 5)
    0.44453
    """
    honest_clients, added = _honest(num_reports, max_items, honest_share, collusion)
    honest = honest_clients * max_items
    found = {}
    for key, bound in STATED_BOUNDS.items():
        proven = domain_size is not None or bound not in _FOR_COMPARISON
        source, note = (_PROVEN[bound], None) if proven else _FOR_COMPARISON[bound]
        epsilon: float | NotApplicable
        if bound == "blanket" and domain_size is None:
            epsilon = NotApplicable(
                "needs --oracle ss and --domain-size: it holds for Subset Selection only"
            )
        else:
            epsilon = shuffle_epsilon(
                bound,
                local_epsilon=local_epsilon,
                num_reports=honest,
                delta=delta,
                domain_size=domain_size if bound == "blanket" else None,
            )
        found[key] = StatedBound(
            epsilon=epsilon, delta=delta + added, proven=proven, source=source, note=note
        )
    return ShuffleAccount(
        local_epsilon=local_epsilon,
        num_reports=num_reports,
        honest_reports=honest,
        delta=delta,
        domain_size=domain_size,
        bounds=found,
    )


def _honest(
    num_reports: int, max_items: int, honest_share: float | None, collusion: Collusion | None
) -> tuple[int, float]:
    """Return how many clients of a cohort are honest at least, and what adds to delta."""
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
    return honest, added


@dataclass(frozen=True, kw_only=True)
class UserAccount:
    """Central privacy of all items of a user in one cohort; neighbors are swaps.

    Attributes:
        local_epsilon: Privacy of one report.
        num_clients: N, clients in the cohort.
        honest_clients: Of them, those who tell nobody their reports, at least. Bounds count these
            alone.
        max_items: B, reports of every client.
        rounds: In which a client takes part.
        delta: Of every bound, but for what colluders add.
        added_delta: What they add.
        domain_size: Values of Subset Selection; None for any randomizer.
        bounds: By the item-level bound that they build on: "clones", "blanket".
    """

    local_epsilon: float
    num_clients: int
    honest_clients: int
    max_items: int
    rounds: int
    delta: float
    added_delta: float
    domain_size: int | None
    bounds: Mapping[str, UserLevelEpsilon]

    def to_dict(self) -> dict[str, Any]:
        return {
            "unit": "user",
            "neighboring": SWAP,
            "clients": self.num_clients,
            "honest_clients": self.honest_clients,
            "delta": self.delta + self.added_delta,
            "rounds": self.rounds,
            "local_epsilon_of_all_contributions": self.local_epsilon * self.max_items * self.rounds,
            "bounds": {
                name: {
                    "epsilon": both.epsilon,
                    "method": both.method,
                    "groups": both.groups,
                    "slots": or_none(both.slots),
                }
                for name, both in self.bounds.items()
            },
        }


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
) -> UserAccount:
    """Return the central privacy of all items of a user, by groups and by slots.

    Neighbors swap all items of one user. The theorems are those of `user_level_epsilon`.

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
    honest, added = _honest(num_clients * max_items, max_items, honest_share, collusion)
    added *= rounds
    asked: dict[str, Any] = {
        "local_epsilon": local_epsilon,
        "max_items": max_items,
        "delta": delta,
        "domain_size": domain_size,
    }
    names = ("clones",) if domain_size is None else ("clones", "blanket")
    bounds = {
        name: user_level_epsilon(
            bound=name,
            num_clients=honest,
            uses=rounds,
            **asked,
        )
        for name in names
    }
    return UserAccount(
        **asked,
        rounds=rounds,
        num_clients=num_clients,
        honest_clients=honest,
        added_delta=added,
        bounds=bounds,
    )
