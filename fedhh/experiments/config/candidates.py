"""`population.candidates`: the words that protocols of a closed domain are told beforehand.

Like an alphabet, a list of candidates is public before the first client answers. One that is made
of the clients' own words releases which words there are, and a run that does so says it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from pathlib import Path

from fedhh.experiments.config.alphabet import alphabet_or_stand_in
from fedhh.experiments.config.protocol_section import borrowed_settings
from fedhh.experiments.config.schema import Config, PopulationConfig
from fedhh.server.registry import protocol_class
from fedhh.system.reading import text_lines
from fedhh.validation import InputError, shown
from fedhh.words.alphabet import Alphabet
from fedhh.words.candidates import Candidates

FROM_DATA = "from-data"
PATH = "population.candidates"

CLOSED_DOMAIN = (
    "The candidates are the clients' own words (population.candidates = "
    f'"{FROM_DATA}"): the protocol was told every word there is, which no guarantee here covers, '
    "and which protocols of an open domain do not know."
)

_STAND_IN = 2


def read_candidates(population: PopulationConfig) -> PopulationConfig:
    """Return the settings with the words of a file of candidates in its place.

    Raises:
        InputError: The file cannot be read, or holds no word.
    """
    source = population.candidates
    if source in ("", FROM_DATA):
        return population
    words = _read_words(source) if isinstance(source, str) else source
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
        return Candidates(Alphabet.named(alphabet).symbols[:_STAND_IN])
    return Candidates(words)


def is_closed(config: Config) -> bool:
    """Return whether a configuration's protocol was told the clients' own words."""
    asked = borrowed_settings(protocol_class(config.protocol.name)).values()
    return PATH in asked and config.population.candidates == FROM_DATA


def _read_words(source: str) -> list[str]:
    path = Path(source)
    if not os.path.lexists(path):
        raise InputError(
            f'population.candidates = {shown(source)}: expected "{FROM_DATA}", a list of words or '
            "a file with a word per line, got a file that does not exist."
        )
    try:
        lines = (line.strip() for text in text_lines(path) for line in text.splitlines())
        words = [line for line in lines if line]
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"Expected a readable file of candidates, got {path}: {error}.") from None
    if not words:
        raise InputError(f"Expected candidates, one a line, got an empty file {path}.")
    return words
