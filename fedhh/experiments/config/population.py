"""From a config's `[population]` to the clients of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedhh import plugins
from fedhh.clients import synthetic
from fedhh.clients.clients import Clients
from fedhh.clients.drawn import DrawnClients
from fedhh.clients.known_words import load_known
from fedhh.clients.population import Population
from fedhh.clients.synthetic import PopulationModel, RankDrawer, population_presets
from fedhh.clients.wordfreq_tail import SOURCE as WORDFREQ_TAIL
from fedhh.clients.wordfreq_tail import wordfreq_tail
from fedhh.clients.zipf_words import SOURCE as ZIPF
from fedhh.clients.zipf_words import zipf_words
from fedhh.experiments.config.client_file import (
    load_file,
    refuse_layout,
    without_known,
)
from fedhh.experiments.config.schema import PopulationConfig
from fedhh.random import Stream, generator
from fedhh.system.files import is_there
from fedhh.system.object_storage import as_address
from fedhh.validation import InputError, require_choice, shown
from fedhh.words.known_words import (
    NO_WORDS,
    SCOWL70,
    KnownWords,
    is_named,
    language_list,
    list_name,
)
from fedhh.words.languages import ENGLISH, check_language

_LISTED: dict[str, tuple[Callable[..., PopulationModel], tuple[str, ...]]] = {
    WORDFREQ_TAIL: (wordfreq_tail, ("base", "vocabulary", "tail_mass")),
    ZIPF: (zipf_words, ("vocabulary", "exponent", "word_length")),
}
"""Sources whose words are listed: what makes the model, and the settings that it alone takes."""

_OF_LISTS = ("base", "vocabulary", "tail_mass", "exponent", "word_length")

STORED_TOKENS = 2**26
"""Populations of more new words than that are not held in memory, unless asked for."""


def build_population(
    config: PopulationConfig,
    *,
    seed: int,
    read: Callable[[PopulationConfig], Clients] | None = None,
) -> Population:
    """Return the clients with their unknown words.

    ``read`` stands in for `load_file`; perhaps it has read the file before.
    """
    check_population(config)
    if is_synthetic(config):
        assert config.clients is not None
        model = population_model(config)
        if is_virtual(config, seed):
            _check_all_new(model, config)
            return DrawnClients(model, config.clients, seed=seed)
        population = synthetic.synthetic_population(model, config.clients, seed=seed)
        if has_none_of(config.known, model):
            return population
        return without_known(population, config.known, config.language)
    if (kind := population_class(config.source)) is not None:
        assert config.clients is not None
        return _made(kind(config.clients, seed=seed), config)
    population = (read or load_file)(config)
    if config.clients is not None:
        rng = generator(seed, Stream.SUBSAMPLE)
        population = population.sample_clients(config.clients, rng=rng)
    return without_known(population, config.known, config.language)


def synthetic_population(preset: str | PopulationModel, num_clients: int, *, seed: int) -> Clients:
    """Return the first clients of a synthetic population, held in memory.

    See `fedhh.clients.synthetic.synthetic_population`, which makes them.

    Args:
        preset: chat, keyboard60d, tweet, post, wordfreq-tail, zipf, or a model of your own, such as
            `fedhh.clients.zipf_words.zipf_words` returns.
        num_clients: How many clients.
        seed: The run's seed.

    Raises:
        InputError: The preset is unknown, or the population would have 2^31 or more new words.
    """
    model = synthetic_model(preset) if isinstance(preset, str) else preset
    return synthetic.synthetic_population(model, num_clients, seed=seed)


def synthetic_model(preset: str, language: str = ENGLISH) -> PopulationModel:
    """Return the model of a preset that types a language's words.

    Raises:
        InputError: The preset is unknown, or its words are of no such language.
    """
    require_choice((*population_presets(), *_LISTED), preset=preset)
    known = NO_WORDS if preset in _LISTED else list_name(language)
    check_language(language)
    return population_model(PopulationConfig(source=preset, known=known, language=language))


def check_population(config: PopulationConfig) -> None:
    """Raise InputError if the settings contradict each other; nothing is drawn or read."""
    if says_its_size(config):
        if config.clients is None:
            raise InputError(
                f"population.clients is missing: source = {config.source!r} is synthetic; say "
                "how many clients to draw."
            )
        refuse_layout(config)
    if is_synthetic(config):
        population_model(config)
        return
    if changed := config.model.model_dump(exclude_none=True):
        raise InputError(
            f"population.model.{next(iter(changed))}: expected a synthetic source, since the file "
            f"{config.source} says what its clients type; remove the key."
        )
    if config.virtual is True:
        raise InputError(
            f"population.virtual = true: expected a synthetic source, since the clients of the "
            f"file {config.source} cannot be drawn again; remove the key."
        )


def check_known(config: PopulationConfig) -> None:
    """Raise InputError if the known words cannot be read, or not go with the source."""
    if not is_named(config.known):
        load_known(config.known, config.language)
    if is_synthetic(config) and config.virtual is True:
        _check_all_new(population_model(config), config)


def population_class(source: str) -> type[Any] | None:
    """Return somebody else's class of populations that a source names; None for all others.

    Such a class is a `Population` that is made of ``(num_clients, *, seed)``: an entry point of
    ``fedhh.populations``, or "module:Class" of a module next to the configuration.
    """
    ours = source in _LISTED or source in population_presets()
    named = source in plugins.names("populations", {}) or ":" in source
    if ours or not named or as_address(source) or is_there(Path(source)):
        return None
    kind = plugins.find("populations", source, {})
    if not issubclass(kind, Population):
        raise InputError(
            f"population.source = {shown(source)}: expected a subclass of fedhh's Population, got "
            f"the class {kind.__name__}."
        )
    if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
        raise InputError(
            f"population.source = {shown(source)}: {kind.__name__} lacks {', '.join(lacking)}."
        )
    return kind


def says_its_size(config: PopulationConfig) -> bool:
    """Return whether the clients are made, as many as the configuration says, and not read."""
    return is_synthetic(config) or population_class(config.source) is not None


def is_synthetic(config: PopulationConfig) -> bool:
    """Return whether the clients are drawn from a model, and not read from a file."""
    return config.source in _LISTED or config.source in population_presets()


def population_model(config: PopulationConfig) -> PopulationModel:
    """Return the model that a synthetic population is drawn from."""
    changes = config.model.model_dump(exclude_none=True)
    own = {key: changes.pop(key) for key in _OF_LISTS if key in changes}
    for key in own:
        sources = [source for source, (_, keys) in _LISTED.items() if key in keys]
        if config.source not in sources:
            raise InputError(
                f"population.model.{key}: expected source = "
                f"{' or '.join(repr(source) for source in sources)}, got {config.source!r}; "
                "remove the key."
            )
    if config.source in _LISTED:
        if config.language != ENGLISH:
            raise InputError(
                f"population.language = {shown(config.language)}: expected {ENGLISH!r} for the "
                f"words of {config.source}; remove the key."
            )
        if config.known != "none":
            raise InputError(
                f'population.known = {config.known!r}: expected "none", since all words of '
                f"{config.source} are new."
            )
        make, _ = _LISTED[config.source]
        model = make(**own)
    else:
        model = population_presets()[config.source]
        if config.language != ENGLISH:
            name = f"{model.name} ({config.language})"
            model = replace(model, known=_known_in(config), name=name)
    changed = "".join(f", {key} {value:g}" for key, value in changes.items())
    return replace(model, **changes, name=model.name + changed)


def own_list(model: PopulationModel) -> str:
    """Return the name of the list that a synthetic population's strings are made not to be in."""
    return SCOWL70 if model.known is None else model.known.name


