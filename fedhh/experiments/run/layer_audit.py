"""Audits of single reports and whole layers: what one contribution changes in the votes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.accounting import AuditResult, Guarantee, audit_epsilon
from fedhh.accounting.guess_audit import FEWEST_REPORTS, audit_guesses
from fedhh.accounting.report_scores import ShownReports
from fedhh.clients.answers.matching import WordMatcher
from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.run.audited_votes import AuditedVotes
from fedhh.experiments.run.privacy import privacy_of_run
from fedhh.oracles import OracleSpec
from fedhh.protocol import AnyProtocol, RoundSummary
from fedhh.queries.base import Answer, PrefixQuery, Query
from fedhh.random import Stream, generator
from fedhh.simulation import engine
from fedhh.simulation.executor import InProcessExecutor, Progress
from fedhh.validation import InputError, require_at_least

_USUAL_VOTES, _MOST_VOTES = 20_000, 800_000
_VOTES_TO_SEE = 30
"""Times e**local_epsilon: so many tallies see a randomizer that always tells the truth."""
_LARGEST_TALLIES = 10**10
"""Entries of all tallies together, unless said otherwise."""
_ENTRIES_AT_ONCE = 10**7


def votes_to_sample(local_epsilon: float, domain_size: int) -> int:
    """Return how many one-report tallies can refute a false ``local_epsilon``.

    Enough to refute a randomizer that always tells the truth, as far as time allows: at most
    800,000, and fewer in domains of over 12,500 values.
    """
    wanted = max(_USUAL_VOTES, math.ceil(_VOTES_TO_SEE * math.exp(min(local_epsilon, 20.0))))
    return min(wanted, _MOST_VOTES, max(FEWEST_REPORTS, _LARGEST_TALLIES // domain_size))


def audit_votes(
    spec: OracleSpec, *, domain_size: int, num_samples: int, confidence: float, seed: int
) -> AuditResult:
    """Return a lower bound on the local epsilon of one report as runs make it.

    A client worker answers a query for one client with one contribution, and what is read is the
    tally of that one report: the path of every run, which draws no report that can be read singly.
    The contribution is guessed from the tally, by whether it supports the value, by how often each
    whole tally was seen, and by frequencies of its entries.

    Args:
        spec: The randomizer.
        domain_size: Its values, at least 2; two of them and the dummy are contributed.
        num_samples: Tallies in all, at least 32; a quarter of them teaches and chooses.
        confidence: In (0, 1).
        seed: Of all reports.
    """
    require_at_least(2, domain_size=domain_size)
    places = list(range(min(3, domain_size)))
    layers = _votes_of_each(spec, domain_size=domain_size, num_reports=1, places=places, seed=seed)

    def shows(
        held: npt.NDArray[np.int64], among: Sequence[int], *, rng: np.random.Generator
    ) -> ShownReports:
        parts = []
        at_once = max(1, _ENTRIES_AT_ONCE // domain_size)
        for start in range(0, len(held), at_once):
            tallies = np.stack([layers[place].tally() for place in held[start : start + at_once]])
            given = tallies[:, layers[0].values[list(among)]].astype(np.float64)
            parts.append(ShownReports.of(given, tallies))
        return ShownReports.together(parts)

    return audit_guesses(
        shows,
        [places],
        given="votes for the value",
        num_reports=num_samples,
        rng=generator(seed, Stream.SAMPLING),
        confidence=confidence,
    )


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


def audit_layer(
    spec: OracleSpec,
    *,
    domain_size: int,
    num_reports: int,
    num_runs: int,
    delta: float,
    confidence: float,
    seed: int,
) -> AuditResult:
    """Return a lower bound on the central epsilon of one layer's votes.

    The layer is run ``num_runs`` times with each of two data sets that differ in one contribution:
    one value or another; everybody else contributes the dummy. A client worker answers a query, as
    in a run. The statistic is the difference of the two values' votes, which is all that the swap
    can show in the tally beyond chance. That is little in a large layer: `audit_votes` sees more.

    Args:
        spec: The randomizer.
        domain_size: Its values, at least 3: two and the dummy.
        num_reports: Reports in the layer.
        num_runs: Runs for each data set; half of them choose the event.
        delta: Allowed besides epsilon.
        confidence: In (0, 1).
        seed: Of all runs.
    """
    require_at_least(3, domain_size=domain_size)
    require_at_least(2, num_reports=num_reports)
    require_at_least(4, num_runs=num_runs)
    votes = _votes_of_each(
        spec, domain_size=domain_size, num_reports=num_reports, places=(0, 1), seed=seed
    )
    samples = [each.differences(num_runs) for each in votes]
    return audit_epsilon(samples[0], samples[1], delta=delta, confidence=confidence)


@dataclass(frozen=True, kw_only=True)
class RunAudit:
    """What an audit of a run found, next to what the run claims.

    Attributes:
        found: Lower bound on the central epsilon of one contribution, by sampling.
        claims: The run's central claims for one contribution at the audit's delta, made from the
            reports that its layers counted.
        layer: The layer audited.
        num_reports: Its reports.
        domain_size: Its values.
        words: What the one client holds in one population and in the other.
        oracle: The layer's randomizer.
    """

    found: AuditResult
    claims: tuple[Guarantee, ...]
    layer: int
    num_reports: int
    domain_size: int
    words: tuple[str, str]
    oracle: OracleSpec


def audit_run(
    protocol: AnyProtocol,
    population: StoredPopulation,
    *,
    num_runs: int,
    delta: float,
    confidence: float,
    seed: int,
    words: tuple[str, str] | None = None,
) -> RunAudit:
    """Return a lower bound on the central epsilon of a run, and the run's own upper bounds.

    Two populations differ in one contribution of one client. The protocol runs ``num_runs`` times
    on each, through its first layer that decides, with fresh coins of every client each time. The
    statistic is the difference of the votes for the two prefixes concerned: all else in the layer
    is drawn alike. Clients are asked in the population's order, not in a random one, so that the
    client concerned always takes part, as the claims assume.

    Args:
        protocol: Settings of the run; cohorts must be disjoint.
        population: Its first clients are asked.
        num_runs: Runs for each population; half of them choose the event.
        delta: Allowed besides epsilon, in [1e-14, 0.1] as in the claims.
        confidence: In (0, 1).
        seed: Of all runs.
        words: What the client holds in one population and in the other, both in the lexicon; the
            two rarest that the layer tells apart if None.

    Raises:
        InputError: Nothing can be audited: clients are asked again, no layer decides or none votes
            for prefixes, or the two words are the same to it.
    """
    require_at_least(4, num_runs=num_runs)
    protocol = protocol.settle(num_clients=population.num_clients, seed=seed)
    if protocol.plan.reuses_clients:
        raise InputError("Expected disjoint cohorts for an audit; set reuse_clients=False.")
    pilot, summaries = _through_first_deciding_layer(protocol, population, seed=seed)
    query = pilot.query
    if not isinstance(query, PrefixQuery):
        raise InputError(f"Expected a run that votes for prefixes, got {protocol.title}.")
    values = WordMatcher(population.lexicon).prefix_values(query)
    pair = _word_pair(population, values, words)
    neighbors = [
        _with_word(population, client=query.cohort.start, word_id=word_id) for word_id in pair
    ]
    seeds = generator(seed, Stream.RANDOMIZER).integers(2**62, size=(2, num_runs)).tolist()
    first, second = values[list(pair)]
    samples = []
    for neighbor, own_seeds in zip(neighbors, seeds, strict=True):
        tallies = (
            _through_first_deciding_layer(protocol, neighbor, seed=each)[0].tally
            for each in own_seeds
        )
        samples.append([float(tally[first] - tally[second]) for tally in tallies])
    report = privacy_of_run(protocol, summaries, num_clients=population.num_clients, delta=delta)
    texts = population.lexicon.words
    return RunAudit(
        found=audit_epsilon(samples[0], samples[1], delta=delta, confidence=confidence),
        claims=tuple(
            each for each in report.guarantees if (each.unit, each.trust) == ("item", "central")
        ),
        layer=summaries[-1].layer,
        num_reports=summaries[-1].num_reports,
        domain_size=query.domain_size,
        words=(texts[pair[0]], texts[pair[1]]),
        oracle=query.oracle,
    )


class _Witness(InProcessExecutor):
    """Answers in this process, and keeps the last query with its tally."""

    query: Query
    tally: npt.NDArray[np.int64]

    def answer(self, query: Query, progress: Progress | None = None) -> Iterator[Answer]:
        for answer in super().answer(query, progress):
            self.query, self.tally = query, answer.aggregate.tally
            yield answer


def _through_first_deciding_layer(
    protocol: AnyProtocol, population: StoredPopulation, *, seed: int
) -> tuple[_Witness, list[RoundSummary]]:
    """Run up to the first layer that drops a candidate; return what was asked and answered."""
    witness = _Witness(ClientWorker(population, seed=seed))
    for finished in engine.rounds(protocol, witness):
        summaries = list(finished.state.history)
        if summaries[-1].decides:
            return witness, summaries
    raise InputError("No layer of the run drops a candidate, so none publishes anything to audit.")


def _word_pair(
    population: StoredPopulation, values: npt.NDArray[np.int64], words: tuple[str, str] | None
) -> tuple[int, int]:
    """Return the numbers of two words with different candidates, by default of the rarest ones."""
    if words is None:
        spelled = np.flatnonzero(values >= 0)
        holders = np.bincount(values[spelled], weights=population.word_clients[spelled])
        ordered = spelled[np.argsort(holders[values[spelled]], kind="stable")]
        others = ordered[values[ordered] != values[ordered[:1]]]
        if not others.size:
            raise InputError("The population has no two words that differ in the audited layer.")
        return int(ordered[0]), int(others[0])
    first, second = population.lexicon.ids(words).tolist()
    if min(first, second) < 0:
        missing = words[0] if first < 0 else words[1]
        raise InputError(f"Expected words of the population, got {missing!r}.")
    if min(values[first], values[second]) < 0 or values[first] == values[second]:
        raise InputError(
            f"Expected two words with different candidates in the audited layer, got {words!r}."
        )
    return first, second


def _with_word(population: StoredPopulation, *, client: int, word_id: int) -> StoredPopulation:
    """Return the population in its own order, with one word as all that a client holds."""
    items = population.items
    own = slice(items.offsets[client], items.offsets[client + 1])
    before, after = slice(None, own.start), slice(own.stop, None)
    offsets = items.offsets.copy()
    offsets[client + 1 :] += 1 - (own.stop - own.start)
    return StoredPopulation(
        name=population.name,
        lexicon=population.lexicon,
        offsets=offsets,
        word_ids=np.concatenate([items.word_ids[before], [word_id], items.word_ids[after]]),
        counts=np.concatenate([items.counts[before], [1], items.counts[after]]),
        unit=population.unit,
        exchangeable=True,
    )
