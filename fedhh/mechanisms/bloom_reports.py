"""RAPPOR: a client's words as Bloom filters, whose bits are answered twice over."""

from __future__ import annotations

from dataclasses import dataclass

from fedhh.mechanisms.local_reports import LocalReports
from fedhh.oracles import OracleSpec


@dataclass(frozen=True, kw_only=True)
class RapporReports(LocalReports):
    """Clients send one report about each word that they contribute, made by RAPPOR's two steps.

    Attributes:
        epsilon_of_one_report: Privacy of a word, from the one report that is collected about it.
        epsilon_of_all_reports: What would bound any number of reports about the word.
    """

    randomizers: tuple[OracleSpec, ...] = ()
    epsilon_of_one_report: float
    epsilon_of_all_reports: float

    @property
    def local_epsilon(self) -> float:
        """That of the one report which a run collects."""
        return self.epsilon_of_one_report

    def values_per_report(self, domain_size: int) -> int | None:
        """None: a report is the bits of a filter."""
        return None


@dataclass(frozen=True, kw_only=True)
class BloomRecords(LocalReports):
    """Clients send several of RAPPOR's reports about each word, one-time ones, as one record.

    Attributes:
        epsilons: Privacy of a word, from each of the reports.
    """

    randomizers: tuple[OracleSpec, ...] = ()
    epsilons: tuple[float, ...]

    @property
    def local_epsilon(self) -> float:
        """That of all reports together, whose epsilons add up."""
        return sum(self.epsilons)

    def values_per_report(self, domain_size: int) -> int | None:
        """None: a report is the bits of a filter."""
        return None
