"""The blanket of Subset Selection, split among the different contributions of one client.

A client changes up to B contributions. Words among them differ from each other; dummies are alike,
unless each of a client's dummies is a value of its own. Of each report of others that is blanket,
the reader is told a label from 1 to B, drawn by a rule that prefers labels whose values the subset
contains; the client's i-th report has label i. That is more than the shuffle shows, and labels are
B shuffles: what each of them loses says `LabelBlanket`. How many reports a label has does not
depend on the client's data, but is random: `fewest_of_label`.

The rule. Let v_i and v'_i be what the client's i-th changed contribution is before and after. A
blanket subset without any of these words has each label with probability 1/B. With one or more, its
label is, with a probability that depends on the domain alone, that of one of them, drawn uniformly,
and otherwise any. A subset with the dummy that all clients share has each label with probability
1/B.

The proof, with what `first`, `second` and `rest` are, stands in docs/accounting.md, section 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedhh.accounting.bounds.blanket import chords
from fedhh.accounting.bounds.shuffle_bound import ShuffleBound
from fedhh.accounting.sources import LABELS
from fedhh.privacy_loss.binomial import Floats, binomial_excess, lattice, lower_tail
from fedhh.validation import require_at_least

_EVEN, _REST = 0.02, 0.3
"""Least share of labels that are drawn evenly; more where subsets without both values would have a
label less than 0.3 times as often as if all labels were."""
_PARTS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Parts of the domains by -ln of how likely the client's report has one value, above the least.
Each is about as bad as the first at most, where this chance is the largest."""
_RATIO = 0.02
"""ln of the largest over the smallest s of a range of domains."""
_LARGEST_LOG_ODDS = 32.0
_ROWS_AT_ONCE = 400_000
_ROUNDING = 1e-9
"""Relative rounding of the numbers below, all of which are sums of few products."""


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """What does not depend on epsilon: bins of T, the label's subsets with one of v, v'.

    Attributes:
        smallest, largest: ``(m, 1)``, range of T in each bin.
        probability: ``(m,)``, of each bin.
        others: ``(m, j)``, nodes of the weight of subsets with neither value.
        weights: ``(m, j)``, their weights, rows summing to 1.
        below: Probability of all T left of the bins.
    """

    smallest: Floats
    largest: Floats
    probability: Floats
    others: Floats
    weights: Floats
    below: float


