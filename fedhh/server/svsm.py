"""SVSM: frequent sets of two and three words, on top of SVIM's frequent words.

Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE S&P.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.rounds import PlannedRound
from fedhh.arrays import Floats, Ints
from fedhh.found import Found
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.names import ItemSets
from fedhh.questions.question import Question
from fedhh.server.closed_domain import SetState
from fedhh.server.padded_sampling import SampleCounts, sample_counts, set_sizes
from fedhh.server.svim import Svim
from fedhh.settings import Share

_LARGEST_SET = 3
_MOST_SETS = 2_000
"""A client's answer looks at each of them."""

_LESS_THAN_CERTAIN = 0.9
"""What the most frequent word counts for in a guess, so that larger sets count for less."""

_SINGLE_GROUPS = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class SvsmState(SetState):
    """Where a run of SVSM stands; see `SetState`.

    Attributes:
        words: The words that SVIM found; a validation round may return fewer.
        itemsets: ``(c, 3) int64``: candidate sets, as places among the words that SVIM found; -1
            behind those of two words. Empty before SVIM is done.
        sizes_of_sets: ``(c + 1,) float64``: clients by how many of the sets they hold;
            empty before.
        counts: Clients of the last group that hold each set; None before.
        set_clients: Clients of the last group.
    """

    words: Found
    itemsets: Ints
    sizes_of_sets: Floats
    counts: SampleCounts | None = None
    set_clients: int = 0


@dataclass(frozen=True, kw_only=True)
class FrequentSet:
    """A set of words that many clients hold all of.

    Attributes:
        words: Its words, most frequent first.
        share: Estimated share of the clients that hold it.
        std_error: Standard error of the share.
    """

    words: tuple[str, ...]
    share: float
    std_error: float


