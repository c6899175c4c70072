"""Whose a run's log is: where a run goes on that was stopped."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from fedhh.adversary import Adversary
from fedhh.clients.population import Population
from fedhh.devices import Devices
from fedhh.protocol import AnyProtocol
from fedhh.simulation.fidelity import Fidelity
from fedhh.simulation.log import Log
from fedhh.version import __version__

LOG = "log"
"""Folder of the log in a run's directory."""


def run_log(
    directory: Path,
    protocol: AnyProtocol,
    population: Population,
    *,
    seed: int,
    clients: tuple[Fidelity, Devices | None, Adversary | None],
) -> Log:
    """Return the log of a run, named by a hash of all that decides how the run goes on.

    Args:
        directory: The run's.
        protocol: The server's settings.
        population: The clients.
        seed: Of the run.
        clients: How they are simulated, when their devices are there, and who of them is fake.
    """
    parts: tuple[Any, ...] = (__version__, protocol, seed, population.fingerprint(), *clients)
    return Log(directory / LOG, run=hashlib.sha256(repr(parts).encode()).hexdigest())
