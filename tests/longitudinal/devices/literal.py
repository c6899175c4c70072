"""Devices as the paper has them: an event is privatized at once, stored, and sampled later."""

from __future__ import annotations

import math

import numpy as np


def literal_devices(*, number, days, rate, weights, oracle, cap, hours, store_days, rng):
    """Return for each device and day the sorted reports that it sends, one object at a time."""
    lives = []
    chances = np.asarray(weights) / np.sum(weights)
    for _ in range(number):
        stored: list[tuple[int, int, int]] = []
        life = []
        for day in range(days):
            made = rng.poisson(rate)
            values = rng.choice(len(chances), size=made, p=chances)
            for report in oracle.privatize(values.astype(np.int64), rng=rng).tolist():
                ready = day + math.floor((rng.random() * 24 + hours) / 24)
                stored.append((day, ready, report))
            stored = [record for record in stored if record[0] >= day - store_days]
            ready_now = [i for i, record in enumerate(stored) if record[1] <= day]
            chosen = rng.choice(ready_now, size=min(cap, len(ready_now)), replace=False)
            life.append(tuple(sorted(stored[i][2] for i in chosen)))
            stored = [record for i, record in enumerate(stored) if i not in set(chosen)]
        lives.append(tuple(life))
    return lives