@dataclass(frozen=True, kw_only=True)
class Svsm(Svim):
    """Settings of SVSM, among words that are known before.

    Some of the clients run SVIM. From the k words that it finds, the server guesses which sets of
    two or three are frequent: those with the largest products of their words' counts, the largest
    of which is taken as 0.9. Further clients say how many of these k sets they hold, and the last
    report one of them, as in SVIM. A client sends one report.

    A run's discoveries are the words; `frequent_sets` has the sets, and the words besides them.

    Attributes:
        keep: k, words and sets in the result.
        single_share: Share of the clients that run SVIM.
        candidate_share: Of those in SVIM, see there.
        size_share: Likewise; and of the other clients, the share of those that say how many sets
            they hold (the authors' code has 0.2 for that).
    """

    name: ClassVar[str] = "svsm"
    title: ClassVar[str] = "SVSM"

    keep: Annotated[int, Ge(1), Le(_MOST_SETS)] = 50
    single_share: Share = 0.4

    @property
    def num_cohorts(self) -> int:
        """SVIM's groups and two more; N is their mean size."""
        return _SINGLE_GROUPS + 2

    @property
    def group_sizes(self) -> tuple[int, ...]:
        total = self.num_cohorts * self.cohort_clients
        # Two clients at least are left for the others.
        mean = max(1, min(round(self.single_share * total), total - 2) // _SINGLE_GROUPS)
        rest = total - _SINGLE_GROUPS * mean
        sizes = min(max(1, round(self.size_share * rest)), rest - 1)
        return *self.groups_of(_SINGLE_GROUPS * mean), sizes, rest - sizes

    @property
    def domains(self) -> tuple[tuple[int, int], ...]:
        sets = self.num_sets
        of_sets = ((sets + 1, sets + 1), (sets + 1, 2 * sets)) if sets else ()
        return *super().domains, *of_sets

    @property
    def num_sets(self) -> int:
        """Candidate sets: k, or all that the words make if there are fewer."""
        words = min(self.keep, len(self.domain))
        pairs = words * (words - 1) // 2
        return min(self.keep, pairs + pairs * max(words - 2, 0) // 3)

    def begin(self) -> SvsmState:
        return SvsmState(
            **vars(super().begin()),
            words=Found.nothing(self.longest_word + 1),
            itemsets=np.zeros((0, _LARGEST_SET), dtype=np.int64),
            sizes_of_sets=np.zeros(0),
        )

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        """Return the broadcast to a group; there may be no set to ask the last two about."""
        own = run.own
        if planned.layer <= _SINGLE_GROUPS:
            return super().ask(planned, run)
        if not len(own.itemsets):
            return None
        names = ItemSets(words=self.domain[own.kept], itemsets=own.itemsets)
        if not len(own.sizes_of_sets):
            return self.size_question(names, self.oracle_spec)
        return self.sample_question(names, own.sizes_of_sets)

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return what a group's reports say; the words found are SVIM's.

        The rounds about sets drop none.
        """
        own = run.own
        if answers.planned.layer <= _SINGLE_GROUPS:
            heard = super().hear(run, answers)
            if heard.found is None:
                return heard
            sets = likely_sets(heard.found.estimate, self.num_sets)
            return replace(heard, own=replace(heard.own, words=heard.found, itemsets=sets))
        if not len(own.sizes_of_sets):
            own = replace(own, sizes_of_sets=set_sizes(answers))
        else:
            how, clients = self.post_processing, answers.aggregate.num_clients
            counts = sample_counts(answers, own.sizes_of_sets, post_processing=how)
            own = replace(own, counts=counts, set_clients=clients)
        return Heard(own=own, decision=answers.decision())

    def frequent_sets(self, run: RunState) -> tuple[FrequentSet, ...]:
        """Return the k most frequent sets, words as sets of one, most frequent first.

        Empty before SVIM is done, and words alone before the last group.
        """
        own, found = run.own, run.own.words
        words = self.symbols.decode(found.codes)
        estimates = [*zip(found.estimate, found.variance, found.num_clients.tolist(), strict=True)]
        members = [(word,) for word in words]
        if own.counts is not None:
            members += [tuple(words[i] for i in row if i >= 0) for row in own.itemsets.tolist()]
            of_sets = zip(own.counts.estimate, own.counts.variance, strict=True)
            estimates += [(*each, own.set_clients) for each in of_sets]
        sets = [
            FrequentSet(words=held, share=float(count) / n, std_error=float(variance) ** 0.5 / n)
            for held, (count, variance, n) in zip(members, estimates, strict=True)
        ]
        return tuple(sorted(sets, key=lambda each: -each.share)[: self.keep])


def likely_sets(counts: Floats, num_sets: int) -> Ints:
    """Return the sets of two and three words with the largest products of normalized counts.

    Args:
        counts: ``(w,) float64``: of the words, descending.
        num_sets: How many sets; all if there are fewer.

    Returns:
        ``(c, 3) int64`` places, ascending in a row; -1 behind two.

    >>> likely_sets(np.array([10.0, 9.0, 5.0]), 3).tolist()
    [[0, 1, -1], [0, 2, -1], [1, 2, -1]]
    """
    values = np.maximum(counts, 0.0)
    values = _LESS_THAN_CERTAIN * values / (values.max(initial=0.0) or 1.0)
    # Any other set has a member that could be replaced by a word before it: best first.
    seeds = [tuple(range(size)) for size in (2, _LARGEST_SET) if size <= len(values)]
    heap = [(-float(values[list(seed)].prod()), seed) for seed in seeds]
    heapq.heapify(heap)
    seen = set(seeds)
    sets: list[tuple[int, ...]] = []
    while heap and len(sets) < num_sets:
        _, best = heapq.heappop(heap)
        sets.append(best)
        for place in range(len(best)):
            after = (*best[:place], best[place] + 1, *best[place + 1 :])
            limit = after[place + 1] if place + 1 < len(after) else len(values)
            if after[place] < limit and after not in seen:
                seen.add(after)
                heapq.heappush(heap, (-float(values[list(after)].prod()), after))
    rows = [(*each, *[-1] * (_LARGEST_SET - len(each))) for each in sets]
    return np.array(rows, dtype=np.int64).reshape(-1, _LARGEST_SET)
