"""Which of its values a client says: some of them, one it typed, or something about all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedhh.oracles.base import require_in_domain
from fedhh.questions.clients import ClientBlock, Coins, Held, Known, Said, Sent, Values
from fedhh.questions.matching import WordMatcher
from fedhh.questions.names import ItemSets, Names
from fedhh.questions.question import Messages, Question, Tally
from fedhh.random import Stream, kernel_state


@dataclass(frozen=True, kw_only=True, eq=False)
class Attack:
    """What some fake clients send in answer to a question.

    Attributes:
        question: The broadcast.
        words: Finds words; its lexicon has no others than those that fake clients are about.
        targets: ``(t,) int64``: some of the words.
        sign: What the clients are after: 1 to support the words, -1 to oppose them; 0 for reports
            that are uniform over the report space.
        num_clients: How many they are.
        rng: Source of their coins.
        tally: ``(question.tally_size,) int64``: what they send is added here.
    """

    question: Question
    words: WordMatcher
    targets: Values
    sign: int
    num_clients: int
    rng: np.random.Generator
    tally: Tally

    @cached_property
    def known(self) -> Known:
        """The values of the words."""
        names: Names = self.question.names
        return names.known(self.words, self.question.alphabet)

    @cached_property
    def aim(self) -> tuple[Values, int]:
        """The values that reports speak for (sign 1) or against (-1); none, and 0, at random.

        They are random, too, where no word has a value in the question.
        """
        choice: Choice = self.question.choice
        values, sign = choice.wanted(self)
        return (values, sign) if self.sign and len(values) else (values[:0], 0)

    @property
    def each(self) -> int:
        """Reports of a client."""
        choice: Choice = self.question.choice
        return choice.num_reports(self.question)

    @property
    def count(self) -> int:
        """Reports in all."""
        return self.num_clients * self.each

    def sent(self, *, holds: bool = True, messages: Messages | None = None) -> Sent:
        """Return what was sent by clients that seem to hold something, or nothing."""
        return Sent(
            num_clients=self.num_clients,
            num_reports=self.count,
            num_dummies=0,
            num_clients_with_items=self.num_clients if holds else 0,
            messages=messages,
        )


class Choice(ABC):
    """A client's choice; `say` is all that a new one must define."""

    @abstractmethod
    def say(self, question: Question, held: Held, coins: Coins) -> Said:
        """Return what each client of a block says.

        Args:
            question: The broadcast.
            held: The clients, with the values of what they hold.
            coins: The block's.
        """

    def count(self, question: Question, held: Held, coins: Coins, tally: Tally) -> Sent:
        """Add how often each value is said to ``tally``, and return what that is in all."""
        # Compiled code loads with clients, and with no server that only asks.
        from fedhh.kernels.subset_tally import count_into

        said = self.say(question, held, coins)
        values = said.contributions(pad=False)
        require_in_domain(values, len(tally))
        count_into(values, tally)
        return Sent.of(said, len(values))

    def num_reports(self, question: Question) -> int:
        """Return how many contributions a client makes at most."""
        return question.max_items

    def wanted(self, attack: Attack) -> tuple[Values, int]:
        """Return the values that stand for an attack's words, and the sign of what to do for them.

        Returns:
            ``(r,) int64``, in any order, perhaps several times; empty where no word has one.
        """
        return attack.known.of(attack.targets), attack.sign


@dataclass(frozen=True, kw_only=True)
class SampleB(Choice):
    """At most B of the client's values: Gboard paper, section 3, "Local dataset sampler".

    Attributes:
        sampler: How a client with more than B chooses: "random" or "greedy".
        layer: In which layer clients choose, for all rounds; in each round anew if None.
    """

    sampler: str
    layer: int | None = None

    def say(self, question: Question, held: Held, coins: Coins) -> Said:
        from fedhh.kernels.sampling import choose_contributions

        coins = coins.at(self.layer)
        rows, known = held.rows, held.known
        values, sizes = choose_contributions(
            rows.clients,
            rows.offsets,
            rows.word_ids,
            rows.counts,
            known.values,
            known.live,
            question.max_items,
            self.sampler == "greedy",
            coins.of_round(Stream.TIE_BREAK).integers(0, 2**64, dtype=np.uint64),
            kernel_state(coins.rng(Stream.SAMPLING)),
        )
        return Said(values=values, sizes=sizes, holders=int(np.count_nonzero(sizes)))


