"""How contributions reach the tally: what every channel says, and what it has by default."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fedhh.oracles import OracleSpec
from fedhh.questions.choice import Attack, Choice
from fedhh.questions.clients import ClientBlock, Coins, Held, Known, Said, Sent, Values
from fedhh.questions.matching import WordMatcher
from fedhh.questions.noise import AnyNoise
from fedhh.questions.question import Aggregate, Messages, Question, Tally, merge_messages

NOT_THE_FIRST_BLOCK = 1
"""The first block may bring what is no client's, such as the noise of servers."""

RngOf = Callable[[int], np.random.Generator]
"""The generator of each part of a tally that is drawn at once."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Channel(ABC):
    """Carries what clients say to the tally.

    A new channel must define `tally_size` and `add`. By default it has no local privacy, its tally
    cannot be drawn at once, and fake clients send what honest ones do who hold the target words.
    """

    @property
    @abstractmethod
    def tally_size(self) -> int:
        """Length of the tally."""

    @property
    def local_epsilon(self) -> float:
        """Local privacy of one contribution; infinite if it goes as it is."""
        return math.inf

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        """What each contribution is reported through; none where that is no frequency oracle."""
        return ()

    @property
    def domain_size(self) -> int | None:
        """Values of the randomizer, the dummy included; None where no guarantee depends on it."""
        return None

    @property
    def download_bits(self) -> float:
        """Bits of what clients download about it."""
        return 0.0

    def report_bits(self, question: Question) -> float:
        """Return the bits of the reports of one contribution to a question; NaN if unknown."""
        return math.nan

    def table(self, question: Question, known: Known) -> Any:
        """Return what is computed once for each distinct word; None if nothing is."""
        return None

    @abstractmethod
    def add(
        self,
        question: Question,
        said: Said,
        table: Any,
        coins: Coins,
        tally: Tally,
    ) -> Sent:
        """Add a block's reports to the tally: what clients say ends here.

        Args:
            question: The broadcast.
            said: What the block's clients say.
            table: `table` of the population's words.
            coins: The block's.
            tally: ``(question.tally_size,) int64``, changed in place; noise-free counts where the
                question asks for those.
        """

    def merged(self, question: Question, messages: Sequence[Messages | None]) -> Messages | None:
        """Return several blocks' messages as one array, or None if no block has any.

        Where a channel counts equal messages, those of several blocks may become one.
        """
        return merge_messages(messages)

    def support(
        self, question: Question, aggregate: Aggregate, values: Values | None = None
    ) -> Tally:
        """Return how many reports support each value: what a server reads from an aggregate.

        Args:
            question: The broadcast.
            aggregate: What came back.
            values: ``(c,) int64``; every value if None.
        """
        return aggregate.tally if values is None else aggregate.tally[values]

    def noise_of(self, question: Question, aggregate: Aggregate) -> AnyNoise:
        """Return what chance does to a value's support."""
        raise NotImplementedError

    # Aggregate-level sampling: a simulator's way, never a device's.

    @property
    def counts_size(self) -> int:
        """Length of the noise-free counts."""
        return self.tally_size

    @property
    def can_sample(self) -> bool:
        """Whether the tally can be drawn from noise-free counts, with its exact distribution."""
        return False

    @property
    def can_scale(self) -> bool:
        """Whether noise-free counts of some clients can stand for those of more."""
        return False

    def scale(
        self, question: Question, counts: Tally, drawn: int, num_clients: int
    ) -> tuple[Tally, int]:
        """Return the noise-free counts of so many clients from those of some, and their dummies.

        Args:
            question: The broadcast.
            counts: ``(counts_size,) int64``: of those that were drawn.
            drawn: How many they are.
            num_clients: How many they stand for.
        """
        raise NotImplementedError

    @property
    def report_draws(self) -> int:
        """Random numbers that a contribution's reports take; 0 if "auto" should never sample."""
        return 0

    def count(self, question: Question, held: Held, coins: Coins, tally: Tally) -> Sent | None:
        """Add a block's noise-free counts faster than `add` does; None where there is no such way.

        Arguments are those of `add`, and who holds what in place of what is said.
        """
        return None

    def sample(self, counts: Tally, rng_of: RngOf) -> Tally:
        """Return the tally, drawn from noise-free counts of all clients.

        Args:
            counts: ``(counts_size,) int64``.
            rng_of: Generators by the number of the tally's part.
        """
        raise NotImplementedError

    # What fake clients send: anything that the protocol does not check.

    def craft(self, attack: Attack) -> Sent:
        """Add what fake clients send: about words as strongly as checks allow, or at random.

        Here what honest clients send that hold some of the words, which take turns; against words
        and at random, what clients send that hold none.
        """
        own = np.unique(attack.targets)
        own = own[attack.known.values[own] >= 0] if attack.sign > 0 else own[:0]
        question = attack.question
        if not attack.sign:
            question = replace(question, pad=True)
        words = in_turn(own, attack.num_clients, self.targets_of_a_fake(question))
        # Other coins than those of a run's clients, who have its seed.
        answering = Answering(question, attack.words, int(attack.rng.integers(2**63)))
        return answering.add_block(ClientBlock.holding(words), NOT_THE_FIRST_BLOCK, attack.tally)

    def targets_of_a_fake(self, question: Question) -> int:
        """Return how many of the words a fake client claims to hold, see `craft`."""
        choice: Choice = question.choice
        return choice.num_reports(question)


class Answering:
    """Answers one question for blocks of clients.

    Attributes:
        question: The broadcast.
    """

    def __init__(self, question: Question, words: WordMatcher, seed: int) -> None:
        """Prepare to answer for a population with these words, in a run of this seed."""
        self.question, self._seed = question, seed
        self._known = question.names.known(words, question.alphabet)
        self._table = question.channel.table(question, self._known)

    def add_block(self, rows: ClientBlock, block: int, tally: Tally) -> Sent:
        """Add the block's reports to the tally; raw items end here.

        Args:
            rows: The block's clients and their items.
            block: The block's number, which addresses its randomness.
            tally: ``(question.tally_size,) int64``, changed in place.
        """
        question = self.question
        channel: Channel = question.channel
        coins = Coins(
            seed=self._seed,
            pass_index=question.pass_index,
            layer=question.layer,
            block=block,
        )
        held = Held(rows=rows, known=self._known)
        if question.counts_only:
            counted = channel.count(question, held, coins, tally)
            if counted is not None:
                return counted
        said = question.choice.say(question, held, coins)
        return channel.add(question, said, self._table, coins, tally)


def together(question: Question, parts: Sequence[Sent]) -> Sent:
    """Return what was sent in several parts."""
    channel: Channel = question.channel
    return Sent(
        num_clients=sum(part.num_clients for part in parts),
        num_reports=sum(part.num_reports for part in parts),
        num_dummies=sum(part.num_dummies for part in parts),
        num_clients_with_items=sum(part.num_clients_with_items for part in parts),
        messages=channel.merged(question, [part.messages for part in parts]),
    )


def in_turn(words: Values, num_clients: int, each: int) -> Values:
    """Return ``(n, k) int64``: k words for each client, or all there are, words taking turns."""
    taken = min(each, len(words))
    places = np.arange(num_clients * taken).reshape(num_clients, taken)
    return np.asarray(words[places % max(len(words), 1)])
