"""RAPPOR without a list of candidates: words put together from n-grams that occur together.

Source: Fanti, Pihur, Erlingsson (2016), "Building a RAPPOR with the unknown: privacy-preserving
learning of associations and data dictionaries", PoPETs, section 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.local_reports import LocalReports
from fedhh.accounting.sources import RAPPOR
from fedhh.arrays import Bools, Ints
from fedhh.oracles.bloom import BitResponse, BloomFilters, BloomReports
from fedhh.protocol import Answers, Heard
from fedhh.questions.blooms import Ngrams
from fedhh.questions.question import Question
from fedhh.server.cohorts import BoundedWords
from fedhh.server.ngram_association import BitChannel, cliques, edges, frequent_ngrams, joint_shares
from fedhh.server.rappor import RapporProtocol
from fedhh.settings import Count, Layers, Positive
from fedhh.validation import InputError
from fedhh.words.alphabet import END
from fedhh.words.puzzle import FragmentPuzzle
from fedhh.words.trie import Codes

_REPORTS = 3
_SEEDS = 3

_LARGEST_TALLY = 2**24
"""Numbers of the tally, 8 bytes each; every worker has one."""

_MOST_BITS = 2**26
"""Of texts in all cohorts, whose bits are computed for each position."""

_MOST_STEPS = 4e10
"""Of expectation maximization, at about 1.5 ns each: a minute of one core."""


@dataclass(frozen=True, kw_only=True)
class RapporUnknown(RapporProtocol, BoundedWords):
    """Settings of RAPPOR with an unknown dictionary.

    A client reports, for each word it contributes, the Bloom filter of the whole string, padded or
    truncated to ``length``, and those of the n-grams at two random positions, each with a third of
    epsilon. For each pair of positions, the server estimates by expectation maximization how often
    any two n-grams occur together, and joins those with an edge that do so more often than noise
    explains (`ngram_association.edges`). A word is a choice of one n-gram for each position any two
    of which are joined. Words made up that way are candidates for RAPPOR's own decoding of the
    whole strings' filters, which says which are frequent, and how frequent.

    Filters of n-grams have few bits and one hash, in many cohorts, so that counts of the patterns
    of bits are all that EM needs: the server's memory and time do not grow with the clients. Before
    EM, each position's n-grams are cut to those that noise does not explain by themselves; all
    others are one n-gram more. Reports are one-time ones, without an instantaneous response.

    Attributes:
        length: Symbols of a padded string; a multiple of ``ngram_length``, and more. Pairs of
            positions grow with its square, and share the reports; the authors' strings have 6.
        ngram_length: Symbols of an n-gram.
        ngram_bits: Bits of an n-gram's filter; tables grow as 4 to the power of it.
        ngram_cohorts: Its cohorts, with one hash function each for each position.
        noise_ngrams: About how many n-grams that no client holds are kept at a position.
        max_ngrams: Most n-grams kept at a position.
        noise_edges: Edges between n-grams that no client holds together, for each pair of
            positions, about at most: see `ngram_association.edges`.
        em_iterations: Iterations of expectation maximization.
        max_candidates: Most candidates that are looked up.
    """

    name: ClassVar[str] = "rappor-unknown"
    title: ClassVar[str] = "RAPPOR, open domain"
    truncates_words: ClassVar[bool] = True

    length: Layers = 6
    ngram_length: Count = 2
    ngram_bits: Annotated[int, Ge(2), Le(12)] = 5
    ngram_cohorts: Annotated[int, Ge(1), Le(2**16)] = 64
    noise_ngrams: Positive = 20.0
    max_ngrams: Count = 100
    noise_edges: Positive = 10.0
    em_iterations: Count = 200
    max_candidates: Count = 2_000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length % self.ngram_length or self.length == self.ngram_length:
            raise InputError(
                f"Expected length to be a multiple of ngram_length, and more, so that n-grams can "
                f"be linked to each other, got length={self.length} and "
                f"ngram_length={self.ngram_length}."
            )
        # Made once here so that bad sizes are refused before anything runs.
        question = self.question()
        pairs = len(question.channel.pairs)
        if question.tally_size > _LARGEST_TALLY:
            raise InputError(
                f"Expected a tally of at most {_LARGEST_TALLY:,} numbers, got "
                f"{question.tally_size:,} of {pairs} pairs of positions, {self.ngram_cohorts} "
                f"cohorts and 4^{self.ngram_bits} patterns; lower ngram_bits, ngram_cohorts or "
                "length."
            )
        num_texts = question.channel.puzzle.num_texts
        bits = num_texts * self.ngram_cohorts
        if bits > _MOST_BITS:
            raise InputError(
                f"Expected at most {_MOST_BITS:,} bits of n-grams, got {num_texts:,} "
                f"n-grams in {self.ngram_cohorts} cohorts; lower ngram_length or ngram_cohorts, or "
                "take a smaller alphabet."
            )
        side = min(self.max_ngrams, question.channel.puzzle.num_texts) + 1
        steps = 2 * side**2 * self.ngram_bits + 4**self.ngram_bits * (self.ngram_bits + 4)
        steps *= pairs * self.ngram_cohorts * self.em_iterations
        if steps > _MOST_STEPS:
            raise InputError(
                f"Expected at most {_MOST_STEPS:.0e} steps of expectation maximization, about a "
                f"minute, got {steps:.1e}; lower max_ngrams, em_iterations, ngram_bits, "
                "ngram_cohorts or length."
            )

    @property
    def report_epsilon(self) -> float:
        """Privacy of each of a record's three reports."""
        return self.local_epsilon / _REPORTS

    @property
    def plan(self) -> LocalReports:
        words = self.question().names.num_keys
        return self.planned_reports(
            self.repeated(words),
            most_words=self.max_candidates,
            theorem=f"{RAPPOR}; basic composition over a record's {_REPORTS} reports",
        )

    def decode(self, answers: Answers) -> Heard:
        """Return the words that filters of n-grams and of whole strings show.

        ``num_candidates`` were put together from n-grams.
        """
        question = answers.question
        words, tables = question.channel.split(answers.aggregate.tally)
        codes = self.candidates(question, tables)
        return self.looked_up(answers, question.channel.words, words, codes)

    def candidates(self, question: Question, tables: Ints) -> Codes:
        """Return the strings whose n-grams are all joined.

        Args:
            question: The broadcast.
            tables: ``(pairs, m, 2**k, 2**k) int64``: records by patterns.

        Returns:
            ``(c, length) uint16``.
        """
        puzzle, filters = question.channel.puzzle, question.channel.ngrams.filters
        bit_channel = BitChannel(
            num_bits=filters.num_bits, response=question.channel.ngrams.response
        )
        pairs = question.channel.pairs.tolist()
        texts, bits = [], []
        for position in range(puzzle.num_positions):
            possible = np.flatnonzero(puzzle.is_possible)
            if position == 0:
                # The all-blank text: no word is empty.
                possible = possible[possible != 0]
            keys = question.channel.ngram_keys(np.full(len(possible), position), possible)
            own = filters.cells(keys)[:, :, 0] % filters.num_bits
            sums = [tables[i].sum(axis=2) for i, pair in enumerate(pairs) if pair[0] == position]
            sums += [tables[i].sum(axis=1) for i, pair in enumerate(pairs) if pair[1] == position]
            ones = bit_channel.ones(np.sum(sums, axis=0))
            frequent = frequent_ngrams(
                ones, own, noise_kept=self.noise_ngrams, most=self.max_ngrams
            )
            texts.append(possible[frequent])
            bits.append(own[frequent])
        linked: dict[tuple[int, int], Bools] = {}
        for table, pair in zip(tables, pairs, strict=True):
            first, second = (bits[side] for side in pair)
            shares = joint_shares(table, first, second, bit_channel, iterations=self.em_iterations)
            linked[pair[0], pair[1]] = edges(
                shares, int(table.sum()), bit_channel, noise_kept=self.noise_edges
            )
        chosen = cliques([len(each) for each in texts], linked, self.max_candidates)
        codes = np.concatenate(
            [puzzle.text_codes[texts[i][chosen[:, i]]] for i in range(puzzle.num_positions)],
            axis=1,
        )
        # Nothing follows a blank.
        ended = codes == END
        return np.asarray(codes[~(ended[:, :-1] & ~ended[:, 1:]).any(axis=1)])

    def question(self) -> Question:
        naming, words, ngrams = self.seeds(_SEEDS)
        channel = Ngrams(
            puzzle=FragmentPuzzle(
                alphabet_size=self.symbols.size,
                length=self.length,
                fragment_length=self.ngram_length,
                num_puzzles=1,
                hash_seed=naming,
            ),
            words=self.word_reports(self._response(self.bloom_hashes), seed=words),
            ngrams=BloomReports(
                filters=BloomFilters(
                    num_bits=self.ngram_bits,
                    num_hashes=1,
                    num_cohorts=self.ngram_cohorts,
                    hash_seed=ngrams,
                ),
                response=self._response(1),
            ),
        )
        return self.asking(channel.names, channel)

    def _response(self, num_hashes: int) -> BitResponse:
        return BitResponse.of_one_report(self.report_epsilon, num_hashes=num_hashes)
