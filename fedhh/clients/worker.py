"""Answers queries for blocks of clients: the client half of a round.

The trust boundary runs through `ClientWorker.answer`: words and items go in, and only the tally
of privatized reports comes out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from fedhh.alphabet import FOREIGN
from fedhh.clients.population import Population
from fedhh.kernels.sampling import choose_contributions
from fedhh.lexicon import LexiconWalk
from fedhh.oracles import make_oracle
from fedhh.queries import Aggregate, Answer, Cohort, Diagnostics, PrefixQuery
from fedhh.random import Stream, generator, kernel_state
from fedhh.trie import ABSENT, Codes

Values = npt.NDArray[np.int64]
Progress = Callable[[int], None]


class ClientWorker:
    """Holds a population and answers for its clients; the same object in process and on Ray.

    What it draws is addressed by (purpose, pass, layer, block), so any worker gives the same
    answer for the same block.
    """

    def __init__(self, population: Population, *, seed: int) -> None:
        """Prepare to answer for a population in a run of this seed."""
        self._population = population
        self._seed = seed
        self._walk: LexiconWalk | None = None
        self._walk_key: tuple[str, int] | None = None
        self._order: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._order_key: int | None = -1

    def answer(
        self, query: PrefixQuery, blocks: Iterable[int], progress: Progress | None = None
    ) -> Answer:
        """Return the merged answer of some blocks of the query's cohort.

        Args:
            query: The broadcast.
            blocks: Numbers of the blocks to answer for.
            progress: Called with the number of clients after each block.
        """
        word_values = self._word_values(query)
        order = self._client_order(query.cohort)
        tally = np.zeros(query.domain_size, dtype=np.int64)
        reports = clients_asked = dummies = with_items = 0
        for block in blocks:
            clients = order[query.cohort.block(block)]
            values, sizes = self._contributions(query, block, clients, word_values)
            self._privatize(query, block, values, tally)
            reports += len(values)
            clients_asked += len(clients)
            dummies += int(len(values) - sizes.sum())
            with_items += int(np.count_nonzero(sizes))
            if progress is not None:
                progress(len(clients))
        return Answer(
            aggregate=Aggregate(tally=tally, num_reports=reports, num_clients=clients_asked),
            diagnostics=Diagnostics(num_dummies=dummies, num_clients_with_items=with_items),
        )

    def _privatize(self, query: PrefixQuery, block: int, values: Values, tally: Values) -> None:
        """Add the block's reports to the tally; raw values end here."""
        oracle = make_oracle(query.oracle, query.domain_size)
        rng = generator(self._seed, Stream.RANDOMIZER, query.pass_index, query.layer, block)
        oracle.privatize_and_tally(values, rng=rng, out=tally)

    def _contributions(
        self, query: PrefixQuery, block: int, clients: Values, word_values: Values
    ) -> tuple[Values, Values]:
        """Return the block's contributions, and how many of each client's are real."""
        address = (query.pass_index, query.layer)
        rows = self._population.block(clients)
        tie_key = generator(self._seed, Stream.TIE_BREAK, *address).integers(
            0, 2**64, dtype=np.uint64
        )
        chosen, sizes = choose_contributions(
            rows.clients,
            rows.offsets,
            rows.word_ids,
            rows.counts,
            word_values,
            query.max_items,
            query.sampler == "greedy",
            tie_key,
            kernel_state(generator(self._seed, Stream.SAMPLING, *address, block)),
        )
        if query.pad:
            chosen[chosen < 0] = query.dummy
            return chosen.ravel(), sizes
        return chosen[chosen >= 0], sizes

    def _client_order(self, cohort: Cohort) -> npt.NDArray[np.int64]:
        """Return the run's random order of clients, or the cohort's own if it is redrawn."""
        if self._order_key != cohort.redraw or not len(self._order):
            path = () if cohort.redraw is None else (cohort.redraw,)
            rng = generator(self._seed, Stream.COHORT, *path)
            self._order = rng.permutation(self._population.num_clients)
            self._order_key = cohort.redraw
        return self._order

    def _word_values(self, query: PrefixQuery) -> Values:
        """Return ``(V,) int64``: each word's candidate value, or -1 where it has none."""
        width = query.excluded.shape[1]
        if self._walk is None or self._walk_key != (query.alphabet.symbols, width):
            self._walk = LexiconWalk(self._population.lexicon, query.alphabet, width)
            self._walk_key = (query.alphabet.symbols, width)
        codes = self._walk.codes
        nodes = self._walk.nodes(query.trie)
        symbols = codes[:, query.trie.length]
        values = nodes * query.trie.alphabet_size + symbols
        values[(nodes == ABSENT) | (symbols == FOREIGN)] = -1
        finished = match_rows(codes, query.finished)
        values[finished >= 0] = query.num_extensions + finished[finished >= 0]
        values[match_rows(codes, query.excluded) >= 0] = -1
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
