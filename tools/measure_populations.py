"""Prints the figures of the synthetic presets that docs/populations.md shows.

python tools/measure_populations.py [--seeds 20]
"""

from __future__ import annotations

import argparse

import numpy as np

from fedhh.clients.synthetic import RankDrawer, population_presets

# As many clients as the corpus that a preset was fitted on has users.
CLIENTS = {"chat": 17_060, "keyboard60d": 14_435}
FIGURES = (
    "new words per user, mean",
    "p50",
    "p95",
    "held by >= 10 users",
    "held by >= 100",
    "held by >= 1000",
    "share of users holding the most held word",
    "the 10th",
    "the 100th",
)


def figures(preset: str, seed: int) -> list[float]:
    """Return the figures of one population, in the order of FIGURES."""
    clients = CLIENTS[preset]
    drawer = RankDrawer(model=population_presets()[preset], seed=seed)
    rows = drawer.draw(np.arange(clients))
    sizes = np.diff(rows.offsets)
    holders = np.sort(np.unique(rows.ranks, return_counts=True)[1])[::-1]
    return [
        float(sizes.mean()),
        *np.percentile(sizes, [50, 95]).tolist(),
        *(int((holders >= least).sum()) for least in (10, 100, 1000)),
        *(holders[[0, 9, 99]] / clients).tolist(),
    ]


def main() -> None:
    """Print mean and standard deviation over seeds, a table row each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    for preset in CLIENTS:
        drawn = np.array([figures(preset, seed) for seed in range(seeds)])
        for name, mean, deviation in zip(
            FIGURES, drawn.mean(axis=0), drawn.std(axis=0, ddof=1), strict=True
        ):
            print(f"| {preset} | {name} | {mean:.4g} +- {deviation:.2g} |")


if __name__ == "__main__":
    main()
