"""Parts of strings that a record reports besides the whole: an interface, and prefixes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from fedhh.hashing import Keys, StringKeys
from fedhh.settings import Count, Seed, Settings
from fedhh.validation import InputError
from fedhh.words.alphabet import END
from fedhh.words.trie import Codes

Values = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class StringParts(Settings, ABC):
    """How padded strings become keys, and numbered parts; public, shared by both sides.

    Attributes:
        alphabet_size: A, the blank included.
        length: L, symbols of a padded string.
        hash_seed: Seed of the names of strings, and of whatever else is drawn.
    """

    alphabet_size: int
    length: Count
    hash_seed: Seed

    @cached_property
    def names(self) -> StringKeys:
        """Names of whole strings."""
        return StringKeys.draw(
            alphabet_size=self.alphabet_size, length=self.length, seed=self.hash_seed
        )

    @property
    @abstractmethod
    def num_positions(self) -> int:
        """Parts of a string."""

    @property
    @abstractmethod
    def num_fragments(self) -> int:
        """Values that a part may have."""

    @abstractmethod
    def fragments(self, codes: Codes, keys: Keys) -> Values:
        """Return the ``(n, num_positions) int64`` parts of ``(n, L)`` strings and their keys."""


@dataclass(frozen=True, kw_only=True)
class PrefixParts(StringParts):
    """Prefixes of a string, filled up with blanks (the end symbol): what TreeHist's clients report.

    Attributes:
        step: By how many symbols prefixes grow; less than L.
    """

    step: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step >= self.length:
            raise InputError(
                f"Expected step < length, so that there is a prefix before the word, got "
                f"step={self.step} and length={self.length}."
            )

    @property
    def prefix_lengths(self) -> tuple[int, ...]:
        """Symbols of each part: step, 2 step and so on, all shorter than the string."""
        return tuple(range(self.step, self.length, self.step))

    @property
    def num_positions(self) -> int:
        return len(self.prefix_lengths)

    @property
    def num_fragments(self) -> int:
        return self.names.num_keys

    def fragments(self, codes: Codes, keys: Keys) -> Values:
        parts = np.empty((len(codes), self.num_positions), dtype=np.int64)
        for position, size in enumerate(self.prefix_lengths):
            prefixes = codes.copy()
            prefixes[:, size:] = END
            parts[:, position] = self.names.keys(prefixes)
        return parts


def extensions(
    kept: Codes, known: int, length: int, *, alphabet_size: int, fixed_length: bool = False
) -> Codes:
    """Return all prefixes of ``length`` symbols that extend kept ones; none is the empty word.

    Args:
        kept: ``(k, width) uint16`` distinct prefixes, filled up with the end symbol.
        known: Their length; prefixes that end before it are carried along as they are.
        length: The new length, at most width.
        alphabet_size: A, the end symbol included.
        fixed_length: Whether none ends before ``width`` symbols.

    Returns:
        ``(c, width) uint16``.
    """
    prefixes = kept
    symbols = np.arange(int(fixed_length), alphabet_size)
    for position in range(known, length):
        ended = (prefixes[:, position - 1] == END) if position else np.zeros(1, dtype=np.bool_)
        live = np.repeat(prefixes[~ended], len(symbols), axis=0)
        live[:, position] = np.tile(symbols, np.count_nonzero(~ended))
        prefixes = np.concatenate([prefixes[ended], live])
        if position == 0:
            prefixes = prefixes[prefixes[:, 0] != END]
    return prefixes
