"""Use cases made from a configuration: what devices do, and what the server does with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from fedhh.arrays import Floats
from fedhh.clients.reading.word_list import read_word_list
from fedhh.experiments.config.population import build_population
from fedhh.experiments.config.section import own_settings
from fedhh.hashing import derived_seeds
from fedhh.longitudinal.aggregation.aggregator import (
    Aggregator,
    FragmentAggregator,
    OracleAggregator,
)
from fedhh.longitudinal.devices.model import Delay, DeviceModel, DeviceUseCase, EventDistribution
from fedhh.longitudinal.ledger import Charge
from fedhh.longitudinal.pipeline.config import SFP, DomainConfig, PipelineConfig, UseCaseConfig
from fedhh.longitudinal.records import FragmentRecords, OracleRecords, RecordForm
from fedhh.oracles import OracleSpec, oracle_class
from fedhh.server.sfp import Sfp
from fedhh.settings import AUTO
from fedhh.validation import InputError, did_you_mean
from fedhh.words.alphabet import FOREIGN, Alphabet


@dataclass(frozen=True, kw_only=True, eq=False)
class UseCase:
    """One use case, both sides of it.

    Attributes:
        name: Its name.
        config: Its table.
        device: What devices know.
        protocol: What finds words; None for an oracle.
        charge: What a record costs.
    """

    name: str
    config: UseCaseConfig
    device: DeviceUseCase
    protocol: Sfp | None
    charge: Charge

    @property
    def title(self) -> str:
        """The oracle or protocol, by name."""
        return self.config.protocol or self.config.oracle

    def top(self, number: int) -> list[int]:
        """Return the values that are drawn most often, most frequent first."""
        weights = self.device.events.weights
        values: list[int] = np.argsort(-weights, kind="stable")[:number].tolist()
        return values

    def label(self, value: int) -> str:
        """Return a value's name."""
        words = self.device.events.words
        return str(value) if words is None else words[value]

    def aggregator(self, top: int) -> Aggregator:
        """Return an empty aggregator that watches the most frequent values."""
        threshold = None if isinstance(self.config.threshold, str) else self.config.threshold
        form, watched = self.device.form, self.top(top)
        if isinstance(form, FragmentRecords):
            assert self.protocol is not None
            words = [self.label(value) for value in watched]
            return FragmentAggregator(form, self.protocol, threshold=threshold, watched=words)
        assert isinstance(form, OracleRecords)
        return OracleAggregator(form, threshold=threshold, watched=watched)


def build_use_cases(config: PipelineConfig) -> tuple[UseCase, ...]:
    """Return the use cases of a configuration, in its order.

    Raises:
        InputError: A domain cannot be read, or an oracle or a protocol refuses its settings.
    """
    days = config.pipeline
    seeds = derived_seeds(config.seed, len(days.use_cases))
    found = []
    for (name, use_case), seed in zip(days.use_cases.items(), seeds, strict=True):
        try:
            found.append(_use_case(name, use_case, config, seed))
        except InputError as error:
            raise InputError(f"pipeline.use_cases.{name}: {error}") from None
    return tuple(found)


def build_model(config: PipelineConfig, use_cases: Sequence[UseCase]) -> DeviceModel:
    """Return the devices of a configuration."""
    days = config.pipeline
    return DeviceModel(
        num_devices=days.devices,
        opt_in=days.opt_in,
        delay=Delay(distribution=days.delay_distribution, hours=days.delay_hours),
        store_days=days.store_days,
        use_cases=tuple(each.device for each in use_cases),
    )


def fingerprint(use_cases: Sequence[UseCase]) -> str:
    """Return a hash of what events are about, by which a resumed run knows its data again."""
    digest = hashlib.sha256()
    for each in use_cases:
        digest.update(each.device.events.weights.tobytes())
        digest.update("\0".join(each.device.events.words or ()).encode())
    return digest.hexdigest()


def _use_case(name: str, config: UseCaseConfig, whole: PipelineConfig, seed: int) -> UseCase:
    weights, words = _domain(config.domain, whole.seed)
    protocol: Sfp | None = None
    form: RecordForm
    if config.protocol == SFP:
        assert words is not None
        protocol = _sfp(config, whole, seed)
        question = protocol.next_question(protocol.initialize())
        assert question is not None
        form = FragmentRecords(question=question)
        weights, words = _padded(weights, words, protocol)
    else:
        kind = oracle_class(config.oracle)
        params = dict(config.params)
        if "hash_seed" in {each.name for each in fields(kind)}:
            params.setdefault("hash_seed", seed)
        spec = OracleSpec(name=config.oracle, epsilon=config.epsilons[0], params=params)
        form = OracleRecords(spec=spec, domain_size=len(weights))
        # Made at once, so that wrong settings are refused before anything happens.
        _ = form.oracle, form.crosses_one_by_one
    device = DeviceUseCase(
        name=name,
        form=form,
        cap=config.cap,
        events=EventDistribution(
            mean=config.events_per_day, spread=config.events_spread, weights=weights, words=words
        ),
    )
    return UseCase(
        name=name, config=config, device=device, protocol=protocol, charge=config.charge(name)
    )


def _sfp(config: UseCaseConfig, whole: PipelineConfig, seed: int) -> Sfp:
    known = set(own_settings(Sfp)) - {"word_share", "clients_per_layer", "max_items"}
    for key in config.params:
        if key not in known:
            raise InputError(f"Unknown setting {key!r} of sfp{did_you_mean(key, known)}")
    word, fragment = config.epsilons
    settings: dict[str, Any] = dict(config.params)
    protocol = Sfp(
        local_epsilon=word + fragment,
        word_share=word / (word + fragment),
        alphabet=config.domain.alphabet,
        clients_per_layer=AUTO,
        max_items=1,
        **settings,
    )
    if protocol.validates:
        raise InputError(
            "false_discovery_rate: a pipeline has no cohort for a validation round; leave it."
        )
    return protocol.settle(num_clients=whole.pipeline.devices, seed=seed)


def _domain(config: DomainConfig, seed: int) -> tuple[Floats, list[str] | None]:
    """Return the weights of the values, and their names if they are words."""
    if config.values is not None:
        return _zipf(config.values, config.exponent), None
    if config.population is not None:
        population = build_population(config.population, seed=seed)
        words = list(population.lexicon.words)
        weights = population.word_counts().typed.astype(np.float64)
    else:
        path = Path(config.words)
        missing = f"domain.words: cannot read {path}: No such file or directory."
        words = read_word_list(path, what="a domain's words", missing=missing)
        words = list(dict.fromkeys(words))
        weights = _zipf(len(words), config.exponent)
    codes = Alphabet.named(config.alphabet).encode(words, width=max(map(len, words), default=1))
    usable = np.flatnonzero(~(codes == FOREIGN).any(axis=1) & (weights > 0))
    if len(usable) < 2:
        raise InputError(
            f"domain: expected at least two words of the alphabet {config.alphabet!r}, got "
            f"{len(usable)}."
        )
    return weights[usable], [words[place] for place in usable.tolist()]


def _padded(weights: Floats, words: list[str], protocol: Sfp) -> tuple[Floats, list[str]]:
    """Return the strings that words are for SFP, which cuts them, with their weights."""
    cut: dict[str, float] = {}
    for word, weight in zip(words, weights.tolist(), strict=True):
        string = word[: protocol.length]
        cut[string] = cut.get(string, 0.0) + weight
    return np.array(list(cut.values())), list(cut)


def _zipf(size: int, exponent: float) -> Floats:
    return np.asarray(np.arange(1, size + 1, dtype=np.float64) ** -exponent)
