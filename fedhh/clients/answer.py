"""How clients answer each kind of query: the functions that the trust boundary runs through.

An answerer is made once per query and worker; it maps the population's distinct words to values,
and then turns blocks of clients into tallies of privatized reports.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.alphabet import FOREIGN
from fedhh.clients.population import ClientBlock
from fedhh.kernels.sampling import choose_contributions
from fedhh.lexicon import Lexicon, LexiconWalk
from fedhh.oracles import make_oracle
from fedhh.queries import PrefixQuery, Query
from fedhh.random import Stream, generator, kernel_state
from fedhh.trie import ABSENT, Codes

Values = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class BlockCounts:
    """What a block's answer was made of.

    Attributes:
        num_reports: Reports, dummies included.
        num_dummies: Reports of the dummy.
        num_clients_with_items: Clients that held at least one value.
    """

    num_reports: int
    num_dummies: int
    num_clients_with_items: int


class Answerer(ABC):
    """Answers one query for blocks of clients."""

    @abstractmethod
    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        """Add the block's privatized reports to the tally; raw items end here.

        Args:
            rows: The block's clients and their items.
            block: The block's number, which addresses its randomness.
            tally: ``(query.tally_size,) int64``, changed in place.
        """


class PrefixAnswerer(Answerer):
    """Votes for prefixes: Gboard paper, Algorithm 2, lines 10-18."""

    def __init__(self, query: PrefixQuery, words: WordMatcher, seed: int) -> None:
        """Find every distinct word's candidate value, once."""
        self._query = query
        self._seed = seed
        self._oracle = make_oracle(query.oracle, query.domain_size)
        self._word_values = words.prefix_values(query)

    def add_block(self, rows: ClientBlock, block: int, tally: Values) -> BlockCounts:
        """Sample each client's contributions, randomize them, and add the votes."""
        query = self._query
        chosen, sizes = contributions(query, rows, block, self._word_values, seed=self._seed)
        if query.pad:
            chosen[chosen < 0] = query.dummy
            values = chosen.ravel()
        else:
            values = chosen[chosen >= 0]
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        self._oracle.privatize_and_tally(values, rng=rng, out=tally)
        return BlockCounts(
            num_reports=len(values),
            num_dummies=int(len(values) - sizes.sum()),
            num_clients_with_items=int(np.count_nonzero(sizes)),
        )


def contributions(
    query: Query, rows: ClientBlock, block: int, word_values: Values, *, seed: int
) -> tuple[Values, Values]:
    """Return each client's sampled values, at most B.

    Returns:
        ``(n, B) int64``, -1 where a client has fewer than B values; and ``(n,) int64``, how many
        it has.
    """
    address = (query.pass_index, query.layer)
    tie_key = generator(seed, Stream.TIE_BREAK, *address).integers(0, 2**64, dtype=np.uint64)
    chosen: Values
    sizes: Values
    chosen, sizes = choose_contributions(
        rows.clients,
        rows.offsets,
        rows.word_ids,
        rows.counts,
        word_values,
        query.max_items,
        query.sampler == "greedy",
        tie_key,
        kernel_state(generator(seed, Stream.SAMPLING, *address, block)),
    )
    return chosen, sizes


class WordMatcher:
    """Finds the values of a population's words; keeps what the next query can use again."""

    def __init__(self, lexicon: Lexicon) -> None:
        """Match the words of this lexicon."""
        self.lexicon = lexicon
        self._walk: LexiconWalk | None = None
        self._walk_key: tuple[str, int] | None = None
        self._excluded: Codes = np.zeros((0, 0), dtype=np.uint16)
        self._is_excluded: npt.NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)

    def prefix_values(self, query: PrefixQuery) -> Values:
        """Return ``(V,) int64``: each word's candidate value, or -1 where it has none."""
        width = query.excluded.shape[1]
        if self._walk is None or self._walk_key != (query.alphabet.symbols, width):
            self._walk = LexiconWalk(self.lexicon, query.alphabet, width)
            self._walk_key = (query.alphabet.symbols, width)
            self._excluded = np.zeros((0, width), dtype=np.uint16)
            self._is_excluded = np.zeros(len(self.lexicon), dtype=np.bool_)
        codes = self._walk.codes
        if not np.array_equal(self._excluded, query.excluded):
            self._excluded = query.excluded
            self._is_excluded = match_rows(codes, query.excluded) >= 0
        nodes = self._walk.nodes(query.trie)
        symbols = codes[:, query.trie.length]
        values = nodes * query.trie.alphabet_size + symbols
        values[(nodes == ABSENT) | (symbols == FOREIGN)] = -1
        finished = match_rows(codes, query.finished)
        values[finished >= 0] = query.num_extensions + finished[finished >= 0]
        values[self._is_excluded] = -1
        return values


def match_rows(codes: Codes, rows: Codes) -> Values:
    """Return for each row of ``codes`` its position among ``rows``, or -1.

    Args:
        codes: ``(n, width) uint16``.
        rows: ``(m, width) uint16``, distinct.
    """
    matches = np.full(len(codes), -1, dtype=np.int64)
    if not len(rows):
        return matches
    # Fixed-width byte strings compare as a whole; numpy drops trailing zeros, which are END.
    kind = f"S{2 * codes.shape[1]}"
    keys = np.ascontiguousarray(codes).view(kind).ravel()
    wanted = np.ascontiguousarray(rows).view(kind).ravel()
    order = np.argsort(wanted)
    slots = np.minimum(np.searchsorted(wanted[order], keys), len(rows) - 1)
    hits = order[slots]
    same = wanted[hits] == keys
    matches[same] = hits[same]
    return matches


ANSWERERS: dict[type[Query], Any] = {PrefixQuery: PrefixAnswerer}
"""Which answerer serves which kind of query; a new kind is one more entry."""


def make_answerer(query: Query, words: WordMatcher, seed: int) -> Answerer:
    """Return the answerer of a query.

    Raises:
        TypeError: No answerer is registered for this kind of query.
    """
    if type(query) not in ANSWERERS:
        known = ", ".join(kind.__name__ for kind in ANSWERERS)
        raise TypeError(
            f"Clients cannot answer a {type(query).__name__}; register it in "
            f"fedhh.clients.answer.ANSWERERS. Known: {known}."
        )
    answerer: Answerer = ANSWERERS[type(query)](query, words, seed)
    return answerer
