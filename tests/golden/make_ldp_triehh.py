"""Writes ldp_triehh.json: a tiny run with every tally inside.

The server half can then be checked without any randomness. Run it again only when the protocol is
meant to change, and review the difference: ``python -m tests.golden.make_ldp_triehh``.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from fedhh.clients.worker import ClientWorker
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.executor import InProcessExecutor
from fedhh.testing import LETTERS, small_population
from tests.asked_clients import answered

FILE = Path(__file__).with_name("ldp_triehh.json")
SETTINGS = {
    "alphabet": LETTERS, "clients_per_layer": 200, "depth": 4, "passes": 2, "eta_max": 9,
    "max_items": 3, "local_epsilon": 5.0,
}  # fmt: skip


def main() -> None:
    """Run, and write what the server received and found."""
    protocol = LdpTrieHH(**SETTINGS)  # type: ignore[arg-type]
    executor = InProcessExecutor(ClientWorker(small_population(2_000), seed=1))
    state, rounds = protocol.initialize(), []
    while (question := protocol.next_question(state)) is not None:
        aggregate = answered(executor, question).aggregate
        rounds.append(
            {
                "pass": question.pass_index,
                "layer": question.layer,
                "prefixes": protocol.symbols.decode(
                    question.names.trie.spell(
                        question.names.trie.alphabet_size * np.arange(question.names.trie.width)
                    )
                ),
                "num_clients": aggregate.num_clients,
                "num_reports": aggregate.num_reports,
                "tally": aggregate.tally.tolist(),
            }
        )
        state = protocol.finish_round(state, question, aggregate)
    found = protocol.discoveries(state)
    content = {
        "settings": SETTINGS,
        "rounds": rounds,
        "words": list(found.words),
        "estimates": [round(e, 6) for e in found.estimate.tolist()],
    }
    FILE.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
