"""fedhh: a simulator for interactive federated heavy-hitter discovery.

>>> import fedhh
>>> population = fedhh.synthetic_population("chat", 20_000, seed=0)
>>> protocol = fedhh.LdpTrieHH(clients_per_layer=1_500, passes=1, depth=12, local_epsilon=8.0)
>>> result = fedhh.simulate(protocol, population, seed=0)
>>> {"lol", "dont", "pre"} <= set(result.discoveries["word"])
True

Besides the names of this module, these modules are public, for those who add to fedhh or take parts
of it; everything else may change in any release:

* `fedhh.accounting`: what a run or a shuffle costs in privacy, without running it
* `fedhh.longitudinal.ledger`: privacy loss of a device per day and over all days
* `fedhh.accounting.dp_event`: plans and ledgers as events of dp-accounting
* `fedhh.longitudinal.memoization`: bits drawn once, and what their observer learns
* `fedhh.audit`: claims against samples, of reports, of devices over their days, of memoized answers
* `fedhh.oracles`: local randomizers with their estimators
* `fedhh.oracles.compare`: noise, size and work of all oracles, and which to use
* `fedhh.oracles.attack`: what fake devices gain by the reports that an oracle's `craft` makes
* `fedhh.oracles.consistency`: estimates made consistent by the server
* `fedhh.protocol`: what a discovery protocol implements
* `fedhh.questions`: what a protocol asks, what comes back, and what chance does to it
* `fedhh.clients.population`: what a population implements
* `fedhh.words.trie`: prefixes as numbers
* `fedhh.settings`: settings with bounds, as a protocol's fields state them
* `fedhh.accounting.plan`, `fedhh.accounting.rounds`, `fedhh.accounting.local_reports`: the plan of
  a protocol, and what it guarantees
* `fedhh.server.local_discovery`: what protocols of local privacy share
* `fedhh.server.trie`: the loop of all tries
* `fedhh.server.closed_domain`: what protocols of a public list share
* `fedhh.testing`: suites that an oracle or a protocol should pass
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fedhh.version import __version__ as __version__

if TYPE_CHECKING:
    from fedhh.adversary import Adversary as Adversary
    from fedhh.clients.clients import Clients as Clients
    from fedhh.devices import Devices as Devices
    from fedhh.experiments.config.client_file import (
        load_population as load_population,
    )
    from fedhh.experiments.config.client_file import (
        population_from as population_from,
    )
    from fedhh.experiments.config.population import synthetic_population as synthetic_population
    from fedhh.experiments.planner.planner import plan as plan
    from fedhh.experiments.report.notebook import plot as plot
    from fedhh.experiments.report.notebook import table as table
    from fedhh.experiments.run.equal_privacy import at_central_epsilon as at_central_epsilon
    from fedhh.experiments.run.preflight import preflight as preflight
    from fedhh.experiments.run.result import RunResult as RunResult
    from fedhh.experiments.run.run import rounds as rounds
    from fedhh.experiments.run.run import simulate as simulate
    from fedhh.experiments.study.source import run as run
    from fedhh.experiments.sweep.objects import sweep_over as sweep_over
    from fedhh.experiments.sweep.sweep import sweep as sweep
    from fedhh.protocol import Heard as Heard
    from fedhh.server.adaptive.adaptive_triehh import AdaptiveTrieHH as AdaptiveTrieHH
    from fedhh.server.bitstogram import Bitstogram as Bitstogram
    from fedhh.server.blender import Blender as Blender
    from fedhh.server.ldp_triehh import LdpTrieHH as LdpTrieHH
    from fedhh.server.ldpminer import LdpMiner as LdpMiner
    from fedhh.server.pem import Pem as Pem
    from fedhh.server.rappor import Rappor as Rappor
    from fedhh.server.rappor_unknown import RapporUnknown as RapporUnknown
    from fedhh.server.sample_and_threshold import SampleAndThreshold as SampleAndThreshold
    from fedhh.server.secagg_triehh import SecAggTrieHH as SecAggTrieHH
    from fedhh.server.sfp import Sfp as Sfp
    from fedhh.server.svim import Svim as Svim
    from fedhh.server.svsm import Svsm as Svsm
    from fedhh.server.tee_histogram import TeeHistogram as TeeHistogram
    from fedhh.server.treehist import TreeHist as TreeHist
    from fedhh.server.triehh import TrieHH as TrieHH
    from fedhh.server.two_servers import TwoServers as TwoServers
    from fedhh.server.weighted_gaussian import (
        DpSips as DpSips,
    )
    from fedhh.server.weighted_gaussian import (
        WeightedGaussianSelection as WeightedGaussianSelection,
    )
    from fedhh.validation import InputError as InputError
    from fedhh.words.alphabet import Alphabet as Alphabet
    from fedhh.words.candidates import Candidates as Candidates

# Names are imported when they are first used: `import fedhh` and `fedhh --help` stay quick.
_HOMES = {
    "__version__": "fedhh.version",
    "Adversary": "fedhh.adversary",
    "AdaptiveTrieHH": "fedhh.server.adaptive.adaptive_triehh",
    "Alphabet": "fedhh.words.alphabet",
    "Bitstogram": "fedhh.server.bitstogram",
    "Blender": "fedhh.server.blender",
    "Candidates": "fedhh.words.candidates",
    "Devices": "fedhh.devices",
    "DpSips": "fedhh.server.weighted_gaussian",
    "Heard": "fedhh.protocol",
    "InputError": "fedhh.validation",
    "LdpMiner": "fedhh.server.ldpminer",
    "LdpTrieHH": "fedhh.server.ldp_triehh",
    "Pem": "fedhh.server.pem",
    "Rappor": "fedhh.server.rappor",
    "RapporUnknown": "fedhh.server.rappor_unknown",
    "RunResult": "fedhh.experiments.run.result",
    "SecAggTrieHH": "fedhh.server.secagg_triehh",
    "SampleAndThreshold": "fedhh.server.sample_and_threshold",
    "Sfp": "fedhh.server.sfp",
    "Clients": "fedhh.clients.clients",
    "Svim": "fedhh.server.svim",
    "Svsm": "fedhh.server.svsm",
    "TeeHistogram": "fedhh.server.tee_histogram",
    "TreeHist": "fedhh.server.treehist",
    "TrieHH": "fedhh.server.triehh",
    "TwoServers": "fedhh.server.two_servers",
    "WeightedGaussianSelection": "fedhh.server.weighted_gaussian",
    "at_central_epsilon": "fedhh.experiments.run.equal_privacy",
    "load_population": "fedhh.experiments.config.client_file",
    "population_from": "fedhh.experiments.config.client_file",
    "plan": "fedhh.experiments.planner.planner",
    "preflight": "fedhh.experiments.run.preflight",
    "plot": "fedhh.experiments.report.notebook",
    "run": "fedhh.experiments.study.source",
    "rounds": "fedhh.experiments.run.run",
    "simulate": "fedhh.experiments.run.run",
    "sweep": "fedhh.experiments.sweep.sweep",
    "sweep_over": "fedhh.experiments.sweep.objects",
    "synthetic_population": "fedhh.experiments.config.population",
    "table": "fedhh.experiments.report.notebook",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fedhh' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
