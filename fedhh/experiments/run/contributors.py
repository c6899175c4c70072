"""How many clients contribute each word of a validation round: what its estimates are about.

A client with m candidates says B of them, so that a word with holders of many candidates has fewer
contributors than holders. A protocol knows neither number; a simulator knows both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.clients.clients import Clients
from fedhh.clients.population import Population
from fedhh.protocol import Discoveries
from fedhh.questions.channel import Answering
from fedhh.questions.matching import WordMatcher
from fedhh.questions.question import Question
from fedhh.words.trie import match_rows

_MOST_DRAWN = 2**18
"""Clients that are drawn again to measure shares, of a population that is not held in memory."""

_AT_ONCE = 2**14


def contributors(
    question: Question,
    population: Population,
    discoveries: Discoveries,
    holders: Ints,
    *,
    seed: int,
) -> Floats:
    """Return how many clients would contribute each returned word if all clients were asked.

    With random sampling that is an expectation: a holder of m candidates counts as min(1, B / m).
    Of a population that is drawn when it is asked, it is the share of contributors among a word's
    holders in a sample of the clients, times all its holders; NaN where the sample has no holder.

    Args:
        question: The validation round's.
        population: The clients.
        discoveries: Words that the round returned.
        holders: ``(h,) int64``: clients that hold each of them.
        seed: The run's seed, on which ties of greedy sampling depend.
    """
    asked = population.num_clients
    if population.arrangement == "independent" and not isinstance(population, Clients):
        asked = min(asked, _MOST_DRAWN)
    said, held = _sums(question, population, asked, seed)
    finished = question.names.finished
    codes = question.alphabet.encode(
        list(discoveries.words), width=question.names.finished.shape[1]
    )
    places = match_rows(codes, finished)
    said, held = said[places], held[places]
    if asked == population.num_clients:
        return said
    shares = np.divide(said, held, out=np.full(len(said), np.nan), where=held > 0)
    return np.where(holders > 0, holders * shares, 0.0)


def _sums(
    question: Question, population: Population, num_clients: int, seed: int
) -> tuple[Floats, Floats]:
    """Return ``(f,)`` contributors and holders of a question's words among the first clients."""
    # Compiled code takes a while to load, and a run that validates nothing does without.
    from fedhh.kernels.sampling import add_contributors

    matcher = WordMatcher(population.lexicon)
    known = question.names.known(matcher, question.alphabet)
    greedy = None
    if question.choice.sampler == "greedy":
        counting = replace(question, counts_only=True)
        greedy = Answering(counting, matcher, seed)
    size = question.channel.domain_size
    said, held, chosen = np.zeros(size), np.zeros(size), np.zeros(size, dtype=np.int64)
    for block, first in enumerate(range(0, num_clients, _AT_ONCE)):
        rows = population.block(np.arange(first, min(first + _AT_ONCE, num_clients)))
        # Of a block by itself: sums of floats depend on their grouping.
        here = np.zeros(size)
        add_contributors(
            rows.offsets,
            rows.word_ids,
            known.values,
            known.live,
            question.max_items,
            here,
            held,
        )
        said += here
        if greedy is not None:
            greedy.add_block(rows, block, chosen)
    return (said if greedy is None else chosen.astype(np.float64))[:-1], held[:-1]
