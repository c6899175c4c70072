"""Words that a device already knows, and their removal from what it holds.

A device looks for new words only: it drops known ones before it answers.
"""

from __future__ import annotations

import functools
from copy import copy
from pathlib import Path
from typing import Any

from fedhh.clients.clients import Clients, Removed
from fedhh.clients.population import Population
from fedhh.clients.reading.word_list import read_word_list
from fedhh.validation import shown
from fedhh.words.known_words import NAMED, KnownWords, is_named, named_list
from fedhh.words.languages import ENGLISH, normalised


def load_known(source: str | Path, language: str = ENGLISH) -> KnownWords:
    """Return a list of known words by its name, or read from a file.

    Args:
        source: A name for which `is_named` holds, or the path of a UTF-8 text with one word a line,
            gzip if it ends in .gz.
        language: Whose rules of case a file's words follow.

    Raises:
        InputError: The file is missing, unreadable, not UTF-8, or holds no word.
    """
    if isinstance(source, str) and is_named(source):
        return named_list(source)
    path = Path(source)
    try:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
    except (OSError, ValueError):  # What is missing is said below.
        stamp = (0, 0)
    return _read_list(path, stamp, language)


@functools.lru_cache(maxsize=4)
def _read_list(path: Path, stamp: tuple[int, int], language: str) -> KnownWords:
    """Return a file's list; a run needs the same one several times."""
    missing = (
        f"Expected known words to be {NAMED} or a file, got "
        f"{shown(str(path))}, which does not exist."
    )
    words = read_word_list(path, what="known words", missing=missing)
    return KnownWords(
        name=path.name,
        words=frozenset(normalised(word, language) for word in words),
        language=language,
    )


def remove_known(population: Clients, known: KnownWords) -> Clients:
    """Return the population without known words; it knows what that took away.

    Clients stay, even with nothing left: a device without a new word is asked like any other.
    """
    is_known = known.contains_all(population.lexicon.words)
    left = population.keep_words(~is_known) if is_known.any() else copy(population)
    typed = population.word_counts().typed[is_known]
    left.removed = Removed(known=known.name, tokens=int(typed.sum()), words=int((typed > 0).sum()))
    return left


def removal_facts(population: Population, known: str) -> dict[str, Any]:
    """Return what the removal of known words took away.

    Of a population that was not counted before, it is counted now.

    Args:
        population: What is left.
        known: The list of known words, where nothing had to be removed.

    Returns:
        ``known``, the name of the list; ``tokens``, the words that all clients typed, each as often
        as it was typed, and ``words``, the distinct ones; ``known_tokens`` and ``known_words``,
        those that are known; ``known_token_share`` and ``known_word_share``, 0 if there are none.
    """
    removed = population.removed if isinstance(population, Clients) else None
    removed = removed or Removed(known=known, tokens=0, words=0)
    counts = population.word_counts()
    tokens = removed.tokens + int(counts.typed.sum())
    words = removed.words + int((counts.holders > 0).sum())
    return {
        "known": removed.known,
        "tokens": tokens,
        "words": words,
        "known_tokens": removed.tokens,
        "known_words": removed.words,
        "known_token_share": removed.tokens / max(tokens, 1),
        "known_word_share": removed.words / max(words, 1),
    }
