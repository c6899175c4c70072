"""What crosses the line between server and clients: questions down, aggregates up."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.oracles import OracleSpec, make_oracle, make_pure_oracle
from fedhh.oracles.client_votes import ClientVotes, VotesPerClient
from fedhh.questions.cohort import Cohort
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import Codes, PrefixTrie

SEED_BITS = 64.0
"""Bits of the seed of a hash function that clients download."""

Tally = npt.NDArray[np.int64]
Messages = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Question(ABC):
    """What a server broadcasts in a round; `fedhh.clients.answers.registry` answers each kind.

    Attributes:
        pass_index: Which pass, from 0; with the layer it addresses the round's randomness.
        layer: Which round of the pass, from 1.
        cohort: Who is asked.
        alphabet: Symbols of a word.
        max_items: B, contributions per client.
        pad: Whether clients fill up with the dummy to exactly B.
    """

    pass_index: int
    layer: int
    cohort: Cohort
    alphabet: Alphabet
    max_items: int
    pad: bool = True

    @property
    @abstractmethod
    def tally_size(self) -> int:
        """Length of the tally that answers it."""

    @property
    def local_epsilon(self) -> float:
        """Local privacy of one contribution to it; infinite if it asks for plain values.

        Here the sum over its `randomizers`, which compose; infinite without any.
        """
        return sum(spec.epsilon for spec in self.randomizers) if self.randomizers else math.inf

    @property
    def report_bits(self) -> float:
        """Bits of the reports of one contribution; NaN where a kind does not say."""
        return math.nan

    @property
    def download_bits(self) -> float:
        """Bits that a client downloads; NaN where a kind does not say."""
        return math.nan

    @property
    def domain_size(self) -> int | None:
        """Values of the randomizer, the dummy included; None where no guarantee depends on it."""
        return None

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        """What each contribution is reported through; none where that is no frequency oracle."""
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class ItemQuestion(Question):
    """A question to which a client contributes some of its items, each by itself.

    Attributes:
        sampler: How a client with more than B values chooses: "random" or "greedy" (Gboard paper,
            section 3, "Local dataset sampler").
    """

    sampler: str


@dataclass(frozen=True, kw_only=True, eq=False)
class PrefixQuestion(ItemQuestion):
    """A broadcast that asks for one more symbol after kept prefixes.

    Candidate values, in order: ``prefix * A + symbol`` for every prefix of the trie's last level
    and every symbol; then the ``finished`` words; last the dummy. Layer i has candidates of
    ``i + 1`` symbols, end included.

    Attributes:
        trie: The kept prefixes, of length ``layer``.
        finished: ``(f, width)`` codes of words shorter than the candidates, to be voted on besides
            them; empty but in a pass's first layer.
        excluded: ``(x, width)`` codes of words that clients leave out, found by earlier passes.
        oracle: The local randomizer.
        votes_per_client: Whether each of a client's reports counts by itself ("all"), or all of
            them together, so that a value has at most "one" vote of a client.
    """

    trie: PrefixTrie
    finished: Codes
    excluded: Codes
    oracle: OracleSpec
    votes_per_client: VotesPerClient = "all"

    @property
    def num_extensions(self) -> int:
        """Candidates that extend a prefix."""
        return self.trie.width * self.trie.alphabet_size

    @property
    def num_candidates(self) -> int:
        """Candidates in all, the dummy not counted."""
        return self.num_extensions + len(self.finished)

    @property
    def dummy(self) -> int:
        """Value of a contribution with nothing to say."""
        return self.num_candidates

    @property
    def domain_size(self) -> int:
        return self.num_candidates + 1

    @property
    def tally_size(self) -> int:
        return self.domain_size

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        return (self.oracle,)

    @property
    def client_votes(self) -> ClientVotes | None:
        """How a client's reports are counted together; None where each counts by itself."""
        if self.votes_per_client == "all":
            return None
        oracle = make_pure_oracle(self.oracle, self.domain_size)
        return ClientVotes(oracle=oracle, max_items=self.max_items)

    @property
    def num_prefixes(self) -> int:
        """Prefixes broadcast."""
        return self.trie.width if self.num_extensions else 0

    @property
    def report_bits(self) -> float:
        return make_oracle(self.oracle, self.domain_size).report_bits

    @property
    def download_bits(self) -> float:
        per_symbol = float(np.log2(self.alphabet.size))
        levels = sum(
            len(level) * (np.log2(max(above, 2)) + per_symbol)
            for above, level in zip(self._widths, self.trie.levels, strict=True)
        )
        words = (len(self.finished) + len(self.excluded)) * self.excluded.shape[1] * per_symbol
        return float(levels + words)

    @property
    def _widths(self) -> list[int]:
        return [1, *(len(level) for level in self.trie.levels)][:-1]


@dataclass(frozen=True, kw_only=True, eq=False)
class WordVoteQuestion(PrefixQuestion):
    """Asks each client for one plain vote: the prefix of one of its words.

    The client draws one of its words, each with the chance of its share of the client's typing,
    and votes for the word's prefix if that is a candidate. Otherwise it abstains, which counts as
    a report of the dummy. Nothing is randomized: it is for protocols that trust whoever sums up.
    """

    @property
    def local_epsilon(self) -> float:
        return math.inf


