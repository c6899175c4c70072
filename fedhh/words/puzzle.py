"""Strings cut into fragments that know which string they belong to: what SFP clients report.

A string of symbols is padded with blanks (the end symbol's code, 0) or truncated to a fixed
length. A fragment is a few neighboring symbols, together with a small hash of the whole string,
its puzzle number, that tells which fragments belong together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.arrays import Bools, Floats
from fedhh.hashing import HashFamily, Keys, StringKeys, derived_seeds
from fedhh.kernels.sketches import PRIME, strings_of_cell
from fedhh.settings import Count
from fedhh.validation import InputError
from fedhh.words.alphabet import END
from fedhh.words.parts import StringParts, Values
from fedhh.words.trie import Codes

LARGEST_FRAGMENT_DOMAIN = 2**26


@dataclass(frozen=True, kw_only=True)
class FragmentPuzzle(StringParts):
    """How strings become keys, puzzle numbers and fragment values; public, shared by both sides.

    Attributes:
        fragment_length: Symbols of a fragment; divides L.
        num_puzzles: How many puzzle numbers there are.
    """

    fragment_length: Count
    num_puzzles: Count

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length % self.fragment_length:
            raise InputError(
                f"Expected length to be a multiple of fragment_length, got length={self.length} "
                f"and fragment_length={self.fragment_length}."
            )
        if self.num_fragments > LARGEST_FRAGMENT_DOMAIN:
            raise InputError(
                f"Expected at most {LARGEST_FRAGMENT_DOMAIN:,} fragments, got {self.num_puzzles} x "
                f"{self.alphabet_size}^{self.fragment_length} = {self.num_fragments:,}; lower "
                "num_puzzles or fragment_length, or take a smaller alphabet."
            )

    @property
    def num_positions(self) -> int:
        """Fragments of a string."""
        return self.length // self.fragment_length

    @property
    def num_texts(self) -> int:
        """Different texts of a fragment."""
        return int(self.alphabet_size**self.fragment_length)

    @property
    def num_fragments(self) -> int:
        """Fragment values: ``puzzle * num_texts + text``."""
        return self.num_puzzles * self.num_texts

    @cached_property
    def names(self) -> StringKeys:
        """Names of whole strings."""
        seed, _ = derived_seeds(self.hash_seed, 2)
        return StringKeys.draw(alphabet_size=self.alphabet_size, length=self.length, seed=seed)

    def puzzles(self, keys: Keys) -> Values:
        """Return ``(n,) int64`` in [0, num_puzzles): the puzzle number of each string's key."""
        return self._puzzle_hash.cells(np.zeros(len(keys), dtype=np.int64), keys)

    def texts(self, codes: Codes) -> Values:
        """Return ``(n, num_positions) int64`` in [0, num_texts): each fragment's number."""
        symbols = codes.reshape(len(codes), self.num_positions, self.fragment_length)
        return np.asarray(symbols.astype(np.int64) @ self._weights)

    def fragments(self, codes: Codes, keys: Keys) -> Values:
        """Return ``(n, num_positions) int64``: the fragment values of strings and their keys."""
        return self.puzzles(keys)[:, None] * self.num_texts + self.texts(codes)

    def strings(
        self, number: int, pieces: list[tuple[Values, Floats]], budget: float, most: int
    ) -> Codes | None:
        """Return ``(n, length)`` codes: affordable strings of some texts with a puzzle number.

        Nothing follows a blank. Strings ascend in the places of their texts.

        Args:
            number: The puzzle number.
            pieces: Of each position, ``(t,) int64`` distinct texts, and what each costs, at least
                1, ascending.
            budget: Most that the product of a string's costs may be.
            most: More strings, or beginnings of one length, are not looked at: None.
        """
        texts = [own for own, _ in pieces]
        starts = np.cumsum([0, *map(len, texts)])
        whole = np.concatenate(texts)
        blanks = [
            start + int(np.append(np.flatnonzero(own == 0), len(own))[0])
            for start, own in zip(starts, texts, strict=False)
        ]
        codes = self.text_codes[whole]
        chosen = strings_of_cell(
            starts,
            self.names.keys(codes),
            np.concatenate([cost for _, cost in pieces]),
            codes[:, -1] == END,
            np.array(blanks),
            budget,
            most,
            np.uint64(pow(self.names.point, self.fragment_length, PRIME)),
            self._puzzle_hash.coefficients,
            np.uint64(self.num_puzzles),
            np.uint64(number),
        )
        return None if chosen is None else codes[chosen].reshape(len(chosen), self.length)

    @cached_property
    def text_codes(self) -> Codes:
        """Symbols of every text, ``(num_texts, fragment_length) uint16``."""
        texts = np.arange(self.num_texts)
        return np.asarray(texts[:, None] // self._weights % self.alphabet_size, dtype=np.uint16)

    @cached_property
    def is_possible(self) -> Bools:
        """Which texts a fragment may have: ``(num_texts,)``, True if nothing follows a blank."""
        blank = self.text_codes == END
        return np.asarray(~(blank[:, :-1] & ~blank[:, 1:]).any(axis=1))

    @cached_property
    def _weights(self) -> Values:
        powers = np.arange(self.fragment_length - 1, -1, -1, dtype=np.int64)
        return np.asarray(np.int64(self.alphabet_size) ** powers)

    @cached_property
    def _puzzle_hash(self) -> HashFamily:
        _, seed = derived_seeds(self.hash_seed, 2)
        return HashFamily.draw(num_hashes=1, num_cells=self.num_puzzles, seed=seed)
