"""Contributions reported as records of several reports about one string."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fedhh.oracles import OracleSpec, PureOracle, make_pure_oracle
from fedhh.oracles.attack import add_crafted
from fedhh.oracles.families import SampledAggregates
from fedhh.questions.channel import Channel, RngOf
from fedhh.questions.choice import Attack
from fedhh.questions.clients import Coins, Known, Said, Sent, Values
from fedhh.questions.names import StringNames
from fedhh.questions.noise import Noise
from fedhh.questions.question import SEED_BITS, Aggregate, Question, Tally
from fedhh.questions.reports import or_random, tell
from fedhh.validation import InputError
from fedhh.words.parts import StringParts
from fedhh.words.trie import Codes


class PartsTable:
    """The parts of strings, found by the strings' keys, and cut when they are asked for.

    The parts of all strings would take more memory than all else that is held of them.
    """

    def __init__(self, puzzle: StringParts, codes: Codes, keys: Values) -> None:
        """Sort strings by their keys.

        Args:
            puzzle: How they are cut.
            codes: ``(V, length)``: each word's string, which words may share.
            keys: ``(V,) int64``: the strings' keys, -1 for words without one.
        """
        self._puzzle, self._codes = puzzle, codes
        self._words = np.argsort(keys, kind="stable").astype(np.int32)
        self._keys = keys[self._words]

    def fill(self, keys: Values, positions: Values, out: Values) -> None:
        """Write each string's part at its position to ``out``, for strings of this table.

        Args:
            keys: ``(n,) int64``, -1 for no string.
            positions: ``(n,) int64``.
            out: ``(n,) int64``, changed in place.
        """
        # In their order, neighbors are looked for where the memory is near.
        order = np.argsort(keys)
        order = order[np.searchsorted(keys, 0, sorter=order) :]
        rows = np.searchsorted(self._keys, keys[order])
        order, rows = order[rows < len(self._keys)], rows[rows < len(self._keys)]
        is_known = self._keys[rows] == keys[order]
        rows, order = rows[is_known], order[is_known]
        parts = self._puzzle.fragments(self._codes[self._words[rows]], keys[order])
        out[order] = parts[np.arange(len(order)), positions[order]]


@dataclass(frozen=True, kw_only=True, eq=False)
class PaddedRecords(Channel):
    """What records about padded strings share; nothing of a record can be checked.

    Attributes:
        puzzle: How strings become keys and parts; public, shared by both sides.
    """

    puzzle: StringParts

    @property
    def names(self) -> StringNames:
        """Names of the strings that records are about."""
        return StringNames(keys=self.puzzle.names, length=self.puzzle.length, longest_word=None)

    def table(self, question: Question, known: Known) -> PartsTable:
        assert known.codes is not None
        return PartsTable(self.puzzle, known.codes, known.values)

    def keys_and_parts(self, attack: Attack) -> tuple[Values, Values]:
        """Return ``(r,)`` keys of those targets that are usable, and ``(r, positions)`` parts.

        None for reports at random.
        """
        known, numbers = attack.known, attack.targets
        numbers = numbers[(known.values[numbers] >= 0) & (attack.sign != 0)]
        assert known.codes is not None
        return known.values[numbers], self.puzzle.fragments(
            known.codes[numbers], known.values[numbers]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Records(PaddedRecords):
    """Whole strings and, at a random position, one part of each: Apple (2017), Algorithm 9.

    A contribution is a record of two reports about one string: the string through the word oracle;
    a uniformly random position; and the part there through the fragment oracle. What parts are is
    the puzzle's: SFP's, or prefixes of several lengths. A contribution with nothing to say reports
    a uniformly random string and a uniformly random part: any input is as private as any other, and
    random ones crowd no cell.

    The tally holds the word oracle's aggregate, then the fragment oracle's for each position, then
    the number of records by position. Both reports' epsilons compose: Apple (2017), Theorem 4.5.

    Attributes:
        word_oracle: Randomizer of whole strings, a sketch.
        fragment_oracle: Randomizer of parts.
    """

    word_oracle: OracleSpec
    fragment_oracle: OracleSpec

    @cached_property
    def words(self) -> PureOracle:
        """The randomizer of whole strings, over their keys."""
        oracle = make_pure_oracle(self.word_oracle, self.puzzle.names.num_keys)
        if not oracle.is_sketch:
            raise InputError(
                f"Expected a sketch for whole strings, which are too many to count one by one, got "
                f"{self.word_oracle.name!r}; use cms, hcms or hashtogram."
            )
        return oracle

    @cached_property
    def fragments(self) -> PureOracle:
        """The randomizer of parts."""
        return make_pure_oracle(self.fragment_oracle, self.puzzle.num_fragments)

    @property
    def tally_size(self) -> int:
        per_position = self.fragments.aggregate_size + 1
        return self.words.aggregate_size + self.puzzle.num_positions * per_position

    @property
    def local_epsilon(self) -> float:
        return self.word_oracle.epsilon + self.fragment_oracle.epsilon

    @property
    def domain_size(self) -> int:
        return self.puzzle.num_fragments

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        return (self.word_oracle, self.fragment_oracle)

    @property
    def download_bits(self) -> float:
        return 2 * SEED_BITS

    def report_bits(self, question: Question) -> float:
        position = (self.puzzle.num_positions - 1).bit_length()
        return self.words.report_bits + self.fragments.report_bits + position

    def split(self, tally: Tally) -> tuple[Tally, Tally, Tally]:
        """Return views: words ``(w,)``, parts ``(positions, f)``, records ``(positions,)``."""
        positions = self.puzzle.num_positions
        first = self.words.aggregate_size
        fragments = tally[first : len(tally) - positions]
        return tally[:first], fragments.reshape(positions, -1), tally[len(tally) - positions :]

    def noise_of(self, question: Question, aggregate: Aggregate) -> Noise:
        """Return what chance does to a string's support, others in its cells included."""
        words, _, _ = self.split(aggregate.tally)
        return Noise.of_aggregate(self.words, aggregate.num_reports, words)

    def add(self, question: Question, said: Said, table: Any, coins: Coins, tally: Tally) -> Sent:
        keys, rng = said.contributions(question.pad), coins.randomizer
        reported = or_random(keys, self.puzzle.names.num_keys, rng)
        positions = rng.integers(self.puzzle.num_positions, size=len(keys))
        pieces = rng.integers(self.puzzle.num_fragments, size=len(keys))
        table.fill(keys, positions, pieces)
        word_sums, fragment_sums, records = self.split(tally)
        tell(question, self.words, reported, rng=rng, out=word_sums)
        for position, sums in enumerate(fragment_sums):
            there = pieces[positions == position]
            tell(question, self.fragments, there, rng=rng, out=sums)
        records += np.bincount(positions, minlength=self.puzzle.num_positions)
        return Sent.of(said, len(keys))

    @property
    def can_sample(self) -> bool:
        return all(isinstance(each, SampledAggregates) for each in (self.words, self.fragments))

    @property
    def report_draws(self) -> int:
        return self.words.report_draws + self.fragments.report_draws

    def sample(self, counts: Tally, rng_of: RngOf) -> Tally:
        words, fragments, records = self.split(counts)
        parts = [(self.words, words), *((self.fragments, part) for part in fragments)]
        drawn = []
        for number, (oracle, part) in enumerate(parts):
            assert isinstance(oracle, SampledAggregates)
            drawn.append(oracle.sample_aggregate(part, rng=rng_of(number)))
        return np.concatenate([*drawn, records])

    def craft(self, attack: Attack) -> Sent:
        """Add records of all targets at a random position.

        Positions are uniform, as in honest records, so that every part of a target has support.
        """
        keys, parts = self.keys_and_parts(attack)
        sign = attack.sign if len(keys) else 0
        word_sums, fragment_sums, records = self.split(attack.tally)
        positions = self.puzzle.num_positions
        of_all: dict[str, Any] = {"sign": sign, "rng": attack.rng}
        add_crafted(self.words, keys, count=attack.count, out=word_sums, **of_all)
        numbers = attack.rng.multinomial(attack.count, np.full(positions, 1 / positions))
        for place, number in enumerate(numbers.tolist()):
            sums = fragment_sums[place]
            add_crafted(self.fragments, parts[:, place], count=number, out=sums, **of_all)
        records += numbers
        return attack.sent(holds=sign != 0)
