"""Faults of clients that are no attack: second answers, stale ones, malformed ones, skewed cohorts.

Which client has which fault in a round is drawn for each round anew, whatever the client holds. So
what is missing of a round is a random part of its cohort, as where devices drop out, and
guarantees are those for the answers that were accepted.

The order of clients is the exception: see `Faults.order`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np
import numpy.typing as npt

from fedhh.devices import Presence, SmallerShare
from fedhh.random import Stream, generator
from fedhh.settings import check_settings
from fedhh.validation import InputError, TakesSettingsByName


class Fault(StrEnum):
    """What a faulty client sends; a setting of `Faults` each."""

    SECOND = "second_answers"
    STALE = "stale_answers"
    NUMBER = "wrong_number"
    SIZE = "wrong_size"
    TYPE = "wrong_type"
    ROW = "no_such_row"
    DOMAIN = "out_of_domain"
    REPEATED = "repeated_members"


FAULTS = tuple(Fault)


@dataclass(frozen=True, kw_only=True)
class Faults(TakesSettingsByName):
    """Which shares of a round's clients send what the server refuses.

    A client has at most one of them in a round. What it sends goes through `fedhh.queries.intake`.

    Attributes:
        second_answers: Share of the clients of a round that answer twice; the first counts.
        stale_answers: Share that answers the round before; in a run's first round, nobody.
        wrong_number: Share that sends one report too many, or, where all clients send as many, one
            too few.
        wrong_size: Share whose reports have too many numbers.
        wrong_type: Share whose reports are numbers of another type.
        no_such_row: Share with a report from a row that a sketch does not have.
        out_of_domain: Share with a number in a report that the oracle never sends.
        repeated_members: Share with a report that is a set, and names a value twice.
        order: In which order clients are asked: "random", or "heavy-first", by how much they typed,
            so that cohorts differ. Central guarantees then hold only if how much a client typed
            is no secret.
    """

    second_answers: SmallerShare = 0.0
    stale_answers: SmallerShare = 0.0
    wrong_number: SmallerShare = 0.0
    wrong_size: SmallerShare = 0.0
    wrong_type: SmallerShare = 0.0
    no_such_row: SmallerShare = 0.0
    out_of_domain: SmallerShare = 0.0
    repeated_members: SmallerShare = 0.0
    order: Literal["random", "heavy-first"] = "random"

    def __post_init__(self) -> None:
        check_settings(self)
        total = sum(map(self.share_of, FAULTS))
        if not total < 1:
            raise InputError(
                f"Expected shares of faulty clients below 1 in all, got {total:g}; lower one of "
                f"{', '.join(fault for fault in FAULTS if self.share_of(fault))}."
            )

    def share_of(self, fault: Fault) -> float:
        """Return the share of a round's clients with a fault."""
        return float(getattr(self, fault))

    @property
    def configured(self) -> tuple[Fault, ...]:
        """The faults that occur."""
        return tuple(fault for fault in FAULTS if self.share_of(fault))

    @property
    def refused(self) -> float:
        """Share of a round's clients at most of whom no answer is accepted."""
        return sum(self.share_of(fault) for fault in FAULTS if fault is not Fault.SECOND)

    def draw(self, num_clients: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return ``(n,) int64``: each client's fault by its place in `FAULTS`, or -1 for none."""
        ends = np.cumsum([self.share_of(fault) for fault in FAULTS])
        places = np.searchsorted(ends, rng.random(num_clients), side="right")
        return np.where(places < len(FAULTS), places, -1).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class FaultyPresence(Presence):
    """The clients whose answers have no fault that makes the server refuse them.

    Attributes:
        faults: Who has which fault.
        pass_index: The round's pass; with the layer it addresses the draw.
        layer: Its layer.
        missing: Faults in whose place there is no other answer, of those that the round can have.
        inner: Who is there at all; everybody if None.
    """

    faults: Faults
    pass_index: int
    layer: int
    missing: tuple[Fault, ...]
    inner: Presence | None

    def is_there(
        self, clients: npt.NDArray[np.int64], block: int, *, seed: int
    ) -> npt.NDArray[np.bool_]:
        rng = fault_generator(self.pass_index, self.layer, block, seed=seed)
        drawn = self.faults.draw(len(clients), rng)
        there = ~np.isin(drawn, [FAULTS.index(fault) for fault in self.missing])
        return there & present(self.inner, clients, block, seed=seed)


def present(
    presence: Presence | None, clients: npt.NDArray[np.int64], block: int, *, seed: int
) -> npt.NDArray[np.bool_]:
    """Return ``(n,) bool``: which clients of a block are there; all if there is no presence."""
    if presence is None:
        return np.ones(len(clients), dtype=np.bool_)
    return presence.is_there(clients, block, seed=seed)


def fault_generator(pass_index: int, layer: int, block: int, *, seed: int) -> np.random.Generator:
    """Return the generator of a block's faults: first who has which, then what these send."""
    return generator(seed, Stream.FAULTS, pass_index, layer, block)
