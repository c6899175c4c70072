"""What privacy accounting costs at Gboard's setting, as multiples of the clones bound.

Every call has another number of reports, so that nothing is answered from a cache.
"""

from __future__ import annotations

import itertools
import time

from benchmarks.measuring import Rows, benchmark, medians
from fedhh.accounting import Use, shuffle_bound, shuffle_epsilon, user_guarantees

CLIENTS, ITEMS, DELTA, DOMAIN, EPSILON = 1_000_000, 60, 1e-10, 1_000_001, 10.0


@benchmark("accounting")
def rows() -> Rows:
    """Yield a row for each bound, of an item and of a user."""
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
        of_item = shuffle_bound(
            bound, local_epsilon=EPSILON, num_reports=CLIENTS, domain_size=domain_size
        )
        clients = CLIENTS + next(number)
        uses = [Use(bound=of_item, times=1)]
        return user_guarantees(uses, num_clients=clients, max_items=ITEMS, delta=DELTA)

    tasks = {
        "clones, item level": lambda: item("clones"),
        "blanket, item level": lambda: item("blanket", DOMAIN),
        "clones, groups and slots": lambda: user("clones"),
        "blanket, groups and slots": lambda: user("blanket", DOMAIN),
    }
    seconds = medians(list(tasks.values()), clock=time.process_time)
    for name, taken in zip(tasks, seconds, strict=True):
        yield {"bound": name.rjust(25), "cpu_ms": taken * 1e3, "ratio": taken / seconds[0]}
