"""TreeHist: words found along a tree of prefixes, each client at one level, in one round trip.

Source: Bassily, Nissim, Stemmer, Thakurta (2017), "Practical locally private heavy hitters",
NeurIPS (arXiv:1707.04982), protocol TreeHist; numbering not verified.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedhh.arrays import Ints
from fedhh.questions.noise import Noise
from fedhh.questions.question import Question
from fedhh.server.pruning import above_noise
from fedhh.server.record_discovery import Sketch, SketchedRecords, SketchName
from fedhh.settings import Count, Positive
from fedhh.validation import InputError
from fedhh.words.parts import PrefixParts, extensions
from fedhh.words.trie import Codes

_LARGEST_LEVEL = 2**24


@dataclass(frozen=True, kw_only=True)
class TreeHist(SketchedRecords):
    """Settings of TreeHist, over symbols instead of bits.

    A contribution draws one of the levels, prefix lengths step, 2 step and so on, and is reported
    twice: the prefix of that length and the whole word, each through a Hashtogram with its share of
    epsilon. The server walks the tree breadth first: it extends what it kept by ``step`` symbols,
    asks the level's sketch about all extensions, and keeps those that noise does not explain
    (`pruning.above_noise`). The last extensions, to whole words, are put to the words' own
    sketch, which all contributions are in; it also counts what is returned.

    Where this differs from the paper: a level is of symbols, not of one bit. With A symbols that is
    one level in place of log2 A, so each has log2 A times the reports, and a path survives fewer
    decisions; what it costs is a maximum over A candidates per prefix in place of two. The last
    level is not reported as a prefix, since the whole word is that prefix.

    Attributes:
        step: Symbols by which prefixes grow; less than ``length``. The server asks about
            ``max_prefixes * A**step`` candidates per level at most.
        noise_prefixes: Prefixes that no client holds which a level keeps, in expectation at most.
        max_prefixes: Most prefixes kept per level.
        oracle: Sketch of both reports: "hashtogram" (the paper's), "cms" or "hcms".
    """

    name: ClassVar[str] = "treehist"
    title: ClassVar[str] = "TreeHist"

    step: Count = 2
    noise_prefixes: Positive = 10.0
    max_prefixes: Count = 1_000
    oracle: SketchName = "hashtogram"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_prefixes * self.symbols.size**self.step > _LARGEST_LEVEL:
            raise InputError(
                f"Expected at most {_LARGEST_LEVEL:,} candidates per level, got "
                f"{self.max_prefixes:,} x {self.symbols.size}^{self.step}; lower step or "
                "max_prefixes."
            )

    @property
    def sketches(self) -> tuple[Sketch, Sketch]:
        return self.sketch(self.oracle), self.sketch(self.oracle)

    def parts(self, seed: int) -> PrefixParts:
        return PrefixParts(
            alphabet_size=self.symbols.size, length=self.length, step=self.step, hash_seed=seed
        )

    def candidates(self, question: Question, sums: Ints, records: Ints) -> Codes:
        size = question.alphabet.size
        prefixes = np.zeros((1, self.length), dtype=np.uint16)
        known = 0
        for level, length in enumerate(question.channel.puzzle.prefix_lengths):
            candidates = extensions(prefixes, known, length, alphabet_size=size)
            support = question.channel.fragments.support(
                sums[level], question.channel.puzzle.names.keys(candidates)
            )
            noise = Noise.of_aggregate(question.channel.fragments, int(records[level]), sums[level])
            chosen = above_noise(
                noise, support, noise_kept=self.noise_prefixes, most=self.max_prefixes
            )
            prefixes, known = candidates[chosen], length
        return extensions(prefixes, known, self.length, alphabet_size=size)
