"""Local privacy: each client randomizes its contributions, and nobody sees them before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fedhh import oracles
from fedhh.accounting.plan import Plan
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.oracles.client_votes import VotesPerClient
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.questions.question import AnyQuestion


@dataclass(frozen=True, kw_only=True)
class LocalReports(Plan):
    """Clients contribute up to B items a round; all of a contribution goes through randomizers.

    Attributes:
        randomizers: What each contribution is reported through: one report of each, whose
            epsilons add up. A layer's domain is that of the last one.
        is_of_whole_set: Whether a client's contribution is about all of its items at once, so that
            the randomizers' epsilons are those of the client, and not of one item alone.
        validation_randomizer: What the last layer's contributions go through instead, whole, if
            that is another; with all their epsilons together.
        false_discovery_rate: Of what the validation round returns; 0 without one. All words that
            a run returns have passed it, and it is the last layer.
        anonymity_k: k of the validation round: a word that at most k clients of the population
            hold passes it with probability at most ``false_discovery_rate``.
        votes_per_client: "one" where a client's reports are counted together. What is computed
            from them is then no function of shuffled reports, so that what holds for these does not
            follow: see docs/accounting.md, section 12.
    """

    randomizers: tuple[OracleSpec, ...]
    is_of_whole_set: bool = False
    validation_randomizer: OracleSpec | None = None
    false_discovery_rate: float = 0.0
    anonymity_k: int = 0
    votes_per_client: VotesPerClient = "all"

    @property
    def epsilons_of_contribution(self) -> tuple[float, ...]:
        """Local epsilons of the reports that one contribution is made of, which add up.

        A validation round may report it whole: then only their sum holds for every round.
        """
        if len(self.randomizers) > 1 and self.validation_randomizer is None:
            return tuple(spec.epsilon for spec in self.randomizers)
        return (self.local_epsilon,)

    def values_per_report(self, domain_size: int) -> int | None:
        """Return Subset Selection's d, if it is the last randomizer, over so many values."""
        oracle = make_oracle(self.randomizers[-1], domain_size)
        return oracle.d if isinstance(oracle, oracles.SubsetSelection) else None

    @property
    def is_subset_selection(self) -> bool:
        """Whether a contribution is one report of Subset Selection and nothing else."""
        others = self.validation_randomizer not in {None, *self.randomizers}
        return [spec.name for spec in self.randomizers] == ["ss"] and not others

    def check_question(self, question: AnyQuestion) -> None:
        """Raise InputError unless a question asks for no more than the plan states."""
        super().check_question(question)
        self.check_report(question)

    def check_report(self, question: AnyQuestion) -> None:
        """Raise InputError unless a question's contributions are randomized as stated."""
        where = f"pass {question.pass_index + 1}, layer {question.layer}"
        asked = getattr(question.channel, "votes_per_client", "all")
        if asked != self.votes_per_client:
            raise InputError(
                f"Expected votes_per_client={self.votes_per_client!r} in {where}, as planned, got "
                f"{asked!r}."
            )
        if self.is_subset_selection and question.randomizers != self.randomizers:
            raise InputError(
                f"Expected the randomizer {self.randomizers[0]} in {where}, as planned, got "
                f"{question.randomizers}."
            )


@dataclass(frozen=True, kw_only=True)
class RapporReports(LocalReports):
    """Clients send one report about each word that they contribute, made by RAPPOR's two steps.

    Attributes:
        epsilon_of_all_reports: What would bound any number of reports about the word.
    """

    randomizers: tuple[OracleSpec, ...] = ()
    epsilon_of_all_reports: float

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

    def values_per_report(self, domain_size: int) -> int | None:
        """None: a report is the bits of a filter."""
        return None
