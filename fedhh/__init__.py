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

from fedhh.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
