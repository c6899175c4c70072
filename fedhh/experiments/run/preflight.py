"""What is known before a run starts: its clients, its cohorts, its central guarantee, and cures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from fedhh.accounting.bounds.shuffle_bound import check_delta
from fedhh.accounting.plan import Plan
from fedhh.accounting.terms import PrivacyTerms
from fedhh.clients.clients import Clients
from fedhh.clients.describe import spelling_of
from fedhh.devices import Devices
from fedhh.experiments.config.domain import settle_alphabet
from fedhh.experiments.config.load import devices_of
from fedhh.experiments.config.protocol import build_protocol
from fedhh.experiments.config.schema import Config
from fedhh.experiments.run.arguments import require_protocol
from fedhh.experiments.run.equal_privacy import with_chosen_epsilons
from fedhh.experiments.run.preflight_facts import LESS, LargerPopulation, PlanFacts, Preflight
from fedhh.experiments.run.privacy import DEFAULT_DELTA, accepted_plan
from fedhh.privacy_loss.search import smallest_true
from fedhh.protocol import DiscoveryProtocol
from fedhh.validation import InputError
from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon

_STEP = 1.05
_MOST_STEPS = 512
"""Populations that are tried, each so many times the one before: to 10^10 times."""


def preflight(
    protocol: DiscoveryProtocol,
    population: Clients,
    *,
    delta: float = DEFAULT_DELTA,
    seed: int = 0,
    devices: Devices | None = None,
) -> Preflight:
    """Return what is known of a run before it starts, and what would help.

    Args:
        protocol: The server's settings; "auto" ones are settled for the population.
        population: The clients; their known words should be removed already.
        delta: Of the central guarantee, from 1e-14 to 0.1.
        seed: The run's seed.
        devices: When clients' devices are there; None if all of them always answer at once.

    Returns:
        The numbers (``clients``, ``contributions``, ``spelling``, ``plans``), and in sentences
        ``lines``, of which ``advice`` is what would help.

    Raises:
        InputError: The population is too small for the protocol, or is not held in memory.

    >>> import fedhh
    >>> few = fedhh.synthetic_population("chat", 499, seed=0)
    >>> found = fedhh.preflight(fedhh.AdaptiveTrieHH(local_epsilon=8.0), few)
    >>> found.plans[0].central_epsilon
    8.0
    """
    require_protocol(protocol)
    return preflight_of([protocol], population, delta=delta, seed=seed, devices=devices)


def preflight_of(
    protocols: Sequence[DiscoveryProtocol],
    population: Clients,
    *,
    delta: float,
    seed: int,
    looks_for_more: bool = True,
    devices: Devices | None = None,
) -> Preflight:
    """Return what is known of a run of some protocols on the same clients, as `preflight`.

    Words are spelled as the first one does. ``looks_for_more``: for numbers of clients that amplify
    where these do not.
    """
    check_delta(delta)
    if not isinstance(population, Clients):
        raise InputError(
            f"Expected a population that is held in memory, got a {type(population).__name__}."
        )
    first = protocols[0]
    spelling = spelling_of(
        population.lexicon.words,
        population.word_counts().typed,
        alphabet=first.symbols.symbols,
        depth=first.longest_word,
    )
    plans = [
        plan_facts(
            each,
            population.num_clients,
            delta,
            seed,
            looks_for_more=looks_for_more,
            devices=devices,
        )
        for each in protocols
    ]
    texts = population.texts
    return Preflight(
        name=population.name,
        unit=population.unit,
        clients=population.num_clients,
        words=int((population.word_counts().typed > 0).sum()),
        contributions=spelling.tokens,
        spelling=spelling,
        folded_share=_folded_share(population, first),
        plans=tuple(plans),
        texts=texts.number,
        empty_texts=texts.empty,
        tokens=texts.kept + texts.dropped.total(),
        dropped=dict(texts.reasons),
    )


def preflight_of_configs(
    configs: Sequence[Config],
    population: Clients,
    *,
    titles: Sequence[str] = (),
) -> Preflight:
    """Return what is known of runs of some configurations on the same clients.

    Args:
        configs: Configurations whose "auto" settings need not be decided.
        population: As for `preflight`.
        titles: What to call each of them; its protocol's title if empty. With titles, no numbers of
            clients that amplify are looked for.
    """
    words, clients = population.lexicon.words, population.num_clients
    settled = [settle_alphabet(each, population) for each in configs]
    found = preflight_of(
        [build_protocol(with_chosen_epsilons(each, clients), words) for each in settled],
        population,
        delta=configs[0].privacy.delta,
        seed=configs[0].seed,
        looks_for_more=not titles,
        devices=devices_of(configs[0]),
    )
    if not titles:
        return found
    plans = [replace(plan, title=title) for plan, title in zip(found.plans, titles, strict=True)]
    return replace(found, plans=tuple(plans))


def plan_facts(
    protocol: DiscoveryProtocol,
    num_clients: int,
    delta: float,
    seed: int,
    *,
    looks_for_more: bool = False,
    devices: Devices | None = None,
) -> PlanFacts:
    """Return what a protocol's plan says before a run on so many clients, as `preflight_of`."""

    def plan_with(clients: int) -> Plan:
        settled: DiscoveryProtocol = protocol.settle(num_clients=clients, seed=seed)
        return accepted_plan(settled, devices)

    plan, terms = plan_with(num_clients), PrivacyTerms(num_clients=num_clients, delta=delta)
    facts = PlanFacts(
        title=protocol.title,
        smallest_cohort=plan.smallest_cohort,
        fewest_answers=None if devices is None else plan.fewest_answers,
        central=plan.before_run("item", terms),
        epsilons=plan.epsilons_before_run(terms),
    )
    if not looks_for_more or not facts.is_not_amplified:
        return facts

    def central_with(clients: int) -> float:
        return plan_with(clients).central_epsilon("item", replace(terms, num_clients=clients))

    local = facts.local_epsilon
    more = [
        _fewest_clients(central_with, num_clients, target) for target in (local * LESS, local / 2)
    ]
    return replace(facts, amplifying=tuple(each for each in more if each is not None))


