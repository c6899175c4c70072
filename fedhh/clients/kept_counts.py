"""Counts of the words of drawn clients, kept on disk: one pass for all runs on a population."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources

import numpy as np

from fedhh.clients.population import Population, WordCounts
from fedhh.kernels.cache import digest_of_sources
from fedhh.system.kept import kept_text

_SOURCES = ("drawn.py", "population.py", "synthetic.py", __name__.rpartition(".")[2] + ".py")


def kept_counts(
    population: Population, drawn_by: str, num_counted: int, count: Callable[[], WordCounts]
) -> WordCounts:
    """Return the counts of words of a population, from the disk if they are there.

    They are found by the population's fingerprint, which rests on its words and some clients, by
    what draws all of them, and by the code that draws and counts.

    Args:
        population: The clients.
        drawn_by: All that a client's draws depend on.
        num_counted: On how many of them the counts rest.
        count: Counts, where nothing is kept.
    """
    made_of = repr((population.fingerprint(), drawn_by, num_counted)).encode()
    sources = [resources.files("fedhh.clients").joinpath(name) for name in _SOURCES]
    text = kept_text("counts", made_of + digest_of_sources(), lambda: _written(count()), sources)
    try:
        return _read(text, len(population.lexicon))
    except (TypeError, ValueError):  # The disk has damaged it.
        return count()


def _written(counts: WordCounts) -> str:
    """Return counts as text; floats are written so that they are read as they were."""
    arrays = counts.typed.tolist(), counts.holders.tolist()
    return json.dumps([*arrays, counts.num_counted, counts.share_std_error], separators=(",", ":"))


def _read(text: str, num_words: int) -> WordCounts:
    typed, holders, num_counted, error = json.loads(text)
    arrays = [np.array(each, dtype=np.int64).reshape(num_words) for each in (typed, holders)]
    for each in arrays:
        each.flags.writeable = False
    return WordCounts(
        typed=arrays[0], holders=arrays[1], num_counted=num_counted, share_std_error=error
    )
