"""One candidate: settings with the guarantee that is asked for, run once on planning clients."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from fedhh.accounting.bounds.shuffle_bound import LOCAL_EPSILON_RANGE
from fedhh.accounting.terms import PrivacyTerms
from fedhh.arrays import Ints
from fedhh.clients.clients import Clients
from fedhh.clients.population import Population, client_order
from fedhh.clients.worker import ClientWorker
from fedhh.experiments.config.domain import settle_alphabet
from fedhh.experiments.config.protocol import build_protocol, fidelity_of, settle
from fedhh.experiments.config.schema import Config
from fedhh.experiments.config.section import ProtocolSection, borrowed_settings
from fedhh.experiments.planner.goal import BITS, Goal
from fedhh.experiments.planner.trust import trust_model_of
from fedhh.experiments.run.equal_privacy import OutOfReachError
from fedhh.experiments.run.truth import Truth
from fedhh.experiments.sweep.central_target import LOCAL_EPSILON, Choices
from fedhh.protocol import DiscoveryProtocol
from fedhh.server.registry import protocol_class
from fedhh.simulation import engine
from fedhh.simulation.executor import InProcessExecutor
from fedhh.simulation.roster import Roster
from fedhh.validation import InputError

RESERVE = 1.05
"""By how much a run of several rounds may send and receive more than another one of its settings,
since votes decide what is broadcast."""

_ROUNDING = 1e-9
"""Of a local epsilon that is the sum of several."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What settings promise before any client answers.

    Attributes:
        title: The protocol's.
        trust_model: Whom clients trust, see `trust_model_of`.
        rounds: Rounds that wait for each other.
        num_rounds: All rounds.
        smallest_cohort: Fewest clients of a round.
        largest_cohort: Most clients of a round.
        local_epsilon: Of a contribution; infinite where nothing is randomized.
        central_epsilon: Of the goal's unit; infinite where none holds at the goal's delta.
    """

    title: str
    trust_model: str
    rounds: int
    num_rounds: int
    smallest_cohort: int
    largest_cohort: int
    local_epsilon: float
    central_epsilon: float

    @classmethod
    def of(
        cls, protocol: DiscoveryProtocol, goal: Goal, *, num_clients: int, delta: float
    ) -> Terms:
        """Return those of settled settings."""
        plan = protocol.plan
        cohorts = [each.num_clients for each in plan.layers]
        return cls(
            title=protocol.title,
            trust_model=trust_model_of(protocol),
            rounds=protocol.rounds_in_turn,
            num_rounds=len(cohorts),
            smallest_cohort=min(cohorts),
            largest_cohort=max(cohorts),
            local_epsilon=plan.local_epsilon,
            central_epsilon=plan.central_epsilon(
                goal.unit, PrivacyTerms(num_clients=num_clients, delta=delta)
            ),
        )


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run found, and what it moved.

    Attributes:
        coverage: Share of all contributions that fall on words that were found.
        wanted: How many words are to be found.
        recall: Share of them that were found.
        precision: Share of returned words that somebody holds; 0 where none was returned.
        words: Words returned.
        upload: Bytes that a client sends at most.
        download: Bytes that a client receives at most.
        std_error: Of coverage by the draw of the clients; 0 where they are not drawn.
    """

    coverage: float
    wanted: int
    recall: float
    precision: float
    words: int
    upload: int
    download: int
    std_error: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Trial:
    """Settings that were tried.

    Attributes:
        asked: The protocol's settings before accounting chose any.
        config: With the epsilons that accounting chose; "auto" settings stay so.
        settled: With numbers in their place.
        terms: What is promised.
        outcome: Of one run; None where the promise already breaks the goal.
    """

    asked: ProtocolSection
    config: Config
    settled: Config
    terms: Terms
    outcome: Outcome | None

    def metric(self, goal: Goal) -> float:
        """Return what is to be large; -inf without an outcome."""
        return -math.inf if self.outcome is None else getattr(self.outcome, goal.metric)

    @property
    def bytes(self) -> int:
        """What a client sends and receives; 0 without an outcome."""
        return 0 if self.outcome is None else self.outcome.upload + self.outcome.download

    def shares_of_limits(self, goal: Goal) -> dict[str, float]:
        """Return what is needed of each limit, by its name; above 1 where it is broken."""
        shares = {} if goal.days is None else {"days": goal.days_of(self.terms.rounds) / goal.days}
        if self.outcome is None:
            return shares
        reserve = RESERVE if self.terms.num_rounds > 1 else 1.0
        for name, size in (
            ("max_upload", self.outcome.upload),
            ("max_download", self.outcome.download),
            ("max_bytes", self.bytes),
        ):
            if (most := getattr(goal, name)) is not None:
                shares[name] = size * reserve / most
        if goal.min_precision:
            shares["min_precision"] = goal.min_precision / max(self.outcome.precision, 1e-9)
        return shares

    def excess(self, goal: Goal) -> float:
        """Return the largest share of a limit, 1 or less if all are kept."""
        if self.outcome is None:
            return math.inf
        return max(self.shares_of_limits(goal).values(), default=0.0)

    def meets(self, goal: Goal) -> bool:
        return self.excess(goal) <= 1

    def found(self, goal: Goal) -> str:
        """Return in a few words how much of what a goal asks for a run found."""
        found = self.outcome
        assert found is not None
        return found_text(goal, found.wanted, recall=found.recall, coverage=found.coverage)

    def rank(self, goal: Goal) -> tuple[float, ...]:
        """Return what sorts trials: those that meet the goal by what they find, others below."""
        if not self.meets(goal):
            return (0.0, -self.excess(goal))
        assert self.outcome is not None
        return (1.0, self.metric(goal), self.outcome.coverage)


