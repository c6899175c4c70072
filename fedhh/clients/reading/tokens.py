"""Words of free text, by one stated rule, in any script.

HTML entities are resolved, typographic apostrophes made plain, joiners and variation selectors,
which nobody sees, taken out; text is brought to Unicode form NFKC and lower case. URLs, e-mail
addresses and @mentions are removed; a hashtag keeps its word. A token is a run of letters, marks
and digits with apostrophes inside. It is kept if it has at least one letter and at most 24 symbols;
other tokens, such as ``2024``, are dropped as a whole. What is removed and dropped is counted.

There is no segmentation: where a script puts no blanks between words, a run of it is one token.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LONGEST_TOKEN = 24

DROPPED = ("URL", "e-mail address", "mention", "no letter", "too long")
"""Why a piece of text is no word: three kinds of it, and what dropped tokens lack or exceed."""

_APOSTROPHES = dict.fromkeys(map(ord, "‘’ʼ‛＇´`"), "'")
_UNSEEN = dict.fromkeys((0x200C, 0x200D, *range(0xFE00, 0xFE10)))
_PLAIN = _APOSTROPHES | _UNSEEN
_LAST_POINT = 0x110000
# Beyond any symbol; Python would fail to read the number.
_ENDLESS = re.compile(r"&#[0-9]{100,};?")


@functools.cache
def _rules() -> tuple[re.Pattern[str], re.Pattern[str]]:
    r"""Return what finds pieces that are no words, and what finds tokens.

    Python's ``\w`` has the letters and digits of all scripts and the underscore, but not the marks
    that many scripts write their vowels with.
    """
    is_mark = [unicodedata.category(chr(point))[0] == "M" for point in range(_LAST_POINT)]
    edges = np.flatnonzero(np.diff([False, *is_mark, False])).reshape(-1, 2)
    marks = "".join(f"{chr(first)}-{chr(end - 1)}" for first, end in edges.tolist())
    letters = rf"\w[\w{marks}]*"
    name, host = rf"[\w{marks}.+-]", rf"[\w{marks}-]"
    not_words = re.compile(
        r"((?:https?://|www\.)\S+)"  # URLs
        # E-mail addresses. Begun at the start of a run and never given back, so that the time for
        # a run without an @ does not grow with its square.
        rf"|((?<!{name}){name}++@{host}+(?:\.{host}+)+)"
        rf"|(?<!\w)(@{letters})"  # mentions
    )
    return not_words, re.compile(rf"{letters}(?:'{letters})*")


def tokenize(text: str, dropped: Counter[tuple[str, str]] | None = None) -> list[str]:
    """Return the words of a text, in order, by the module's rule.

    Args:
        text: Any text.
        dropped: Where what is no word is counted, as (one of `DROPPED`, the token). Of addresses
            and mentions, which tell who wrote and to whom, only the number is kept.

    >>> tokenize("I\u2019m @home &amp; reading https://a.b #Lol: 1st caf\u00e9, 2024!")
    ["i'm", 'reading', 'lol', '1st', 'café']
    """
    not_words, token = _rules()
    # NFKC splits the acute accent as a symbol of its own off a blank, so apostrophes come first.
    resolved = html.unescape(_ENDLESS.sub("\ufffd", text))
    plain = unicodedata.normalize("NFKC", resolved.translate(_PLAIN)).lower()
    if dropped is not None:
        dropped.update(
            (DROPPED[(found.lastindex or 1) - 1], "") for found in not_words.finditer(plain)
        )
    words = []
    for word in token.findall(not_words.sub(" ", plain).replace("_", " ")):
        if not (word.isalpha() or any(map(str.isalpha, word))):
            reason = "no letter"
        elif len(word) > LONGEST_TOKEN:
            reason = "too long"
        else:
            words.append(word)
            continue
        if dropped is not None:
            dropped[reason, word[: LONGEST_TOKEN + 1]] += 1
    return words


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenRows:
    """The tokens of many texts.

    Attributes:
        texts: ``(tokens,) int64``: which text a token stands in.
        word_ids: ``(tokens,) int64`` into ``words``.
        words: The distinct tokens, sorted.
        dropped: How often what is no word was dropped, see `tokenize`.
    """

    texts: npt.NDArray[np.int64]
    word_ids: npt.NDArray[np.int64]
    words: list[str]
    dropped: Counter[tuple[str, str]]


def tokenize_all(texts: Iterable[str]) -> TokenRows:
    """Return the tokens of every text."""
    ids: dict[str, int] = {}
    sizes = []
    found = [np.zeros(0, dtype=np.int64)]
    dropped: Counter[tuple[str, str]] = Counter()
    for text in texts:
        tokens = tokenize(text, dropped)
        sizes.append(len(tokens))
        found.append(np.array([ids.setdefault(token, len(ids)) for token in tokens], np.int64))
    words = list(ids)
    order = sorted(range(len(words)), key=words.__getitem__)
    position = np.empty(len(words), dtype=np.int64)
    position[order] = np.arange(len(words))
    return TokenRows(
        texts=np.repeat(np.arange(len(sizes)), sizes),
        word_ids=position[np.concatenate(found)],
        words=[words[i] for i in order],
        dropped=dropped,
    )
