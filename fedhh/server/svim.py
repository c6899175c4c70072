"""SVIM: the most frequent words of clients that hold sets, with one report of each client.

Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE S&P.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.arrays import Floats
from fedhh.oracles import OracleSpec
from fedhh.protocol import RunState
from fedhh.questions.names import ItemSets
from fedhh.questions.question import Question
from fedhh.server.closed_domain import SetProtocol
from fedhh.server.padded_sampling import oracle_of_sample, padded_size
from fedhh.settings import AUTO, Share
from fedhh.validation import InputError

_SIZES, _COUNTS = 2, 3
"""The last two groups, by the round that asks each."""

_MOST_OLH_SUPPORTS = 5e10
"""Candidates times reports: a tally by local hashing takes about 0.1 ns for each."""


@dataclass(frozen=True, kw_only=True)
class Svim(SetProtocol):
    """Settings of SVIM, among words that are known before.

    Clients are split into three groups, and each sends one report. The first says one of its words,
    and the server keeps the 2 k most frequent candidates; the second says how many of these it
    holds, and nine of ten sets are not larger than L; the third pads its set to L with dummies and
    says one member. There generalized randomized response may use more than epsilon, because a
    client's word is drawn with chance 1/L at most; where there are too many candidates for it, the
    oracle of the other groups is used. Counts are scaled by L, and by what larger sets lost.

    ``local_epsilon`` is the privacy of a client, whatever it holds. ``clients_per_layer`` is the
    mean size of the three groups.

    Attributes:
        candidate_share: Share of the clients in the first group.
        size_share: Share of the clients in the second.
        oracle: "olh" (the paper's) or "oue", which has the same variance, reports of a bit for each
            candidate, and a tally that can be drawn at once; "auto" is "olh" unless candidates
            times reports are too many to compare each with each.
    """

    name: ClassVar[str] = "svim"
    title: ClassVar[str] = "SVIM"
    corrects_counts: ClassVar[bool] = True

    candidate_share: Share = 0.4
    size_share: Share = 0.1
    oracle: Literal["auto", "olh", "oue"] = AUTO

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.candidate_share + self.size_share >= 1:
            raise InputError(
                "Expected candidate_share + size_share < 1, which leaves clients for the last "
                f"group, got candidate_share={self.candidate_share} + size_share={self.size_share}."
            )
        # Made once here so that an oracle that cannot have this epsilon is refused.
        start = self.begin()
        _ = self.sample_question(self.names_of(start.kept), start.sizes).channel.randomizer

    @property
    def num_cohorts(self) -> int:
        return 3

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Clients of each group."""
        return self.groups_of(self.num_cohorts * self.cohort_clients)

    def groups_of(self, total: int) -> tuple[int, int, int]:
        """Return the sizes of the three groups into which so many clients are split."""
        first = min(max(1, round(self.candidate_share * total)), total - 2)
        second = min(max(1, round(self.size_share * total)), total - first - 1)
        return first, second, total - first - second

    @property
    def domains(self) -> tuple[tuple[int, int], ...]:
        """Of each group's round, the fewest and the most values."""
        words = len(self.domain) + 1
        kept = self.num_kept
        return (words, words), (kept + 1, kept + 1), (kept + 1, 2 * kept)

    @property
    def plan(self) -> LocalReports:
        return self.planned_reports(
            [
                self.planned_round(number, size, *domain)
                # There may be no more to ask the last groups about.
                for number, (size, domain) in enumerate(
                    zip(self.group_sizes, self.domains, strict=False), start=1
                )
            ],
            most_words=self.keep,
            randomizers=(self.oracle_spec,),
            is_of_whole_set=True,
        )

    def resolve(self, num_clients: int) -> dict[str, Any]:
        changes = super().resolve(num_clients)
        if changes or self.oracle != AUTO:
            return changes
        work = float(self.group_sizes[0]) * len(self.domain)
        return {"oracle": "olh" if work <= _MOST_OLH_SUPPORTS else "oue"}

    @property
    def oracle_spec(self) -> OracleSpec:
        """The randomizer of many candidates."""
        name = "olh" if self.oracle == AUTO else self.oracle
        return OracleSpec(name=name, epsilon=self.local_epsilon)

    def sample_question(self, names: ItemSets, sizes: Floats) -> Question:
        """Return the question for one member of a client's set, which is padded to L.

        Args:
            names: The candidates.
            sizes: `set_sizes` of other clients, which L and the oracle follow from; before they
                are known, L is 1.
        """
        oracle, length = self.oracle_spec, padded_size(sizes)
        if len(sizes):
            many = names.num_candidates, length, self.local_epsilon
            oracle = replace(oracle, name=oracle_of_sample(*many, oracle.name))
        return self.member_question(names, oracle, padded_size=length)

    def asks_size(self, planned: PlannedRound) -> bool:
        return planned.layer == _SIZES

    def is_last(self, planned: PlannedRound) -> bool:
        return planned.layer == _COUNTS

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        names = self.names_of(run.own.kept)
        if self.asks_size(planned):
            return self.size_question(names, self.oracle_spec)
        return self.sample_question(names, run.own.sizes)