def _fewest_clients(
    central_with: Callable[[int], float], num_clients: int, target: float
) -> LargerPopulation | None:
    """Return about the fewest clients whose central epsilon is at most a target, if there are any.

    Numbers of two digits are tried, so that some fewer may do.
    """

    def clients_at(step: int) -> int:
        digits = f"{num_clients * _STEP**step:.1e}"
        return max(int(float(digits)), num_clients)

    def holds(step: int) -> bool:
        try:
            return central_with(clients_at(step)) <= target
        except InputError:
            return False

    # Far beyond what is needed, some plans cannot be made any more, so that looks go outwards.
    low, high = 1, 8
    while not holds(high):
        low, high = high, 2 * high
        if high > _MOST_STEPS:
            return None
    step = smallest_true(holds, low=low, high=high)
    clients = clients_at(step)
    return LargerPopulation(clients=clients, epsilon=central_with(clients))


def _folded_share(population: Clients, protocol: DiscoveryProtocol) -> float:
    """Return the share of contributions that only lower case can spell."""
    from fedhh.clients.reading.tokens import folded

    symbols: Alphabet = protocol.symbols
    depth = protocol.longest_word
    lost = np.flatnonzero(~population.lexicon.reachable(symbols, depth))
    forms = [folded(population.lexicon.words[i]) for i in lost.tolist()]
    distinct = sorted(set(forms))
    spelled = set(np.array(distinct)[Lexicon(words=distinct).reachable(symbols, depth)].tolist())
    gained = lost[[form in spelled for form in forms]] if len(lost) else lost
    counts = population.word_counts().typed
    return float(counts[gained].sum() / max(int(counts.sum()), 1))
