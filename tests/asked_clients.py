"""Who was asked, as a population sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fedhh.clients.populations.population import StoredPopulation
from fedhh.questions.clients import ClientBlock


class Recording:
    """A population that keeps the clients of each block it was asked for, in their order."""

    def __init__(self, population: StoredPopulation) -> None:
        self._population = population
        self.blocks: list[npt.NDArray[np.int64]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._population, name)

    def block(self, clients: npt.NDArray[np.int64]) -> ClientBlock:
        self.blocks.append(clients)
        return self._population.block(clients)

    @property
    def asked(self) -> npt.NDArray[np.int64]:
        """All of them."""
        return np.concatenate(self.blocks)
