"""Records: what a device sends of an event, and what the servers of a pipeline pass on.

Three types for three places. `Arrivals` is what reaches the ingestor: reports, and what a
connection gives away besides them. `Batch` is what leaves it: reports of one use case, and nothing
that could tell which belong together. A record itself has no field for a device or a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Ints
from fedhh.oracles import FrequencyOracle, OracleSpec, make_oracle
from fedhh.questions.cohort import Cohort
from fedhh.questions.question import Messages, Question

_WIDEST_REPORT = 128
"""Numbers of a report that is sent on its own; wider ones are only added up."""


class RecordForm(ABC):
    """How an event becomes a record, known to both sides."""

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """Local privacy of one record."""

    @property
    @abstractmethod
    def sums_size(self) -> int:
        """Numbers that records add up to, where they do not cross one by one; else 0."""

    @property
    @abstractmethod
    def report_bits(self) -> float:
        """Bits of a record."""


@dataclass(frozen=True, kw_only=True)
class OracleRecords(RecordForm):
    """Records of numbered values, through a frequency oracle."""

    spec: OracleSpec
    domain_size: int

    @cached_property
    def oracle(self) -> FrequencyOracle:
        return make_oracle(self.spec, self.domain_size)

    @property
    def epsilon(self) -> float:
        return self.spec.epsilon

    @cached_property
    def _example(self) -> npt.NDArray[np.integer[Any]]:
        zero = np.zeros(1, dtype=np.int64)
        return self.oracle.privatize(zero, rng=np.random.default_rng(0))

    @property
    def crosses_one_by_one(self) -> bool:
        """Whether reports reach the server as they are; those that are many numbers, as sums.

        Sums say the same: adding up forgets order and sender, as the ingestor does.
        """
        one = self._example
        return one.dtype.kind in "iu" and one.size <= _WIDEST_REPORT

    def as_reports(self, numbers: Ints) -> npt.NDArray[np.integer[Any]]:
        """Return ``(n, width) int64`` as the oracle's reports again."""
        one = self._example
        return numbers.astype(one.dtype).reshape(len(numbers), *one.shape[1:])

    @property
    def sums_size(self) -> int:
        return 0 if self.crosses_one_by_one else self.oracle.aggregate_size

    @property
    def report_bits(self) -> float:
        return self.oracle.report_bits


@dataclass(frozen=True, kw_only=True)
class FragmentRecords(RecordForm):
    """Records of words for SFP, as its question asks for them: Apple (2017), Algorithm 9."""

    question: Question

    @property
    def epsilon(self) -> float:
        """Both reports': Apple (2017), Theorem 4.5."""
        return self.question.local_epsilon

    @property
    def sums_size(self) -> int:
        return 0

    @property
    def report_bits(self) -> float:
        return self.question.report_bits


@dataclass(frozen=True, kw_only=True, eq=False)
class DayQuestion:
    """Has devices go through one day of one use case, and takes what they send.

    Attributes:
        cohort: The devices.
        use_case: The use case's name.
        use_case_index: Its number.
        day: From 0.
        form: How records are made.
    """

    cohort: Cohort
    use_case: str
    use_case_index: int
    day: int
    form: RecordForm

    @property
    def tally_size(self) -> int:
        """Numbers that records add up to."""
        return self.form.sums_size


@dataclass(frozen=True, kw_only=True, eq=False)
class Arrivals:
    """What reaches an ingestor, in the order of arrival.

    Attributes:
        use_case: Which use case a record names.
        addresses: ``(n,) int64``: the network address that each came from.
        seconds: ``(n,) int64``: when each came, in seconds of the day.
        reports: ``(n, width) int64``: the records.
    """

    use_case: str
    addresses: Ints
    seconds: Ints
    reports: Ints

    @classmethod
    def of(cls, use_case: str, messages: Messages) -> Self:
        return cls(
            use_case=use_case,
            addresses=messages[:, 0],
            seconds=messages[:, 1],
            reports=messages[:, 2:],
        )

    def as_messages(self) -> Messages:
        """Return ``(n, 2 + width) int64``: address, second, report."""
        return np.concatenate(
            [self.addresses[:, None], self.seconds[:, None], self.reports], axis=1, dtype=np.int64
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """What leaves an ingestor: ``(n, width)`` reports of one use case in random order, alone."""

    use_case: str
    reports: Ints
