"""`population.candidates`: the words that protocols of a closed domain are told beforehand.

Like an alphabet, a list of candidates is public before the first client answers. One that is made
of the clients' own words releases which words there are, and a run that does so says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedhh.clients.reading.word_list import read_word_list
from fedhh.experiments.config.alphabet import alphabet_or_stand_in
from fedhh.experiments.config.protocol_section import borrowed_settings
from fedhh.experiments.config.schema import Config, PopulationConfig
from fedhh.server.registry import protocol_class
from fedhh.validation import shown
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
    if isinstance(source, str):
        missing = (
            f'{PATH} = {shown(source)}: expected "{FROM_DATA}", a list of words or a file with a '
            "word per line, got a file that does not exist."
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
        return Candidates(Alphabet.named(alphabet).symbols[:_STAND_IN])
    return Candidates(words)


def is_closed(config: Config) -> bool:
    """Return whether a configuration's protocol was told the clients' own words."""
    asked = borrowed_settings(protocol_class(config.protocol.name)).values()
    return PATH in asked and config.population.candidates == FROM_DATA
