"""Bitstogram: words read symbol by symbol from hashed buckets, in one round trip.

Source: Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters",
NeurIPS (arXiv:1707.04982), protocol Bitstogram; numbering not verified.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from fedhh.arrays import Bools, Floats, Ints
from fedhh.questions.question import Question
from fedhh.server.record_discovery import Sketch, SketchedRecords, SketchName
from fedhh.settings import AUTO, Count, CountOrAuto, decided
from fedhh.words.alphabet import END
from fedhh.words.puzzle import FragmentPuzzle
from fedhh.words.trie import Codes


@dataclass(frozen=True, kw_only=True)
class Bitstogram(SketchedRecords):
    """Settings of Bitstogram, over symbols instead of bits.

    A public hash sends each string to one of T buckets. A contribution draws a position of the
    string and is reported twice: the pair of its bucket and of the symbols there, and the whole
    string. In each bucket the server compares, position by position, the counts of all symbols:
    where one frequent string is alone, its symbols win. That gives one candidate per bucket; those
    that the hash does not send to their bucket are dropped, and the sketch of whole strings says
    which of the others are frequent, and how frequent.

    The clients are SFP's: its puzzle number is the bucket. What differs is the decoding, one
    candidate per bucket in place of all strings that frequent fragments make up, and the sketches.

    Where this differs from the paper: a position is a symbol (or a few), not a bit. With A symbols
    there are log2 A times fewer positions, so each has log2 A times the reports; what it costs is
    that a symbol has to win over A - 1 others in place of one. Of all strings that end once, the
    one with the most counts wins, since nothing follows the end of a word. The paper repeats all
    of it with several hashes, so that strings that share a bucket are found by another one; here
    that is left to T, which costs no accuracy: only the server's time grows with it.

    Attributes:
        buckets: T. "auto" is the least power of two that is at least the square root of the number
            of contributions that clients may make, the paper's order.
        fragment_length: Symbols that are reported together; a divisor of ``length``.
        word_oracle: Sketch of whole strings: "hashtogram" (the paper's), "cms" or "hcms".
        fragment_oracle: That of buckets with symbols: likewise, or "ss", Subset Selection on all
            pairs.
    """

    name: ClassVar[str] = "bitstogram"
    title: ClassVar[str] = "Bitstogram"

    buckets: CountOrAuto = AUTO
    fragment_length: Count = 1
    word_oracle: SketchName = "hashtogram"
    fragment_oracle: Literal["hashtogram", "cms", "hcms", "ss"] = "hashtogram"

    def __post_init__(self) -> None:
        if self.buckets == AUTO:
            # What is bad of the other settings is refused before anything runs.
            replace(self, buckets=1)
        else:
            super().__post_init__()

    @property
    def sketches(self) -> tuple[Sketch, Sketch]:
        return self.sketch(self.word_oracle), self.sketch(self.fragment_oracle)

    def resolve(self, num_clients: int) -> dict[str, Any]:
        if self.buckets == AUTO:
            asked = num_clients if self.clients_per_layer == AUTO else self.clients_per_layer
            return {"buckets": 2 ** math.ceil(math.log2(asked * self.max_items) / 2)}
        return super().resolve(num_clients)

    def parts(self, seed: int) -> FragmentPuzzle:
        return FragmentPuzzle(
            alphabet_size=self.symbols.size,
            length=self.length,
            fragment_length=self.fragment_length,
            num_puzzles=decided(self.buckets, "buckets"),
            hash_seed=seed,
        )

    def candidates(self, question: Question, sums: Ints, records: Ints) -> Codes:
        puzzle, fragments = question.channel.puzzle, question.channel.fragments
        counts = np.stack(
            [
                fragments.estimate(support, int(reports)) * puzzle.num_positions
                for support, reports in zip(
                    question.channel.fragments.support(sums), records, strict=True
                )
            ]
        )
        codes = likeliest_strings(puzzle, counts)
        own = puzzle.puzzles(puzzle.names.keys(codes)) == np.arange(puzzle.num_puzzles)
        return np.asarray(codes[own])


def likeliest_strings(puzzle: FragmentPuzzle, counts: Floats) -> Codes:
    """Return each bucket's string whose fragments have the most counts in all.

    Among all strings that are not empty, and in which nothing follows a blank: the likeliest one
    under normal noise that is the same at every position.

    Args:
        puzzle: How strings were cut.
        counts: ``(positions, num_fragments) float64``: estimated counts.

    Returns:
        ``(num_puzzles, length) uint16``.
    """
    table = counts.reshape(puzzle.num_positions, puzzle.num_puzzles, puzzle.num_texts)
    is_full = (puzzle.text_codes != END).all(axis=1)
    # A text that ends the string, perhaps at once, so that only blanks can follow.
    is_last = puzzle.is_possible & ~is_full
    full, last = _best(table, is_full), _best(table, is_last)
    blank = table[:, :, 0]
    numbers = np.arange(puzzle.num_positions + 1)[:, None]
    # What the first i positions add if they are full, and those behind position i if blank.
    before = np.concatenate([np.zeros_like(blank[:1]), np.cumsum(full[1], axis=0)])
    behind = np.concatenate([np.cumsum(blank[::-1], axis=0)[::-1], np.zeros_like(blank[:1])])
    scores = before.copy()
    scores[:-1] += last[1] + behind[1:]
    if puzzle.fragment_length == 1:
        scores[0] = -np.inf
    else:
        not_blank = is_last.copy()
        not_blank[0] = False
        last[0][0], last[1][0] = (part[0] for part in _best(table[:1], not_blank))
        scores[0] = last[1][0] + behind[1]
    ends = scores.argmax(axis=0)
    positions = numbers[:-1]
    texts = np.where(positions < ends, full[0], np.where(positions == ends, last[0], 0))
    strings: Codes = puzzle.text_codes[texts.T].reshape(puzzle.num_puzzles, puzzle.length)
    return strings


def _best(table: Floats, allowed: Bools) -> tuple[Ints, Floats]:
    """Return the ``(positions, buckets)`` best of some texts, and their counts."""
    texts = np.flatnonzero(allowed)
    among = table[:, :, texts]
    places = among.argmax(axis=2)
    return texts[places], np.take_along_axis(among, places[:, :, None], axis=2)[:, :, 0]
