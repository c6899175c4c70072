"""The known-dictionary upper bound: what a round that knows every held word would find.

The bound needs no discovery. It spends all clients of the population in one round of Subset
Selection over just the held words, at the run's epsilon per contribution and with the run's B, and
keeps what Benjamini and Hochberg's rule lets through. The coverage of that is the ceiling.

It is a ceiling for one round of this randomizer under this rule, not a bound on all methods. A
protocol that counts few candidates again has fewer to test than the bound, and may pass it; so may
one that lets words of noise into its result. The bound spends no client on finding candidates, and
that is what discovery costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhh.arrays import Bools, Ints
from fedhh.clients.population import Population
from fedhh.experiments.run.truth import Truth
from fedhh.oracles import OracleSpec
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.choice import SampleB
from fedhh.questions.cohort import Cohort
from fedhh.questions.names import TrieNames
from fedhh.questions.question import Question
from fedhh.questions.reports import Reports
from fedhh.server.evidence import benjamini_hochberg, p_values
from fedhh.server.local_discovery import LocalProtocol
from fedhh.simulation.executor import Executor
from fedhh.simulation.fidelity import Fidelity
from fedhh.simulation.roster import RoundRoster

FALSE_DISCOVERY_RATE = 0.05
"""Of the known-dictionary bound's rule."""

_PASS = 2**31
"""Addresses the bound's coins, so that none of them is a run's; no run has so many passes."""


@dataclass(frozen=True, kw_only=True)
class Ceiling:
    """The known-dictionary upper bound.

    Attributes:
        coverage: Share of all contributions that fall on the words it keeps.
        words: How many words it keeps.
        candidates: Held words that the protocol could spell, of which it keeps them.
    """

    coverage: float
    words: int
    candidates: int


_known: dict[tuple[object, ...], Ceiling] = {}
"""Ceilings of this process by all that decides them: the protocols of a comparison share them."""


def ceiling(
    protocol: DiscoveryProtocol,
    population: Population,
    truth: Truth,
    executor: Executor,
    *,
    seed: int,
    fidelity: Fidelity,
) -> Ceiling | None:
    """Return the bound with a protocol's epsilon, B, sampler, alphabet and length.

    Every client answers as in a run: it samples B of its words, pads with the dummy if the protocol
    does, and randomizes each contribution with all of the local epsilon, also where the protocol
    divides it. Of a population that is larger than its lexicon, the bound knows the lexicon's
    words; the coverage is a share of all contributions even so.

    The round is asked once in a process for all protocols that share these settings, the
    population, the seed and the fidelity.

    Args:
        protocol: Settled settings.
        population: The clients.
        truth: What they hold, for this protocol's alphabet and length.
        executor: The way to the clients.
        seed: The run's seed, which is the executor's.
        fidelity: How faithfully clients are simulated.

    Returns:
        None for a protocol without local privacy, or whose clients do not contribute as those of a
        `LocalProtocol` do.
    """
    if not isinstance(protocol, LocalProtocol) or math.isinf(protocol.plan.local_epsilon):
        return None
    epsilon = protocol.plan.local_epsilon
    contributing = (epsilon, protocol.max_items, protocol.sampler, protocol.pad)
    spelled = (protocol.symbols.symbols, protocol.longest_word)
    key = (population.fingerprint(), seed, fidelity, *contributing, *spelled)
    if key not in _known:
        held = np.flatnonzero(truth.reachable & (truth.clients > 0))
        question = _question(protocol, population, held, epsilon)
        kept = _kept(question, executor, seed=seed, fidelity=fidelity)
        _known[key] = Ceiling(
            coverage=truth.share(held[kept]), words=int(kept.sum()), candidates=len(held)
        )
    return _known[key]


def measured_ceiling(highest: Ceiling | None, coverage: float) -> dict[str, Any]:
    """Return the metrics of a run with such a coverage that are about its ceiling."""
    if highest is None:
        return {}
    return {
        "ceiling_coverage": highest.coverage,
        "ceiling_words": highest.words,
        "share_of_ceiling": coverage / highest.coverage if highest.coverage else None,
    }


def _question(
    protocol: LocalProtocol,
    population: Population,
    held: Ints,
    epsilon: float,
) -> Question:
    """Return the question about some words of the lexicon, and about nothing else."""
    alphabet, width = protocol.symbols, protocol.longest_word + 1
    names = TrieNames.of_words(population.lexicon.encoded(alphabet, width)[held], alphabet)
    oracle = OracleSpec(name="ss", epsilon=epsilon, params={"subset_size": "optimal"})
    return Question(
        pass_index=_PASS,
        layer=1,
        cohort=Cohort(start=0, size=population.num_clients),
        alphabet=alphabet,
        max_items=protocol.max_items,
        pad=protocol.pad,
        names=names,
        choice=SampleB(sampler=protocol.sampler),
        channel=Reports.on(names, oracle),
    )


def _kept(question: Question, executor: Executor, *, seed: int, fidelity: Fidelity) -> Bools:
    """Return ``(c,) bool``: which of the question's candidates the rule lets through."""
    if not question.num_candidates:
        return np.zeros(0, dtype=np.bool_)
    everybody = RoundRoster(cohort=question.cohort)
    aggregate = fidelity.asked(question, everybody, executor, seed).aggregate
    votes = question.votes(aggregate).astype(np.float64)
    num_reports = np.full(len(votes), float(aggregate.num_reports))
    oracle = question.channel.pure
    p = p_values(votes, num_reports, num_reports * oracle.q)
    return benjamini_hochberg(p, FALSE_DISCOVERY_RATE)
