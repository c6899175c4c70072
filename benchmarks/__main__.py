"""Speed, as ratios of things that are measured in turn: `python -m benchmarks [NAME...]`.

Without names: those that need neither the network nor Ray.
"""

from __future__ import annotations

import argparse

from benchmarks import accounting, exact_tally, oracle_peers, pipeline, rounds, scaling
from benchmarks.measuring import BENCHMARKS, save, show

MODULES = (accounting, exact_tally, oracle_peers, pipeline, rounds, scaling)
QUICK = ("rounds", "exact-tally", "accounting", "pipeline")


def main() -> None:
    """Run benchmarks by name; print and save their rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(sorted(BENCHMARKS)))
    names = parser.parse_args().names or QUICK
    for name in names:
        if name not in BENCHMARKS:
            parser.error(f"unknown benchmark {name!r}; known: {', '.join(sorted(BENCHMARKS))}")
    for name in names:
        print(f"== {name}", flush=True)
        save(name, list(show(BENCHMARKS[name]())))


if __name__ == "__main__":
    main()
