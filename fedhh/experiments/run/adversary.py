"""A run's fake clients: their words, how they reach its rounds, and what they achieved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedhh.adversary import Adversary, random_targets
from fedhh.clients.fakes import Fakes
from fedhh.clients.population import Population
from fedhh.experiments.config.labels import listed
from fedhh.protocol import DiscoveryProtocol
from fedhh.server.local_discovery import CohortProtocol
from fedhh.simulation.engine import FakeAnswer
from fedhh.validation import InputError, printable, shown
from fedhh.words.alphabet import length_of


@dataclass(frozen=True, kw_only=True)
class Target:
    """A word that fake clients were about.

    Attributes:
        word: The word.
        clients: Fake clients that were about it.
        found: Whether the run discovered it.
        estimated_clients: The run's estimate of its clients; None if it was not discovered.
        rank: Its place among the discoveries by their estimates, from 1; None likewise.
    """

    word: str
    clients: int
    found: bool
    estimated_clients: float | None = None
    rank: int | None = None


@dataclass(frozen=True, kw_only=True)
class AdversaryOutcome:
    """What fake clients, or clients that collude, did in a run.

    Attributes:
        goal: What they were after.
        strategy: How; "output" of clients that collude, who report as honest ones do.
        clients: Fake clients in all, besides the population's; of colluders, 0.
        colluding: Clients whose reports the adversary knows: the fake ones, or the colluders.
        share: The same over all clients.
        targets: Their words.
    """

    goal: str
    strategy: str
    clients: int
    colluding: int
    share: float
    targets: tuple[Target, ...] = ()

    @property
    def targets_found(self) -> int:
        """How many of the targets were discovered."""
        return sum(target.found for target in self.targets)

    @property
    def sentence(self) -> str:
        """What they did, in one sentence."""
        if self.goal == "collude":
            return (
                f"{self.colluding:,} clients ({self.share:.2%}) collude with the server: "
                "amplification counts the others alone."
            )
        few = f"{self.clients:,} fake clients ({self.share:.2g} of all)"
        if self.strategy == "random-reports":
            return f"{few} sent random reports."
        verb = "opposed" if self.goal == "demote" else "pushed"
        shown_words = [target.word for target in self.targets[:3]]
        words = listed([f"{printable(word)!r}" for word in shown_words])
        if len(self.targets) > len(shown_words):
            words += f" and {len(self.targets) - len(shown_words):,} more"
        return f"{few} {verb} {words}: {self.targets_found:,} of {len(self.targets):,} found."

    def to_dict(self) -> dict[str, Any]:
        """Return it as ``result.json`` has it.

        Columns:
            goal: What they were after.
            strategy: How.
            clients: Fake clients in all, besides the population's.
            colluding: Clients whose reports the adversary knows.
            share: The same over all clients.
            targets_found: How many of the targets were discovered.
            targets: The words: each with its fake clients, whether it was found, its estimate and
                its rank.
        """
        return {**asdict(self), "targets_found": self.targets_found}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> AdversaryOutcome:
        """Return the outcome whose `to_dict` this is."""
        return cls(
            goal=str(content["goal"]),
            strategy=str(content["strategy"]),
            clients=int(content["clients"]),
            colluding=int(content["colluding"]),
            share=float(content["share"]),
            targets=tuple(Target(**target) for target in content["targets"]),
        )


class FakeClients:
    """The fake clients of one run; of a run without an adversary, nothing.

    Attributes:
        words: What they are about.
        groups: How many they are, by the part of the words that they are about.
        num_colluding: Clients whose reports the adversary knows: they, or colluders.
        answer: What they send; None if there are none.
    """

    def __init__(
        self,
        adversary: Adversary | None,
        protocol: DiscoveryProtocol,
        population: Population,
        *,
        seed: int,
    ) -> None:
        """Choose the words.

        Raises:
            InputError: The protocol cannot spell a word or knows it, or more clients collude than
                there are.
        """
        self._adversary = adversary
        self._num_honest = population.num_clients
        self.words: list[str] = []
        self.groups: tuple[int, ...] = ()
        self.num_colluding = 0
        self.answer: FakeAnswer | None = None
        if adversary is None:
            return
        self.groups = adversary.fakes(population.num_clients)
        self.num_colluding = adversary.num_colluding(population.num_clients)
        if adversary.lies:
            self.words = _targets(adversary, protocol, population, seed=seed)
            self.answer = Fakes(
                words=self.words,
                num_groups=len(self.groups),
                goal=adversary.goal,
                strategy=adversary.strategy,
                seed=seed,
            ).answer

    @property
    def number(self) -> int:
        """How many they are."""
        return sum(self.groups)

    def outcome(self, discoveries: pd.DataFrame) -> AdversaryOutcome | None:
        """Return what they achieved; None without an adversary."""
        adversary = self._adversary
        if adversary is None:
            return None
        return AdversaryOutcome(
            goal=adversary.goal,
            strategy=adversary.strategy,
            clients=self.number,
            colluding=self.num_colluding,
            share=self.num_colluding / (self._num_honest + self.number),
            targets=tuple(self._outcomes(discoveries)),
        )

    def _outcomes(self, discoveries: pd.DataFrame) -> Iterator[Target]:
        estimates = discoveries.set_index("word")["estimated_clients"].astype(float)
        ranks = estimates.rank(ascending=False, method="first", na_option="bottom")
        each = len(self.words) // max(len(self.groups), 1)
        for place, word in enumerate(self.words):
            found = word in ranks.index
            yield Target(
                word=word,
                clients=self.groups[place // each],
                found=found,
                estimated_clients=float(estimates[word]) if found else None,
                rank=int(ranks[word]) if found else None,
            )


def _require_unknown(targets: Sequence[str], protocol: DiscoveryProtocol) -> None:
    """Raise InputError if a protocol that returns no known word knows a target."""
    if not isinstance(protocol, CohortProtocol):
        return
    known = protocol.known_words
    for word, is_known in zip(targets, known.contains_all(targets), strict=True):
        if is_known:
            raise InputError(
                f"Expected adversary.targets that are not in population.known ({known.name}), got "
                f"{shown(word)}: no known word is a candidate; choose another word or set "
                'population.known = "none".'
            )


def _targets(
    adversary: Adversary, protocol: DiscoveryProtocol, population: Population, *, seed: int
) -> list[str]:
    longest = protocol.longest_word
    if adversary.targets:
        reachable = [
            0 < length_of(word) <= longest and not protocol.symbols.foreign(word)
            for word in adversary.targets
        ]
        if not all(reachable):
            word = adversary.targets[reachable.index(False)]
            raise InputError(
                f"Expected adversary.targets of at most {longest} symbols of the alphabet, got "
                f"{shown(word)}: the protocol cannot spell it."
            )
        _require_unknown(adversary.targets, protocol)
        return list(adversary.targets)
    words = population.lexicon.words
    if adversary.goal == "demote":
        spelled = population.lexicon.reachable(protocol.symbols, longest)
        holders = np.where(spelled, population.word_counts().holders, -1)
        most = np.argsort(-holders, kind="stable")[: adversary.num_targets]
        return [words[i] for i in most.tolist() if holders[i] > 0]
    return random_targets(
        adversary.num_words,
        length=min(adversary.target_length, longest),
        alphabet=protocol.symbols,
        held=frozenset(words),
        seed=seed,
    )
