"""fedhh: a simulator for interactive federated heavy-hitter discovery.

>>> import fedhh
>>> population = fedhh.synthetic_population("chat", 20_000, seed=0)
>>> protocol = fedhh.LdpTrieHH(clients_per_layer=1_500, passes=1, depth=12, local_epsilon=8.0)
>>> result = fedhh.simulate(protocol, population, seed=0)
>>> {"lol", "dont", "pre"} <= set(result.discoveries["word"])
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fedhh.alphabet import Alphabet
    from fedhh.clients.population import StoredPopulation
    from fedhh.experiments.populations import load_population, synthetic_population
    from fedhh.experiments.run import rounds, simulate
    from fedhh.experiments.run_result import RunResult
    from fedhh.experiments.sweep import sweep
    from fedhh.server.ldp_triehh import LdpTrieHH
    from fedhh.server.pem import Pem
    from fedhh.server.sfp import Sfp
    from fedhh.server.triehh import TrieHH
    from fedhh.validation import InputError

__version__ = "0.1.0"

# Names are imported when they are first used: `import fedhh` and `fedhh --help` stay quick.
_HOMES = {
    "Alphabet": "fedhh.alphabet",
    "InputError": "fedhh.validation",
    "LdpTrieHH": "fedhh.server.ldp_triehh",
    "Pem": "fedhh.server.pem",
    "RunResult": "fedhh.experiments.run_result",
    "Sfp": "fedhh.server.sfp",
    "StoredPopulation": "fedhh.clients.population",
    "TrieHH": "fedhh.server.triehh",
    "load_population": "fedhh.experiments.populations",
    "rounds": "fedhh.experiments.run",
    "simulate": "fedhh.experiments.run",
    "sweep": "fedhh.experiments.sweep",
    "synthetic_population": "fedhh.experiments.populations",
}

__all__ = [
    "Alphabet",
    "InputError",
    "LdpTrieHH",
    "Pem",
    "RunResult",
    "Sfp",
    "StoredPopulation",
    "TrieHH",
    "__version__",
    "load_population",
    "rounds",
    "simulate",
    "sweep",
    "synthetic_population",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedhh' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
