"""What a pass over Gboard's clients costs, next to drawing them and to a bare scatter.

A pass is what a layer asks of its clients in the setting gboard-random-one-pass, with the default
fidelity: every client is drawn, counted for the truth, and chooses 60 contributions, which are
added up; the noise of the whole tally comes after, see `benchmarks.exact_tally`. In turn, in the
same run: drawing the same clients and doing nothing with them; and as many plain increments as they
make contributions, of a table of the layer's size, at random places that are there already.

Times are the thread's own, medians of at least three rounds.

Run: python -m benchmarks.gboard_pass [--json FILE] [--rounds N] [--layers N]
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.measuring import add_options, medians, save
from benchmarks.subset_selection import add_ready
from fedhh.clients.answers.hits import HitsQuery
from fedhh.clients.exact_tally import ExactTallyExecutor
from fedhh.clients.populations.virtual import VirtualPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.server.ldp_triehh import LdpTrieHH
from fedhh.simulation.engine import rounds
from fedhh.simulation.executor import InProcessExecutor

BLOCK = 8_192
CLIENTS = 8 * BLOCK
ITEMS = 60


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (at least 3)")
    parser.add_argument("--layers", type=int, default=3)
    add_options(parser)
    options = parser.parse_args()
    protocol = LdpTrieHH(
        clients_per_layer=CLIENTS, depth=options.layers, passes=1, eta_max=10_000, max_items=ITEMS,
        local_epsilon=10.0, alphabet="printable", ties="paper", skip_free_layers=False,
        subset_size="paper",
    )  # fmt: skip
    population = VirtualPopulation("keyboard60d", options.layers * CLIENTS, seed=0)
    worker = ClientWorker(population, seed=0, counts=True)
    executor = ExactTallyExecutor(InProcessExecutor(worker), seed=0)
    rows = []
    print(f"layer{'s':>9}{'pass us':>9}{'draw us':>9}{'scatter us':>12}{'x draw':>8}{'x both':>8}")
    for finished in rounds(protocol, executor):
        query = finished.query
        asked = HitsQuery.of(query, query.cohort)
        blocks = range(query.cohort.num_blocks)
        table = np.zeros(query.tally_size, dtype=np.int64)
        indices = np.random.default_rng(0).integers(len(table), size=BLOCK * ITEMS)
        starts = range(query.cohort.start, query.cohort.start + CLIENTS, BLOCK)
        pass_s, draw_s, scatter_s = medians(
            [
                lambda q=asked, b=blocks: worker.answer(q, b),
                lambda s=starts: [population.block(np.arange(at, at + BLOCK)) for at in s],
                lambda t=table, i=indices, s=starts: [add_ready(t, i) for _ in s],
            ],
            rounds=options.rounds,
        )
        micro = 1e6 / CLIENTS
        row = {
            "layer": query.layer,
            "domain_size": query.domain_size,
            "pass_us": pass_s * micro,
            "drawing_us": draw_s * micro,
            "scatter_us": scatter_s * micro,
            "ratio_drawing": pass_s / draw_s,
            "ratio": pass_s / (draw_s + scatter_s),
        }
        rows.append(row)
        print(
            f"{row['layer']:5d}{row['domain_size']:9d}{row['pass_us']:9.2f}{row['drawing_us']:9.2f}"
            f"{row['scatter_us']:12.2f}{row['ratio_drawing']:8.2f}{row['ratio']:8.2f}",
            flush=True,
        )
    save(options, "gboard_pass", rows)


if __name__ == "__main__":
    main()
