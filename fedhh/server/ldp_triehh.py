"""LDP TrieHH: Gboard's interactive discovery of words under local differential privacy.

Source: Sun, Kairouz, Sun, Gascon, Suresh (2024), "Private federated discovery of out-of-vocabulary
words for Gboard", Algorithm 2 and "Multiple-pass algorithm".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from annotated_types import Ge, Le

from fedhh.accounting.local_reports import LocalReports
from fedhh.arrays import Ints
from fedhh.oracles import OracleSpec, PureOracle, make_pure_oracle
from fedhh.oracles.client_votes import ClientVotes, VotesPerClient
from fedhh.protocol import Answers
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.server.local_discovery import LocalProtocol, PostProcessed
from fedhh.server.pruning import top_eta
from fedhh.server.trie import MOST_PREFIXES, EtaTrie
from fedhh.settings import Passes
from fedhh.validation import InputError

FewestCandidates = Annotated[int, Ge(1), Le(MOST_PREFIXES)]
"""Values of a round besides the dummy."""


@dataclass(frozen=True, kw_only=True)
class LocalTrie(LocalProtocol, PostProcessed, EtaTrie):
    """A trie whose layers ask fresh clients for randomized votes on extensions of kept prefixes.

    Attributes:
        oracle: Local randomizer by name; "ss" is the paper's.
        subset_size: For "ss": "paper" or "optimal".
        votes_per_client: "one": a client's B reports are counted together, and a value has its vote
            if any of them supports it, so that a fake client has one vote for a value and not B.
            Whoever counts has to know which reports are of one client; no amplification by
            shuffling is claimed then. "all": each report is counted by itself, as in the paper.
        fewest_candidates: Values of each round at least, the dummy not counted. Where there are
            fewer candidates, fillers make up for them: values that no client can say, told by their
            number. Reports of Subset Selection over more values are longer, and amplify more.
    """

    compares_layers: ClassVar[bool] = True

    oracle: str = "ss"
    subset_size: Literal["optimal", "paper"] = "optimal"
    votes_per_client: VotesPerClient = "all"
    fewest_candidates: FewestCandidates = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made once here so that a bad oracle is refused before anything runs, also one that fits no
        # large domain: extensions of all kept prefixes, short words that end earlier, the dummy.
        kept = self.eta_max if isinstance(self.eta_max, int) else 1
        oracle = self._oracle(max(kept * (self.symbols.size + 2), self.fewest_candidates) + 1)
        if self.fewest_candidates > 1 and self.oracle != "ss":
            raise InputError(
                "Expected fewest_candidates=1 where the number of values amplifies nothing, got "
                f"fewest_candidates={self.fewest_candidates} with oracle={self.oracle!r}; set "
                "fewest_candidates=1, or oracle='ss'."
            )
        if self.votes_per_client == "one":
            ClientVotes(oracle=oracle, max_items=self.max_items)
            if not self.pad:
                raise InputError(
                    "Expected pad=true with votes_per_client='one', since a client's chance of a "
                    "vote follows from the number of its reports, got pad=false; set pad=true."
                )

    def question(self, names: TrieNames) -> Question:
        return self.votes_question(names, self.oracle_spec)

    @property
    def oracle_spec(self) -> OracleSpec:
        """The randomizer's name and parameters, without a domain."""
        params = {"subset_size": self.subset_size} if self.oracle == "ss" else {}
        epsilon = float("inf") if self.oracle == "none" else self.local_epsilon
        return OracleSpec(name=self.oracle, epsilon=epsilon, params=params)

    @property
    def validation_oracle(self) -> OracleSpec:
        return self.oracle_spec

    @property
    def plan(self) -> LocalReports:
        return self.planned_reports(
            self.planned_layers(),
            most_words=self.most_found,
            randomizers=(self.oracle_spec,),
            validation_randomizer=None,
        )

    @property
    def most_found(self) -> int:
        """Words that all passes find at most."""
        return self.num_passes * sum(largest for _, _, largest in self.domains())

    def _oracle(self, domain_size: int) -> PureOracle:
        return make_pure_oracle(self.oracle_spec, domain_size)


@dataclass(frozen=True, kw_only=True)
class LdpTrieHH(LocalTrie):
    """Settings of LDP TrieHH.

    Each layer asks a cohort of fresh clients for their prefixes that extend the kept ones by one
    symbol, tallies the randomized votes, and keeps the ``eta_max`` prefixes with the most. Kept
    prefixes that end in the end symbol are discovered words; they are not extended further (the
    paper's formula would, to no effect, since nothing can match).

    The paper asks layers that decide nothing, too; set ``skip_free_layers`` to False to do so.

    Attributes:
        passes: Tries built one after the other; each leaves out what the earlier ones found.
        ties: "strict" or "paper", see `pruning.top_eta`.
    """

    name: ClassVar[str] = "ldp-triehh"
    title: ClassVar[str] = "LDP TrieHH"

    passes: Passes = 2
    ties: Literal["strict", "paper"] = "strict"

    @property
    def num_passes(self) -> int:
        return self.passes

    def most_prefixes(self, candidates: int) -> int:
        return super().most_prefixes(candidates) if self.ties == "strict" else candidates

    def keep(self, answers: Answers) -> tuple[Ints, int]:
        """Return the best ``eta_max`` candidates, and the votes that keep one."""
        return top_eta(answers.votes, self.most_kept, ties=self.ties)
