"""Subset Selection's clients against those of the package multi-freq-ldpy, report by report.

Both randomize the same values at the same epsilon, on one core: fedhh as reports
(`SubsetSelection.privatize`) and straight into a tally, as its simulations do. multi-freq-ldpy
draws a permutation of the whole domain for each report, so it gets few of them where that is large.

Run: python -m benchmarks.subset_selection_peer [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.environments import run_peer
from benchmarks.measuring import add_options, medians, save
from fedhh.oracles import SubsetSelection

CELLS = [(1_000, 8.0, 20_000), (10_000, 8.0, 4_000), (1_000_001, 10.0, 20)]
"""Domain size, epsilon, and how many reports the other package makes in a round."""

OUR_REPORTS = 100_000


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (at least 3)")
    add_options(parser)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    cells = [
        {
            "domain_size": domain_size,
            "epsilon": epsilon,
            "rounds": max(3, options.rounds),
            "values": rng.integers(domain_size, size=reports).tolist(),
        }
        for domain_size, epsilon, reports in CELLS
    ]
    theirs = run_peer("multi-freq-ldpy", "multi_freq_ss.py", settings=cells)
    rows = []
    print(
        f"{'s':>9}{'eps':>5}{'d':>5}{'theirs us':>11}{'report us':>11}{'tally us':>10}"
        f"{'x report':>10}{'x tally':>10}"
    )
    for cell, their in zip(cells, theirs, strict=True):
        oracle = SubsetSelection(epsilon=cell["epsilon"], domain_size=cell["domain_size"])
        values = rng.integers(cell["domain_size"], size=OUR_REPORTS)
        table = np.zeros(cell["domain_size"], dtype=np.int64)
        report_s, tally_s = (
            seconds / OUR_REPORTS
            for seconds in medians(
                [
                    lambda o=oracle, v=values: o.privatize(v, rng=rng),
                    lambda o=oracle, v=values, t=table: o.aggregate(values=v, rng=rng, out=t),
                ],
                rounds=options.rounds,
            )
        )
        row = {
            "domain_size": cell["domain_size"],
            "epsilon": cell["epsilon"],
            "subset_size": oracle.d,
            "their_subset_size": their["subset_size"],
            "their_reports": len(cell["values"]),
            "their_report_us": their["report_s"] * 1e6,
            "report_us": report_s * 1e6,
            "tally_us": tally_s * 1e6,
            "ratio_report": their["report_s"] / report_s,
            "ratio_tally": their["report_s"] / tally_s,
        }
        rows.append(row)
        print(
            f"{row['domain_size']:9d}{row['epsilon']:5g}{oracle.d:5d}{row['their_report_us']:11.2f}"
            f"{row['report_us']:11.3f}{row['tally_us']:10.3f}{row['ratio_report']:10,.0f}"
            f"{row['ratio_tally']:10,.0f}",
            flush=True,
        )
    save(options, "subset_selection_peer", rows)


if __name__ == "__main__":
    main()
