"""What a simulator knows and a server does not: who really holds which words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.arrays import Bools, Ints
from fedhh.clients.population import CountProgress, Population
from fedhh.protocol import Discoveries
from fedhh.questions.matching import WordMatcher
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.words.alphabet import END, Alphabet, beginning
from fedhh.words.coded_words import FEWEST_SYLLABLES
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import ABSENT, Codes, PrefixTrie, match_rows

Shares = npt.NDArray[np.float64]

_SHORTEST_OF_STUB = 2 * (FEWEST_SYLLABLES + 1) + 1
"""Symbols: a syllable more than the coded words of a lexicon have, and the mark."""


@dataclass(frozen=True, kw_only=True)
class Observed:
    """The outcome of the target in a round, see `layers.LayerRow`; NaN before it is known."""

    coverage: float = math.nan
    missed_mass: float = math.nan


class Truth:
    """The target: all words of a population, which should hold no known ones any more.

    Attributes:
        words: The population's words.
        counts: ``(V,) int64``: contributions for each word.
        clients: ``(V,) int64``: clients that hold each word.
        mass: Contributions in all.
        num_clients: Clients in all.
        counted_clients: On how many of them all this rests.
        share_std_error: At most the standard error of a share, from not counting all.
        reachable_mass: Share of contributions for words that the protocol could spell.
    """

    def __init__(
        self,
        population: Population,
        alphabet: Alphabet,
        depth: int,
        *,
        progress: CountProgress | None = None,
    ) -> None:
        """Count once; the arrays are shared by all that measure."""
        found = population.word_counts(progress)
        self._lexicon = population.lexicon
        self._alphabet = alphabet
        self._depth = depth
        self.words = population.lexicon.words
        self.counts, self.clients = found.typed, found.holders
        self.mass = int(self.counts.sum())
        self.num_clients = population.num_clients
        self.counted_clients = found.num_counted
        self.share_std_error = found.share_std_error
        self.reachable = population.lexicon.reachable(alphabet, depth)
        # Of a stub's words, it can spell what it can spell of their beginning.
        self.reachable_mass = self.share(
            self.reachable | _spellable_stubs(population.lexicon, alphabet, depth)
        )
        self._matcher = WordMatcher(population.lexicon)
        self._found = np.zeros(len(self.words), dtype=np.bool_)
        self._looked_up: tuple[Sequence[str], Ints] = ([], np.zeros(0, np.int64))

    def ids(self, words: Discoveries) -> Ints:
        """Return each discovered word's id, -1 for words that no client holds.

        A word whose clients' lexicon has a stub in its place counts as held by nobody: so few hold
        it that only chance could find it.
        """
        # What a run has found mostly stays, in its place.
        same = len(self._looked_up[0])
        if words.words[:same] != self._looked_up[0]:
            same = 0
        ids = np.append(self._looked_up[1][:same], self._lexicon.ids(words.words[same:]))
        self._looked_up = (words.words, ids.copy())
        known = np.flatnonzero(ids >= 0)
        ids[known[self.clients[ids[known]] == 0]] = -1
        return ids

    def holders(self, words: Discoveries) -> Ints:
        """Return how many clients hold each discovered word."""
        ids = self.ids(words)
        holders = np.zeros(len(ids), dtype=np.int64)
        holders[ids >= 0] = self.clients[ids[ids >= 0]]
        return holders

    @cached_property
    def mean_word_length(self) -> float | None:
        """Mean symbols of the lexicon's spellable words, each as often as it is contributed."""
        mass = int(self.counts.sum(where=self.reachable))
        if not mass:
            return None
        symbols = self._lexicon.encoded(self._alphabet, self._depth + 1).T
        typed = [self.counts.sum(where=self.reachable & (symbol != END)) for symbol in symbols]
        return float(sum(typed) / mass)

    @property
    def alphabet(self) -> Alphabet:
        """What the protocol can spell words with."""
        return self._alphabet

    def candidate_values(self, names: TrieNames) -> Ints:
        """Return ``(V,) int64``: each word's candidate of a round, -1 where it has none."""
        return self._matcher.prefix_values(names, self._alphabet)

    def prefix_values(self, prefixes: Codes, length: int) -> Ints:
        """Return ``(V,) int64``: each word's number among prefixes, -1 for none.

        Args:
            prefixes: ``(p, width)`` codes, filled up with the end symbol.
            length: Symbols of a prefix; only words that the protocol can spell have one.
        """
        width = prefixes.shape[1]
        codes = self._lexicon.encoded(self._alphabet, max(width, length))
        values = match_rows(np.ascontiguousarray(codes[:, :length]), prefixes[:, :length].copy())
        values[~self.reachable] = -1
        return values

    def beginnings(self, length: int, among: Iterable[str]) -> set[str]:
        """Return which of some words are the first ``length`` symbols of a longer held word."""
        # Bytes are numbers, of which a list would take eight times as much.
        held, found = itertools.compress(self.words, (self.clients > 0).tobytes()), set(among)
        longer = (word for word in held if len(word) > length or not word.isascii())
        return {cut for word in longer if (cut := beginning(word, length)) != word and cut in found}

    def share(self, words: Bools | Ints) -> float:
        """Return the share of all contributions that fall on some words (a mask or ids)."""
        if not self.mass:
            return 0.0
        # What a mask selects may be nearly all, and is added up without a copy of it.
        if words.dtype == np.bool_:
            return float(self.counts.sum(where=np.asarray(words, dtype=np.bool_)) / self.mass)
        return float(self.counts[words].sum() / self.mass)

    def observe(
        self, question: Question, kept: npt.NDArray[Any] | None, discoveries: Discoveries
    ) -> Observed:
        """Return the outcome of the target in a round."""
        ids = self.ids(discoveries)
        trie, extended = question.names.extended, None
        if trie is not None and kept is not None:
            extended = trie.extend(kept)
        was_alive = None if trie is None else self._begin(trie)
        # A validation round takes words back, so what was found before does not count.
        self._found[:] = False
        self._found[ids[ids >= 0]] = True
        coverage = self.share(self._found)
        if trie is None or was_alive is None:
            return Observed(coverage=coverage, missed_mass=math.nan)
        lost = was_alive & ~self._found
        if extended is not None:
            lost &= ~self._begin(extended)
        return Observed(coverage=coverage, missed_mass=self.share(lost))

    def _begin(self, trie: PrefixTrie) -> Bools:
        walk = self._matcher.walk(self._alphabet, self._depth + 1)
        return np.asarray(walk.nodes(trie) != ABSENT)


def facts_of(population: Population, truth: Truth) -> dict[str, Any]:
    """Return what a result says of its population."""
    return {
        "name": population.name,
        "unit": population.unit,
        "clients": population.num_clients,
        "drawn_from_clients": getattr(population, "drawn_from", None),
        "counted_clients": truth.counted_clients,
        "coverage_std_error_at_most": truth.share_std_error,
    }


def _spellable_stubs(lexicon: Lexicon, alphabet: Alphabet, depth: int) -> Bools:
    """Return ``(V,) bool``: which words are stubs of words that the protocol could spell.

    That is so where it spells their first symbols, and words as long as the shortest of a stub.
    """
    spellable = np.zeros(len(lexicon), dtype=np.bool_)
    if lexicon.num_stubs and depth >= _SHORTEST_OF_STUB:
        starts = Lexicon(words=[stub[:-1] for stub in lexicon.words[-lexicon.num_stubs :]])
        spellable[-lexicon.num_stubs :] = starts.reachable(alphabet, depth)
    return spellable