@dataclass(frozen=True, kw_only=True)
class OneTyped(Choice):
    """One of the client's words, drawn with the chance of its share of the client's typing.

    Zhu et al. (2020), Algorithm 1, for several words each. A client whose word has no value says
    nothing.
    """

    def say(self, question: Question, held: Held, coins: Coins) -> Said:
        words = draw_words(held.rows, coins.rng(Stream.SAMPLING))
        drawn = words >= 0
        values = np.full((len(words), 1), -1, dtype=np.int64)
        values[drawn, 0] = held.known.values[words[drawn]]
        sizes = (values[:, 0] >= 0).astype(np.int64)
        return Said(values=values, sizes=sizes, holders=int(sizes.sum()))

    def num_reports(self, question: Question) -> int:
        return 1


@dataclass(frozen=True, kw_only=True)
class SetChoice(Choice):
    """One value about the set of candidates that a client holds, named by `ItemSets`.

    Source: Wang, Li, Jha (2018), "Locally differentially private frequent itemset mining", IEEE
    S&P.
    """

    def say(self, question: Question, held: Held, coins: Coins) -> Said:
        names: ItemSets = question.names
        owners, candidates = names.held_by(held)
        sizes = np.bincount(owners, minlength=len(held.rows.clients))
        values, said = self.value_of(names, candidates, sizes, coins.rng(Stream.SAMPLING))
        return Said(values=values[:, None], sizes=said, holders=int(np.count_nonzero(sizes)))

    @abstractmethod
    def value_of(
        self, names: ItemSets, candidates: Values, sizes: Values, rng: np.random.Generator
    ) -> tuple[Values, Values]:
        """Return the value that each client reports, and 1 where it says something, 0 elsewhere.

        Args:
            names: The candidates.
            candidates: Those of all clients, one client after the other.
            sizes: ``(n,) int64``: how many each client has.
            rng: Source of the clients' choices.
        """

    def num_reports(self, question: Question) -> int:
        return 1

    def held_with(self, attack: Attack) -> Values:
        """Return the candidates all of whose words are targets."""
        held: Values = attack.question.names.held_with(attack.known.of(attack.targets))
        return held


@dataclass(frozen=True, kw_only=True)
class PaddedMember(SetChoice):
    """One member of the client's set, which is padded to L: Qin et al. (2016), CCS.

    A client with h candidates pads its set with L - h distinct dummies, if h is below L, and
    reports one member, drawn uniformly. So a client with fewer than L candidates reports each with
    chance 1/L, and one with more each with chance 1/h. Values are the candidates, then L dummies.

    Attributes:
        padded_size: L.
    """

    padded_size: int

    def value_of(
        self, names: ItemSets, candidates: Values, sizes: Values, rng: np.random.Generator
    ) -> tuple[Values, Values]:
        drawn = rng.integers(np.maximum(sizes, self.padded_size))
        starts = np.cumsum(sizes) - sizes
        # Behind a client's h candidates come its dummies, the first L - h of them.
        values = np.asarray(names.num_candidates + drawn - sizes, dtype=np.int64)
        real = drawn < sizes
        values[real] = candidates[(starts + drawn)[real]]
        return values, real.astype(np.int64)

    def wanted(self, attack: Attack) -> tuple[Values, int]:
        return self.held_with(attack), attack.sign


@dataclass(frozen=True, kw_only=True)
class SetSize(SetChoice):
    """How many candidates the client holds: 0 to all of them.

    Attributes:
        largest: Clients that hold more say this; None for no such bound.
    """

    largest: int | None = None

    def largest_size(self, names: ItemSets) -> int:
        """Return the largest number that a client may say."""
        everything = names.num_candidates
        return everything if self.largest is None else min(self.largest, everything)

    def value_of(
        self, names: ItemSets, candidates: Values, sizes: Values, rng: np.random.Generator
    ) -> tuple[Values, Values]:
        return np.minimum(sizes, self.largest_size(names)), np.ones_like(sizes)

    def wanted(self, attack: Attack) -> tuple[Values, int]:
        """Return the size of a set that has the targets, or of an empty one, to demote them.

        The size is of no target: it lets the server choose how far sets are padded.
        """
        held = 0 if attack.sign < 0 else len(self.held_with(attack))
        size = min(held, self.largest_size(attack.question.names))
        return np.array([size], dtype=np.int64), 1


def draw_words(rows: ClientBlock, rng: np.random.Generator) -> Values:
    """Return ``(n,) int64``: one word of each client, drawn by its counts; -1 if it has none."""
    totals = np.concatenate([[0], np.cumsum(rows.counts, dtype=np.int64)])
    first, last = totals[rows.offsets[:-1]], totals[rows.offsets[1:]]
    words = np.full(len(rows.clients), -1, dtype=np.int64)
    holders = np.flatnonzero(last > first)
    typed = rng.integers(first[holders], last[holders])
    # Occurrence number t belongs to the row whose counts reach beyond it.
    words[holders] = rows.word_ids[np.searchsorted(totals, typed, side="right") - 1]
    return words
