"""What a record costs the device that sends it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from fedhh.validation import InputError, require_at_least, require_epsilon

DEFINITION = "definition of the randomizer"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """The price of one record of a use case: local, pure, of an item.

    Attributes:
        use_case: Its name.
        epsilon: Of one record; ``math.inf`` without a randomizer. With ``once_per_value``, of all
            records about one value together (RAPPOR's epsilon_infinity).
        reports: Epsilons of the reports that make up one record, each randomized by itself, if
            they are several: (2, 6) of Apple's SFP. They add up to ``epsilon``.
        records_per_event: Records made of one event, at most.
        once_per_value: A permanent response is drawn once for each value and answers for it ever
            after, so what is paid for is a value, not a record.
        most_values: Values that a device ever has, at most; None for no limit. With
            ``once_per_value`` only.
        theorem: Why one record is private.
    """

    use_case: str
    epsilon: float
    reports: tuple[float, ...] = ()
    records_per_event: int = 1
    once_per_value: bool = False
    most_values: int | None = None
    theorem: str = DEFINITION

    def __post_init__(self) -> None:
        if not self.use_case:
            raise InputError("Expected a name of the use case, got an empty one.")
        if self.epsilon != math.inf:
            require_epsilon(**{f"epsilon of {self.use_case}": self.epsilon})
        require_at_least(1, records_per_event=self.records_per_event)
        for epsilon in self.reports:
            require_epsilon(**{f"epsilon of a report of {self.use_case}": epsilon})
        if self.reports and not math.isclose(math.fsum(self.reports), self.epsilon):
            raise InputError(
                f"Expected reports of {self.use_case} that add up to its epsilon={self.epsilon:g}, "
                f"got {self.reports!r}."
            )
        if self.most_values is not None:
            require_at_least(1, most_values=self.most_values)
            if not self.once_per_value:
                raise InputError(
                    f"Expected most_values with once_per_value only, got most_values="
                    f"{self.most_values} for {self.use_case}."
                )

    @property
    def parts(self) -> tuple[float, ...]:
        """Epsilons whose randomized responses stand for a record in the worst case."""
        return self.reports or (self.epsilon,)

    def paid_for(self, records: int) -> int:
        """Return how many times so many records are paid for, at most."""
        if self.most_values is None:
            return records
        return min(records, self.most_values)
