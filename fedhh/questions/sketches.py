"""Questions whose answers can be asked about any candidate later: they broadcast no candidates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

from fedhh.hashing import StringKeys
from fedhh.oracles import OracleSpec, PureOracle, make_pure_oracle
from fedhh.questions.base import SEED_BITS, Aggregate, ItemQuestion, Tally
from fedhh.validation import InputError
from fedhh.words.parts import StringParts
from fedhh.words.trie import Codes

Parts = TypeVar("Parts", bound=StringParts)


@dataclass(frozen=True, kw_only=True, eq=False)
class FragmentQuestion(ItemQuestion, Generic[Parts]):
    """Asks for whole strings and, at a random position, for one fragment of each.

    A contribution is a record of two reports about one string, Apple (2017), Algorithm 9: the
    string through the word oracle; a uniformly random position; and the fragment there through
    the fragment oracle. What fragments are is the puzzle's: SFP's, or other parts of a string,
    such as prefixes of several lengths. A contribution with nothing to say reports a uniformly
    random string and a uniformly random fragment: any input is as private as any other, and random
    ones crowd no cell.

    The tally holds the word oracle's aggregate, then the fragment oracle's for each position, then
    the number of records by position. Both reports' epsilons compose: Apple (2017), Theorem 4.5.

    Attributes:
        puzzle: How strings become keys and fragments.
        word_oracle: Randomizer of whole strings, a sketch.
        fragment_oracle: Randomizer of fragments.
    """

    puzzle: Parts
    word_oracle: OracleSpec
    fragment_oracle: OracleSpec

    @cached_property
    def words(self) -> PureOracle:
        """The randomizer of whole strings, over their keys."""
        oracle = make_pure_oracle(self.word_oracle, self.puzzle.names.num_keys)
        if oracle.aggregate_form != "sketch":
            raise InputError(
                f"Expected a sketch for whole strings, which are too many to count one by one, got "
                f"{self.word_oracle.name!r}; use cms, hcms or hashtogram."
            )
        return oracle

    @cached_property
    def fragments(self) -> PureOracle:
        """The randomizer of fragments."""
        return make_pure_oracle(self.fragment_oracle, self.puzzle.num_fragments)

    @property
    def tally_size(self) -> int:
        per_position = self.fragments.aggregate_size + 1
        return self.words.aggregate_size + self.puzzle.num_positions * per_position

    @property
    def domain_size(self) -> int:
        return self.puzzle.num_fragments

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        return (self.word_oracle, self.fragment_oracle)

    @property
    def report_bits(self) -> float:
        position = (self.puzzle.num_positions - 1).bit_length()
        return self.words.report_bits + self.fragments.report_bits + position

    @property
    def download_bits(self) -> float:
        return 3 * SEED_BITS

    def split(self, tally: Tally) -> tuple[Tally, Tally, Tally]:
        """Return views: words ``(w,)``, fragments ``(positions, f)``, records ``(positions,)``."""
        positions = self.puzzle.num_positions
        first = self.words.aggregate_size
        fragments = tally[first : len(tally) - positions]
        return tally[:first], fragments.reshape(positions, -1), tally[len(tally) - positions :]


@dataclass(frozen=True, kw_only=True, eq=False)
class BlindPrefixQuestion(ItemQuestion):
    """Asks for prefixes of one length, whatever they are.

    A word's prefix is its first symbols, filled up with the end symbol; a word longer than
    ``longest_word`` is left out. A contribution with nothing to say reports a uniformly random
    key. Reports add up to a sketch if the oracle is one, and reach the server as they are if not.

    Attributes:
        prefix_length: Symbols of a prefix.
        longest_word: Symbols of the longest word that takes part.
        oracle: The randomizer of prefixes.
        hash_seed: Seed of the names of prefixes.
    """

    prefix_length: int
    longest_word: int
    oracle: OracleSpec
    hash_seed: int

    @cached_property
    def names(self) -> StringKeys:
        """Names of prefixes."""
        return StringKeys.draw(
            alphabet_size=self.alphabet.size, length=self.prefix_length, seed=self.hash_seed
        )

    @cached_property
    def prefixes(self) -> PureOracle:
        """The randomizer of prefixes, over their keys."""
        return make_pure_oracle(self.oracle, self.names.num_keys)

    def support(self, aggregate: Aggregate, prefixes: Codes) -> Tally:
        """Return how many reports support each of ``(c, prefix_length or more) uint16`` prefixes.

        Raises:
            ValueError: The reports themselves are needed, and are not there.
        """
        oracle, keys = self.prefixes, self.names.keys(prefixes[:, : self.prefix_length])
        if oracle.aggregate_form == "sketch":
            return oracle.support(aggregate.tally, keys)
        if aggregate.messages is None or len(aggregate.messages) != aggregate.num_reports:
            raise ValueError(
                f"Expected {aggregate.num_reports} messages for group {self.layer}, got "
                f"{0 if aggregate.messages is None else len(aggregate.messages)}."
            )
        return oracle.support(reports=aggregate.messages, candidates=keys)

    @property
    def tally_size(self) -> int:
        return self.prefixes.aggregate_size if self.prefixes.aggregate_form == "sketch" else 0

    @property
    def domain_size(self) -> int:
        return self.names.num_keys

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        return (self.oracle,)

    @property
    def report_bits(self) -> float:
        return self.prefixes.report_bits

    @property
    def download_bits(self) -> float:
        return 2 * SEED_BITS