def has_none_of(known: str, model: PopulationModel) -> bool:
    """Return whether no word of a synthetic population is in a list of known words."""
    if is_named(known):
        return known in (NO_WORDS, own_list(model))
    return model.known is not None and load_known(known, model.known.language) == model.known


def _known_in(config: PopulationConfig) -> KnownWords:
    """Return the known words that the strings of a language are made with, and not among."""
    if not is_named(config.known):
        return load_known(config.known, config.language)
    if (listed := language_list(config.language)) is not None:
        return listed
    raise InputError(
        f"population.language = {config.language!r}: expected a language that wordfreq has a list "
        f"of, for a synthetic population; set population.source to a file."
    )


def is_virtual(config: PopulationConfig, seed: int) -> bool:
    """Return whether a synthetic population's clients are drawn again whenever they are asked."""
    if config.virtual != "auto":
        return config.virtual
    return expected_tokens(config, seed) > STORED_TOKENS


def expected_tokens(config: PopulationConfig, seed: int) -> float:
    """Return how many words a synthetic population types, from its first 10,000 clients."""
    assert config.clients is not None
    drawer = RankDrawer(model=population_model(config), seed=seed)
    tokens = drawer.count_tokens(np.arange(min(config.clients, 10_000))).mean()
    return float(tokens) * config.clients


def _check_all_new(model: PopulationModel, config: PopulationConfig) -> None:
    if not has_none_of(config.known, model):
        raise InputError(
            f"population.known = {config.known!r}: expected {own_list(model)} or none for a "
            "population that is drawn again when asked, since its words are made to be in neither; "
            "set population.virtual = false, and use fewer clients."
        )


def _made(population: Population, config: PopulationConfig) -> Population:
    """Return somebody else's population without known words, which one in memory can lose."""
    if isinstance(population, Clients):
        return without_known(population, config.known, config.language)
    if config.known != "none":
        raise InputError(
            f'population.known = {shown(config.known)}: expected "none", since the clients of '
            f"{config.source} are not held in memory."
        )
    return population
