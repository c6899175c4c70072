"""What each label of the blanket has, for one domain of Subset Selection or for many.

The rule. Let v_i and v'_i be what the client's i-th changed contribution is before and after. A
blanket subset without any of these words has each label with probability 1/B. With one or more, its
label is, with a probability that depends on the domain alone, that of one of them, drawn uniformly,
and otherwise any. A subset with the dummy that all clients share has each label with probability
1/B.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.accounting.bounds.labels import LabelBlanket, WorstLabel
from fedhh.privacy_loss.binomial import Floats
from fedhh.validation import InputError, require_at_least

_EVEN, _REST = 0.02, 0.3
"""Least share of labels that are drawn evenly; more where subsets without both values would have a
label less than 0.3 times as often as if all labels were."""
_PARTS = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Parts of the domains by -ln of how likely the client's report has one value, above the least.
Each is about as bad as the first at most, where this chance is the largest."""
_MOST_MEMBERS = 1000
"""d up to which domains are told apart."""
_RATIO = 0.02
"""ln of the largest over the smallest s of a range of domains."""
_ROUNDING = 1e-9
"""Relative rounding of the numbers below, all of which are sums of few products."""


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
    last = min(largest_domain, max(smallest_domain, math.ceil(_MOST_MEMBERS * (growth + 1))))
    steps = np.arange(
        math.floor(smallest_domain / (growth + 1)), math.ceil(last / (growth + 1)) + 1
    )
    near = [np.floor(steps * (growth + 1)) + offset for offset in (-1, 0, 1, 2)]
    ratio = math.log(last / smallest_domain)
    grid = np.floor(np.geomspace(smallest_domain, last, math.ceil(ratio / _RATIO) + 1))
    starts = np.unique(np.clip(np.concatenate([*near, grid]), smallest_domain, last))
    smallest, largest = np.tile(starts, 2), np.tile(np.append(starts[1:] - 1, last), 2)
    best = starts / (growth + 1)
    members = np.clip(np.concatenate([np.floor(best), np.ceil(best)]), 1, smallest - 1)
    found = _Domains(
        growth=growth,
        smallest=smallest,
        largest=largest,
        members=members,
        max_items=max_items,
        own_dummies=own_dummies,
        beyond=largest_domain > last,
    )
    return found.worst(num_reports)


@dataclass(frozen=True)
class _Facts:
    """Lower bounds for ranges of domains: ``(m,)`` each.

    Attributes:
        one, both, neither: As of `fedhh.accounting.bounds.blanket.Blanket`.
        words, rest: Shares, as of `_Domains._shares`.
    """

    one: Floats
    both: Floats
    neither: Floats
    words: Floats
    rest: Floats

    def and_(self, other: _Facts) -> _Facts:
        """Return those of both."""
        return _Facts(
            *(
                np.concatenate([getattr(each, name) for each in (self, other)])
                for name in ("one", "both", "neither", "words", "rest")
            )
        )