@dataclass(frozen=True, kw_only=True, eq=False)
class Aggregate:
    """What the server learns of a round, or of a part of it: exact integers, merged in any order.

    Attributes:
        tally: ``(question.tally_size,) int64``; for a `PrefixQuestion`, support counts of all values, by
            reports or by clients, see ``votes_per_client`` there.
        num_reports: Reports behind them, dummies included.
        num_clients: Clients that answered.
        messages: The reports themselves, first axis one per report (or, where a question says so, one
            per distinct report of a block), where a question asks for them and not only for their
            sum; their order follows the merges and must not matter.
    """

    tally: Tally
    num_reports: int
    num_clients: int
    messages: Messages | None = None

    def check_answers(self, question: Question) -> None:
        """Raise ValueError unless the tally has the length of one that answers a question."""
        if len(self.tally) != question.tally_size:
            raise ValueError(
                f"Expected a tally of {question.tally_size} numbers for pass {question.pass_index + 1}, "
                f"layer {question.layer}, got {len(self.tally)}."
            )

    @classmethod
    def empty(cls, tally_size: int) -> Aggregate:
        """Return the aggregate of no report."""
        return cls(tally=np.zeros(tally_size, dtype=np.int64), num_reports=0, num_clients=0)

    def merge(self, other: Aggregate) -> Aggregate:
        """Return the aggregate of both parts."""
        return Aggregate(
            tally=self.tally + other.tally,
            num_reports=self.num_reports + other.num_reports,
            num_clients=self.num_clients + other.num_clients,
            messages=merge_messages([self.messages, other.messages]),
        )


def merge_messages(parts: Iterable[Messages | None]) -> Messages | None:
    """Return all parts' messages, or None if no part has any."""
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """What some clients hold, counted by the simulator as it draws them.

    Attributes:
        clients: Ranges of client numbers: first, and one behind the last.
        words: ``(V, 2)``, ``int32`` or ``int64``: contributions for each word of the lexicon, and
            its holders.
        contributions: Contributions in all, those for words outside the lexicon included.
        squares: Sum over clients of their squared number of contributions.
    """

    clients: tuple[tuple[int, int], ...]
    words: npt.NDArray[np.signedinteger[Any]]
    contributions: int
    squares: int

    def merge(self, other: Counted) -> Counted:
        """Return the counts of both groups of clients."""
        return Counted(
            clients=self.clients + other.clients,
            words=np.add(self.words, other.words, dtype=np.int64),
            contributions=self.contributions + other.contributions,
            squares=self.squares + other.squares,
        )


@dataclass(frozen=True, kw_only=True)
class Attendance:
    """How many devices of a round's cohort were there, and how long it was open.

    Attributes:
        pass_index: Which pass, from 0.
        layer: Which layer, from 1.
        asked: Clients of the cohort.
        eligible: Those whose devices ever answer.
        dropped: Devices that checked in before the round closed, and dropped out.
        answers: Clients that answered.
        fewest: Answers that the round accepts at least.
        hours: From its beginning to its end.
        waited_hours: How long of that was beyond the deadline.
    """

    pass_index: int
    layer: int
    asked: int
    eligible: int
    dropped: int
    answers: int
    fewest: int
    hours: float
    waited_hours: float = 0.0

    @property
    def is_missed(self) -> bool:
        """Whether fewer clients answered than the round accepts."""
        return self.answers < self.fewest


@dataclass(frozen=True, kw_only=True, eq=False)
class FakeReports:
    """What fake clients sent in a round.

    Attributes:
        clients: How many they were.
        reports: Reports of theirs.
        tally: ``(tally_size,) int64``: what these add up to.
    """

    clients: int
    reports: int
    tally: Tally


@dataclass(frozen=True, kw_only=True)
class Diagnostics:
    """What only a simulator can know of a round; it never reaches a protocol.

    Attributes:
        num_dummies: Contributions that were the dummy.
        num_clients_with_items: Clients that held at least one candidate.
        counted: What the clients hold, where that is counted while they answer.
        is_sampled: Whether the tally was drawn at once, and no report was made.
        attendance: How many devices were there; None where all clients always answer.
        fakes: What fake clients sent; None where there are none.
    """

    num_dummies: int = 0
    num_clients_with_items: int = 0
    counted: Counted | None = field(default=None, compare=False)
    is_sampled: bool = False
    attendance: Attendance | None = None
    fakes: FakeReports | None = field(default=None, compare=False)

    def merge(self, other: Diagnostics) -> Diagnostics:
        """Return the diagnostics of both parts."""
        return Diagnostics(
            num_dummies=self.num_dummies + other.num_dummies,
            num_clients_with_items=self.num_clients_with_items + other.num_clients_with_items,
            counted=self.counted.merge(other.counted)
            if self.counted and other.counted
            else self.counted or other.counted,
            is_sampled=self.is_sampled or other.is_sampled,
            attendance=self.attendance or other.attendance,
            fakes=self.fakes or other.fakes,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """A worker's answer for some blocks: what the server may see, and what it may not."""

    aggregate: Aggregate
    diagnostics: Diagnostics = field(default_factory=Diagnostics)

    def merge(self, other: Answer) -> Answer:
        """Return the answer for both sets of blocks."""
        return Answer(
            aggregate=self.aggregate.merge(other.aggregate),
            diagnostics=self.diagnostics.merge(other.diagnostics),
        )
