"""One layer's votes, as runs make them: a worker that answers a question, again and again.

Reports are made one by one, as devices make them, whatever `simulation.fidelity` says: tallies that
a run draws at once have no reports, and are tested against these in distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.audit import EpsilonDelta, Finding, audit, audit_guesses
from fedhh.clients.population import Population
from fedhh.clients.worker import ClientWorker
from fedhh.oracles import OracleSpec
from fedhh.questions.choice import SampleB
from fedhh.questions.clients import ClientBlock
from fedhh.questions.cohort import Cohort
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.questions.reports import Reports
from fedhh.random import Stream, generator
from fedhh.simulation.executor import Broadcast
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon
from fedhh.words.trie import PrefixTrie

_WORDS = ("a", "b")
_MOST_CLIENTS = 2**62


class AuditedVotes:
    """The votes of a layer in which one client contributes one value of two, or the dummy.

    All other clients contribute the dummy; with a domain of two values, the second one is the
    dummy, too. Each run of the layer is a block of its own, whose coins are those that
    `ClientWorker` gives it; no block is run twice.

    Attributes:
        values: ``(2,)`` or ``(3,) int64``: the numbers of the values in the domain, the dummy last.
    """

    def __init__(
        self, spec: OracleSpec, *, domain_size: int, num_reports: int, holds: int, seed: int
    ) -> None:
        """Prepare the layer.

        Args:
            spec: The randomizer.
            domain_size: Its values, the dummy included, at least 2.
            num_reports: Reports in the layer, of one client each.
            holds: Which value the client contributes: its place among ``values``.
            seed: Of the worker.
        """
        alphabet = Alphabet(symbols="".join(_WORDS))
        words = _WORDS[: min(2, domain_size - 1)]
        names = TrieNames(
            trie=PrefixTrie(alphabet_size=domain_size - 1 - len(words)),
            finished=alphabet.encode(words, width=2),
            excluded=np.zeros((0, 2), dtype=np.uint16),
        )
        self._question = Question(
            pass_index=0,
            layer=1,
            cohort=_RunsOfOneLayer(start=0, size=_MOST_CLIENTS, num_reports=num_reports),
            alphabet=alphabet,
            max_items=1,
            names=names,
            choice=SampleB(sampler="greedy"),
            channel=Reports.on(names, spec),
        )
        first = names.num_extensions
        self.values = np.array([*range(first, first + len(words)), names.nothing])
        word = words[holds] if holds < len(words) else None
        self._worker = ClientWorker(_OneHolder(words, num_reports, word), seed=seed)
        self._broadcast = Broadcast.to_all(self._question)
        self._next_run = 0

    def tally(self) -> Ints:
        """Return the ``(domain_size,)`` votes of another run."""
        run, self._next_run = self._next_run, self._next_run + 1
        answer = self._worker.answer(self._broadcast, [run])
        return self._question.channel.support(self._question, answer.aggregate)

    def differences(self, num_runs: int) -> Floats:
        """Return ``(num_runs,)``: votes for the first value, less those for the second."""
        first, second = self.values[:2]
        tallies = (self.tally() for _ in range(num_runs))
        return np.array([tally[first] - tally[second] for tally in tallies], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class _RunsOfOneLayer(Cohort):
    """A cohort whose blocks are whole runs."""

    num_reports: int

    @property
    def block_size(self) -> int:
        return self.num_reports


class _OneHolder(Population):
    """Clients of whom the first of each block holds a word, if any does."""

    name = "audit"
    unit = "contribution"
    arrangement = "independent"

    def __init__(self, words: tuple[str, ...], num_reports: int, word: str | None) -> None:
        self._lexicon = Lexicon(words=list(words))
        held = [] if word is None else [words.index(word)]
        self._offsets = np.minimum(np.arange(num_reports + 1), len(held))
        self._word_ids = np.array(held, dtype=np.int32)

    @property
    def num_clients(self) -> int:
        return _MOST_CLIENTS

    @property
    def lexicon(self) -> Lexicon:
        return self._lexicon

    def block(self, clients: Ints) -> ClientBlock:
        return ClientBlock(
            clients=clients,
            offsets=self._offsets,
            word_ids=self._word_ids,
            counts=np.ones_like(self._word_ids),
        )


def audit_votes(
    spec: OracleSpec, *, domain_size: int, num_samples: int, confidence: float, seed: int
) -> Finding:
    """Return a lower bound on the local epsilon of one report, from its tally by a worker."""
    places = list(range(min(3, domain_size)))
    layers = _votes_of_each(spec, domain_size=domain_size, num_reports=1, places=places, seed=seed)

    def shows(held: Ints, among: Sequence[int], *, rng: np.random.Generator) -> tuple[Ints, Floats]:
        tallies = np.stack([layers[place].tally() for place in held])
        return tallies, tallies[:, layers[0].values[list(among)]].astype(np.float64)

    return audit_guesses(
        shows,
        [places],
        EpsilonDelta(epsilon=spec.epsilon),
        num_reports=num_samples,
        rng=generator(seed, Stream.SAMPLING),
        confidence=confidence,
    )


def audit_layer(
    spec: OracleSpec,
    *,
    domain_size: int,
    num_reports: int,
    num_runs: int,
    delta: float,
    confidence: float,
    seed: int,
) -> Finding:
    """Return a lower bound on the central epsilon of a layer's votes, one contribution swapped.

    The statistic is the difference of the two values' votes, which is all that the replacement can
    show in the tally beyond chance.
    """
    votes = _votes_of_each(
        spec, domain_size=domain_size, num_reports=num_reports, places=(0, 1), seed=seed
    )
    first, second = (each.differences(num_runs) for each in votes)
    claim = EpsilonDelta(epsilon=0.0, delta=delta)
    return audit(first, second, claim, confidence=confidence)


def _votes_of_each(
    spec: OracleSpec, *, domain_size: int, num_reports: int, places: Sequence[int], seed: int
) -> list[AuditedVotes]:
    """Return the layer with each of its client's values, on coins of their own."""
    seeds = generator(seed, Stream.RANDOMIZER).integers(2**62, size=len(places)).tolist()
    return [
        AuditedVotes(
            spec, domain_size=domain_size, num_reports=num_reports, holds=holds, seed=own_seed
        )
        for holds, own_seed in zip(places, seeds, strict=True)
    ]