@dataclass(frozen=True, kw_only=True)
class _Domains:
    """Domains of a layer, in ranges of s with one d each.

    Attributes:
        growth: E.
        smallest, largest: ``(m,)``, of s.
        members: ``(m,)``, d.
        max_items: B.
        own_dummies: As of `label_blanket`.
        beyond: Whether there are larger domains than all these, without limit.
    """

    growth: float
    smallest: Floats
    largest: Floats
    members: Floats
    max_items: int
    own_dummies: bool
    beyond: bool = False

    def worst(self, num_reports: int) -> WorstLabel:
        """Return a bound that is below none of the domains'.

        In a range, ``one`` and the probability of both values are least at one of its ends, the
        shares and the probability of neither value at the smallest s.
        """
        growth, s, d = self.growth, self.smallest, self.members
        words, rest = self._shares()
        facts = _Facts(
            one=np.minimum(self._one(s), self._one(self.largest)),
            both=growth * d * (d - 1) / ((d * growth + self.largest - d) * (self.largest - 1)),
            neither=(s - d) * (s - d - 1) / ((s - 1) * (d * growth + s - d)),
            words=words,
            rest=rest,
        )
        # Before and after, the words that change are different ones of the domain.
        words_at_most = self.largest // 2 if self.own_dummies else self.largest - 1
        changes = np.minimum(self.max_items, words_at_most)
        if self.beyond:
            facts = facts.and_(self._beyond())
            changes = np.append(changes, self.max_items)
        ones, words, rest, neither = facts.one, facts.words, facts.rest, facts.neither
        firsts = words if self.own_dummies else np.minimum(1.0, words)
        # Told where the own report contains both; of the others, at least so many neither.
        hidden = neither / (1 - facts.both)
        part = np.digitize(np.log((1 - hidden.min()) / (1 - hidden)), _PARTS)
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

    def _beyond(self) -> _Facts:
        """Return lower bounds for all domains that are larger than the largest of these.

        There d / s is between 1 / (E + 1) less and more 1 / s, ``one`` is least at an end of this
        range but for a factor s / (s - 1), and ``neither`` at its upper end. Draws without
        replacement miss all of r values at most as often as draws with it.
        """
        growth, s = self.growth, float(self.largest.max())
        low, high = 1 / (growth + 1) - 1 / s, 1 / (growth + 1) + 1 / s
        most = 2 * self.max_items - 2
        if s <= 4 * (growth + 1) or s <= 4 * (most + 3):
            raise InputError(
                f"Expected larger domains than {s:g} among those looked at one by one."
            )
        none = (1 - high * s / (s - 2 - most)) ** most
        even = min(max((_REST - none) / (1 - none), _EVEN), 1.0) if most else _EVEN
        drawn = high * s / (s - 2)
        mean = -math.expm1((most + 1) * math.log1p(-drawn)) / ((most + 1) * drawn)
        words = self.max_items * (1 - even) * mean + even
        if not self.own_dummies:
            words = min(words, drawn + (1 - drawn) * words)
        ones = [t * (1 - t) / (t * growth + 1 - t) for t in (low, high)]
        neither = (1 - high) * (1 - high - 1 / s) / (high * growth + 1 - high)
        found = (min(ones), 0.0, neither, words, none + even * (1 - none))
        return _Facts(*(np.array([each]) for each in found))

    def _one(self, s: Floats) -> Floats:
        d = self.members
        return d * (s - d) / ((d * self.growth + s - d) * (s - 1))

    def _shares(self) -> tuple[Floats, Floats]:
        """Return how many times its even share a label has, for the smallest s.

        Of subsets with one of its words alone, and of subsets without its two values.
        """
        s, d = self.smallest, self.members
        most = 2.0 * self.max_items - 2
        none = np.exp(_log_none(s - 2, np.minimum(most, s - 2), d))
        # So that enough subsets without both values have every label.
        even = np.clip((_REST - none) / np.maximum(1 - none, 1e-12), _EVEN, 1.0)
        # Values other than v and v', and the dummy where all share it.
        values = np.maximum(s - (2 if self.own_dummies else 3), 0)
        marked = np.minimum(most, values)
        # The mean of 1 / (1 + J), J of the marked values being among d - 1 of all.
        some = -np.expm1(_log_none(values + 1, marked + 1, d))
        mean = (values + 1) / ((marked + 1) * d) * some
        words = self.max_items * (1 - even) * mean + even
        if not self.own_dummies:
            # With two values there is one word, and no other that it could be with the dummy.
            with_dummy = np.divide(d - 1, s - 2, out=np.zeros_like(s), where=s > 2)
            words = np.minimum(words, with_dummy + (1 - with_dummy) * words)
        return words, none + even * (1 - none)


def _log_none(values: Floats, marked: Floats, drawn: Floats) -> Floats:
    """Return ln P(none of the marked values is among those drawn, without replacement, of all)."""
    found = np.zeros_like(values)
    with np.errstate(divide="ignore"):
        for i in range(int(marked.max())):
            left = np.maximum(values - i, 1.0)
            found += np.where(i < marked, np.log1p(-np.minimum(drawn / left, 1.0)), 0.0)
    return found
