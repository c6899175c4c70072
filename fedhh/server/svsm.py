"""SVSM: frequent sets of two and three words, on top of SVIM's frequent words.

Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE S&P.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt
from annotated_types import Ge, Le

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.rounds import PlannedRound
from fedhh.found import Found
from fedhh.protocol import Answers, Heard, RunState
from fedhh.questions.names import ItemSets
from fedhh.questions.question import Question
from fedhh.server.padded_sampling import sample_counts, set_sizes
from fedhh.server.svim import SampledSets, Share, Svim, SvimState

_LARGEST_SET = 3
_MOST_SETS = 2_000
"""A client's answer looks at each of them."""

_LESS_THAN_CERTAIN = 0.9
"""What the most frequent word counts for in a guess, so that larger sets count for less."""

_SINGLE_GROUPS = 3

Itemsets = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SvsmState:
    """Where a run of SVSM stands.

    Attributes:
        singles: What its SVIM knows.
        words: The words that SVIM found; a validation round may return fewer.
        itemsets: ``(c, 3) int64``: candidate sets, as places among the words that SVIM found; -1
            behind those of two words. Empty before SVIM is done.
        sizes: ``(c + 1,) float64``: clients by how many of the sets they hold; empty before.
        estimate: ``(c,) float64``: clients of the last group that hold each set; empty before.
        variance: ``(c,) float64``: of the estimate.
        set_clients: Clients of the last group.
    """

    singles: SvimState
    words: Found
    itemsets: Itemsets
    sizes: Floats
    estimate: Floats
    variance: Floats
    set_clients: int


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
class Svsm(SampledSets):
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

    def __post_init__(self) -> None:
        super().__post_init__()
        # Made once here so that settings which SVIM refuses are refused.
        _ = self._svim(clients_per_layer=1)

    @property
    def num_cohorts(self) -> int:
        """SVIM's groups and two more; N is their mean size."""
        return _SINGLE_GROUPS + 2

    @cached_property
    def singles(self) -> Svim:
        """The SVIM that finds the words."""
        return self._svim(clients_per_layer=self._singles_mean)

    @property
    def group_sizes(self) -> tuple[int, ...]:
        """Clients of each group."""
        first = self.singles.group_sizes
        total = self.num_cohorts * self.cohort_clients
        rest = total - sum(first)
        sizes = min(max(1, round(self.size_share * rest)), rest - 1)
        return *first, sizes, rest - sizes

    @property
    def num_sets(self) -> int:
        """Candidate sets: k, or all that the words make if there are fewer."""
        words = min(self.keep, len(self.domain))
        pairs = words * (words - 1) // 2
        return min(self.keep, pairs + pairs * max(words - 2, 0) // 3)

    @property
    def plan(self) -> LocalReports:
        singles, sets = self.singles.plan, self.num_sets
        domains = ((sets + 1, sets + 1), (sets + 1, 2 * sets)) if sets else ()
        rounds = [
            self.planned_round(number, size, smallest, largest)
            for number, (size, (smallest, largest)) in enumerate(
                zip(self.group_sizes[_SINGLE_GROUPS:], domains, strict=False),
                start=_SINGLE_GROUPS + 1,
            )
        ]
        return self.planned_reports(
            [*singles.layers, *rounds],
            most_words=self.keep,
            randomizers=singles.randomizers,
            is_of_whole_set=True,
        )

    def resolve(self, num_clients: int) -> dict[str, Any]:
        changes = super().resolve(num_clients)
        return changes or self.singles.resolve(num_clients)

    def begin(self) -> SvsmState:
        none = np.zeros(0)
        return SvsmState(
            singles=self.singles.begin(),
            words=Found.nothing(self.longest_word + 1),
            itemsets=np.zeros((0, _LARGEST_SET), dtype=np.int64),
            sizes=none,
            estimate=none,
            variance=none,
            set_clients=0,
        )

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        """Return the broadcast to a group; there may be no set to ask the last two about."""
        if planned.layer <= _SINGLE_GROUPS:
            return self.singles.ask(planned, _of_singles(run))
        return self._set_question(run.own) if len(run.own.itemsets) else None

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return what a group's reports say; the words found are SVIM's.

        The rounds about sets drop none.
        """
        state = run.own
        if answers.planned.layer <= _SINGLE_GROUPS:
            heard = self.singles.hear(_of_singles(run), answers)
            state = replace(state, singles=heard.own)
            if heard.found is not None:
                sets = likely_sets(heard.found.estimate, self.num_sets)
                state = replace(state, words=heard.found, itemsets=sets)
            return Heard(own=state, decision=heard.decision, found=heard.found)
        if not len(state.sizes):
            state = replace(state, sizes=set_sizes(answers))
            return Heard(own=state, decision=answers.decision())
        counts = sample_counts(answers, state.sizes, post_processing=self.post_processing)
        state = replace(
            state,
            estimate=counts.estimate,
            variance=counts.variance,
            set_clients=answers.aggregate.num_clients,
        )
        return Heard(own=state, decision=answers.decision())

    def frequent_sets(self, run: RunState) -> tuple[FrequentSet, ...]:
        """Return the k most frequent sets, words as sets of one, most frequent first.

        Empty before SVIM is done, and words alone before the last group.
        """
        state, found = run.own, run.own.words
        words = self.symbols.decode(found.codes)
        sets = [
            _frequent((words[place],), found.estimate[place], found.variance[place], clients)
            for place, clients in enumerate(found.num_clients.tolist())
        ]
        for row, estimate, variance in zip(
            state.itemsets.tolist(), state.estimate, state.variance, strict=False
        ):
            members = tuple(words[place] for place in row if place >= 0)
            sets.append(_frequent(members, estimate, variance, state.set_clients))
        return tuple(sorted(sets, key=lambda each: -each.share)[: self.keep])

    @property
    def _singles_mean(self) -> int:
        """Mean size of SVIM's groups; two clients at least are left for the others."""
        total = self.num_cohorts * self.cohort_clients
        return max(1, min(round(self.single_share * total), total - 2) // _SINGLE_GROUPS)

    def _svim(self, *, clients_per_layer: int) -> Svim:
        return Svim(
            local_epsilon=self.local_epsilon,
            alphabet=self.alphabet,
            candidates=self.candidates,
            clients_per_layer=clients_per_layer,
            keep=self.keep,
            candidate_share=self.candidate_share,
            size_share=self.size_share,
            oracle=self.oracle,
            post_processing=self.post_processing,
        )

    def _set_question(self, state: SvsmState) -> Question:
        names = ItemSets(words=self.domain[state.singles.kept], itemsets=state.itemsets)
        if not len(state.sizes):
            return self.size_question(names, self.oracle_spec)
        return self.sample_question(names, state.sizes)


def _of_singles(run: RunState) -> RunState:
    return RunState(**{**vars(run), "own": run.own.singles})


def likely_sets(counts: Floats, num_sets: int) -> Itemsets:
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


def _frequent(
    words: tuple[str, ...], estimate: float, variance: float, clients: int
) -> FrequentSet:
    return FrequentSet(
        words=words, share=float(estimate) / clients, std_error=float(variance) ** 0.5 / clients
    )