def found_text(goal: Goal, wanted: int, *, recall: float, coverage: float) -> str:
    """Return in a few words how much of what a goal asks for is found.

    >>> found_text(Goal(local_epsilon=4.0, held_by=0.01), 1_200, recall=0.2, coverage=0.5)
    '20.0% of the 1,200 words to find, coverage 50.0%'
    """
    words = "" if goal.held_by is None else f"{recall:.1%} of the {wanted:,} words to find, "
    return f"{words}coverage {coverage:.1%}"


def with_guarantee(config: Config, goal: Goal, num_clients: int) -> Config:
    """Return a configuration with the largest epsilons that a goal allows, chosen by accounting.

    Raises:
        OutOfReachError: The protocol has no settings with the guarantee.
        InputError: The population is too small for the protocol.
    """
    has_local = LOCAL_EPSILON in borrowed_settings(protocol_class(config.protocol.name)).values()
    largest = min(goal.local_epsilon or math.inf, LOCAL_EPSILON_RANGE[1])
    if goal.central_epsilon is None:
        return _at_local(config, goal.local_epsilon or largest)
    try:
        found = Choices().chosen(
            config, num_clients, {f"{goal.unit}_central_epsilon": goal.central_epsilon}
        )
    except OutOfReachError:
        # Where even the largest local epsilon gives less than is allowed, that is one to take.
        found = _at_local(config, largest)
        if not has_local or _central_epsilon(found, goal, num_clients) > goal.central_epsilon:
            raise
    if goal.local_epsilon is not None and found.privacy.local_epsilon > goal.local_epsilon:
        found = _at_local(found, goal.local_epsilon)
    return found


def run_trial(config: Config, goal: Goal, population: Population) -> Trial:
    """Return the trial of a configuration: its guarantee chosen, and run once by its seed.

    Raises:
        OutOfReachError: No settings of the protocol keep the guarantee.
        InputError: No run can be made.
    """
    clients, delta = population.num_clients, config.privacy.delta
    found = with_guarantee(settle_alphabet(config, population), goal, clients)
    settled, protocol = settle(found, clients, population.lexicon.words)
    terms = Terms.of(protocol, goal, num_clients=clients, delta=delta)
    require_guarantee(terms, goal)
    trial = Trial(asked=config.protocol, config=found, settled=settled, terms=terms, outcome=None)
    if trial.shares_of_limits(goal).get("days", 0.0) > 1:
        return trial
    return replace(trial, outcome=_outcome(settled, goal, population)[0])


