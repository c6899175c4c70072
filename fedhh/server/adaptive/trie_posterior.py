"""A posterior filter on the trie: what earlier layers showed of a prefix, its children inherit.

Deep in a trie most prefixes have one child that is held: its votes measure the same count again,
with fresh clients. Ranking every layer by its own votes throws the earlier ones away. This filter
keeps, for each prefix, the probability that it is held (that clients hold it, often enough to be
found) and how many hold it then, and updates both by Bayes' rule, layer by layer. It reads tallies
only, so that it costs no privacy; a wrong model costs words, never a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Bools, Floats, Ints
from fedhh.oracles.base import PureVotes
from fedhh.words.alphabet import END

GRID = np.geomspace(0.25, 400, 28)
"""Shares of clients that a held prefix may have, in units of the limit."""

_ENOUGH = 0.8
"""A prefix is worth keeping if its share is at least so many limits."""

_MOST_CHILDREN = 20.0
"""A prefix of m limits is taken to have m children that live, between 1 and so many."""

_INHERITS = (0.1, 0.8)
_CHAINS_FROM = 7
"""The chance that a child has all of its parent's clients: after one symbol, after seven."""

_LARGEST_LOG = 600.0
_SMALLEST = 1e-300
_LEAST_TOTAL = 1e-200
_AT_ONCE = 4_000_000

CREDIBLE, PLAUSIBLE, LIKELY = 0.002, 0.3, 0.5
"""The least probability of a word: to be validated by several rounds, by one, and by none."""

_LIKELIEST = 4
"""How many times as many children as are kept have their worth computed."""