@dataclass(frozen=True, kw_only=True)
class LabelBlanket(ShuffleBound):
    """What the reports with one label show of the client's contribution v or v'.

    ``num_reports`` are those that a label is given to, whether or not they turn out as blanket, the
    client's included. With E = e**eps0, each is blanket and contains v only with probability
    ``one * first``, v' only with ``one * second``, neither with ``neither * rest``. The client's
    own contains v only with probability ``E * one``, v' only with ``one`` (or the other way round),
    neither with ``neither`` = 1 - (E + 1) * ``one``.

    With x = e**epsilon, (1) of docs/accounting.md holds for V of (E - x) / first, (1 - x E) /
    second, (1 - x) / rest with these probabilities, else 0. It is summed as `Blanket` is.

    Attributes:
        one, neither: The client's own report, as above.
        first, second, rest: Others', relative to it; above 0.
        changes: Contributions that a client may change at most, in the domains that this is for.
    """

    one: float
    neither: float
    first: float
    second: float
    rest: float
    changes: int
    tolerance: float = 2e-5

    name: ClassVar[str] = "labels"
    theorem: ClassVar[str] = LABELS
    assumptions: ClassVar[str] = (
        "every report is Subset Selection's, independent, shuffled; the words of a client's "
        "contributions differ"
    )

    @cached_property
    def _counts(self) -> _Counts:
        trials = self.num_reports - 1
        chance = self.one * (self.first + self.second)
        pairs = lattice(trials, chance, tolerance=self.tolerance)
        # The last row stands for all counts to the right of the lattice, with nothing else there.
        left = np.append(trials - pairs.last, 0.0)
        others, weights = np.zeros((left.size, 1)), np.ones((left.size, 1))
        if self.neither > 0:
            slope = _LARGEST_LOG_ODDS / self.num_reports / self.rest
            others, weights = chords(
                left,
                min(1.0, self.neither * self.rest / (1 - chance)),
                slope=slope,
                spacing=min(0.75, max(0.25, 50 * math.sqrt(self.tolerance))),
            )
            others = others / self.rest
        return _Counts(
            smallest=np.append(pairs.first, pairs.last[-1] + 1)[:, None] + 1,
            largest=np.append(pairs.last, trials)[:, None] + 1,
            probability=np.append(pairs.probability, pairs.above),
            others=others,
            weights=weights,
            below=pairs.below,
        )

    def _delta(self, epsilon: float) -> float:
        ways = {(self.first, self.second), (self.second, self.first)}
        return max(self._one_way(epsilon, *way) for way in ways)

    def _one_way(self, epsilon: float, first: float, second: float) -> float:
        counts, growth, x = self._counts, math.exp(self.local_epsilon), math.exp(epsilon)
        up, down = (growth - x) / first, (x * growth - 1) / second
        rows = max(1, _ROWS_AT_ONCE // counts.others.shape[1])
        inside = 0.0
        for start in range(0, counts.probability.size, rows):
            part = slice(start, start + rows)
            total = counts.smallest[part]
            weight = (x - 1) * counts.others[part] / counts.largest[part]
            above = binomial_excess(
                total, total * (down + weight) / (up + down), first / (first + second)
            )
            mean = np.einsum("ij,ij->i", counts.weights[part], above) / total[:, 0]
            inside += float(np.dot(counts.probability[part], mean))
        # Left of the lattice, a mean of T values is at most their maximum.
        return self.one * (first + second) * ((up + down) * inside + counts.below * up)


def fewest_of_label(num_reports: int, labels: int, *, chance: float) -> int:
    """Return how many of ``num_reports`` reports every label has, but for a small chance.

    Labels are independent and uniform; so each has a binomial number of reports.

    Args:
        num_reports: At least 1.
        labels: At least 1.
        chance: Most that the probability of fewer may be, of any label; in (0, 1).

    Returns:
        At least 0.
    """
    low, high = 0, num_reports // labels
    if labels == 1:
        return high
    while low < high:
        middle = (low + high + 1) // 2
        if labels * float(lower_tail(middle - 1, num_reports, 1 / labels)) <= chance:
            low = middle
        else:
            high = middle - 1
    return low


def label_blanket(
    *,
    local_epsilon: float,
    num_reports: int,
    max_items: int,
    domains: Sequence[tuple[int, int]],
    own_dummies: bool = False,
) -> WorstLabel:
    """Return a bound on every label, for any of some domains.

    Args:
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_reports: Fewest reports of a label, the client's included, from 2 to 10**9.
        max_items: B, contributions of a client.
        domains: Values s, dummies included, and members of a report d, from 1 to s - 1, of each.
        own_dummies: Whether each of a client's dummies is another value, so that all its
            contributions differ.
    """
    require_at_least(1, max_items=max_items, num_domains=len(domains))
    sizes, members = np.array(domains, dtype=np.float64).T
    found = _Domains(
        growth=math.exp(local_epsilon),
        smallest=sizes,
        largest=sizes,
        members=members,
        max_items=max_items,
        own_dummies=own_dummies,
    )
    return found.worst(num_reports)


def reachable_label_blanket(
    *,
    local_epsilon: float,
    num_reports: int,
    max_items: int,
    smallest_domain: int,
    largest_domain: int,
    own_dummies: bool = False,
) -> WorstLabel:
    """Return a bound on every label, for every domain size of a range.

    d is either neighbor of s / (e**eps0 + 1), as for `reachable_blanket`.

    Args:
        local_epsilon: Privacy of one report, from 0.1 to 16.
        num_reports: Fewest reports of a label, the client's included, from 2 to 10**9.
        max_items: B, contributions of a client.
        smallest_domain: Fewest values, dummies included, at least 2.
        largest_domain: Most values.
        own_dummies: See `label_blanket`.
    """
    require_at_least(1, max_items=max_items)
    growth = math.exp(local_epsilon)
    steps = np.arange(
        math.floor(smallest_domain / (growth + 1)), math.ceil(largest_domain / (growth + 1)) + 1
    )
    ratio = math.log(largest_domain / smallest_domain)
    grid = np.geomspace(smallest_domain, largest_domain, math.ceil(ratio / _RATIO) + 1)
    near = [np.floor(steps * (growth + 1)) + offset for offset in (-1, 0, 1, 2)]
    starts = np.unique(
        np.clip(np.concatenate([*near, np.floor(grid)]), smallest_domain, largest_domain)
    )
    smallest, largest = starts, np.append(starts[1:] - 1, largest_domain)
    rules = [np.maximum(rounded(smallest / (growth + 1)), 1) for rounded in (np.floor, np.ceil)]
    found = _Domains(
        growth=growth,
        smallest=np.tile(smallest, 2),
        largest=np.tile(largest, 2),
        members=np.minimum(np.concatenate(rules), np.tile(smallest, 2) - 1),
        max_items=max_items,
        own_dummies=own_dummies,
    )
    return found.worst(num_reports)


@dataclass(frozen=True, kw_only=True)
class WorstLabel(ShuffleBound):
    """The largest of some bounds: of several domains that a layer may have.

    Attributes:
        bounds: At least one, with the same local epsilon and number of reports.
    """

    bounds: tuple[LabelBlanket, ...]
    tolerance: float = 2e-5

    name: ClassVar[str] = LabelBlanket.name
    theorem: ClassVar[str] = LabelBlanket.theorem
    assumptions: ClassVar[str] = LabelBlanket.assumptions

    @cached_property
    def _evaluated(self) -> list[LabelBlanket]:
        return [replace(each, tolerance=self.tolerance) for each in self.bounds]

    def _delta(self, epsilon: float) -> float:
        return max(each.delta(epsilon) for each in self._evaluated)


@dataclass(frozen=True, kw_only=True)
class _Domains:
    """Domains of a layer, in ranges of s with one d each.

    Attributes:
        growth: E.
        smallest, largest: ``(m,)``, of s.
        members: ``(m,)``, d.
        max_items: B.
        own_dummies: As of `label_blanket`.
    """

    growth: float
    smallest: Floats
    largest: Floats
    members: Floats
    max_items: int
    own_dummies: bool

    def worst(self, num_reports: int) -> WorstLabel:
        """Return a bound that is below none of the domains'.

        In a range, ``one`` and the probability of both values are least at one of its ends, the
        shares and the probability of neither value at the smallest s.
        """
        growth, s, d = self.growth, self.smallest, self.members
        ones = np.minimum(self._one(s), self._one(self.largest))
        both = growth * d * (d - 1) / ((d * growth + self.largest - d) * (self.largest - 1))
        neither = (s - d) * (s - d - 1) / ((s - 1) * (d * growth + s - d))
        words, rest = self._shares()
        firsts = words if self.own_dummies else np.minimum(1.0, words)
        # Told where the own report contains both; of the others, at least so many neither.
        hidden = neither / (1 - both)
        part = np.digitize(np.log((1 - hidden.min()) / (1 - hidden)), _PARTS)
        # Before and after, the words that change are different ones of the domain.
        words_at_most = self.largest // 2 if self.own_dummies else self.largest - 1
        changes = np.minimum(self.max_items, words_at_most)
        part += (len(_PARTS) + 1) * np.ceil(np.log2(changes)).astype(np.intp)
        found = []
        for number in np.unique(part):
            of_part = part == number
            least = (1 - _ROUNDING) * np.array(
                [np.min(each[of_part]) for each in (ones * firsts, ones * words, neither * rest)]
            )
            first, second, others = least * min(1.0, (1 - _ROUNDING) / least.sum())
            kept = max(0.0, float(hidden[of_part].min()) * (1 - _ROUNDING))
            one = (1 - kept) / (growth + 1)
            found.append(
                LabelBlanket(
                    local_epsilon=math.log(growth),
                    num_reports=num_reports,
                    one=one,
                    neither=kept,
                    first=float(first) / one,
                    second=float(second) / one,
                    rest=float(others) / kept if kept else 1.0,
                    changes=int(changes[of_part].max()),
                )
            )
        return WorstLabel(
            local_epsilon=math.log(growth), num_reports=num_reports, bounds=tuple(found)
        )

    def _one(self, s: Floats) -> Floats:
        d = self.members
        return d * (s - d) / ((d * self.growth + s - d) * (s - 1))

    def _shares(self) -> tuple[Floats, Floats]:
        """Return how many times its even share a label has, for the smallest s.

        Of subsets with one of its words alone, and of subsets without its two values.
        """
        s, d = self.smallest, self.members
        most = 2.0 * self.max_items - 2
        none = _none(s - 2, np.minimum(most, s - 2), d)
        # So that enough subsets without both values have every label.
        even = np.clip((_REST - none) / np.maximum(1 - none, 1e-12), _EVEN, 1.0)
        # Values other than v and v', and the dummy where all share it.
        values = np.maximum(s - (2 if self.own_dummies else 3), 0)
        marked = np.minimum(most, values)
        # The mean of 1 / (1 + J), J of the marked values being among d - 1 of all.
        mean = (values + 1) / ((marked + 1) * d) * (1 - _none(values + 1, marked + 1, d))
        words = self.max_items * (1 - even) * mean + even
        if not self.own_dummies:
            # With two values there is one word, and no other that it could be with the dummy.
            with_dummy = np.divide(d - 1, s - 2, out=np.zeros_like(s), where=s > 2)
            words = np.minimum(words, with_dummy + (1 - with_dummy) * words)
        return words, none + even * (1 - none)


def _none(values: Floats, marked: Floats, drawn: Floats) -> Floats:
    """Return the probability that none of the marked values is among those drawn of all."""
    found = np.ones_like(values)
    for i in range(int(marked.max())):
        left = np.maximum(values - i, 1.0)
        found *= np.where(i < marked, np.clip(1 - drawn / left, 0.0, 1.0), 1.0)
    return found
