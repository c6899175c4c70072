"""`population.alphabet` where it is not written out: taken from a list, or from clients' data.

A protocol's alphabet is public before the first client answers. So its symbols come from something
public, a list of known words or a file; symbols read from the clients' own words are a release of
their data that no guarantee covers, and a run that does so says it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path

from fedhh.clients.populations.known_words import load_known
from fedhh.clients.populations.population import Population
from fedhh.experiments.config.schema import Config, PopulationConfig
from fedhh.system.reading import text_lines
from fedhh.validation import InputError, shown
from fedhh.words.alphabet import NAMED_ALPHABETS, Alphabet

AUTO = "auto"
FROM_DATA = "from-data"

NOT_PRIVATE = (
    "The alphabet was read from the clients' data (population.alphabet = "
    f'"{FROM_DATA}"): which symbols occur was revealed before the run, and no guarantee here '
    "covers it."
)

FROM_DATA_REVEALS = (
    f'An alphabet "{FROM_DATA}" is not private: it reveals, before the first client answers, which '
    "symbols occur in the clients' words, and no guarantee of a run covers that."
)

_STAND_IN = "lower"


def settle_public(population: PopulationConfig) -> PopulationConfig:
    """Return the settings with the symbols in place of "auto".

    Raises:
        InputError: There is nothing to take symbols from, or ``alphabet_source`` means nothing.
    """
    source = population.alphabet_source
    if source and (population.alphabet in NAMED_ALPHABETS or population.alphabet == FROM_DATA):
        raise InputError(
            f"population.alphabet_source = {shown(source)}: expected population.alphabet = "
            f'"{AUTO}", which takes its symbols, got {shown(population.alphabet)}; remove one.'
        )
    if population.alphabet != AUTO:
        return population
    if source:
        symbols = symbols_of(_lines(Path(source)))
    elif population.known == "none":
        raise InputError(
            f'population.alphabet = "{AUTO}": expected population.alphabet_source or a list of '
            "known words to take the symbols from, got none; name a public file, or set "
            f'"{FROM_DATA}", which is not private.'
        )
    else:
        symbols = symbols_of(load_known(population.known).words)
    return _settled(population, symbols, source or population.known)


def settle_alphabet(config: Config, population: Population) -> Config:
    """Return the configuration with the alphabet's symbols written out.

    Raises:
        InputError: As `settle_public`, or the clients' words have no symbol.
    """
    settings = settle_public(config.population)
    if settings.alphabet == FROM_DATA:
        settings = _settled(settings, symbols_of(population.lexicon.words), FROM_DATA)
    return config.model_copy(update={"population": settings})


def named_or_settled(alphabet: str, *, known: str) -> str:
    """Return an alphabet as it is, or the symbols that "auto" has with a list of known words.

    Raises:
        InputError: As `settle_public`.
    """
    return settle_public(PopulationConfig(alphabet=alphabet, known=known)).alphabet


def written_out(alphabet: str, words: Iterable[str]) -> str:
    """Return an alphabet as it is, or the symbols that "from-data" has with clients' words.

    Raises:
        InputError: The words have no symbol, or too many.
    """
    if alphabet != FROM_DATA:
        return alphabet
    return _settled(PopulationConfig(alphabet=FROM_DATA), symbols_of(words), FROM_DATA).alphabet


def alphabet_or_stand_in(alphabet: str) -> str:
    """Return an alphabet, or one to check other settings with, where it is not settled yet."""
    return _STAND_IN if alphabet in (AUTO, FROM_DATA) else alphabet


def is_from_data(config: Config) -> bool:
    """Return whether a settled configuration's alphabet was read from the clients' data."""
    return config.population.alphabet_source == FROM_DATA


def symbols_of(words: Iterable[str]) -> str:
    r"""Return the symbols of some words in the order of their code points, without invisible ones.

    >>> symbols_of(["ça va", "a\tb"])
    'abvç'
    """
    found = set().union(*words)
    return "".join(sorted(s for s in found if s.isprintable() and not s.isspace()))


def _settled(population: PopulationConfig, symbols: str, source: str) -> PopulationConfig:
    if not symbols:
        raise InputError(
            f"Expected words with symbols to make an alphabet of, got none in {source}."
        )
    # Refuses what is too large.
    Alphabet(symbols=symbols)
    return population.model_copy(update={"alphabet": symbols, "alphabet_source": source})


def _lines(path: Path) -> list[str]:
    try:
        return list(text_lines(path))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Expected a readable file of symbols, got {path}: {error}.") from None