_SHORT_WORD = 0.02
"""How likely a word is that ends before the first layer: one that few of all strings are."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TriePosterior:
    """What is believed of the prefixes of a trie's last level.

    Attributes:
        held: ``(P,) float64``: probability that each is held.
        shares: ``(P, 28) float64``: of the share of clients that hold it, if it does, over `GRID`
            times the limit.
    """

    held: Floats
    shares: Floats

    @classmethod
    def before_any_vote(cls, width: int) -> TriePosterior:
        """Return the belief that every prefix is held, with any share."""
        size = len(GRID)
        return cls(held=np.ones(width), shares=np.full((width, size), 1 / size))

    @property
    def num_children(self) -> Floats:
        """``(P,) float64``: how many children each is taken to have that live, if it does."""
        return np.asarray(np.clip(self.shares @ GRID, 1, _MOST_CHILDREN))


def inherited_shares(shares: Floats, *, length: int) -> Floats:
    """Return ``(P, 28) float64``: the shares of a child of each prefix, before any vote for it.

    Args:
        shares: ``(P, 28) float64``, of the prefixes.
        length: Symbols of a prefix.
    """
    low, high = _INHERITS
    chain = min(low + (high - low) * (length - 1) / (_CHAINS_FROM - 1), high)
    size = len(GRID)
    below = np.tril(np.ones((size, size)))
    below /= below.sum(axis=1, keepdims=True)
    return np.asarray(chain * shares + (1 - chain) * (shares @ below))


@dataclass(frozen=True, kw_only=True, eq=False)
class LayerEvidence:
    """How likely a layer's votes are under each share of clients.

    Attributes:
        logs: ``(u, 28) float64``: for each number of votes that occurs, the logarithm of its
            likelihood under each share over that if no client holds the candidate.
        which: ``(c,) int64``: every candidate's row of it.
        limit: The least share that is worth finding.
    """

    logs: Floats
    which: Ints
    limit: float

    @classmethod
    def of_votes(
        cls, votes: Ints, oracle: PureVotes, *, num_clients: int, num_reports: int, limit: float
    ) -> LayerEvidence:
        """Return the likelihood of ``(c,) int64`` votes.

        A candidate that a share g of n clients hold gets Binomial(N, q + g n (p - q) / N) votes:
        each of the N reports votes for it with q, or with p if it is about it.

        Args:
            votes: The layer's.
            oracle: Its randomizer.
            num_clients: n.
            num_reports: N; n where each client has one vote for a value.
            limit: See above.
        """
        different, which = np.unique(votes, return_inverse=True)
        reports, q = max(num_reports, 1), max(oracle.q, 1e-12)
        gain = GRID * limit * num_clients * (oracle.p - q) / reports
        logs = different[:, None] * np.log1p(gain / q)
        logs = logs + (reports - different[:, None]) * np.log1p(-np.minimum(gain / (1 - q), 0.999))
        return cls(logs=logs.astype(np.float64), which=which, limit=limit)

    @cached_property
    def ratios(self) -> Floats:
        """The ratios themselves, cut where they leave no doubt that a candidate is held."""
        return np.asarray(np.exp(np.minimum(self.logs, _LARGEST_LOG)))

    @cached_property
    def is_cut(self) -> Bools:
        """``(u,) bool``: which numbers of votes have a ratio that was cut."""
        return np.asarray(self.logs.max(axis=1) > _LARGEST_LOG)


@dataclass(frozen=True, kw_only=True, eq=False)
class Children:
    """What a layer's votes say of all children of a trie's prefixes, symbol after symbol.

    Attributes:
        held: ``(P * A,) float64``: probability that each is held.
        inherited: ``(P, 28) float64``: the shares of a child of each prefix, before its votes.
        evidence: The layer's.
        alphabet_size: A.
    """

    held: Floats
    inherited: Floats
    evidence: LayerEvidence
    alphabet_size: int

    @classmethod
    def after_votes(
        cls, parents: TriePosterior, evidence: LayerEvidence, symbols: Floats, *, length: int
    ) -> Children:
        """Return the children's posterior.

        Args:
            parents: What is believed of the prefixes.
            evidence: Of their children; more candidates may follow.
            symbols: ``(P, A) float64``: the distribution of the symbol after each prefix.
            length: Symbols of a prefix.
        """
        inherited = inherited_shares(parents.shares, length=length)
        children = parents.num_children
        rest = np.log1p(-np.minimum(symbols, 1 - 1e-9))
        prior = -np.expm1(children[:, None] * rest)

        alphabet_size = symbols.shape[1]
        which = evidence.which[: symbols.size].reshape(symbols.shape)
        ratio = np.empty(symbols.shape)
        step = max(1, _AT_ONCE // len(evidence.ratios))
        for first in range(0, len(ratio), step):
            part = slice(first, first + step)
            table = inherited[part] @ evidence.ratios.T
            ratio[part] = np.take_along_axis(table, which[part], axis=1)
        for_it = parents.held[:, None] * prior * ratio
        against = (1 - parents.held)[:, None] + parents.held[:, None] * (1 - prior)
        return cls(
            held=(for_it / (for_it + against)).ravel(),
            inherited=inherited,
            evidence=evidence,
            alphabet_size=alphabet_size,
        )

    def posterior(self, children: Ints) -> TriePosterior:
        """Return what is believed of some children, ``(k,) int64`` numbers."""
        inherited = self.inherited[children // self.alphabet_size]
        rows = self.evidence.which[children]
        shares = inherited * self.evidence.ratios[rows]
        total = shares.sum(axis=1)
        # Ratios that were cut would say nothing of which share a frequent prefix has.
        (extreme,) = np.nonzero(self.evidence.is_cut[rows] | (total < _LEAST_TOTAL))
        if len(extreme):
            logs = np.log(np.maximum(inherited[extreme], _SMALLEST))
            logs += self.evidence.logs[rows[extreme]]
            shares[extreme] = np.exp(logs - logs.max(axis=1, keepdims=True))
            total[extreme] = shares[extreme].sum(axis=1)
        shares /= total[:, None]
        return TriePosterior(held=self.held[children], shares=shares)

    def worth(self, children: Ints) -> Floats:
        """Return the probability that each of some children is held, with a share worth finding."""
        believed = self.posterior(children)
        return np.asarray(believed.held * (believed.shares @ (GRID >= _ENOUGH)))

    @property
    def extended(self) -> Ints:
        """Numbers of the children that more symbols may follow."""
        numbers: Ints = np.arange(len(self.held))
        return np.asarray(numbers[numbers % self.alphabet_size != END])

    @property
    def words(self) -> Ints:
        """Numbers of the children that end a word."""
        numbers: Ints = np.arange(END, len(self.held), self.alphabet_size)
        return numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Likeliest:
    """What a layer keeps of its ``c`` candidates, and why.

    Attributes:
        prefixes: ``int64``, ascending: candidates to be extended.
        words: ``int64``: candidates that are found as words.
        posterior: ``(c,) float32``: posterior probability that enough clients hold each candidate,
            by which the layer keeps prefixes and words; NaN for prefixes that are too unlikely for
            it to be computed.
    """

    prefixes: Ints
    words: Ints
    posterior: npt.NDArray[np.float32]


def likeliest(
    children: Children,
    seen: LayerEvidence,
    *,
    num_short: int,
    most_kept: int,
    least: float,
) -> Likeliest:
    """Return the prefixes that a layer keeps and the words that it finds.

    A word that ends takes no prefix's place.

    Args:
        children: The extensions of the layer's prefixes.
        seen: The evidence for those, and for the short words after them.
        num_short: Words that ended before the first layer, and are candidates of it.
        most_kept: Most prefixes to keep.
        least: A word must be more likely than this to be found.
    """
    ended = children.words
    words = ended[children.held[ended] > least]
    longer = children.extended
    # Worth is at most the probability of being held, and takes longer to say: it is asked of the
    # likeliest only. What it ranks high beyond these is hardly held.
    rough = longer
    if len(longer) > _LIKELIEST * most_kept:
        held = children.held[longer]
        place = len(held) - _LIKELIEST * most_kept
        rough = np.asarray(longer[held >= np.partition(held, place)[place]])
    worth = children.worth(rough)
    posterior = np.full(len(children.held) + num_short, np.nan, dtype=np.float32)
    posterior[rough] = worth
    posterior[ended] = children.held[ended]
    order = np.argsort(-worth, kind="stable")
    order = order[:most_kept]
    short = len(children.held) + np.arange(num_short)
    if num_short:
        ratio = seen.ratios[seen.which[short]].mean(axis=1)
        odds = _SHORT_WORD / (1 - _SHORT_WORD) * ratio
        posterior[short] = odds / (1 + odds)
        short = short[odds / (1 + odds) > least]
    return Likeliest(
        prefixes=np.sort(rough[order]),
        words=np.concatenate([words, short]),
        posterior=posterior,
    )
