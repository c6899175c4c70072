"""What Adaptive TrieHH takes compared with LDP TrieHH, on the same clients in one process.

The ratio is of processor seconds, to LDP TrieHH with the default run's settings. The last row is
the prior: counting which symbols follow which in the public words.

Run: python -m benchmarks.adaptive [--json FILE] [--clients N] [--rounds N]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import fedhh
from benchmarks.measuring import add_options, medians, save
from fedhh.server.adaptive.character_model import LONGEST_CONTEXT, PublicPrior
from fedhh.words.known_words import SCOWL70, shipped_list


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--clients", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="times each; the median counts")
    add_options(parser)
    options = parser.parse_args()
    population = fedhh.synthetic_population("chat", options.clients, seed=0)
    eta_max = fedhh.AdaptiveTrieHH().settle(num_clients=options.clients, seed=0).eta_max
    protocols: dict[str, Any] = {
        "LDP TrieHH, 2 passes": fedhh.LdpTrieHH(passes=2),
        "LDP TrieHH, 1 pass": fedhh.LdpTrieHH(passes=1),
        "LDP TrieHH, 1 pass, the same eta": fedhh.LdpTrieHH(passes=1, eta_max=eta_max),
        "LDP TrieHH, 2 passes, the same eta": fedhh.LdpTrieHH(passes=2, eta_max=eta_max),
        "Adaptive TrieHH, eta 1,000": fedhh.AdaptiveTrieHH(eta_max=1_000),
        "Adaptive TrieHH": fedhh.AdaptiveTrieHH(),
    }
    words, alphabet = shipped_list(SCOWL70).words, fedhh.Alphabet.named("lower")
    names = [*protocols, "the prior"]
    fedhh.simulate(protocols["Adaptive TrieHH"], population, seed=0)  # Compiles.
    seconds = medians(
        [
            *(
                lambda each=each: fedhh.simulate(each, population, seed=0)
                for each in protocols.values()
            ),
            lambda: PublicPrior.counted(words, alphabet, context=LONGEST_CONTEXT),
        ],
        rounds=options.rounds,
        clock=time.process_time,
    )
    rows = []
    print(f"{'':<36}{'CPU s':>8}{'ratio':>8}")
    for name, taken in zip(names, seconds, strict=True):
        rows.append({"what": name, "cpu_s": taken, "ratio": taken / seconds[0]})
        print(f"{name:<36}{taken:8.2f}{taken / seconds[0]:8.2f}")
    save(options, "adaptive", rows)


if __name__ == "__main__":
    main()
