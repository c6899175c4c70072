"""A textbook population: one word per client, ranks by Zipf's law, words without any structure.

Random strings share no prefixes beyond chance, and every client holds one: what protocols are
compared on in papers, and the opposite of how people type (`fedhh.clients.synthetic`).
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np

from fedhh.clients.synthetic import PopulationModel, WordList, model_of
from fedhh.random import scatter
from fedhh.validation import InputError, require_between

SOURCE = "zipf"

_LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))
_LONGEST = 12  # 26^12 < 2^63
_MOST_WORDS = 5_000_000  # all are held in memory


def zipf_words(
    vocabulary: int = 5_000, *, exponent: float = 1.1, word_length: int = 6
) -> PopulationModel:
    """Return the model of clients who hold one of the words each, rank r with weight r^-exponent.

    The words are random strings of lower-case letters, the same for every seed.

    Args:
        vocabulary: How many words, from 100 to 5 million.
        exponent: Of the distribution.
        word_length: Letters of every word, at most 12.

    Raises:
        InputError: A number is out of its range, or there are not so many words of the length.
    """
    require_between(0, 50, exponent=exponent)
    require_between(1, _LONGEST, word_length=word_length)
    require_between(100, _MOST_WORDS, vocabulary=vocabulary)
    if vocabulary > 26**word_length // 2:
        raise InputError(
            f"Expected vocabulary <= {26**word_length // 2}, half of all words of {word_length} "
            f"letters, got vocabulary={vocabulary}; raise word_length."
        )
    weights = np.arange(1, vocabulary + 1) ** -float(exponent)
    return replace(
        model_of("chat"),
        name=f"{SOURCE}({exponent:g}) over {vocabulary:,} random words of {word_length} letters",
        unit="client",
        fitted_on="nothing",
        # Everybody types one word, which is new.
        log_words_mean=0.0,
        log_words_sd=0.0,
        max_words=1,
        oov_share=1.0,
        oov_share_log_sd=0.0,
        adoption=1.0,
        copy_exponent=0.0,
        word_list=WordList(
            words=_random_words(vocabulary, word_length), weights=tuple(weights.tolist())
        ),
    )


@functools.cache
def _random_words(number: int, length: int) -> tuple[str, ...]:
    # Half of all codes at most are wanted, so three times as many draws hold enough distinct ones.
    draws = scatter(np.arange(1, 3 * number + 1, dtype=np.uint64)) % np.uint64(26**length)
    _, first = np.unique(draws, return_index=True)
    codes = draws[np.sort(first)][:number].astype(np.int64)
    letters = _LETTERS[codes[:, np.newaxis] // 26 ** np.arange(length) % 26]
    return tuple("".join(row) for row in letters.tolist())
