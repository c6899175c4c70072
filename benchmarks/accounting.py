"""What privacy accounting costs at Gboard's setting, as multiples of the clones bound.

Every call has another number of reports, so that nothing is answered from a cache.

Run: python -m benchmarks.accounting [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import itertools
import time

from benchmarks.measuring import add_options, medians, save
from fedhh.accounting import shuffle_epsilon, user_level_epsilon

CLIENTS, ITEMS, DELTA, DOMAIN = 1_000_000, 60, 1e-10, 1_000_001
EPSILON = 10.0


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (at least 3)")
    add_options(parser)
    options = parser.parse_args()
    number = itertools.count()

    def item(bound: str, domain_size: int | None = None) -> object:
        return shuffle_epsilon(
            bound,
            local_epsilon=EPSILON,
            num_reports=CLIENTS * ITEMS + next(number),
            delta=DELTA,
            domain_size=domain_size,
        )

    def user(bound: str, domain_size: int | None = None) -> object:
        return user_level_epsilon(
            bound=bound,
            local_epsilon=EPSILON,
            num_clients=CLIENTS + next(number),
            max_items=ITEMS,
            delta=DELTA,
            domain_size=domain_size,
        )

    tasks = {
        "clones, item level": lambda: item("clones"),
        "blanket, item level": lambda: item("blanket", DOMAIN),
        "clones, groups and slots": lambda: user("clones"),
        "blanket, groups and slots": lambda: user("blanket", DOMAIN),
    }
    seconds = medians(list(tasks.values()), rounds=options.rounds, clock=time.process_time)
    rows = []
    print(f"{'bound':<28}{'CPU ms':>10}{'x clones':>11}")
    for name, taken in zip(tasks, seconds, strict=True):
        rows.append({"bound": name, "cpu_s": taken, "ratio": taken / seconds[0]})
        print(f"{name:<28}{taken * 1e3:10.2f}{taken / seconds[0]:11.1f}")
    save(options, "accounting", rows)


if __name__ == "__main__":
    main()
