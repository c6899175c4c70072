"""Adversaries: fake clients in a run, what they are after, and how they go about it.

Fake clients are registered like others and stand at random positions in the order of clients, so
a server asks them as it asks others: a round's cohort has a hypergeometric number of them. They
belong to nobody's truth: what is true, and what coverage counts, is what honest clients hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge, Le

from fedhh.arrays import Ints
from fedhh.random import Stream, generator
from fedhh.settings import Count, Settings, Share
from fedhh.validation import InputError, shown
from fedhh.words.alphabet import Alphabet, joined

Goal = Literal["promote", "demote", "collude"]
Strategy = Literal["output", "input", "random-reports"]

MOST_TARGETS = 1_000_000
"""Words that fake clients push."""

MOST_FAKES = 100_000_000
"""Fake clients of a run, whose positions are held."""

_TRIES = 1_000


@dataclass(frozen=True, kw_only=True)
class Adversary(Settings):
    """Fake clients, or clients that collude with the server.

    Attributes:
        clients: Fake clients in all rounds together; or give ``share``. Several numbers are groups
            that are about an equal part of the targets each, in order.
        share: The same as a share of all clients, the fake ones included.
        goal: "promote": every target should be found; "demote": the targets should not be found;
            "collude": no client lies, but so many tell the server what they reported, which honest
            clients' shuffle amplification then does without.
        strategy: "output": reports crafted to say as much as one report can (the maximal gain
            attack of Cao, Jia, Gong 2021); "input": honest reports of the targets (random items);
            "random-reports": uniform over all possible reports, whatever the targets (random
            perturbed values).
        targets: The words; if none are named, ``num_targets`` random strings of the alphabet that
            no client holds, or, to demote, the words that most clients hold.
        num_targets: How many, where they are not named.
        target_length: Symbols of a random target.
    """

    clients: Count | tuple[Count, ...] | None = None
    share: Share | None = None
    goal: Goal = "promote"
    strategy: Strategy = "output"
    targets: tuple[str, ...] = ()
    num_targets: Annotated[int, Ge(1), Le(MOST_TARGETS)] = 1
    target_length: Annotated[int, Ge(1), Le(1_000)] = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.clients is None) == (self.share is None):
            raise InputError(
                "Expected one of adversary.clients or adversary.share; give the number of fake "
                "clients once."
            )
        groups = self.clients if isinstance(self.clients, tuple) else (1,)
        if not groups or self.num_words % len(groups):
            raise InputError(
                f"Expected as many targets for each of adversary.clients={shown(self.clients)}, "
                f"got {self.num_words:,} in all; set adversary.num_targets to a multiple of "
                f"{len(groups):,}, or one number of clients."
            )
        if len(set(self.targets)) != len(self.targets):
            raise InputError("Expected adversary.targets as distinct words; name each once.")
        if "" in self.targets:
            raise InputError("Expected adversary.targets without empty words; remove them.")
        if self.goal == "collude" and self.targets:
            raise InputError("Expected no adversary.targets with goal 'collude'; leave them out.")
        if self.goal != "promote" and isinstance(self.clients, tuple):
            raise InputError(
                f"Expected one number as adversary.clients with goal {self.goal!r}, got "
                f"{shown(self.clients)}; groups push targets of their own."
            )

    @property
    def lies(self) -> bool:
        """Whether there are fake clients, who answer what they like."""
        return self.goal != "collude"

    def fakes(self, num_honest: int) -> tuple[int, ...]:
        """Return how many clients are fake besides so many honest ones, by group; none collude.

        Raises:
            InputError: They are more than `MOST_FAKES`.
        """
        if not self.lies:
            return ()
        if isinstance(self.clients, tuple):
            groups = self.clients
        elif self.clients is not None:
            groups = (self.clients,)
        else:
            assert self.share is not None
            groups = (max(1, round(self.share / (1 - self.share) * num_honest)),)
        if sum(groups) > MOST_FAKES:
            raise InputError(
                f"Expected at most {MOST_FAKES:,} fake clients, got {sum(groups):,}; lower "
                "adversary.clients or adversary.share."
            )
        return groups

    def num_colluding(self, num_honest: int) -> int:
        """Return of how many clients the adversary knows the reports: the fake, or colluders.

        Raises:
            InputError: More clients collude than there are.
        """
        if self.lies:
            return sum(self.fakes(num_honest))
        assert not isinstance(self.clients, tuple)
        number = self.clients or math.ceil((self.share or 0.0) * num_honest)
        if number >= num_honest:
            raise InputError(
                f"Expected adversary.clients < {num_honest:,} with goal 'collude', the clients of "
                f"the population, got {number:,}."
            )
        return number

    @property
    def num_words(self) -> int:
        """How many words it is about."""
        return len(self.targets) or self.num_targets


def random_targets(
    number: int, *, length: int, alphabet: Alphabet, held: frozenset[str], seed: int
) -> list[str]:
    """Return distinct random strings that nobody holds, of letters where the alphabet has some.

    Args:
        number: How many.
        length: Symbols of each.
        alphabet: Their symbols.
        held: Words that are none of them.
        seed: The run's seed.

    Raises:
        InputError: There are not so many strings.
    """
    symbols = [each for each in alphabet.listed if each[0].isalpha()] or list(alphabet.listed)
    rng = generator(seed, Stream.ADVERSARY, 0)
    found: dict[str, None] = {}
    for _ in range(_TRIES):
        drawn = rng.integers(len(symbols), size=(number - len(found), length))
        words = (joined([symbols[i] for i in row]) for row in drawn.tolist())
        found.update(dict.fromkeys(word for word in words if word not in held))
        if len(found) == number:
            return list(found)
    raise InputError(
        f"Expected adversary.num_targets <= {len(found):,}, the strings of {length} symbols that "
        f"nobody holds, got {number:,}; raise adversary.target_length."
    )


@dataclass(frozen=True, eq=False)
class FakePositions:
    """Where fake clients stand among all clients, in one order of these.

    Attributes:
        positions: ``(M,) int64``, ascending, in [0, N + M).
        groups: ``(M,) int64``: the group of each.
    """

    positions: Ints
    groups: Ints

    @classmethod
    def draw(
        cls, groups: tuple[int, ...], num_honest: int, *, rng: np.random.Generator
    ) -> FakePositions:
        """Return uniformly random positions of groups of so many clients."""
        number = sum(groups)
        drawn = rng.choice(num_honest + number, size=number, replace=False)
        order = np.argsort(drawn)
        labels = np.repeat(np.arange(len(groups)), groups)
        return cls(positions=drawn[order].astype(np.int64), groups=labels[order])

    def before(self, position: int) -> int:
        """Return how many stand before a position."""
        return int(np.searchsorted(self.positions, position))

    def numbers(self, start: int, stop: int, num_groups: int) -> Ints:
        """Return ``(num_groups,) int64``: how many of each group stand from start up to stop."""
        here = self.groups[self.before(start) : self.before(stop)]
        return np.bincount(here, minlength=num_groups)
