"""Public words that may be held themselves: a sample says whether all are worth asking about.

In Subset Selection, the noise of a large domain does not grow with it, so that a list of words that
many clients may hold costs little to ask about. A word that becomes a candidate after the first
layer is tested by all later clients, however long it is. Where clients hold hardly any of the list,
as where their devices know these words and keep them to themselves, candidates that no client holds
would only make the test of the others harder.
"""

from __future__ import annotations

import functools
from collections.abc import Set

import numpy as np

from fedhh.arrays import Floats
from fedhh.server.adaptive.trie_posterior import GRID, LayerEvidence
from fedhh.words.alphabet import END, FOREIGN, Alphabet
from fedhh.words.trie import Codes

_ONE_IN = 8
"""Of the list, one in so many words is asked about at first."""

_ENOUGH_HELD = 0.01
"""The list pays where so many of its words, of all, are held often enough to be found."""

CREDIBLE = 0.005
"""How likely a sampled word must be findable to be validated, where the list does not pay."""

_FINDABLE = GRID >= 0.4
"""Shares that all clients together are likely to tell from nothing: from 3.2 deviations."""

_STEPS = 300


@functools.lru_cache(maxsize=4)
def listed_words(words: Set[str], alphabet: Alphabet, width: int) -> Codes:
    """Return ``(n, width) uint16``: the words that an alphabet spells in less than ``width``."""
    codes = alphabet.encode(sorted(words), width=width)
    return np.asarray(codes[(codes[:, -1] == END) & ~(codes == FOREIGN).any(axis=1)])


def sample_of(listed: Codes, *, longer_than: int) -> Codes:
    """Return one in eight of a list's words of more than so many symbols."""
    return np.asarray(listed[listed[:, longer_than] != END][::_ONE_IN])


def findable(seen: LayerEvidence) -> Floats:
    """Return how likely each of some words is held often enough to be found.

    Args:
        seen: The evidence of the words, which differ in nothing but their votes.

    Returns:
        ``(n,) float64``: by Bayes' rule, with `likeliest_distribution` as the prior.
    """
    if not len(seen.which):
        return np.zeros(0)
    posterior = likeliest_distribution(seen) * _ratios(seen)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return np.asarray((posterior[:, 1:] @ _FINDABLE)[seen.which])


def pays(likely: Floats) -> bool:
    """Return whether at least one in a hundred of sampled words is held often enough to be found.

    Of 20,000 words that no client holds, `findable` hardly says so of four in a thousand.

    Args:
        likely: What `findable` says of each.
    """
    return bool(len(likely)) and float(likely.mean()) >= _ENOUGH_HELD


def likeliest_distribution(seen: LayerEvidence) -> Floats:
    """Return the distribution of clients' shares that makes the votes of all words likeliest.

    The nonparametric maximum likelihood estimate of Kiefer and Wolfowitz (1956), over the shares of
    the grid and none at all, by expectation maximisation. Words that differ in nothing but their
    votes need no other prior.

    Args:
        seen: The evidence of the words, at least one.

    Returns:
        ``(29,) float64``: first of the words that no client holds, then of each share.
    """
    counts = np.bincount(seen.which, minlength=len(seen.logs)).astype(np.float64)
    ratios = _ratios(seen)
    weights = np.full(ratios.shape[1], 0.5 / (ratios.shape[1] - 1))
    weights[0] = 0.5
    for _ in range(_STEPS):
        weights = weights * ((counts / (ratios @ weights)) @ ratios) / counts.sum()
    return weights


def _ratios(seen: LayerEvidence) -> Floats:
    """Return ``(u, 29) float64``: the likelihoods of numbers of votes, each row up to a factor."""
    logs = np.concatenate([np.zeros((len(seen.logs), 1)), seen.logs], axis=1)
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))
