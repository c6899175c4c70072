"""Strings for the ranks of new words: every rank has its own, the same in every population.

Real and changed words (`named_words`) up to rank `NAMED_RANKS`, coded words (`coded_words`) beyond.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fedhh.clients.named_words import NAMED_RANKS, named_words
from fedhh.kernels.ranks import MAX_RANK
from fedhh.validation import InputError
from fedhh.words.coded_words import coded_words
from fedhh.words.known_words import SCOWL70, KnownWords, named_list

_Ids = npt.NDArray[np.int64]


def rank_strings(ranks: _Ids, known: KnownWords | None = None) -> list[str]:
    """Return each rank's string, at most 24 symbols with a letter among them.

    Args:
        ranks: ``(n,) int64`` in [1, 2**53).
        known: The words that no string up to `NAMED_RANKS` is among, and whose language these are
            of; ``scowl70``, which is English, if None.

    Raises:
        InputError: A rank is outside, or there are no words of the language.
    """
    if len(ranks) and not 1 <= ranks.min() <= ranks.max() < MAX_RANK:
        raise InputError(
            f"Expected ranks in [1, 2^53), got {int(ranks.min())} to {int(ranks.max())}."
        )
    coded = ranks > NAMED_RANKS
    strings = np.empty(len(ranks), dtype=object)
    if not coded.all():
        named = named_words(named_list(SCOWL70) if known is None else known)
        strings[~coded] = [named[i] for i in (ranks[~coded] - 1).tolist()]
    strings[coded] = coded_words(ranks[coded] - NAMED_RANKS - 1)
    return strings.tolist()
