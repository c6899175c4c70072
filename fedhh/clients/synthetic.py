"""Synthetic populations: clients that type new words as real users do.

The model (docs/populations.md says what it was fitted on and where it is weak): a client types a
log-normal number of words; a word copies an earlier one of the same client more and more often; a
fresh word is new, that is, not in any dictionary, with a share that differs between clients; ranks
of new words follow a shifted power law with a lighter tail, and every client can use only some of
all new words. Known words never matter to discovery, because a device drops them, so only the new
ones are drawn.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Annotated

import numpy as np
from annotated_types import Ge, Gt, Le, Lt

from fedhh.arrays import Ints, SmallInts, UInts
from fedhh.clients.clients import Clients, Table
from fedhh.clients.named_words import rank_strings
from fedhh.kernels.drawing import TypingDistribution, count_tokens, draw_ranks
from fedhh.kernels.ranks import RankTable, rank_table
from fedhh.random import Stream, generator
from fedhh.settings import Positive, Settings
from fedhh.validation import InputError, require_at_least, require_choice, require_positive
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon

_MIN_LISTED = 100
# The chance that a client adopts none of the words is then below 1e-43.
_MIN_ADOPTED = 100
CLIENTS_AT_ONCE = 2**17
"""So many are drawn at a time, to be held in memory."""

_TYPING = 0
"""In paths of `Stream.CALENDAR`: what clients type in a period."""

_MAX_TOKENS = 2**31
# Ranks below are counted in an array; only rarer ones need a sort.
_DENSE_RANKS = 2**22


# Beyond 50, the exponential of a normal overflows what a count can be.
_Spread = Annotated[float, Ge(0), Le(50)]
_Share = Annotated[float, Gt(0), Le(1)]


@dataclass(frozen=True, kw_only=True)
class WordList:
    """New words that a model lists one by one, in place of an endless distribution.

    Attributes:
        words: The words of the ranks 1, 2, ...
        weights: How often each is typed, relative to the others.
    """

    words: tuple[str, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        require_at_least(_MIN_LISTED, number_of_words=len(self.words))
        if len(set(self.words)) != len(self.words) or len(self.weights) != len(self.words):
            raise InputError("Expected distinct words with one weight each.")
        for weight in (min(self.weights), max(self.weights)):
            require_positive(weight=weight)


@dataclass(frozen=True, kw_only=True)
class PopulationModel(Settings):
    """Parameters of a synthetic population.

    Attributes:
        name: What a report calls it.
        unit: What one client stands for.
        fitted_on: Which data the parameters were fitted on.
        log_words_mean: A client types round(LogNormal(log_words_mean, log_words_sd)) words ...
        log_words_sd: ... of any kind,
        min_words: ... at least this many,
        max_words: ... and at most this many.
        oov_share: Mean over clients of the share of new words among them ...
        oov_share_log_sd: ... which is log-normal with this deviation of its logarithm, cut at 1.
        copy_scale: Word j = 0, 1, ... is a fresh draw with probability
            (1 + j / copy_scale)^-copy_exponent, otherwise a copy of an earlier word.
        copy_exponent: See ``copy_scale``.
        rank_exponent: Rank r weighs (r + rank_shift)^-rank_exponent up to ``head_ranks``.
        rank_shift: See ``rank_exponent``.
        head_ranks: Above, ranks weigh r^-tail_exponent, without a jump, up to 2^53.
        tail_exponent: See ``head_ranks``.
        adoption: Share of all new words that a client can use, fixed for each client and word.
        word_list: The new words and their weights, in place of the distribution of ranks and its
            strings.
        known: The words that no string is among, and whose language they are of; English, and
            ``scowl70``, if None.
    """

    name: str
    unit: str
    fitted_on: str
    log_words_mean: Annotated[float, Ge(-50), Le(50)]
    log_words_sd: _Spread
    min_words: Annotated[int, Ge(1)]
    max_words: Annotated[int, Ge(1)]
    oov_share: _Share
    oov_share_log_sd: _Spread
    copy_scale: Positive
    copy_exponent: _Spread
    rank_exponent: _Spread
    rank_shift: Annotated[float, Gt(-1), Lt(math.inf)]
    head_ranks: Annotated[int, Ge(16)]
    tail_exponent: Annotated[float, Gt(1), Lt(math.inf)]
    adoption: _Share
    word_list: WordList | None = None
    known: KnownWords | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(self.min_words, max_words=self.max_words)
        if self.word_list is not None and self.adoption * len(self.word_list.words) < _MIN_ADOPTED:
            # Somebody would adopt no word at all, and could not type.
            raise InputError(
                f"Expected adoption >= {_MIN_ADOPTED / len(self.word_list.words):.4g} with "
                f"{len(self.word_list.words)} listed words, got adoption={self.adoption!r}."
            )

    @property
    def typing_distribution(self) -> TypingDistribution:
        """The part of the model that a client's length and repetitions follow."""
        # A log-normal's mean is exp(m + sd^2 / 2).
        log_share_mean = math.log(self.oov_share) - self.oov_share_log_sd**2 / 2
        return TypingDistribution(
            log_mean=float(self.log_words_mean),
            log_sd=float(self.log_words_sd),
            min_words=int(self.min_words),
            max_words=int(self.max_words),
            log_share_mean=log_share_mean,
            log_share_sd=float(self.oov_share_log_sd),
            copy_scale=float(self.copy_scale),
            copy_exponent=float(self.copy_exponent),
            adoption=float(self.adoption),
        )

    @functools.cached_property
    def rank_table(self) -> RankTable:
        """The distribution of the ranks of new words, ready to draw from."""
        if self.word_list is not None:
            weights = np.array(self.word_list.weights)
            return rank_table(weights, tail_scale=0.0, tail_exponent=self.tail_exponent)
        ranks = np.arange(1, self.head_ranks + 1)
        head = np.asarray((ranks + self.rank_shift) ** -self.rank_exponent, dtype=np.float64)
        continuous_at_head = head[-1] * float(self.head_ranks) ** self.tail_exponent
        return rank_table(
            head, tail_scale=float(continuous_at_head), tail_exponent=self.tail_exponent
        )

    def strings(self, ranks: Ints) -> list[str]:
        """Return each rank's word; ranks are ``(n,) int64``, at least 1."""
        if self.word_list is None:
            return rank_strings(ranks, self.known)
        return [self.word_list.words[i] for i in (ranks - 1).tolist()]


