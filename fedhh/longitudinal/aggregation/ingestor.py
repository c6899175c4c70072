"""The ingestor: takes records in, and passes on what nobody can be found in.

Source: Differential Privacy Team, Apple (2017), "Learning with privacy at scale", section 3.2.2:
records are stripped of their addresses, collected in a batch, stripped of the times of their
arrival, separated by use case, and randomly permuted within each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from fedhh.longitudinal.records import Arrivals, Batch
from fedhh.random import Stream, generator


class Ingestor:
    """Turns a day's arrivals into a batch for each use case, permuted by the seed's stream."""

    def __init__(self, *, seed: int) -> None:
        self._seed = seed

    def ingest(self, arrivals: Iterable[Arrivals], *, day: int) -> Mapping[str, Batch]:
        """Return one batch per use case; addresses and times end here.

        Args:
            arrivals: In any order and number, of any use cases.
            day: From 0; with the use case it addresses the permutation.
        """
        by_use_case: dict[str, list[Arrivals]] = {}
        for each in arrivals:
            by_use_case.setdefault(each.use_case, []).append(each)
        return {name: self._batch(name, parts, day) for name, parts in sorted(by_use_case.items())}

    def _batch(self, name: str, parts: list[Arrivals], day: int) -> Batch:
        reports = np.concatenate([part.reports for part in parts])
        path = int.from_bytes(name.encode(), "big") % (2**32 - 1)
        rng = generator(self._seed, Stream.INGESTION, path, day)
        return Batch(use_case=name, reports=reports[rng.permutation(len(reports))])
