"""What a population looks like: how much its clients type, how new and how common it is.

And which of its words an alphabet and a number of layers can spell: others are lost to discovery.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedhh.arrays import Ints
from fedhh.clients.clients import Clients
from fedhh.words.alphabet import Alphabet, joined
from fedhh.words.known_words import KnownWords
from fedhh.words.lexicon import Lexicon

_TOP = (10, 100, 1000)
_HOLDERS = (10, 100, 1000)
_EXAMPLES = 10
_SYMBOLS = 40


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Two percentiles (linear interpolation) and the largest of some numbers."""

    p50: float
    p95: float
    max: int


@dataclass(frozen=True, kw_only=True)
class Spelling:
    """What of some words cannot be spelled; tokens are typed words.

    Attributes:
        alphabet: The alphabet's name, or its symbols.
        depth: Symbols of the longest word that can be spelled.
        words: The distinct words that were looked at, ...
        tokens: ... and how often they were typed.
        lost_words: Distinct words that cannot be spelled, ...
        lost_tokens: ... how often they were typed, ...
        lost_token_share: ... and their share of tokens; 0 if nothing was typed.
        words_with_other_symbols: Lost words with a symbol that the alphabet lacks; ...
        longer_words: ... all others, which are longer than ``depth``, ...
        longer_tokens: ... and how often these were typed.
        examples: Lost words, the most typed first, 10 at most.
        other_symbols: Symbols that the alphabet lacks, the most typed first, 40 at most.
    """

    alphabet: str
    depth: int
    words: int
    tokens: int
    lost_words: int
    lost_tokens: int
    lost_token_share: float
    words_with_other_symbols: int
    longer_words: int
    longer_tokens: int
    examples: tuple[str, ...]
    other_symbols: str


@dataclass(frozen=True, kw_only=True)
class PopulationSummary:
    """Figures of a population; tokens are typed words, each as often as it was typed.

    Attributes:
        name: The population's name.
        unit: What one client stands for.
        known: The list that defines known words.
        clients: Number of clients.
        empty_clients: Clients that hold nothing.
        tokens: Typed words.
        words: Distinct words.
        tokens_per_client: Typed words of a client.
        words_per_client: Distinct words of a client.
        top_token_share: Share of tokens that falls on the 10, 100 and 1000 most typed words.
        unknown_tokens: Typed words that are not known.
        unknown_token_share: Their share of all tokens; 0 if nothing was typed.
        unknown_words: Distinct words that are not known.
        unknown_words_per_client: Distinct unknown words of a client.
        unknown_words_held_by: How many unknown words at least 10, 100 and 1000 clients hold.
        spelling: Which of the unknown words a run can find at all.
    """

    name: str
    unit: str
    known: str
    clients: int
    empty_clients: int
    tokens: int
    words: int
    tokens_per_client: Spread
    words_per_client: Spread
    top_token_share: dict[int, float]
    unknown_tokens: int
    unknown_token_share: float
    unknown_words: int
    unknown_words_per_client: Spread
    unknown_words_held_by: dict[int, int]
    spelling: Spelling


def describe(
    population: Clients, known: KnownWords, *, alphabet: str, depth: int
) -> PopulationSummary:
    """Return the figures of a population.

    Args:
        population: Clients and all their words.
        known: Words to take as known.
        alphabet: What unknown words are spelled with, see `Spelling`.
        depth: Symbols of the longest word that can be spelled.

    Raises:
        InputError: There is no such alphabet.
    """
    items = population.items
    is_unknown = ~known.contains_all(population.lexicon.words)
    typed = population.word_counts().typed
    holders = population.word_counts().holders[is_unknown]
    sizes = np.diff(items.offsets)
    unknown_rows = np.r_[0, np.cumsum(is_unknown[items.word_ids])]
    token_rows = np.r_[0, np.cumsum(items.counts, dtype=np.int64)]
    most_typed = np.sort(typed)[::-1]
    tokens = int(typed.sum())
    unknown_tokens = int(typed[is_unknown].sum())
    return PopulationSummary(
        name=population.name,
        unit=population.unit,
        known=known.name,
        clients=population.num_clients,
        empty_clients=int((sizes == 0).sum()),
        tokens=tokens,
        words=len(population.lexicon),
        tokens_per_client=_spread(np.diff(token_rows[items.offsets])),
        words_per_client=_spread(sizes),
        top_token_share={top: int(most_typed[:top].sum()) / max(tokens, 1) for top in _TOP},
        unknown_tokens=unknown_tokens,
        unknown_token_share=unknown_tokens / max(tokens, 1),
        unknown_words=int(is_unknown.sum()),
        unknown_words_per_client=_spread(np.diff(unknown_rows[items.offsets])),
        unknown_words_held_by={least: int((holders >= least).sum()) for least in _HOLDERS},
        spelling=spelling_of(
            [population.lexicon.words[i] for i in np.flatnonzero(is_unknown).tolist()],
            typed[is_unknown],
            alphabet=alphabet,
            depth=depth,
        ),
    )


def _spread(numbers: Ints) -> Spread:
    p50, p95 = np.percentile(numbers, [50, 95]).tolist()
    return Spread(p50=p50, p95=p95, max=int(numbers.max()))


def spelling_of(words: Sequence[str], counts: Ints, *, alphabet: str, depth: int) -> Spelling:
    """Return what of some words an alphabet and a depth cannot spell.

    Args:
        words: Distinct words, n of them.
        counts: ``(n,) int64``: how often each was typed.
        alphabet: See `fedhh.words.alphabet.Alphabet.named`.
        depth: Symbols of the longest word that a protocol finds.

    Raises:
        InputError: There is no such alphabet.
    """
    named = Alphabet.named(alphabet)
    lost = np.flatnonzero(~Lexicon(words=words).reachable(named, depth))
    lost = lost[np.argsort(-counts[lost], kind="stable")]
    symbols: Counter[str] = Counter()
    other = longer_tokens = 0
    for i in lost.tolist():
        missing = set(named.foreign(words[i]))
        other += bool(missing)
        longer_tokens += 0 if missing else int(counts[i])
        for symbol in missing:
            symbols[symbol] += int(counts[i])
    tokens, lost_tokens = int(counts.sum()), int(counts[lost].sum())
    # Ties by the symbol, so that the order does not depend on how sets are kept.
    most_typed = sorted(symbols, key=lambda symbol: (-symbols[symbol], symbol))
    return Spelling(
        alphabet=alphabet,
        depth=depth,
        words=len(words),
        tokens=tokens,
        lost_words=len(lost),
        lost_tokens=lost_tokens,
        lost_token_share=lost_tokens / max(tokens, 1),
        words_with_other_symbols=other,
        longer_words=len(lost) - other,
        longer_tokens=longer_tokens,
        examples=tuple(words[i] for i in lost[:_EXAMPLES].tolist()),
        other_symbols=joined(most_typed[:_SYMBOLS]),
    )
