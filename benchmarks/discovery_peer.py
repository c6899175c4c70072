"""SFP and PEM against those of the package pure-ldp, on the same words at the same epsilon.

One word of six letters per client, Zipf's law over 1,000 words. Both use Count Mean Sketches of the
same size, halve epsilon between word and fragment in SFP, and keep as many fragments or prefixes.
The parts are timed by themselves: clients, adding reports up, and the server's decoding. In fedhh
the first two are one. "found" is how many of the 20 most frequent words are among the first 20.

Run: python -m benchmarks.discovery_peer [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import string
import time
from typing import Any

import numpy as np

from benchmarks.environments import run_peer
from benchmarks.measuring import add_options, save
from fedhh.clients.populations.population import StoredPopulation
from fedhh.clients.worker import ClientWorker
from fedhh.server.pem import Pem
from fedhh.server.sfp import Sfp
from fedhh.words.lexicon import Lexicon

CLIENTS, WORDS, LENGTH, STEP = 20_000, 1_000, 6, 2
EPSILON, HASHES, CELLS, KEEP = 8.0, 16, 1_024, 100
TOP = 20


def zipf_population(seed: int) -> StoredPopulation:
    """Return clients with one word each."""
    rng = np.random.default_rng(seed)
    letters = np.array(list(string.ascii_lowercase))
    codes = rng.permutation(np.unique(rng.integers(26, size=(WORDS + 50, LENGTH)), axis=0))
    distribution = np.arange(1, WORDS + 1) ** -1.1
    return StoredPopulation.from_rows(
        name="zipf",
        lexicon=Lexicon(words=["".join(row) for row in letters[codes[:WORDS]]]),
        clients=np.arange(CLIENTS),
        word_ids=rng.choice(WORDS, size=CLIENTS, p=distribution / distribution.sum()),
        counts=np.ones(CLIENTS, dtype=np.int64),
        num_clients=CLIENTS,
    )


def run_ours(kind: str, population: StoredPopulation, seed: int) -> dict[str, Any]:
    """Return the seconds of clients and of decoding, and the words found."""
    common = {
        "length": LENGTH,
        "max_items": 1,
        "alphabet": string.ascii_lowercase,
        "hash_seed": seed,
    }
    protocol: Any
    if kind == "sfp":
        protocol = Sfp(
            clients_per_layer=CLIENTS, local_epsilon=EPSILON, word_share=0.5,
            fragment_length=STEP, word_hashes=HASHES, word_cells=CELLS, fragment_hashes=HASHES,
            fragment_cells=CELLS, max_fragments=KEEP, **common,
        )  # fmt: skip
    else:
        groups = 3  # prefixes of 3, 5 and 6 letters
        protocol = Pem(
            local_epsilon=EPSILON, clients_per_layer=CLIENTS // groups, step=STEP, keep=KEEP,
            oracle="cms", num_hashes=HASHES, **common,
        )  # fmt: skip
    worker = ClientWorker(population, seed=seed)
    state = protocol.initialize()
    clients = decode = 0.0
    while (query := protocol.next_query(state)) is not None:
        started = time.process_time()
        answer = worker.answer(query, range(query.cohort.num_blocks))
        answered = time.process_time()
        state = protocol.finish_round(state, query, answer.aggregate)
        clients += answered - started
        decode += time.process_time() - answered
    found = list(protocol.discoveries(state).words)
    return {"clients_s": clients, "aggregate_s": 0.0, "decode_s": decode, "found": found}


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each (at least 3)")
    add_options(parser)
    options = parser.parse_args()
    rows = []
    print(
        f"{'protocol':<10}{'package':<10}{'clients s':>10}{'add s':>8}{'decode s':>10}{'found':>7}"
    )
    for kind in ("sfp", "pem"):
        results: dict[str, list[dict[str, Any]]] = {"fedhh": [], "pure-ldp": []}
        run_ours(kind, zipf_population(0), 0)
        for seed in range(max(3, options.rounds)):
            population = zipf_population(seed)
            words = [population.lexicon.words[i] for i in population.items.word_ids.tolist()]
            given = {
                "words": words, "epsilon": EPSILON, "length": LENGTH, "step": STEP,
                "num_hashes": HASHES, "num_cells": CELLS, "keep": KEEP,
                "alphabet": string.ascii_lowercase,
            }  # fmt: skip
            top = set(np.argsort(-population.word_counts, kind="stable")[:TOP].tolist())
            most = {population.lexicon.words[i] for i in top}
            for package, result in (
                ("fedhh", run_ours(kind, population, seed)),
                ("pure-ldp", run_peer("pure-ldp", "pure_ldp_words.py", kind, settings=given)),
            ):
                result["hits"] = len(most & set(result.pop("found")[:TOP]))
                results[package].append(result)
        middle = {
            package: {
                part: statistics.median(run[part] for run in runs)
                for part in ("clients_s", "aggregate_s", "decode_s", "hits")
            }
            for package, runs in results.items()
        }
        ours, theirs = middle["fedhh"], middle["pure-ldp"]
        for package, row in middle.items():
            rows.append({"protocol": kind, "package": package, **row})
            print(
                f"{kind:<10}{package:<10}{row['clients_s']:10.3f}{row['aggregate_s']:8.3f}"
                f"{row['decode_s']:10.3f}{row['hits']:7.0f}"
            )
        reported = (theirs["clients_s"] + theirs["aggregate_s"]) / ours["clients_s"]
        rows[-1] |= {
            "ratio_clients": reported,
            "ratio_decode": theirs["decode_s"] / ours["decode_s"],
        }
        print(
            f"{'':<10}{'ratio':<10}{reported:10.1f}{'':8}{rows[-1]['ratio_decode']:10.1f}",
            flush=True,
        )
    save(options, "discovery_peer", rows)


if __name__ == "__main__":
    main()