def require_guarantee(terms: Terms, goal: Goal) -> None:
    """Raise OutOfReachError unless an epsilon is at most that of the goal, for each it has."""
    local, central = goal.local_epsilon, goal.central_epsilon
    if local is not None and terms.local_epsilon > local * (1 + _ROUNDING):
        raise OutOfReachError(
            f"{terms.title}: expected local epsilon <= {local:g}, got {terms.local_epsilon:g}."
        )
    if central is not None and terms.central_epsilon > central:
        raise OutOfReachError(
            f"{terms.title}: expected {goal.unit} central epsilon <= {central:g}, got "
            f"{terms.central_epsilon:g}."
        )


def confirmed(config: Config, goal: Goal, population: Population) -> Outcome:
    """Return the outcome of a settled configuration, with the error from the draw of clients."""
    outcome, held = _outcome(config, goal, population)
    if config.population.clients is None:
        return outcome
    return replace(outcome, std_error=share_std_error(population, held))


def _outcome(config: Config, goal: Goal, population: Population) -> tuple[Outcome, Ints]:
    """Return what a run of a settled configuration finds, and the numbers of held words found.

    Nothing of it is written or accounted.
    """
    _, protocol = settle(config, population.num_clients, population.lexicon.words)
    executor = InProcessExecutor(ClientWorker(population, seed=config.seed))
    roster = Roster(client_order(population, seed=config.seed))
    state = protocol.initialize()
    for finished in engine.rounds(protocol, executor, roster=roster, fidelity=fidelity_of(config)):
        state = finished.state
    truth = Truth(population, protocol.symbols, protocol.longest_word)
    ids = truth.ids(protocol.discoveries(state))
    held = np.unique(ids[ids >= 0])
    wanted = truth.clients >= (goal.min_clients(population.num_clients) or 1)
    history, plan = state.history, protocol.plan
    places = [plan.planned(each.pass_index, each.layer).place for each in history]
    sent = [each.report_bits * plan.max_items for each in history]
    upload = plan.most_of_client(dict(zip(places, sent, strict=True)))
    received = [each.download_bits for each in history]
    download = plan.most_of_client(dict(zip(places, received, strict=True)))
    if not math.isfinite(upload + download):
        raise InputError(
            f"{protocol.title}: what a client sends and receives depends on cryptography that is "
            "not built, so that no plan can state its bytes."
        )
    outcome = Outcome(
        coverage=truth.share(held),
        wanted=int(wanted.sum()),
        recall=float(wanted[held].sum() / max(int(wanted.sum()), 1)),
        precision=float((ids >= 0).sum() / max(len(ids), 1)),
        words=len(ids),
        upload=math.ceil(upload / BITS),
        download=math.ceil(download / BITS),
    )
    return outcome, held


def share_std_error(population: Population, held: Ints) -> float:
    """Return the standard error of the share of contributions that fall on some words.

    It is of the clients' draw, each with all that it contributes, by the variance of a ratio. Of
    clients that are not held in memory, which are many, it is 0.
    """
    if not isinstance(population, Clients) or population.table.is_mapped:
        return 0.0
    rows = population.block(np.arange(population.num_clients))
    sizes = np.diff(rows.offsets)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    counts = rows.counts.astype(np.float64)
    of_client = np.bincount(owners, weights=counts, minlength=len(sizes))
    found = np.zeros(len(population.lexicon.words), dtype=np.bool_)
    found[held] = True
    hits = np.bincount(owners, weights=counts * found[rows.word_ids], minlength=len(sizes))
    mass = max(float(of_client.sum()), 1.0)
    off = hits - hits.sum() / mass * of_client
    return float(np.sqrt((off**2).sum()) / mass)


def _at_local(config: Config, local_epsilon: float) -> Config:
    privacy = config.privacy.model_copy(update={"local_epsilon": local_epsilon})
    return config.model_copy(update={"privacy": privacy})


def _central_epsilon(config: Config, goal: Goal, num_clients: int) -> float:
    settled = build_protocol(config).settle(num_clients=num_clients, seed=config.seed)
    terms = PrivacyTerms(num_clients=num_clients, delta=config.privacy.delta)
    return settled.plan.central_epsilon(goal.unit, terms)
