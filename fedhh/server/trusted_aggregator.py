"""What discoveries share whose clients trust an aggregator with plain words.

The aggregator may be a server that clients trust, or a trusted execution environment whose code
they can verify. Its noise and its coins follow from the run's seed, which no question carries.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, Self

import numpy as np
from annotated_types import Ge, Le

from fedhh.accounting.rounds import PlannedRound
from fedhh.accounting.trusted_aggregator import TrustedAggregatorPlan
from fedhh.arrays import Bools, Floats, Ints
from fedhh.protocol import Answers, Decision, Heard, RunState
from fedhh.questions.names import StringNames
from fedhh.questions.plain import PlainWords
from fedhh.questions.question import Messages, Question
from fedhh.random import Stream, generator
from fedhh.server.cohorts import BoundedWords, Central, Contributing, RunSeed
from fedhh.settings import Items
from fedhh.validation import SMALLEST_EPSILON
from fedhh.words.trie import Codes

_LARGEST_EPSILON = 1000.0
"""Of a user."""
_TOLERANCE = 1e-3
"""How far below a target the guarantee of an item may stay, relative."""
_MOST_STEPS = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Released:
    """What an aggregator makes of the ``c`` words that clients sent.

    Attributes:
        estimate: ``(c,) float64``: what would be said of each.
        is_published: ``(c,) bool``: whether it is.
        variance: ``(c,) float64``, or one number: of the estimates.
        z: ``(c,) float64``: how far above the noise each lies.
        decision: What decided, see `Decision`.
    """

    estimate: Floats
    is_published: Bools
    variance: Floats | float
    z: Floats
    decision: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Curated(BoundedWords):
    """A discovery in which clients trust somebody with plain words.

    Attributes:
        noise_seed: Seed of the curator's noise, which no question carries; None for the run's. The
            seed of the names of words, which clients get, is drawn from it by another stream.
    """

    noise_seed: RunSeed = None

    def plain_words(self, *, excluded: Codes | None = None, **channel: Any) -> Question:
        """Return the question for plain words.

        Args:
            excluded: Words that clients leave out, see `StringNames`.
            channel: See `PlainWords`.
        """
        (seed,) = self.seeds(1)
        names = StringNames.draw(self.symbols, length=self.length, seed=seed, excluded=excluded)
        return self.asking(names, PlainWords(num_keys=names.num_keys, **channel))

    def noise_of(self, layer: int) -> np.random.Generator:
        """Return the source of the curator's noise in a layer: the same draws for a run."""
        return generator(self.noise_seed or 0, Stream.CURATOR, 0, layer)


@dataclass(frozen=True, kw_only=True)
class TrustedAggregator(Curated, Contributing, Central):
    """A discovery whose clients send up to B of their words to an aggregator that they trust.

    Attributes:
        central_epsilon: Central privacy of a user, for all that it contributes.
        max_items: B, words that a client contributes at most, which bounds what noise has to cover.
    """

    central_epsilon: Annotated[float, Ge(SMALLEST_EPSILON), Le(_LARGEST_EPSILON)] = 1.0
    max_items: Items = 1

    @property
    @abstractmethod
    def plan(self) -> TrustedAggregatorPlan:
        """What a run does with its clients' words."""

    def with_central_epsilon(
        self, epsilon: float, *, unit: Literal["item", "user"] = "user"
    ) -> Self:
        """Return the settings with an epsilon of a user; the largest for which an item's is asked.

        Of an item, it is looked for up to B times the epsilon, which B replacements of one item
        cannot exceed, and up to a relative thousandth.
        """
        if unit == "user":
            return super().with_central_epsilon(epsilon)
        low, high = epsilon, min(epsilon * self.max_items, _LARGEST_EPSILON)
        best = self.with_central_epsilon(low)
        reached = best.item_epsilon
        for step in range(_MOST_STEPS):
            if reached >= epsilon * (1 - _TOLERANCE) or high <= low * (1 + _TOLERANCE):
                break
            # Often an item's epsilon is proportional to a user's.
            guess = low * epsilon / reached * (1 - 1e-12)
            if step % 2 or not low < guess <= high:
                guess = math.sqrt(low * high)
            tried = self.with_central_epsilon(guess)
            if tried.item_epsilon <= epsilon:
                best, low, reached = tried, guess, tried.item_epsilon
            else:
                high = guess
        return best

    @property
    def item_epsilon(self) -> float:
        """Central privacy of one contribution, by the plan; it depends on no cohort."""
        return replace(self, clients_per_layer=1).plan.item_epsilon

    def planned_rounds(self, rounds: int = 1) -> tuple[PlannedRound, ...]:
        """Return rounds that ask for plain words."""
        size = self.plain_words().names.num_keys
        return tuple(
            self.planned_round(layer, self.cohort_clients, size) for layer in range(1, rounds + 1)
        )

    def ask(self, planned: PlannedRound, run: RunState) -> Question | None:
        return self.plain_words()

    def hear(self, run: RunState, answers: Answers) -> Heard:
        """Return the published words, the largest estimates first.

        ``num_candidates`` are all strings that the alphabet allows: how many words clients hold is
        nobody's to know.
        """
        question = answers.question
        rows = question.channel.rows(question, answers.aggregate)
        codes = np.zeros((len(rows), self.length + 1), dtype=np.uint16)
        codes[:, : self.length] = rows[:, : self.length]
        starts = np.flatnonzero(np.r_[len(codes) > 0, (codes[1:] != codes[:-1]).any(axis=1)])
        words = self.released(answers.planned, rows, starts)
        order = np.argsort(-words.estimate, kind="stable")
        which = order[words.is_published[order]]
        decision = Decision(
            num_candidates=question.names.num_keys, num_kept=len(which), **words.decision
        )
        found = answers.found(
            codes[starts[which]],
            estimate=words.estimate[which],
            variance=np.broadcast_to(words.variance, len(starts))[which],
            z=words.z[which],
        )
        return Heard(decision=decision, found=found)

    @abstractmethod
    def released(self, planned: PlannedRound, rows: Messages, starts: Ints) -> Released:
        """Return what the aggregator makes of a round's words.

        Args:
            planned: The round.
            rows: ``(rows, message_size) int64``, as `PlainWords.one_row_each` returns them.
            starts: ``(c,) int64``: the first row about each word; there is one unless they are by
                size.
        """
