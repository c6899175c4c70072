"""A prefix tree that every client helps to grow in each round, by several symbols at a time.

Source: Chadha, Chen, Duchi, Feldman, Hashemi, Javidbakht, McMillan, Talwar (2023), "Differentially
private heavy hitter detection using federated analytics", SaTML 2024 (arXiv:2307.11749). Its
abstract, and what Sun et al. (2024) say of it, were read; no table of it is reproduced.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from fedhh.accounting.plan import Participation
from fedhh.arrays import Ints
from fedhh.found import Found
from fedhh.oracles import OracleSpec
from fedhh.protocol import Answers, Decision, Heard, RunState
from fedhh.server.evidence import benjamini_hochberg
from fedhh.server.ldp_triehh import LocalTrie
from fedhh.server.pruning import top_eta
from fedhh.settings import Count, Items, Passes, Share
from fedhh.validation import require_epsilon
from fedhh.words.trie import PrefixTrie


@dataclass(frozen=True, kw_only=True)
class OptPrefixTree(LocalTrie):
    """Settings of discovery by a prefix tree, after Chadha et al. (2023).

    From the paper: every client answers in each round, with its part of the budget, about one of
    its data that it selects; a round extends prefixes as far as a limit on its domain allows, so
    that rounds are few; it keeps what exceeds a threshold that follows from a rate of false
    positives; several runs follow each other, and what is found stands on a deny list.

    Assumed here, since no more of the paper could be read: a limit of ``eta_max`` times the
    alphabet's size, as of LDP TrieHH's layers; Subset Selection; Benjamini and Hochberg's rule, by
    the exact tail, for the threshold; the same budget in each round; B data of a client, drawn
    afresh in each round; a validation round at the end, if there is one, with as much again. The
    paper's selection by counts is ``sampler`` "greedy", which takes the most frequent. What a round
    may have is fixed before it, where the paper tunes it to the noise.

    ``local_epsilon`` is the privacy of one contribution in each of a client's rounds, all together.

    Attributes:
        rounds: Rounds of a run, at most. Prefixes that are left after them are given up.
        passes: Runs; each leaves out what the earlier ones found (the deny list).
        false_positive_rate: Of what a round keeps, the expected share that no client holds.
        max_items: B, contributions per client and round.
        participation: See `CohortProtocol`.
    """

    name: ClassVar[str] = "opt-prefix-tree"
    title: ClassVar[str] = "OptPrefixTree"
    compares_layers: ClassVar[bool] = False

    rounds: Count = 4
    passes: Passes = 1
    false_positive_rate: Share = 0.5
    max_items: Items = 1
    participation: Participation = "every-round"

    @property
    def num_passes(self) -> int:
        return self.passes

    @property
    def round_epsilon(self) -> float:
        """Privacy of one contribution in one round."""
        in_all = self.rounds_per_pass * self.passes + self.validates
        answered = {"one-round": 1, "every-round": in_all, "epochs": self.epochs}
        return self.local_epsilon / answered[self.participation]

    @property
    def oracle_spec(self) -> OracleSpec:
        spec = super().oracle_spec
        if self.oracle == "none":
            return spec
        require_epsilon(epsilon_of_a_round=self.round_epsilon)
        return replace(spec, epsilon=self.round_epsilon)

    @property
    def rounds_per_pass(self) -> int:
        return min(self.rounds, self.depth)

    def layer_of(self, trie: PrefixTrie) -> int:
        """Return 1: rounds are numbered by themselves, since one may extend by several symbols."""
        return 1

    def most_prefixes(self, candidates: int) -> int:
        """As many as a round may ask about, since `extended` goes on to longer ones."""
        return self.most_kept

    def keep(self, answers: Answers) -> tuple[Ints, int]:
        """Return the candidates that stand out, at most ``eta_max``, and the votes that keep one.

        With no more than a part ``false_positive_rate`` of them held by nobody, in expectation.
        """
        distinct, places = np.unique(answers.votes, return_inverse=True)
        chances = ndtr(-answers.noise.z(distinct))[places]
        kept = np.flatnonzero(benjamini_hochberg(chances, self.false_positive_rate))
        if not len(kept):
            return kept, int(answers.votes.max()) + 1
        best, threshold = top_eta(answers.votes[kept], self.most_kept, ties="strict")
        return kept[best], threshold

    def decision(self, answers: Answers, *, threshold: int, num_kept: int) -> Decision:
        decision = super().decision(answers, threshold=threshold, num_kept=num_kept)
        by_votes = num_kept == self.most_kept
        return replace(decision, kept_by="votes" if by_votes else "threshold")

    def extended(
        self,
        run: RunState,
        answers: Answers,
        kept: Ints,
        found: Found,
        decision: Decision,
        **learned: Any,
    ) -> Heard:
        """Return what follows from a round: prefixes as long as the next one may ask about."""
        heard = super().extended(run, answers, kept, found, decision, **learned)
        own, number = heard.own, run.own.layer + 1
        if own.pass_index != run.own.pass_index:
            return heard
        if number > self.rounds_per_pass:
            following = self._start_pass(own.pass_index + 1, run.found.append(found))
            return replace(heard, own=following, kept=None)
        trie, finished = self.freely_extended(own.trie, own.finished)
        return replace(heard, own=replace(own, layer=number, trie=trie, finished=finished))
