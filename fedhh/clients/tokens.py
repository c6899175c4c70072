"""Words of free text, by one stated rule.

Case, accents and numbers: text is brought to Unicode form NFKC and lower case; HTML entities are
resolved and typographic apostrophes made plain. URLs, e-mail addresses and @mentions are removed;
a hashtag keeps its word. A token is a run of letters and digits with apostrophes inside. It is kept
if it has only ``a-z0-9'``, at least one letter, and at most 24 symbols; other tokens, such as
``café`` or ``2024``, are dropped as a whole.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LONGEST_TOKEN = 24

_APOSTROPHES = str.maketrans(dict.fromkeys("‘’ʼ‛＇´`", "'"))
_NOT_WORDS = re.compile(
    r"(?:https?://|www\.)\S+"  # URLs
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # e-mail addresses
    r"|(?<!\w)@\w+"  # mentions
)
_TOKEN = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_KEPT = re.compile(rf"(?=[0-9']*[a-z])[a-z0-9']{{1,{LONGEST_TOKEN}}}")


def tokenize(text: str) -> list[str]:
    """Return the words of a text, in order, by the module's rule.

    >>> tokenize("I\u2019m @home &amp; reading https://a.b #Lol: 1st caf\u00e9, 2024!")
    ["i'm", 'reading', 'lol', '1st']
    """
    # NFKC splits the acute accent as a symbol of its own off a blank, so apostrophes come first.
    plain = unicodedata.normalize("NFKC", html.unescape(text).translate(_APOSTROPHES)).lower()
    tokens = _TOKEN.findall(_NOT_WORDS.sub(" ", plain))
    return [token for token in tokens if _KEPT.fullmatch(token)]


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenRows:
    """The tokens of many texts.

    Attributes:
        texts: ``(tokens,) int64``: which text a token stands in.
        word_ids: ``(tokens,) int64`` into ``words``.
        words: The distinct tokens, sorted.
    """

    texts: npt.NDArray[np.int64]
    word_ids: npt.NDArray[np.int64]
    words: list[str]


def tokenize_all(texts: Iterable[str]) -> TokenRows:
    """Return the tokens of every text."""
    ids: dict[str, int] = {}
    sizes = []
    found = [np.zeros(0, dtype=np.int64)]
    for text in texts:
        tokens = tokenize(text)
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
    )
