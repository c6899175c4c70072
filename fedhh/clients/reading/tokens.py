"""Words of free text, by one stated rule, in any script.

HTML entities are resolved, typographic apostrophes made plain, joiners and variation selectors,
which nobody sees, taken out: in Persian and in scripts of India, where joiners belong to the
spelling, spellings with and without one become one word. Text is brought to Unicode form NFKC and
to lower case by the rules of its language. URLs, e-mail addresses and @mentions are removed; a
hashtag keeps its word. A token is a run of letters, marks and digits with apostrophes inside. It is
kept if it has at least one letter and at most 24 symbols, see `fedhh.words.alphabet`; other tokens,
such as ``2024``, are dropped as a whole. Emoji and other symbols are no tokens; a sequence that is
one picture is one emoji. What is removed and dropped is counted.

There is no segmentation: where a script puts no blanks between words, a run of it is one token.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fedhh.words.alphabet import beginning, length_of, nfc
from fedhh.words.languages import ENGLISH, lower

LONGEST_TOKEN = 24

EMOJI, NO_LETTER, TOO_LONG = "emoji or symbol", "no letter", "too long"
DROPPED = ("URL", "e-mail address", "mention", EMOJI, NO_LETTER, TOO_LONG)
"""Why a piece of text is no word: four kinds of it, and what dropped tokens lack or exceed."""

# What a URL, an address or a mention has, at least.
_SIGNS = ("://", "www.", "@")
_APOSTROPHES = dict.fromkeys(map(ord, "‘’ʼ‛＇´`"), "'")
_UNSEEN = dict.fromkeys((0x200C, 0x200D, *range(0xFE00, 0xFE10)))
_PLAIN = _APOSTROPHES | _UNSEEN
# Pieces that are remembered from one batch of texts to the next.
_MOST_KNOWN = 2**20
# What is neither a letter nor a digit, and makes neither an entity, an address nor a mention.
_EDGES = """!"#$%'()*+,-.:;<=>?[\\]^_`{|}~"""
_NOTHING = Counter[tuple[str, str]]()
# Beyond any symbol; Python would fail to read the number.
_ENDLESS = re.compile(r"&#[0-9]{100,};?")


@functools.cache
def _rules() -> tuple[Any, Any, Any]:
    """Return the patterns of pieces that are no words, of tokens, and of emoji."""
    import regex  # Only texts need it.

    # The marks are what many scripts write their vowels with.
    letter, part = r"\p{L}\p{N}", r"\p{L}\p{N}\p{M}"
    # Blanks as Python has them.
    not_words = (
        r"((?:https?://|www\.)[^\s\x1c-\x1f]+)"  # URLs
        # E-mail addresses. Begun at the start of a run and never given back, so that the time for
        # a run without an @ does not grow with its square.
        rf"|((?<![{part}_.+-])[{part}_.+-]++@[{part}_-]+(?:\.[{part}_-]+)+)"
        rf"|(?<![{letter}_])(@[{letter}_][{part}_]*)"  # mentions
    )
    word = rf"[{letter}][{part}]*"
    # Symbols that NFKC makes letters of, such as the sign of a trade mark, are read as these.
    symbol = r"[\p{So}&&\p{NFKC_QC=Y}]"
    emoji = (
        # Two letters are a flag; else a symbol, as changed by what follows, and those joined.
        "[\U0001f1e6-\U0001f1ff]{2}"
        f"|{symbol}(?:[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]|\u200d{symbol})*"
    )
    return (
        regex.compile(not_words),
        regex.compile(rf"{word}(?:'{word})*"),
        regex.compile(emoji, regex.VERSION1),
    )


def folded(text: str, language: str = ENGLISH) -> str:
    r"""Return a text with plain apostrophes, without what nobody sees, in NFKC and lower case.

    >>> folded("I\u2019M"), folded("\uff21rt")
    ("i'm", 'art')
    >>> folded("ILIK", "tr")
    'ılık'
    """
    # NFKC splits the acute accent as a symbol of its own off a blank, so apostrophes come first.
    text = unicodedata.normalize("NFKC", text.translate(_PLAIN))
    return nfc(lower(text, language))


