"""Whole words that held prefixes are likely to go on to, asked about before the trie gets there.

In Subset Selection, the noise of a large domain does not grow with it, so that a likely word costs
little to ask about. One that is found early is asked about in all later layers, so that more
clients say whether it is real. A client who holds a guessed word votes for it, not for its prefix.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.server.adaptive.trie_posterior import LayerEvidence, TriePosterior, inherited_shares
from fedhh.words.alphabet import END
from fedhh.words.rows import match_rows
from fedhh.words.trie import Codes, PrefixTrie

_Floats = npt.NDArray[np.float64]
_Counts = npt.NDArray[np.int64]
Distribution = Callable[[Codes], _Floats]
"""From ``(n, length) uint16`` prefixes to ``(n, A)``: the distribution of the symbol after each."""

GUESSES_PER_PREFIX = 15
"""How many words a layer guesses at most, for each prefix that it keeps."""

_MOST_SYMBOLS = 4
"""How much longer than its prefix a guess is at most."""

_LIKELIEST_SYMBOLS = 12
"""How many symbols a prefix is continued with."""

_LONGER_PER_PREFIX = 7
"""How many continued prefixes are kept after each symbol, for each prefix of the layer."""

_LEAST = 0.002
"""The least probability of a guess."""

_LONGEST_CONTEXT = 4
"""Preceding symbols that a distribution may depend on."""

_AT_ONCE = 4_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """Words to ask about besides a layer's children, ``(g,)`` each.

    Attributes:
        codes: ``(g, width) uint16``, distinct.
        prefix: ``int64``: which prefix of the trie's last level each begins with.
        prior: ``float64``: how likely it is to be held often enough to be found.
    """

    codes: Codes
    prefix: _Counts
    prior: _Floats

    @classmethod
    def nothing(cls, width: int) -> Guesses:
        """Return no word of at most ``width`` codes."""
        return cls(
            codes=np.zeros((0, width), dtype=np.uint16),
            prefix=np.zeros(0, dtype=np.int64),
            prior=np.zeros(0),
        )

    @classmethod
    def after(
        cls,
        trie: PrefixTrie,
        belief: TriePosterior,
        distribution: Distribution,
        *,
        most: int,
        known: Codes,
    ) -> Guesses:
        """Return the likeliest words that a trie's last prefixes go on to, two symbols or more on.

        A beam search: prefixes are continued by their likeliest symbols, and the likeliest of all
        are continued again. A prefix that has m children that live goes on to a word with at most
        m times the probability that the distribution of symbols gives.

        Args:
            trie: The layer's.
            belief: What is believed of its last level.
            distribution: Of the next symbol.
            most: How many prefixes a layer keeps, which bounds the search.
            known: ``(k, width) uint16``, distinct words that are asked about anyway.
        """
        width = known.shape[1]
        size = trie.alphabet_size
        start = trie.spell(np.arange(trie.width) * size)[:, :-1]
        prefix = np.arange(trie.width)
        spelled, prior = start, belief.held * belief.num_children
        codes, prefixes, priors = [], [], []
        # A word of as many symbols as the code is wide would not end.
        for _ in range(min(_MOST_SYMBOLS, width - 1 - trie.length)):
            spelled, prefix, prior = _continued(spelled, prefix, prior, distribution, most=most)
            ends = prior * _by_context(spelled, distribution)[0][:, END]
            (likely,) = np.nonzero(ends > _LEAST)
            word = np.zeros((len(likely), width), dtype=np.uint16)
            word[:, : spelled.shape[1]] = spelled[likely]
            codes.append(word)
            prefixes.append(prefix[likely])
            priors.append(ends[likely])
        if not codes:
            return cls.nothing(width)
        found = cls(
            codes=np.concatenate(codes),
            prefix=np.concatenate(prefixes),
            prior=np.minimum(np.concatenate(priors), 0.9),
        )
        found = found._only(match_rows(found.codes, known) < 0)
        return found._only(_largest(found.prior, GUESSES_PER_PREFIX * most))

    def held(self, belief: TriePosterior, seen: LayerEvidence) -> _Floats:
        """Return ``(g,)``: how likely each is to be held, after the layer's votes.

        Args:
            belief: What was believed of the prefixes.
            seen: The evidence of the guesses.
        """
        inherited = inherited_shares(belief.shares, length=1)
        ratio = np.empty(len(self.prefix))
        step = _AT_ONCE // inherited.shape[1]
        for first in range(0, len(ratio), step):
            part = slice(first, first + step)
            rows = seen.ratios[seen.which[part]]
            ratio[part] = (inherited[self.prefix[part]] * rows).sum(axis=1)
        odds = self.prior / (1 - self.prior) * ratio
        return np.asarray(odds / (1 + odds))

    def _only(self, which: npt.NDArray[np.bool_] | _Counts) -> Guesses:
        return Guesses(codes=self.codes[which], prefix=self.prefix[which], prior=self.prior[which])


def _continued(
    spelled: Codes, prefix: _Counts, prior: _Floats, distribution: Distribution, *, most: int
) -> tuple[Codes, _Counts, _Floats]:
    """Return the likeliest continuations by one symbol, as ``spelled``, ``prefix``, ``prior``."""
    distributions, row = _by_context(spelled, distribution, distinct=True)
    distributions[:, END] = 0
    num = min(_LIKELIEST_SYMBOLS, distributions.shape[1])
    symbols = np.argpartition(-distributions, num - 1, axis=1)[:, :num]
    longer = prior[:, None] * np.take_along_axis(distributions, symbols, axis=1)[row]
    place = _largest(np.where(longer > _LEAST, longer, 0).ravel(), _LONGER_PER_PREFIX * most)
    place = place[longer.ravel()[place] > _LEAST]
    before = place // num
    last = symbols[row].ravel()[place].astype(np.uint16)
    spelled = np.concatenate([spelled[before], last[:, None]], axis=1)
    return spelled, prefix[before], longer.ravel()[place]


def _by_context(
    spelled: Codes, distribution: Distribution, *, distinct: bool = False
) -> tuple[_Floats, _Counts]:
    """Return the distributions after prefixes, computed once for each of their endings.

    Args:
        spelled: ``(n, length) uint16``.
        distribution: Of the next symbol, given at most `_LONGEST_CONTEXT` symbols.
        distinct: Return a row for each ending; otherwise one for each prefix.

    Returns:
        The distributions, and each prefix's row.
    """
    endings = np.ascontiguousarray(spelled[:, -_LONGEST_CONTEXT:])
    _, first, row = np.unique(
        endings.view(f"V{2 * endings.shape[1]}").ravel(), return_index=True, return_inverse=True
    )
    distributions = distribution(endings[first])
    return (distributions, row) if distinct else (distributions[row], row)


def _largest(values: _Floats, most: int) -> _Counts:
    if len(values) <= most:
        return np.arange(len(values))
    return np.sort(np.argpartition(-values, most)[:most])
