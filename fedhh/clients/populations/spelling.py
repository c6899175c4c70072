"""Which words an alphabet and a number of layers can spell: all others are lost to discovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.words.alphabet import Alphabet
from fedhh.words.lexicon import Lexicon

_EXAMPLES = 10
_SYMBOLS = 40


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


def spelling_of(
    words: Sequence[str], counts: npt.NDArray[np.int64], *, alphabet: str, depth: int
) -> Spelling:
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
    known = frozenset(named.symbols)
    for i in lost.tolist():
        missing = set(words[i]) - known
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
        other_symbols="".join(most_typed[:_SYMBOLS]),
    )
