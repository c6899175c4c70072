"""A run's fake clients: their words, how they reach its rounds, and what they achieved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedhh.accounting.colluding_runs import require_accounting
from fedhh.adversary import Adversary, FakeGroup, random_targets
from fedhh.clients.fakes import Fakes
from fedhh.clients.populations.population import Population
from fedhh.experiments.config.labels import listed
from fedhh.protocol import AnyProtocol
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
        if self.strategy.startswith("random-"):
            return f"{few} sent {self.strategy.replace('-', ' ')}."
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
        return {
            "goal": self.goal,
            "strategy": self.strategy,
            "clients": self.clients,
            "colluding": self.colluding,
            "share": self.share,
            "targets_found": self.targets_found,
            "targets": [asdict(target) for target in self.targets],
        }

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
        number: How many they are.
        num_colluding: Clients whose reports the adversary knows: they, or colluders.
    """

    def __init__(
        self,
        adversary: Adversary | None,
        protocol: AnyProtocol,
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
        self._seed = seed
        self.words: list[str] = []
        self.number = self.num_colluding = 0
        if adversary is not None:
            require_accounting(protocol.plan)
            self.number = adversary.num_fakes(population.num_clients)
            self.num_colluding = adversary.num_colluding(population.num_clients)
            if adversary.lies:
                self.words = _targets(adversary, protocol, population, seed=seed)

    @property
    def groups(self) -> tuple[FakeGroup, ...]:
        """Fake clients by the words that they are about."""
        adversary = self._adversary
        return () if adversary is None or not adversary.lies else adversary.groups(self._num_honest)

    @property
    def answer(self) -> FakeAnswer | None:
        """What they send; None if there are none."""
        adversary = self._adversary
        if adversary is None or not adversary.lies:
            return None
        return Fakes(
            words=self.words,
            groups=self.groups,
            goal=adversary.goal,
            strategy=adversary.strategy,
            seed=self._seed,
        ).answer

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

    def _outcomes(self, discoveries: pd.DataFrame) -> Sequence[Target]:
        clients = np.zeros(len(self.words), dtype=np.int64)
        for group in self.groups:
            clients[list(group.targets)] = group.clients
        estimates = discoveries["estimated_clients"].to_numpy(dtype=float)
        ranks = np.empty(len(estimates), dtype=np.int64)
        ranks[np.argsort(-estimates, kind="stable")] = np.arange(1, len(estimates) + 1)
        rows = {word: row for row, word in enumerate(discoveries["word"])}
        targets = []
        for word, number in zip(self.words, clients.tolist(), strict=True):
            row = rows.get(word)
            found = row is not None
            targets.append(
                Target(
                    word=word,
                    clients=number,
                    found=found,
                    estimated_clients=float(estimates[row]) if found else None,
                    rank=int(ranks[row]) if found else None,
                )
            )
        return targets


def _require_unknown(targets: Sequence[str], protocol: AnyProtocol) -> None:
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
    adversary: Adversary, protocol: AnyProtocol, population: Population, *, seed: int
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
        population.count()
        spelled = population.lexicon.reachable(protocol.symbols, longest)
        holders = np.where(spelled, population.word_clients, -1)
        most = np.argsort(-holders, kind="stable")[: adversary.num_targets]
        return [words[i] for i in most.tolist() if holders[i] > 0]
    return random_targets(
        adversary.num_words,
        length=min(adversary.target_length, longest),
        alphabet=protocol.symbols,
        held=frozenset(words),
        seed=seed,
    )
