"""What a protocol knows before the first client answers: its alphabet, and its candidates.

Both are public. So symbols come from something public, a list of known words or a file, and the
candidates of a closed domain from a file or the configuration. What is made of the clients' own
words is a release of their data that no guarantee covers, and a run that does so says it.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedhh.clients.known_words import load_known
from fedhh.clients.population import Population
from fedhh.clients.reading.word_list import read_word_list
from fedhh.experiments.config.schema import Config, PopulationConfig
from fedhh.experiments.config.section import borrowed_settings
from fedhh.server.registry import protocol_class
from fedhh.system.files import is_there
from fedhh.system.reading import text_lines
from fedhh.validation import InputError, shown
from fedhh.words.alphabet import NAMED_ALPHABETS, Alphabet, clusters, joined, nfc, stands_alone
from fedhh.words.candidates import Candidates
from fedhh.words.known_words import KnownWords, is_named
from fedhh.words.languages import ENGLISH, check_language

AUTO = "auto"
FROM_DATA = "from-data"
CANDIDATES = "population.candidates"

NOT_PRIVATE = (
    "The alphabet was read from the clients' data (population.alphabet = "
    f'"{FROM_DATA}"): which symbols occur was revealed before the run, and no guarantee here '
    "covers it."
)

FROM_DATA_REVEALS = (
    f'An alphabet "{FROM_DATA}" is not private: it reveals, before the first client answers, which '
    "symbols occur in the clients' words, and no guarantee of a run covers that."
)

CLOSED_DOMAIN = (
    "The candidates are the clients' own words (population.candidates = "
    f'"{FROM_DATA}"): the protocol knows every word there is, which no guarantee here covers, '
    "and which protocols of an open domain do not know."
)

_BESIDE_LETTERS = "0123456789'-"
"""What people type in words, and lists of a language's words have not: as in "lower"."""

_AT_ONCE = 10_000
"""Words that are looked through at once."""

_ALPHABET_STAND_IN = "lower"
_CANDIDATES_STAND_IN = 2


def settle_public(population: PopulationConfig) -> PopulationConfig:
    """Return the settings with the symbols in place of "auto"."""
    check_language(population.language)
    source = population.alphabet_source
    if source and (population.alphabet in NAMED_ALPHABETS or population.alphabet == FROM_DATA):
        raise InputError(
            f"population.alphabet_source = {shown(source)}: expected population.alphabet = "
            f'"{AUTO}", which takes its symbols, got {shown(population.alphabet)}; remove one.'
        )
    if population.alphabet != AUTO:
        return population
    if source:
        return _settled(population, _lines(Path(source), "symbols"), source)
    if population.known == "none":
        raise InputError(
            f'population.alphabet = "{AUTO}": expected population.alphabet_source or a list of '
            "known words to take the symbols from, got none; name a public file, or set "
            f'"{FROM_DATA}", which is not private.'
        )
    known = load_known(population.known, population.language)
    return _with_symbols(population, _symbols_of_list(known), population.known)


def settle_alphabet(config: Config, population: Population) -> Config:
    """Return the configuration with the alphabet's symbols written out."""
    settings = settle_public(config.population)
    if settings.alphabet == FROM_DATA:
        settings = _settled(settings, population.lexicon.words, FROM_DATA)
    return config.model_copy(update={"population": settings})


def written_out(alphabet: str, words: Iterable[str]) -> str:
    """Return an alphabet as it is, or the symbols that "from-data" has with clients' words."""
    if alphabet != FROM_DATA:
        return alphabet
    return _settled(PopulationConfig(alphabet=FROM_DATA), words, FROM_DATA).alphabet


def alphabet_or_stand_in(alphabet: str) -> str:
    """Return an alphabet, or one to check other settings with, where it is not settled yet."""
    return _ALPHABET_STAND_IN if alphabet in (AUTO, FROM_DATA) else alphabet


def known_or_stand_in(population: PopulationConfig) -> KnownWords:
    """Return the known words; an empty list of their name where the file is not there.

    A run reads the file with its clients, which says so; a stored run needs no more than the name.
    """
    path = Path(population.known)
    if is_named(population.known) or is_there(path):
        return load_known(population.known, population.language)
    return KnownWords(name=path.name, words=frozenset(), language=population.language)


def is_from_data(config: Config) -> bool:
    """Return whether a settled configuration's alphabet was read from the clients' data."""
    return config.population.alphabet_source == FROM_DATA


def symbols_of(words: Iterable[str]) -> str:
    r"""Return the symbols of some words in the order of their code points, without invisible ones.

    Marks without a letter are left out. Symbols that would be one have `BREAK` between them.

    >>> symbols_of(["ça va", "a\tb"])
    'abvç'
    """
    found: set[str] = set()
    rest = iter(words)
    while some := list(itertools.islice(rest, _AT_ONCE)):
        # No symbol reaches beyond a line.
        found.update(clusters(nfc("\n".join(some))))
    return joined(sorted(symbol for symbol in found if _is_symbol(symbol)))


def _is_symbol(symbol: str) -> bool:
    # What is behind the first code point may be a joiner, which nobody sees by itself.
    seen = symbol[0].isprintable() and not symbol[0].isspace()
    return seen and stands_alone(symbol)


def read_candidates(population: PopulationConfig) -> PopulationConfig:
    """Return the settings with the words of a file of candidates in its place."""
    source = population.candidates
    if source in ("", FROM_DATA):
        return population
    if isinstance(source, str):
        missing = (
            f'{CANDIDATES} = {shown(source)}: expected "{FROM_DATA}", a list of words or a file '
            "with a word per line, got a file that does not exist."
        )
        words: Sequence[str] = read_word_list(Path(source), what="candidates", missing=missing)
    else:
        words = source
    return population.model_copy(update={"candidates": tuple(Candidates(words).words)})


def candidates_of(config: Config, words: Sequence[str] | None) -> Candidates:
    """Return the candidates of a configuration.

    Args:
        config: Its file of candidates is read already.
        words: The clients' own words; None while they are not known. Then two symbols of the
            alphabet stand in for them, so that other settings can be checked.
    """
    source = config.population.candidates
    if source != FROM_DATA:
        return Candidates(source or ())
    if words is None:
        alphabet = alphabet_or_stand_in(config.population.alphabet)
        return Candidates(Alphabet.named(alphabet).listed[:_CANDIDATES_STAND_IN])
    return Candidates(words)


def is_closed(config: Config) -> bool:
    """Return whether a configuration's protocol was given the clients' own words."""
    asked = borrowed_settings(protocol_class(config.protocol.name)).values()
    return CANDIDATES in asked and config.population.candidates == FROM_DATA


@functools.lru_cache(maxsize=32)
def _symbols_of_list(known: KnownWords) -> str:
    """Return what people type in words of a list's language; a sweep asks once for each cell."""
    return symbols_of(known.words if known.language == ENGLISH else (*known.words, _BESIDE_LETTERS))


def _settled(population: PopulationConfig, words: Iterable[str], source: str) -> PopulationConfig:
    return _with_symbols(population, symbols_of(words), source)


def _with_symbols(population: PopulationConfig, symbols: str, source: str) -> PopulationConfig:
    if not symbols:
        raise InputError(
            f"Expected words with symbols to make an alphabet of, got none in {source}."
        )
    # Refuses what is too large.
    Alphabet(symbols=symbols)
    return population.model_copy(update={"alphabet": symbols, "alphabet_source": source})


def _lines(path: Path, what: str) -> list[str]:
    try:
        return list(text_lines(path))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Expected a readable file of {what}, got {path}: {error}.") from None
