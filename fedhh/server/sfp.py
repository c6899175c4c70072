"""Sequence Fragment Puzzle: Apple's one-round discovery of words.

Source: Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 4.3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Gt, Lt

from fedhh.arrays import Ints
from fedhh.questions.noise import Noise
from fedhh.questions.question import Question
from fedhh.server.puzzle_decoding import assemble
from fedhh.server.record_discovery import RecordProtocol, Sketch
from fedhh.settings import Count, Share
from fedhh.words.puzzle import FragmentPuzzle
from fedhh.words.trie import Codes


@dataclass(frozen=True, kw_only=True)
class Sfp(RecordProtocol):
    """Settings of the Sequence Fragment Puzzle; the sketches' defaults are Apple's deployment.

    Clients report, for each sampled word, the whole string and one fragment of it at a random
    position, both randomized. The server looks for frequent fragments, puts strings together from
    fragments with a common puzzle number (a small hash of the whole string), and asks the sketch
    of whole strings about them.

    Attributes:
        word_share: Share of ``local_epsilon`` that goes to the report about the whole string, the
            paper's epsilon; the rest is the fragment's, the paper's epsilon'. Apple's 2 + 6 are 8
            with a share of 0.25.
        length: Symbols of a padded string; a multiple of ``fragment_length``.
        fragment_length: Symbols of a fragment.
        num_puzzles: Puzzle numbers.
        word_oracle: Sketch of whole strings: "cms" (the paper's) or "hcms".
        word_hashes: Its rows, k.
        word_cells: Its cells per row, m.
        fragment_oracle: "cms" (the paper's), "hcms", or "ss": Subset Selection on all fragments,
            for a comparison that is fair to the puzzle.
        fragment_hashes: Rows of a fragment sketch, k'.
        fragment_cells: Its cells per row, m'.
        max_fragments: T, most fragments kept per position.
        noise_budget: About how many strings of noise, per puzzle number, may be as credible as one
            that is looked up: see `puzzle_decoding.assemble`. Infinite for the paper's rule, all
            strings from the T most frequent fragments.
        max_strings: Most strings put together per puzzle number; those least like noise.
        word_z: Least z of a word's count in the sketch of whole strings, against the noise of the
            randomizer alone.
    """

    name: ClassVar[str] = "sfp"
    title: ClassVar[str] = "SFP"

    word_share: Share = 0.25
    fragment_length: Count = 2
    num_puzzles: Count = 256
    word_oracle: Literal["cms", "hcms"] = "cms"
    word_hashes: Count = 2048
    word_cells: Count = 1024
    fragment_oracle: Literal["cms", "hcms", "ss"] = "cms"
    fragment_hashes: Count = 2048
    fragment_cells: Count = 1024
    max_fragments: Count = 50_000
    noise_budget: Annotated[float, Gt(0)] = 0.02
    max_strings: Count = 200_000
    word_z: Annotated[float, Gt(-math.inf), Lt(math.inf)] = 0.5

    def parts(self, seed: int) -> FragmentPuzzle:
        return FragmentPuzzle(
            alphabet_size=self.symbols.size,
            length=self.length,
            fragment_length=self.fragment_length,
            num_puzzles=self.num_puzzles,
            hash_seed=seed,
        )

    @property
    def sketches(self) -> tuple[Sketch, Sketch]:
        return (
            (self.word_oracle, self.word_hashes, self.word_cells),
            (self.fragment_oracle, self.fragment_hashes, self.fragment_cells),
        )

    def candidates(self, question: Question, sums: Ints, records: Ints) -> Codes:
        oracle = question.channel.fragments
        return assemble(
            question.channel.puzzle,
            oracle.support(sums),
            records,
            oracle,
            max_fragments=self.max_fragments,
            noise_budget=self.noise_budget,
            max_strings=self.max_strings,
        )

    def credible(self, noise: Noise, support: Ints) -> Ints:
        """Return the candidates that the randomizer alone does not explain, most frequent first.

        Whether a word is significant also depends on the frequent words that it may share cells
        with.
        """
        z = Noise(oracle=noise.oracle, num_reports=noise.num_reports).z(support)
        order = np.argsort(-support, kind="stable")
        return order[z[order] >= self.word_z][: self.max_words]