def tokenize(
    text: str, dropped: Counter[tuple[str, str]] | None = None, *, language: str = ENGLISH
) -> list[str]:
    """Return the words of a text, in order, by the module's rule.

    Args:
        text: Any text.
        dropped: Where what is no word is counted, as (one of `DROPPED`, the token). Of addresses
            and mentions, which tell who wrote and to whom, only the number is kept.
        language: Whose rules of case hold.

    >>> tokenize("I\u2019m @home &amp; reading https://a.b #Lol: 1st caf\u00e9, 2024!")
    ["i'm", 'reading', 'lol', '1st', 'café']
    """
    not_words, token, emoji = _rules()
    resolved = html.unescape(_ENDLESS.sub("\ufffd", text))
    plain = folded(resolved, language)
    if dropped is not None and not resolved.isascii():
        dropped.update((EMOJI, found) for found in emoji.findall(resolved))
    if any(sign in plain for sign in _SIGNS):
        if dropped is not None:
            dropped.update(
                (DROPPED[(found.lastindex or 1) - 1], "") for found in not_words.finditer(plain)
            )
        plain = not_words.sub(" ", plain)
    words = []
    for word in token.findall(plain.replace("_", " ")):
        if not (word.isalpha() or any(map(str.isalpha, word))):
            reason = NO_LETTER
        elif len(word) > LONGEST_TOKEN and length_of(word) > LONGEST_TOKEN:
            reason = TOO_LONG
        else:
            words.append(word)
            continue
        if dropped is not None:
            dropped[reason, beginning(word, LONGEST_TOKEN + 1)] += 1
    return words


class Tokenizer:
    """Finds the words of texts, and remembers the pieces between blanks that it has looked at.

    No rule reaches over a blank: not a word, an address, an entity, nor what Unicode's forms look
    at. So texts fall into pieces, and each distinct piece is looked at once.
    """

    def __init__(self, language: str = ENGLISH) -> None:
        """Begin without any piece; ``language`` as for `tokenize`."""
        self._language = language
        self._known: dict[str, tuple[list[str], Counter[tuple[str, str]]]] = {}

    def words(self, texts: pa.Array, dropped: Counter[tuple[str, str]]) -> pa.LargeListArray:
        """Return the words of each text, in order; what is none is counted as by `tokenize`."""
        split = pc.ascii_split_whitespace(texts.cast(pa.large_string()))
        pieces = split.flatten().dictionary_encode()
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        held = []
        times = np.bincount(pieces.indices, minlength=len(pieces.dictionary)).tolist()
        for piece, number in zip(pieces.dictionary.to_pylist(), times, strict=True):
            words, lost = self._known.get(piece) or self._look_at(piece)
            held.append(words)
            for reason, each in lost.items():
                dropped[reason] += each * number
        found = pa.array(held, pa.large_list(pa.string())).take(pieces.indices)
        # A text ends where its last piece does.
        ends = found.offsets.take(pc.subtract(split.offsets, split.offsets[0]))
        return pa.LargeListArray.from_arrays(ends, found.values)

    def _look_at(self, piece: str) -> tuple[list[str], Counter[tuple[str, str]]]:
        core = piece.strip(_EDGES)
        # Most pieces are one word of ASCII between signs: known without asking `tokenize`, but for
        # the one beginning of a URL that has no sign but those.
        is_plain = core.isascii() and core.isalpha() and len(core) <= LONGEST_TOKEN
        if is_plain and core[-3:].lower() != "www":
            found = [lower(core, self._language)], _NOTHING
        else:
            dropped = Counter[tuple[str, str]]()
            found = tokenize(piece, dropped, language=self._language), dropped
        self._known[piece] = found
        return found
