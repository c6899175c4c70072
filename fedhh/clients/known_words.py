"""Words that a device already knows, and their removal from what it holds.

A device looks for new words only: it drops known ones before it answers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from pathlib import Path

from fedhh.clients.clients import Clients
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


@dataclass(frozen=True, kw_only=True)
class KnownRemoval:
    """What the removal of known words took away.

    Attributes:
        known: Name of the list of known words.
        tokens: Words typed by all clients, each as often as it was typed.
        words: Distinct words.
        known_tokens: Typed words that are known.
        known_words: Distinct words that are known.
        known_token_share: Share of typed words that are known; 0 if nothing was typed.
        known_word_share: Share of distinct words that are known; 0 if there are none.
    """

    known: str
    tokens: int
    words: int
    known_tokens: int
    known_words: int
    known_token_share: float = field(init=False)
    known_word_share: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known_token_share", self.known_tokens / max(self.tokens, 1))
        object.__setattr__(self, "known_word_share", self.known_words / max(self.words, 1))


def remove_known(population: Clients, known: KnownWords) -> tuple[Clients, KnownRemoval]:
    """Return the population without known words, and what that took away.

    Clients stay, even with nothing left: a device without a new word is asked like any other.
    """
    is_known = known.contains_all(population.lexicon.words)
    typed = population.word_counts().typed
    facts = KnownRemoval(
        known=known.name,
        tokens=int(typed.sum()),
        words=len(is_known),
        known_tokens=int(typed[is_known].sum()),
        known_words=int(is_known.sum()),
    )
    return (population.keep_words(~is_known) if is_known.any() else population), facts