@functools.cache
def population_presets() -> dict[str, PopulationModel]:
    """Return the fitted models by name: chat, keyboard60d, tweet, post."""
    asset = resources.files("fedhh.clients").joinpath("assets", "population_presets.json")
    file = json.loads(asset.read_text(encoding="utf-8"))
    return {
        name: PopulationModel(name=name, **file["copying"], **fields)
        for name, fields in file["presets"].items()
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class RankRows:
    """What some clients type, as ranks.

    Attributes:
        offsets: ``(n + 1,) int64``; client i's rows are ``offsets[i] : offsets[i + 1]``.
        ranks: ``(rows,) int64`` from 1, distinct within a client, in the order of its typing.
        counts: ``(rows,) int32``, at least 1.
    """

    offsets: Ints
    ranks: Ints
    counts: SmallInts


@dataclass(frozen=True, kw_only=True, eq=False)
class RankDrawer:
    """Draws any clients of an endless synthetic population, each from its own stream.

    A client's rows depend on the model, the seed and its number alone, not on which clients are
    drawn with it.

    Attributes:
        model: How clients type.
        seed: The run's seed.
        period: None for the one time of a population that knows none. Else in which period clients
            type: a client has the same share of new words, the same number of words, and adopts
            the same words in all of them, and draws its words anew in each.
    """

    model: PopulationModel
    seed: int
    period: int | None = None

    @functools.cached_property
    def _keys(self) -> UInts:
        rng = generator(self.seed, Stream.POPULATION)
        keys = rng.integers(0, 2**64, size=2, dtype=np.uint64)
        if self.period is None:
            return keys
        rng = generator(self.seed, Stream.CALENDAR, _TYPING, self.period)
        return np.append(keys, rng.integers(0, 2**64, size=1, dtype=np.uint64))

    def count_tokens(self, clients: Ints) -> Ints:
        """Return ``(n,) int64``: how many new words each client types, repetitions included."""
        tokens: Ints = count_tokens(self._keys, clients, self.model.typing_distribution)
        return tokens

    def draw(self, clients: Ints) -> RankRows:
        """Return what these clients type; client numbers are ``(n,) int64``, at least 0."""
        offsets, ranks, counts = draw_ranks(
            self._keys, clients, self.model.typing_distribution, self.model.rank_table
        )
        return RankRows(offsets=offsets, ranks=ranks, counts=counts)


def synthetic_population(preset: str | PopulationModel, num_clients: int, *, seed: int) -> Clients:
    """Return the first clients of a synthetic population, held in memory.

    Only new words are drawn, so there is nothing for a list of known words to remove: strings are
    made not to be among the model's known words. A client may hold nothing. The first n clients
    of a larger population with the same seed hold the same words.

    Args:
        preset: chat, keyboard60d, tweet, post, or a model of your own.
        num_clients: How many clients.
        seed: The run's seed.

    Raises:
        InputError: The preset is unknown, or the population would have 2^31 or more new words.
    """
    model = model_of(preset)
    require_at_least(1, num_clients=num_clients)
    drawer = RankDrawer(model=model, seed=seed)
    _refuse_too_large(drawer, num_clients)
    clients = np.arange(num_clients)
    blocks = [
        drawer.draw(clients[first : first + CLIENTS_AT_ONCE])
        for first in range(0, num_clients, CLIENTS_AT_ONCE)
    ]
    name = f"{model.name}, {num_clients:,} clients, seed {seed}"
    return stored_population(blocks, model, name=name)[0]


def stored_population(
    blocks: Sequence[RankRows], model: PopulationModel, *, name: str
) -> tuple[Clients, Ints]:
    """Return the population of some rows of clients, and ``(V,) int64``: its words' ranks."""
    sizes = np.concatenate([np.diff(block.offsets) for block in blocks])
    distinct, word_ids = _distinct_ranks([block.ranks for block in blocks])
    population = Clients(
        Table(
            Lexicon(words=model.strings(distinct)),
            np.r_[0, np.cumsum(sizes)],
            word_ids,
            np.concatenate([block.counts for block in blocks]),
        ),
        name=name,
        unit=model.unit,
        arrangement="independent",
    )
    return population, distinct


def model_of(preset: str | PopulationModel) -> PopulationModel:
    """Return a preset's model, or the model itself; InputError names the known presets."""
    if isinstance(preset, PopulationModel):
        return preset
    require_choice(population_presets(), preset=preset)
    return population_presets()[preset]


def _refuse_too_large(drawer: RankDrawer, num_clients: int) -> None:
    sample = np.arange(min(num_clients, 10_000))
    expected = int(drawer.count_tokens(sample).mean() * num_clients)
    if expected >= _MAX_TOKENS:
        raise InputError(
            f"Expected a population of fewer than 2^31 new words, got about {expected:,} from "
            f"num_clients={num_clients:,} of {drawer.model.name}; use fewer clients."
        )


def _distinct_ranks(blocks: list[Ints]) -> tuple[Ints, SmallInts]:
    """Return the sorted distinct ranks, and each rank's position among them, ``int32``."""
    seen = np.zeros(_DENSE_RANKS + 1, dtype=bool)
    for ranks in blocks:
        # All rare ranks fall on the last place.
        seen[np.minimum(ranks, _DENSE_RANKS)] = True
    common = np.flatnonzero(seen[:-1])
    position = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    ids = np.concatenate([position[np.minimum(ranks, _DENSE_RANKS)] for ranks in blocks])
    ranks = np.concatenate(blocks)
    is_rare = np.flatnonzero(ranks >= _DENSE_RANKS)
    rare, rare_ids = np.unique(ranks[is_rare], return_inverse=True)
    ids[is_rare] = rare_ids + len(common)
    return np.r_[common, rare], ids
