"""Words that a protocol has found, as codes, with what is known about them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fedhh.protocol import Discoveries
from fedhh.queries.base import Aggregate, Query
from fedhh.server.noise import Noise
from fedhh.words.alphabet import Alphabet
from fedhh.words.trie import Codes


@dataclass(frozen=True, kw_only=True, eq=False)
class Found:
    """Words found so far: codes ``(h, width)``, all other arrays ``(h,)``.

    ``interval_z`` is NaN where no interval is claimed, see `protocol.Discoveries`.
    """

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
        return Found(
            **{
                name: np.concatenate([getattr(self, name), getattr(other, name)])
                for name in self.__dataclass_fields__
            }
        )

    @classmethod
    def counted(
        cls,
        query: Query,
        aggregate: Aggregate,
        noise: Noise,
        *,
        codes: Codes,
        support: npt.NDArray[np.int64],
    ) -> Found:
        """Return words with what a round says about them.

        Args:
            query: The round.
            aggregate: Its answers.
            noise: What chance does to them.
            codes: ``(h, width) uint16``.
            support: ``(h,) int64``: reports that support each word.
        """
        estimate = noise.oracle.estimate(support, aggregate.num_reports)
        return cls(
            codes=codes,
            pass_index=np.full(len(codes), query.pass_index),
            layer=np.full(len(codes), query.layer),
            estimate=estimate,
            variance=noise.variance(estimate),
            z=noise.z(support),
            num_clients=np.full(len(codes), aggregate.num_clients),
            interval_z=np.full(len(codes), np.nan),
        )

    @classmethod
    def unheard(cls, query: Query, codes: Codes) -> Found:
        """Return words that become candidates after a round that did not ask about them.

        Args:
            query: The round.
            codes: ``(h, width) uint16``.
        """
        nothing = np.zeros(len(codes))
        return cls(
            codes=codes,
            pass_index=np.full(len(codes), query.pass_index),
            layer=np.full(len(codes), query.layer),
            estimate=nothing,
            variance=nothing,
            z=nothing,
            num_clients=np.zeros(len(codes), dtype=np.int64),
            interval_z=np.full(len(codes), np.nan),
        )

    def discoveries(self, alphabet: Alphabet) -> Discoveries:
        """Return the words as text, with the rest."""
        return Discoveries(
            words=alphabet.decode(self.codes),
            pass_index=self.pass_index,
            layer=self.layer,
            estimate=self.estimate,
            z=self.z,
            num_clients=self.num_clients,
            variance=self.variance,
            interval_z=self.interval_z,
        )
