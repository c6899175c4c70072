"""Words that a run has found: as the server knows them, and as a result says them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedhh.arrays import Floats, Ints
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import Codes


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """What is known of discovered words, in the order of discovery; one entry per word.

    Attributes:
        pass_index: ``int64``; in which pass, from 0.
        layer: ``int64``; in which layer, from 1.
        estimate: ``float64``; unbiased estimate of the contributions for the word among the
            cohort's reports in that layer.
        z: ``float64``; how far above the noise the word's votes lie: the standard normal quantile
            of the chance that a word which no client holds gets fewer. Votes of rare candidates are
            skewed, so that is less than the estimate over the noise's standard deviation.
        num_clients: ``int64``; size of the cohort that the estimate is about.
        variance: ``float64``; variance of the estimate by the oracle's formula, at the estimated
            count.
        interval_z: ``float64``; how many standard errors an interval around the estimate reaches
            to each side, so that of all returned words' intervals at most a twentieth miss, in
            expectation; NaN where none is claimed, as the votes that estimate a word also chose it.
            None for a protocol that claims none at all.
    """

    pass_index: Ints
    layer: Ints
    estimate: Floats
    z: Floats
    num_clients: Ints
    variance: Floats
    interval_z: Floats | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Discoveries(Findings):
    """Discovered words as text."""

    words: Sequence[str]

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, kw_only=True, eq=False)
class Found(Findings):
    """Words found so far as codes ``(h, width)``, closed by the end symbol."""

    codes: Codes
    interval_z: Floats

    @classmethod
    def nothing(cls, width: int) -> Found:
        """Return no word of at most ``width`` codes."""
        whole, none = np.zeros(0, dtype=np.int64), np.zeros(0)
        return cls(
            codes=np.zeros((0, width), dtype=np.uint16),
            pass_index=whole,
            layer=whole,
            num_clients=whole,
            estimate=none,
            variance=none,
            z=none,
            interval_z=none,
        )

    def without(self, codes: Codes) -> Found:
        """Return the words that are not among ``(x, width)`` codes.

        Nobody votes for a word found by an earlier pass, but noise may keep it a second time.
        """
        earlier = {row.tobytes() for row in codes}
        return self.only(np.flatnonzero([row.tobytes() not in earlier for row in self.codes]))

    def only(self, which: Ints) -> Found:
        """Return some of the words, by their places."""
        return Found(**{name: getattr(self, name)[which] for name in self.__dataclass_fields__})

    def append(self, other: Found) -> Found:
        """Return both, this one's words first."""
        if not len(self.codes):
            return other
        return Found(
            **{
                name: np.concatenate([getattr(self, name), getattr(other, name)])
                for name in self.__dataclass_fields__
            }
        )

    def discoveries(self, alphabet: Alphabet) -> Discoveries:
        """Return the words as text, with the rest."""
        rest: dict[str, Any] = {**vars(self)}
        del rest["codes"]
        return Discoveries(words=alphabet.decode(self.codes), **rest)
