"""One vote per client: a client's reports are counted together, and a value has one vote of it.

A client that sends B reports can let all of them support one value, which is then B votes ahead.
Counted together, they give each value one vote or none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from fedhh.oracles.base import PureOracle, PureVotes, Reports, Tally, Values
from fedhh.settings import Items, Settings

VotesPerClient = Literal["one", "all"]
"""What a client's reports add to the votes for a value: one at most, or one each."""

_NUMBERS_AT_ONCE = 2**22


@dataclass(frozen=True, kw_only=True)
class ClientVotes(Settings, PureVotes):
    """Votes of clients: a value has a client's vote if any of its B reports supports it.

    With p and q those of a report, and B reports of different values, or of the dummy:

    * A client that contributes the value has one report about it and B - 1 about others, which are
      independent given the values, so it votes for it with probability 1 - (1 - p)(1 - q)^(B - 1).
    * Any other client votes for it with probability 1 - (1 - q)^B.

    Clients are independent, so estimates and variances are those of `PureVotes` with these two,
    and clients for reports. Without contributions, the variance of an estimate is
    (1 - (1 - q)^B) (1 - q)^(1 - B) / (B q) times that of all N B reports: about 1 + (B - 1) q / 2
    where B q is small.

    Attributes:
        oracle: The randomizer of a report.
        max_items: B, reports of every client.
    """

    oracle: PureOracle
    max_items: Items

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._report_width

    @cached_property
    def _report_width(self) -> int:
        """How many values a report supports; InputError where reports do not list them."""
        report = self.oracle.privatize(np.zeros(1, np.int64), rng=np.random.default_rng(0))
        return int(self.oracle.supported_values(report).shape[1])

    @property
    def p(self) -> float:
        """Probability that a client which contributes a value votes for it."""
        return 1 - (1 - self.oracle.p) * (1 - self.oracle.q) ** (self.max_items - 1)

    @property
    def q(self) -> float:
        """Probability that a client votes for a given value that it does not contribute."""
        return float(-np.expm1(self.max_items * np.log1p(-self.oracle.q)))

    def add(self, values: Values, *, rng: np.random.Generator, out: Tally) -> None:
        """Add the votes of clients to ``(domain_size,) int64``, in place.

        Args:
            values: ``(n, B) int64``: what each client's reports are about; apart from dummies, the
                values of a client differ.
            rng: Source of the clients' coins.
            out: Changed in place, contiguous.
        """
        at_once = max(1, _NUMBERS_AT_ONCE // (self.max_items * self._report_width))
        for start in range(0, len(values), at_once):
            chunk = values[start : start + at_once]
            self.add_reports(self.oracle.privatize(chunk.ravel(), rng=rng), out=out)

    def add_reports(self, reports: Reports, *, out: Tally) -> None:
        """Add the votes of clients that sent these reports, B in a row of each, in place.

        Args:
            reports: ``(n * B, ...)``, as `PureOracle.privatize` returns them.
            out: ``(domain_size,) int64``, changed in place.
        """
        # Compiled code loads with clients, and with no server that only estimates.
        from fedhh.kernels.votes import add_distinct

        supported = self.oracle.supported_values(reports)
        num_clients = len(supported) // self.max_items
        rows = np.ascontiguousarray(supported, dtype=np.int64).reshape(
            num_clients, self.max_items * supported.shape[1]
        )
        add_distinct(rows, out)
