"""Which candidates a layer keeps: the likeliest by the posterior, prefixes and words apart."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.server.adaptive.trie_posterior import Children, LayerEvidence

_CREDIBLE, _LIKELY = 0.002, 0.5
"""The least probability of a word: to be recounted, and to be returned without a recount."""

_LIKELIEST = 4
"""How many times as many children as are kept have their worth computed."""

_SHORT_WORD = 0.02
"""How likely a word is that ends before the first layer: one that few of all strings are."""


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

    prefixes: npt.NDArray[np.int64]
    words: npt.NDArray[np.int64]
    posterior: npt.NDArray[np.float32]


def likeliest(
    children: Children,
    seen: LayerEvidence,
    *,
    num_short: int,
    most_kept: int,
    free_words: bool,
    recounts: bool,
) -> Likeliest:
    """Return the prefixes that a layer keeps and the words that it finds.

    Args:
        children: The extensions of the layer's prefixes.
        seen: The evidence for those, and for the short words after them.
        num_short: Words that ended before the first layer, and are candidates of it.
        most_kept: Most prefixes to keep.
        free_words: Whether words take no prefix's place.
        recounts: Whether a last cohort says which words are real.
    """
    least = _CREDIBLE if recounts else _LIKELY
    ended = children.words
    words = ended[children.lives[ended] > least]
    longer = children.extended
    # Worth is at most the probability of living, and takes longer to say: it is asked of the
    # likeliest only. What it ranks high beyond these hardly lives.
    rough = longer
    if len(longer) > _LIKELIEST * most_kept:
        lives = children.lives[longer]
        place = len(lives) - _LIKELIEST * most_kept
        rough = np.asarray(longer[lives >= np.partition(lives, place)[place]])
    worth = children.worth(rough)
    posterior = np.full(len(children.lives) + num_short, np.nan, dtype=np.float32)
    posterior[rough] = worth
    posterior[ended] = children.lives[ended]
    order = np.argsort(-worth, kind="stable")
    if not free_words:
        worth_of_words = children.worth(words)
        posterior[words] = worth_of_words
        best = np.sort(np.concatenate([worth, worth_of_words]))[::-1]
        last = best[min(most_kept, len(best)) - 1] if len(best) else 0.0
        words = words[worth_of_words >= last]
        order = order[worth[order] >= last]
    order = order[:most_kept]
    short = len(children.lives) + np.arange(num_short)
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
