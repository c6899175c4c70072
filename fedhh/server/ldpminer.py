"""LDPMiner: frequent words of clients that hold sets, in two rounds with half of epsilon each.

Source: Qin, Yang, Yu, Khalil, Xiao, Ren (2016), "Heavy hitter estimation over set-valued data with
local differential privacy", CCS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fedhh.oracles import OracleSpec
from fedhh.plans.base import PlannedRound
from fedhh.plans.local_reports import LocalReports
from fedhh.protocol import Heard, RunState
from fedhh.queries.base import Aggregate
from fedhh.queries.sets import PaddedSampleQuery
from fedhh.server.closed_domain import SetProtocol
from fedhh.server.local_discovery import HashSeed
from fedhh.settings import Count, Items
from fedhh.validation import require_epsilon

_PHASES = ("bassily-smith", "sue")
"""The oracles of the two rounds: one bit about all words, then basic RAPPOR about few."""


_Kept = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LdpMiner(SetProtocol[_Kept, PaddedSampleQuery]):
    """Settings of LDPMiner, among words that are known before.

    All clients answer in both rounds, with half of ``local_epsilon`` each. In the first, a client
    pads its set to L and reports one member by Bassily and Smith's oracle; the server keeps the 2 k
    most frequent words. In the second, a client does the same with its words among these, by
    symmetric unary encoding (basic RAPPOR). Counts are scaled by L.

    SVIM is the later protocol for the same task: it divides clients instead of epsilon, learns L,
    and spends no epsilon on bits about words that are not held. LDPMiner is here to compare with.

    ``local_epsilon`` is the privacy of a client over all rounds; a validation round is a third one.

    Attributes:
        padded_size: L. Words of clients that hold more are counted too low; the paper takes it as
            given, and about the size that a tenth of all sets exceed is good.
        num_hashes: Coordinates of the first round's public matrix.
        hash_seed: Its seed; None for the run's, so that each run draws its own.
    """

    name: ClassVar[str] = "ldpminer"
    title: ClassVar[str] = "LDPMiner"

    padded_size: Items = 10
    num_hashes: Count = 8192
    hash_seed: HashSeed = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_epsilon(epsilon_of_a_round=self.round_epsilon)

    @property
    def round_epsilon(self) -> float:
        """Privacy of a client's report in one round."""
        return self.local_epsilon / self.num_rounds

    @property
    def num_rounds(self) -> int:
        """Two, and the validation round."""
        return len(_PHASES) + self.validates

    @property
    def validation_oracle(self) -> OracleSpec:
        return replace(super().validation_oracle, epsilon=self.round_epsilon)

    @property
    def plan(self) -> LocalReports:
        domains = [each + self._padding(each) for each in (len(self.domain), self.num_kept)]
        return self.planned_reports(
            LocalReports,
            [
                self.planned_round(number, self.cohort_clients, domain)
                for number, domain in enumerate(domains, start=1)
            ],
            most_words=self.keep,
            reuses_clients=True,
            randomizers=(OracleSpec(name=_PHASES[-1], epsilon=self.round_epsilon),),
            is_of_whole_set=True,
        )

    def begin(self) -> _Kept:
        """Return ``(c,) int64``: the words of the next round, as numbers in the domain; all."""
        return np.arange(len(self.domain))

    def ask(self, planned: PlannedRound, run: RunState[_Kept]) -> PaddedSampleQuery:
        (seed,) = self.seeds(1)
        is_first = planned.layer == 1
        params = {"num_hashes": self.num_hashes, "hash_seed": seed} if is_first else {}
        return PaddedSampleQuery(
            **{**self.asked(planned, run.own), "epsilon": self.round_epsilon},
            oracle_name=_PHASES[planned.layer - 1],
            oracle_params=dict(params),
            padded_size=self._padding(len(run.own)),
        )

    def hear(
        self,
        planned: PlannedRound,
        run: RunState[_Kept],
        query: PaddedSampleQuery,
        aggregate: Aggregate,
    ) -> Heard[_Kept]:
        """Return the most frequent words of a round; of the second, the words found.

        Estimates are of clients that hold the word, too low where sets larger than L do.
        """
        is_last = planned.layer == len(_PHASES)
        kept, heard = self.hear_sample(query, aggregate, is_last=is_last)
        return replace(heard, own=run.own[kept])

    def _padding(self, num_candidates: int) -> int:
        return min(self.padded_size, num_candidates)
