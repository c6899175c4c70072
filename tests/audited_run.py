"""Audits of runs: what one contribution changes in the votes of the first layer that decides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedhh.accounting import Guarantee
from fedhh.audit import EpsilonDelta, Finding, audit
from fedhh.clients.clients import Clients, Table
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.protocol import DiscoveryProtocol
from fedhh.questions.matching import WordMatcher
from fedhh.random import Stream, generator
from fedhh.simulation.engine import Round, rounds
from fedhh.simulation.executor import InProcessExecutor


@dataclass(frozen=True, kw_only=True)
class AuditedRun:
    """What an audit found, next to what the run claims.

    Attributes:
        found: Lower bound on the central epsilon of one contribution, by sampling.
        claims: The run's central claims for one contribution at the audit's delta.
        decided: Its first round that drops a candidate.
    """

    found: Finding
    claims: tuple[Guarantee, ...]
    decided: Round


def audit_run(
    protocol: DiscoveryProtocol,
    population: Clients,
    *,
    num_runs: int,
    delta: float,
    confidence: float,
    seed: int,
) -> AuditedRun:
    """Return a lower bound on the central epsilon of a run, and the run's own upper bounds.

    Two populations differ in one contribution of one client, one of the two rarest words that the
    layer tells apart. The protocol runs ``num_runs`` times on each, through its first layer that
    decides, with fresh coins of every client each time. The statistic is the difference of the
    votes for the two prefixes: all else in the layer is drawn alike. Clients are asked in the
    population's order, so that the client concerned always takes part, as the claims assume.
    """
    protocol = protocol.settle(num_clients=population.num_clients, seed=seed)
    pilot = _first_that_decides(protocol, population, seed)
    values = WordMatcher(population.lexicon).prefix_values(
        pilot.question.names, pilot.question.alphabet
    )
    spelled = np.flatnonzero(values >= 0)
    holders = np.bincount(values[spelled], weights=population.word_counts().holders[spelled])
    ordered = spelled[np.argsort(holders[values[spelled]], kind="stable")]
    pair = ordered[0], ordered[values[ordered] != values[ordered[0]]][0]
    first, second = values[list(pair)]
    seeds = generator(seed, Stream.RANDOMIZER).integers(2**62, size=(2, num_runs)).tolist()
    samples = []
    for word_id, own_seeds in zip(pair, seeds, strict=True):
        neighbor = _with_word(population, client=pilot.question.cohort.start, word_id=word_id)
        tallies = (
            _first_that_decides(protocol, neighbor, each).aggregate.tally for each in own_seeds
        )
        samples.append([float(tally[first] - tally[second]) for tally in tallies])
    claim = EpsilonDelta(epsilon=0.0, delta=delta)
    report = privacy_of_run(
        protocol, list(pilot.state.history), num_clients=population.num_clients, delta=delta
    )
    return AuditedRun(
        found=audit(samples[0], samples[1], claim, confidence=confidence),
        claims=tuple(
            each for each in report.guarantees if (each.unit, each.trust) == ("item", "central")
        ),
        decided=pilot,
    )


def _first_that_decides(protocol, population, seed):
    executor = InProcessExecutor(ClientWorker(population, seed=seed))
    return next(each for each in rounds(protocol, executor) if each.state.history[-1].decides)


def _with_word(population: Clients, *, client: int, word_id: int) -> Clients:
    """Return the population in its own order, with one word as all that a client holds."""
    items = population.items
    own = slice(items.offsets[client], items.offsets[client + 1])
    before, after = slice(None, own.start), slice(own.stop, None)
    offsets = items.offsets.copy()
    offsets[client + 1 :] += 1 - (own.stop - own.start)
    return Clients(
        Table(
            population.lexicon,
            offsets,
            np.concatenate([items.word_ids[before], [word_id], items.word_ids[after]]),
            np.concatenate([items.counts[before], [1], items.counts[after]]),
        ),
        name=population.name,
        unit=population.unit,
        arrangement="independent",
    )
