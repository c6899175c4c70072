"""What crosses the line between server and clients: questions down, aggregates up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fedhh.oracles import OracleSpec
from fedhh.questions.cohort import NOBODY, Cohort
from fedhh.words.alphabet import Alphabet

if TYPE_CHECKING:
    from fedhh.questions.channel import Channel

SEED_BITS = 64.0
"""Bits of the seed of a hash function that clients download."""

_LOWER = Alphabet.named("lower")

Tally = npt.NDArray[np.int64]
Messages = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """What a server broadcasts in a round.

    Names give each word a value, once for all who hold it; a choice says which of its values a
    client contributes; a channel carries contributions to the tally. That is what a protocol asks;
    whom, the loop adds from the plan (`fedhh.protocol.DiscoveryProtocol.next_question`).

    Attributes:
        names: Word to value.
        choice: A client's values to those that it says.
        channel: Said values to the tally.
        pass_index: Which pass, from 0; with the layer it addresses the round's randomness.
        layer: Which round of the pass, from 1.
        cohort: Who is asked.
        alphabet: Symbols of a word.
        max_items: B, contributions per client.
        pad: Whether clients fill up to exactly B contributions with ones that say nothing.
        counts_only: Whether workers bring noise-free counts in place of the tally: a simulator's
            way to draw the tally at once, which no plan lets a server ask for.
    """

    names: Any
    choice: Any
    channel: Any
    pass_index: int = 0
    layer: int = 1
    cohort: Cohort = NOBODY
    alphabet: Alphabet = _LOWER
    max_items: int = 1
    pad: bool = True
    counts_only: bool = False

    @property
    def tally_size(self) -> int:
        """Length of the tally that answers it."""
        channel: Channel = self.channel
        return channel.counts_size if self.counts_only else channel.tally_size

    @property
    def local_epsilon(self) -> float:
        """Local privacy of one contribution to it; infinite if it asks for plain values."""
        channel: Channel = self.channel
        return channel.local_epsilon

    @property
    def randomizers(self) -> tuple[OracleSpec, ...]:
        """What each contribution is reported through; none where that is no frequency oracle."""
        channel: Channel = self.channel
        return channel.randomizers

    @property
    def domain_size(self) -> int | None:
        """Values of the randomizer, the dummy included; None where no guarantee depends on it."""
        channel: Channel = self.channel
        return channel.domain_size

    @property
    def report_bits(self) -> float:
        """Bits of the reports of one contribution; NaN where a channel does not say."""
        channel: Channel = self.channel
        return channel.report_bits(self)

    @property
    def download_bits(self) -> float:
        """Bits that a client downloads."""
        return float(self.names.download_bits(self.alphabet) + self.channel.download_bits)

    @property
    def num_candidates(self) -> int:
        """Candidates that it lists, the dummy not counted."""
        return int(self.names.num_candidates)

    def votes(self, aggregate: Aggregate) -> Tally:
        """Return ``(num_candidates,) int64``: what supports each candidate that it lists."""
        return np.asarray(self.channel.support(self, aggregate)[: self.num_candidates])


@dataclass(frozen=True, kw_only=True, eq=False)
class Aggregate:
    """What the server learns of a round, or of a part of it: exact integers, merged in any order.

    Attributes:
        tally: ``(question.tally_size,) int64``: what the channel adds reports up to.
        num_reports: Reports behind them, dummies included.
        num_clients: Clients that answered.
        messages: The reports themselves, first axis one per report (or, where a channel says so,
            one per distinct report of a block), where a question asks for them and not only for
            their sum; their order follows the merges and must not matter.
    """

    tally: Tally
    num_reports: int
    num_clients: int
    messages: Messages | None = None

    def check_answers(self, question: Question) -> None:
        """Raise ValueError unless the tally has the length of one that answers a question."""
        if len(self.tally) != question.tally_size:
            raise ValueError(
                f"Expected a tally of {question.tally_size} numbers for pass "
                f"{question.pass_index + 1}, layer {question.layer}, got {len(self.tally)}."
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
