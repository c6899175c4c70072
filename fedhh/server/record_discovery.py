"""What discoveries share whose clients report a string, and a part of it.

Every contribution is a record of two reports: the whole string through a sketch, and one part of
it, at a random position, through another oracle. The server finds candidates from the parts, by a
protocol's own rule, and asks the sketch of whole strings about them.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from fedhh.accounting.local_reports import LocalReports
from fedhh.arrays import Ints
from fedhh.oracles import OracleSpec
from fedhh.protocol import Answers, Heard
from fedhh.questions.noise import Noise
from fedhh.questions.question import Question
from fedhh.questions.records import Records
from fedhh.server.cohorts import BoundedWords, RunSeed
from fedhh.server.local_discovery import PostProcessed
from fedhh.server.one_question import OneQuestion
from fedhh.server.pruning import above_noise
from fedhh.settings import Count, Positive, Share
from fedhh.validation import require_epsilon
from fedhh.words.parts import StringParts
from fedhh.words.trie import Codes

_SEEDS = 3

Sketch = tuple[str, int, int]
"""An oracle of records by name, with its rows, k, and the cells of each, m."""


@dataclass(frozen=True, kw_only=True)
class RecordProtocol(OneQuestion, PostProcessed, BoundedWords):
    """A discovery by records of two reports.

    Shorter words are padded with blanks and found; longer ones are truncated, and what is found
    then is their beginning: a run's discoveries say of which words that is so (``is_truncated``).

    Attributes:
        word_share: Share of ``local_epsilon`` that goes to the report about the whole string; the
            rest is that of the report about its part.
        length: Symbols of a padded string.
        max_words: Most words in the result.
        hash_seed: Seed of all hash functions; None for the run's, so that each run draws its own.
    """

    truncates_words: ClassVar[bool] = True

    word_share: Share = 0.5
    max_words: Count = 1_000
    hash_seed: RunSeed = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_epsilon(word_epsilon=self.word_epsilon, part_epsilon=self.part_epsilon)
        # Made once here so that bad sizes are refused before anything runs.
        channel = self.question().channel
        _ = channel.words, channel.fragments

    @property
    def word_epsilon(self) -> float:
        """Privacy of the report about the whole string."""
        return self.local_epsilon * self.word_share

    @property
    def part_epsilon(self) -> float:
        """Privacy of the report about its part."""
        return self.local_epsilon - self.word_epsilon

    @property
    def plan(self) -> LocalReports:
        question = self.question()
        return self.planned_reports(
            self.repeated(question.channel.puzzle.num_fragments),
            most_words=self.max_words,
            randomizers=question.randomizers,
        )

    def decode(self, answers: Answers) -> Heard:
        """Return the words that the candidates' own counts let through.

        All numbers are about whole strings: ``num_candidates`` were looked up.
        """
        question = answers.question
        word_sums, part_sums, records = question.channel.split(answers.aggregate.tally)
        codes = self.candidates(question, part_sums, records)
        support = question.channel.words.support(word_sums, question.names.keys_of(codes))
        chosen = self.credible(answers.noise, support)
        decision = answers.decision(
            threshold=int(support[chosen[-1]] if len(chosen) else support.max(initial=-1) + 1),
            num_candidates=len(codes),
            num_kept=len(chosen),
        )
        how = self.post_processing
        found = answers.counted(codes[chosen], support, chosen, post_processing=how)
        return Heard(decision=decision, found=found)

    @abstractmethod
    def candidates(self, question: Question, sums: Ints, records: Ints) -> Codes:
        """Return the strings that the parts speak for.

        Args:
            question: The broadcast.
            sums: ``(positions, s) int64``: the aggregate of each position's parts.
            records: ``(positions,) int64``: how many records each position has.

        Returns:
            ``(c, length) uint16`` distinct codes.
        """

    @abstractmethod
    def credible(self, noise: Noise, support: Ints) -> Ints:
        """Return which candidates the words' own sketch lets through, most frequent first.

        Args:
            noise: What chance does to a word's support, values that share its cells included.
            support: ``(c,) int64``: that of each candidate.

        Returns:
            ``int64``: at most ``max_words`` numbers of candidates.
        """

    @abstractmethod
    def parts(self, seed: int) -> StringParts:
        """Return how strings are cut, with names and hashes of a seed."""

    @property
    @abstractmethod
    def sketches(self) -> tuple[Sketch, Sketch]:
        """The sketch of whole strings, and the parts' oracle."""

    def question(self) -> Question:
        naming, *hashing = self.seeds(_SEEDS)
        epsilons = self.word_epsilon, self.part_epsilon
        words, parts = map(report_oracle, self.sketches, epsilons, hashing)
        channel = Records(puzzle=self.parts(naming), word_oracle=words, fragment_oracle=parts)
        return self.asking(channel.names, channel)


def report_oracle(sketch: Sketch, epsilon: float, seed: int) -> OracleSpec:
    """Return one of a record's oracles: a sketch that hashes by a seed, or "ss", which has none."""
    name, num_hashes, num_cells = sketch
    params: dict[str, str | int | float] = {"subset_size": "optimal"}
    if name != "ss":
        params = {"num_hashes": num_hashes, "num_cells": num_cells, "hash_seed": seed}
    return OracleSpec(name=name, epsilon=epsilon, params=params)


SketchName = Literal["hashtogram", "cms", "hcms"]
"""Sketches that a record's reports may go through."""


@dataclass(frozen=True, kw_only=True)
class SketchedRecords(RecordProtocol):
    """A discovery by records whose sketches have one size, of words that noise does not explain.

    Attributes:
        num_hashes: Rows of each sketch, k.
        num_cells: Cells of each row, m.
        noise_words: Most words that no client holds in the result, in expectation over the noise;
            see `pruning.above_noise`.
    """

    num_hashes: Count = 64
    num_cells: Count = 4096
    noise_words: Positive = 0.1

    def sketch(self, name: str) -> Sketch:
        """Return the oracle of a name, of these sizes."""
        return name, self.num_hashes, self.num_cells

    def credible(self, noise: Noise, support: Ints) -> Ints:
        return above_noise(noise, support, noise_kept=self.noise_words, most=self.max_words)
