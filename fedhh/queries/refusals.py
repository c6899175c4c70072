"""Why a server refuses answers, and how many it refused of those that arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fedhh.oracles.report_checks import FLAWS, Flaw


class Refusal(StrEnum):
    """Why an answer is refused; malformed ones by the flaw of their first malformed report."""

    STALE = "stale"
    NOT_ASKED = "not asked"
    SECOND = "second answer"
    TYPE = Flaw.TYPE
    SIZE = Flaw.SIZE
    ROW = Flaw.ROW
    DOMAIN = Flaw.DOMAIN
    REPEATED = Flaw.REPEATED
    ORDER = Flaw.ORDER
    NUMBER = "wrong number of reports"


MALFORMED = (*(Refusal(flaw) for flaw in FLAWS), Refusal.NUMBER)
"""The reasons that lie in an answer's reports."""


@dataclass(frozen=True, kw_only=True)
class IntakeCounts:
    """How many answers arrived, and what became of them.

    Attributes:
        received: All that arrived.
        accepted: Those that count.
        refused: All others, by their reason.
    """

    received: int = 0
    accepted: int = 0
    refused: Mapping[Refusal, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.accepted + self.num_refused != self.received:
            raise ValueError(
                f"Expected accepted and refused answers to add up to received={self.received}, got "
                f"{self.accepted} and {self.num_refused}."
            )

    @property
    def num_refused(self) -> int:
        """How many are refused, for any reason."""
        return sum(self.refused.values())

    @property
    def malformed(self) -> int:
        """How many are refused for their reports."""
        return sum(self.refused.get(reason, 0) for reason in MALFORMED)

    @property
    def text(self) -> str:
        """How many are refused and why, as a phrase.

        >>> refused = {Refusal.STALE: 3, Refusal.SECOND: 1, Refusal.SIZE: 12}
        >>> IntakeCounts(received=20, accepted=4, refused=refused).text
        '12 malformed, 3 stale, 1 second answer'
        """
        parts = [f"{self.malformed:,} malformed"] if self.malformed else []
        names = {
            Refusal.STALE: ("stale", "stale"),
            Refusal.SECOND: ("second answer", "second answers"),
            Refusal.NOT_ASKED: ("not asked", "not asked"),
        }
        for reason, (one, several) in names.items():
            if count := self.refused.get(reason, 0):
                parts.append(f"{count:,} {one if count == 1 else several}")
        return ", ".join(parts) or "none"

    def merge(self, other: IntakeCounts) -> IntakeCounts:
        """Return the counts of both parts."""
        reasons = [reason for reason in Refusal if reason in {*self.refused, *other.refused}]
        return IntakeCounts(
            received=self.received + other.received,
            accepted=self.accepted + other.accepted,
            refused={
                reason: self.refused.get(reason, 0) + other.refused.get(reason, 0)
                for reason in reasons
            },
        )
