"""A population whose new words are the rare end of wordfreq's English list.

Sun et al. (2024), section 4.2, take as new words those that make up the bottom 5 % of a
vocabulary's mass. Their vocabulary is not public; this one is wordfreq's (Speer 2022), with its own
frequencies, and its size is a setting: the larger it is, the longer and flatter the tail.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from fedhh.clients.named_words import ZEROED
from fedhh.clients.synthetic import PopulationModel, WordList, model_of
from fedhh.validation import InputError, require_at_least, require_inside

SOURCE = "wordfreq-tail"
SMALLEST_VOCABULARY = 10_000


def wordfreq_tail(
    vocabulary: int = 60_000, *, tail_mass: float = 0.05, base: str = "keyboard60d"
) -> PopulationModel:
    """Return the model of clients who type words of a vocabulary, of which the tail is new.

    How much clients type and how they repeat themselves is the base's; how often they type each
    word, and which words are new, follows wordfreq.

    Args:
        vocabulary: Most frequent words of the list that make up the vocabulary.
        tail_mass: Share of the vocabulary's mass that its rarest words, the new ones, hold.
        base: A preset of `synthetic.population_presets`.

    Raises:
        InputError: The vocabulary is larger than wordfreq's, or a number is out of its range.
    """
    require_at_least(SMALLEST_VOCABULARY, vocabulary=vocabulary)
    require_inside(0, 1, tail_mass=tail_mass)
    words, frequencies = ranked_words()
    if vocabulary > len(words):
        raise InputError(
            f"Expected vocabulary <= {len(words)}, the words of wordfreq's list, got "
            f"vocabulary={vocabulary}."
        )
    mass = np.array(frequencies[:vocabulary])
    before = np.r_[0, np.cumsum(mass)[:-1]] / mass.sum()
    first = int(np.searchsorted(before, 1 - tail_mass))
    return replace(
        model_of(base),
        name=f"{SOURCE} ({vocabulary:,} words, typed as {base})",
        oov_share=tail_mass,
        word_list=WordList(words=words[first:vocabulary], weights=frequencies[first:vocabulary]),
    )


@functools.cache
def ranked_words() -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Return wordfreq's words and frequencies, the most frequent first, ties by the alphabet."""
    import wordfreq  # Only this population needs frequencies, and it takes a while.

    frequencies = wordfreq.get_frequency_dict("en", wordlist="large")
    ranked = sorted(
        (word for word in frequencies if not ZEROED.search(word)),
        key=lambda word: (-frequencies[word], word),
    )
    return tuple(ranked), tuple(frequencies[word] for word in ranked)
