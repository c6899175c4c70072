"""LDPMiner: frequent words of clients that hold sets, in two rounds with half of epsilon each.

Source: Qin, Yang, Yu, Khalil, Xiao, Ren (2016), "Heavy hitter estimation over set-valued data with
local differential privacy", CCS.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.oracles import OracleSpec
from fedhh.protocol import RunState
from fedhh.questions.question import Question
from fedhh.server.closed_domain import SetProtocol
from fedhh.server.cohorts import RunSeed
from fedhh.server.padded_sampling import padded_size
from fedhh.settings import AUTO, Count, Items, Share
from fedhh.validation import require_epsilon

_PHASES = ("bassily-smith", "sue")
"""The oracles of the two rounds: one bit about all words, then basic RAPPOR about few."""


_SIZE_ORACLE = OracleSpec(name="ss", epsilon=1.0, params={"subset_size": "optimal"})
"""Of the sizes; with the epsilon of a round."""

_ASKED: Literal["asked"] = "asked"

_MOST_SIZE = 1_000
"""What a client that holds more says when it is asked for its set's size."""


@dataclass(frozen=True, kw_only=True)
class LdpMiner(SetProtocol):
    """Settings of LDPMiner, among words that are known before.

    All clients answer in both rounds, with half of ``local_epsilon`` each. In the first, a client
    pads its set to L and reports one member by Bassily and Smith's oracle; the server keeps the 2 k
    most frequent words. In the second, a client does the same with its words among these, by
    symmetric unary encoding (basic RAPPOR). Counts are scaled by L. To learn L, some clients are
    asked for the size of their sets before, and for nothing else, with the epsilon of one round:
    central guarantees are the maximum over them and all others (`Plan.groups`).

    SVIM is the later protocol for the same task: it divides clients instead of epsilon, learns L,
    and spends no epsilon on bits about words that are not held. LDPMiner is here to compare with.

    ``local_epsilon`` is the privacy of a client over all rounds; a validation round is a third one.

    Attributes:
        padded_size: L. Words of clients that hold more are counted too low, and the noise grows
            with L. "asked" is the paper's choice, the least size that fewer than a tenth of all
            sets exceed, as some clients tell it, up to 1,000; "auto" is "asked".
        size_share: Share of the clients that are asked for it; none are if L is a number.
        num_hashes: Coordinates of the first round's public matrix.
        hash_seed: Its seed; None for the run's, so that each run draws its own.
    """

    name: ClassVar[str] = "ldpminer"
    title: ClassVar[str] = "LDPMiner"

    padded_size: Items | Literal["auto", "asked"] = AUTO
    size_share: Share = 0.1
    num_hashes: Count = 8192
    hash_seed: RunSeed = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_one_round("which divides a client's budget among its rounds")
        require_epsilon(epsilon_of_a_round=self.round_epsilon)

    @property
    def round_epsilon(self) -> float:
        """Privacy of a client's report in one round."""
        return self.local_epsilon / self.num_rounds

    @property
    def num_rounds(self) -> int:
        """Of one client: two, and the validation round."""
        return len(_PHASES) + self.validates

    @property
    def validation_oracle(self) -> OracleSpec:
        return replace(super().validation_oracle, epsilon=self.round_epsilon)

    @property
    def learns_size(self) -> bool:
        """Whether clients are asked for L."""
        return isinstance(self.padded_size, str)

    def resolve(self, num_clients: int) -> dict[str, Any]:
        if self.padded_size == AUTO:
            return {"padded_size": _ASKED}
        return super().resolve(num_clients)

    @property
    def num_size_clients(self) -> int:
        """Clients that are asked for the size of their sets, next to those of the two rounds."""
        return max(1, int(self.cohort_clients * self.size_share / (1 - self.size_share)))

    def kept_back(self, num_clients: int) -> float:
        """Return how many clients are kept for the validation round and for the size of sets."""
        of_validation = super().kept_back(num_clients)
        if not self.learns_size:
            return of_validation
        return of_validation + (num_clients - of_validation) * self.size_share

    @property
    def plan(self) -> LocalReports:
        rounds = []
        if self.learns_size:
            rounds.append(self.planned_round(1, self.num_size_clients, self._largest_size + 1))
        for each in (len(self.domain), self.num_kept):
            most = each + self._padding(each)
            least = each + 1 if self.learns_size else most
            number = len(rounds) + 1
            rounds.append(self.planned_round(number, self.cohort_clients, least, most))
        return self.planned_reports(
            rounds,
            most_words=self.keep,
            participation="every-round",
            num_apart=int(self.learns_size),
            randomizers=(OracleSpec(name=_PHASES[-1], epsilon=self.round_epsilon),),
            is_of_whole_set=True,
        )

    def asks_size(self, planned: PlannedRound) -> bool:
        return self._phase(planned) < 0

    def is_last(self, planned: PlannedRound) -> bool:
        return self._phase(planned) == len(_PHASES) - 1

    def ask(self, planned: PlannedRound, run: RunState) -> Question:
        names, phase = self.names_of(run.own.kept), self._phase(planned)
        if self.asks_size(planned):
            oracle = replace(_SIZE_ORACLE, epsilon=self.round_epsilon)
            return self.size_question(names, oracle, largest=self._largest_size)
        (seed,) = self.seeds(1)
        params = {"num_hashes": self.num_hashes, "hash_seed": seed} if phase == 0 else {}
        return self.member_question(
            names,
            OracleSpec(name=_PHASES[phase], epsilon=self.round_epsilon, params=dict(params)),
            padded_size=min(self.length_of(run), len(run.own.kept)),
        )

    def length_of(self, run: RunState) -> int:
        """Return L, as it is given or clients told it."""
        given = self.padded_size
        return padded_size(run.own.sizes) if isinstance(given, str) else given

    @property
    def _largest_size(self) -> int:
        return min(_MOST_SIZE, len(self.domain))

    def _phase(self, planned: PlannedRound) -> int:
        """Return the place of a round in `_PHASES`; -1 for that about the size."""
        return planned.layer - 1 - self.learns_size

    def _padding(self, num_candidates: int) -> int:
        size = self._largest_size if isinstance(self.padded_size, str) else self.padded_size
        return min(size, num_candidates)
