"""Words that a run has found: as the server knows them, and as a result says them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.questions.question import AnyQuestion
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import Codes


@dataclass(frozen=True, kw_only=True, eq=False)
class Discoveries:
    """Discovered words, in the order of discovery; all arrays have one entry per word.

    Attributes:
        words: The words.
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

    words: Sequence[str]
    pass_index: npt.NDArray[np.int64]
    layer: npt.NDArray[np.int64]
    estimate: npt.NDArray[np.float64]
    z: npt.NDArray[np.float64]
    num_clients: npt.NDArray[np.int64]
    variance: npt.NDArray[np.float64]
    interval_z: npt.NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Words found so far: codes ``(h, width)``, all other arrays ``(h,)``; see `Discoveries`."""

    codes: Codes
    pass_index: npt.NDArray[np.int64]
    layer: npt.NDArray[np.int64]
    estimate: npt.NDArray[np.float64]
    variance: npt.NDArray[np.float64]
    z: npt.NDArray[np.float64]
    num_clients: npt.NDArray[np.int64]
    interval_z: npt.NDArray[np.float64]

    @classmethod
    def nothing(cls, width: int) -> Found:
        """Return no word of at most ``width`` codes."""
        none = np.zeros(0, dtype=np.int64)
        return cls(
            codes=np.zeros((0, width), dtype=np.uint16),
            pass_index=none,
            layer=none,
            estimate=none.astype(np.float64),
            variance=none.astype(np.float64),
            z=none.astype(np.float64),
            num_clients=none,
            interval_z=none.astype(np.float64),
        )

    @classmethod
    def in_round(
        cls,
        question: AnyQuestion,
        codes: Codes,
        *,
        num_clients: int = 0,
        estimate: npt.NDArray[np.float64] | None = None,
        variance: npt.NDArray[np.float64] | None = None,
        z: npt.NDArray[np.float64] | None = None,
    ) -> Found:
        """Return words with what a round says about them; nothing if it did not ask about them.

        Args:
            question: The round.
            codes: ``(h, width) uint16``.
            num_clients: Clients that answered.
            estimate: ``(h,)``, see `Discoveries`; likewise the others.
            variance: ...
            z: ...
        """
        size = len(codes)
        nothing = np.zeros(size)
        return cls(
            codes=codes,
            pass_index=np.full(size, question.pass_index),
            layer=np.full(size, question.layer),
            estimate=nothing if estimate is None else estimate,
            variance=nothing if variance is None else variance,
            z=nothing if z is None else z,
            num_clients=np.full(size, num_clients),
            interval_z=np.full(size, math.nan),
        )

    def without(self, codes: Codes) -> Found:
        """Return the words that are not among ``(x, width)`` codes.

        Nobody votes for a word found by an earlier pass, but noise may keep it a second time.
        """
        earlier = {row.tobytes() for row in codes}
        return self.only(np.flatnonzero([row.tobytes() not in earlier for row in self.codes]))

    def only(self, which: npt.NDArray[np.int64]) -> Found:
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
