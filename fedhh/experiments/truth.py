"""What a simulator knows and a server does not: who really holds which words."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.alphabet import Alphabet
from fedhh.clients.population import Population
from fedhh.lexicon import LexiconWalk
from fedhh.protocol import Discoveries
from fedhh.queries import PrefixQuery, Query
from fedhh.trie import ABSENT

Shares = npt.NDArray[np.float64]


class Truth:
    """The target: all words of a population, which should hold no known ones any more.

    Attributes:
        words: The population's words.
        counts: ``(V,) int64``: contributions for each word.
        clients: ``(V,) int64``: clients that hold each word.
        mass: Contributions in all.
        num_clients: Clients in all.
        reachable_mass: Share of contributions for words that the protocol could spell.
    """

    def __init__(self, population: Population, alphabet: Alphabet, depth: int) -> None:
        """Count once; the arrays are shared by all that measure."""
        self._lexicon = population.lexicon
        self._alphabet = alphabet
        self.words = population.lexicon.words
        self.counts = population.word_counts
        self.clients = population.word_clients
        self.mass = int(self.counts.sum())
        self.num_clients = population.num_clients
        self.reachable = population.lexicon.reachable(alphabet, depth)
        self.reachable_mass = self.share(self.reachable)
        self._walk = LexiconWalk(population.lexicon, alphabet, depth + 1)
        self._found = np.zeros(len(self.words), dtype=np.bool_)

    def ids(self, words: Discoveries) -> npt.NDArray[np.int64]:
        """Return each discovered word's id, -1 for words that nobody holds."""
        return self._lexicon.ids(words.words)

    def share(self, words: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> float:
        """Return the share of all contributions that fall on some words (a mask or ids)."""
        return float(self.counts[words].sum() / self.mass) if self.mass else 0.0

    def observe(self, query: Query, kept: Query | None, discoveries: Discoveries) -> dict[str, Any]:
        """Return what became of the target in a round.

        Args:
            query: The round's query.
            kept: The same pass's next query, or None if the round was the pass's last.
            discoveries: Words found up to and including the round.

        Returns:
            ``coverage``: share of contributions for words found so far; ``missed_mass``: share
            for words that were still in the trie, and neither kept nor found in this round (NaN
            for protocols without a trie).
        """
        ids = self.ids(discoveries)
        was_alive = self._alive(query)
        self._found[ids[ids >= 0]] = True
        coverage = self.share(self._found)
        if was_alive is None:
            return {"coverage": coverage, "missed_mass": float("nan")}
        still_alive = None if kept is None else self._alive(kept)
        lost = was_alive & ~self._found
        if still_alive is not None:
            lost &= ~still_alive
        return {"coverage": coverage, "missed_mass": self.share(lost)}

    def _alive(self, query: Query) -> npt.NDArray[np.bool_] | None:
        """Return which words begin with a broadcast prefix, if the query broadcasts any."""
        if not isinstance(query, PrefixQuery):
            return None
        return np.asarray(self._walk.nodes(query.trie) != ABSENT)
