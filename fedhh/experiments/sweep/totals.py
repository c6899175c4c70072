"""How many clients the cells of a sweep ask in all, and how protocols ask one total.

``clients_per_layer`` is the size of one cohort, and protocols have different numbers of them: 400
are 4,000 clients of a trie of ten layers, and 400 of a protocol of one round. `TOTAL` is the axis
that gives each protocol the same number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fedhh.accounting.plan import Plan
from fedhh.protocol import DiscoveryProtocol
from fedhh.settings import LARGEST_COUNT
from fedhh.validation import InputError, shown

TOTAL = "total_clients"
"""The axis of a sweep that sets how many clients a protocol asks in all its layers together."""

COHORT = "clients_per_layer"

# A cohort of so many clients shows how a protocol's layers share a total.
_PROBE = 2**20
_MOST_LISTED = 6


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a settled cell asks of the clients.

    Attributes:
        protocol: What the sweep calls its protocol.
        clients: In all layers together; None if samples are drawn as a central guarantee allows.
        layers: Layers that share them.
        shared: What all protocols that this one is compared with share: settings and seed.
    """

    protocol: str
    clients: int | None
    layers: int
    shared: Hashable

    @classmethod
    def of(cls, settled: DiscoveryProtocol, *, label: str, shared: Hashable) -> Asked:
        plan = settled.plan
        samples = plan.draws_samples
        return cls(
            protocol=label or settled.title,
            clients=None if samples else plan.most_uploads,
            layers=len(plan.layers),
            shared=shared,
        )


def cohort_of(protocol: DiscoveryProtocol, total: Any) -> int:
    """Return the ``clients_per_layer`` with which a protocol asks so many clients at most."""
    if isinstance(total, bool) or not isinstance(total, int) or not 1 <= total <= LARGEST_COUNT:
        raise InputError(
            f"Expected an integer 1 <= {TOTAL} <= {LARGEST_COUNT}, got {TOTAL}={shown(total)}."
        )
    probe = _shared_out(protocol)
    if probe is None:
        raise InputError(
            f"{TOTAL} = {total:,}: expected protocols that share their clients out among layers, "
            f"got {protocol.title}; leave it out of this sweep."
        )
    asked = probe.most_uploads
    size = total * _PROBE // asked
    if size < 1:
        raise InputError(
            f"{TOTAL} = {total:,}: expected at least {-(-asked // _PROBE):,} clients for "
            f"{protocol.title}, one for each of its layers."
        )
    return size


def total_line(cells: Sequence[Asked], *, protocols: bool) -> str:
    """Return how many clients cells ask in all, as a sentence; empty where that is not known."""
    known = [each for each in cells if each.clients is not None]
    if not known:
        return ""
    if not protocols:
        return f"Clients asked in all, by each cell: {_numbers(known)}."
    sampling = sorted({each.protocol for each in cells if each.clients is None})
    apart = f"; {', '.join(sampling)} draws samples as its guarantee allows" if sampling else ""
    if all(_is_equal(group) for group in _groups(known)):
        most = [max(group, key=lambda each: each.clients or 0) for group in _groups(known)]
        rounded = any(len({each.clients for each in group}) > 1 for group in _groups(known))
        whole = ", rounded down to whole layers" if rounded else ""
        return f"Clients asked in all, the same for every protocol: {_numbers(most)}{whole}{apart}."
    names = dict.fromkeys(each.protocol for each in known)
    numbers = (f"{n} {_numbers([each for each in known if each.protocol == n])}" for n in names)
    return f"Clients asked in all, not the same for every protocol: {'; '.join(numbers)}{apart}."


def _shared_out(protocol: DiscoveryProtocol) -> Plan | None:
    """Return what a protocol does with cohorts of a set size; None if it draws samples instead."""
    if COHORT not in vars(protocol):
        return None
    settings: Any = protocol
    try:
        probe: DiscoveryProtocol = replace(settings, **{COHORT: _PROBE})
    except InputError:  # Its cohort cannot be set by itself.
        return None
    plan = probe.settle(num_clients=LARGEST_COUNT, seed=0).plan
    return None if plan.draws_samples else plan


def _groups(cells: Iterable[Asked]) -> list[list[Asked]]:
    groups: dict[Hashable, list[Asked]] = {}
    for each in cells:
        if each.clients is not None:
            groups.setdefault(each.shared, []).append(each)
    return list(groups.values())


def _is_equal(group: Sequence[Asked]) -> bool:
    numbers = [each.clients or 0 for each in group]
    return max(numbers) - min(numbers) < max(each.layers for each in group)


def _numbers(cells: Sequence[Asked]) -> str:
    numbers = sorted({each.clients or 0 for each in cells})
    if len(numbers) <= _MOST_LISTED:
        *first, last = (f"{number:,}" for number in numbers)
        return f"{', '.join(first)} and {last}" if first else last
    return f"{numbers[0]:,} to {numbers[-1]:,}"
