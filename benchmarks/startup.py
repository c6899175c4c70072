"""How long the command line takes to start, and what it loads for that.

`fedhh --help` is to take less than 0.4 s and to load none of the heavy packages; the ratio is to an
interpreter that does nothing.

Run: python -m benchmarks.startup [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from benchmarks.measuring import add_options, medians, save

HEAVY = ("ray", "pandas", "numba", "matplotlib", "pyarrow", "scipy")
COMMANDS = {
    "nothing": ["-c", "pass"],
    "fedhh --help": ["-m", "fedhh", "--help"],
    "fedhh run --help": ["-m", "fedhh", "run", "--help"],
    "import fedhh": ["-c", "import fedhh"],
    "fedhh presets list": ["-m", "fedhh", "presets", "list"],
}


def loaded(words: list[str]) -> set[str]:
    """Return the packages that a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *words], capture_output=True, text=True, check=True
    )
    return {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines()}


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=7, help="timed rounds (at least 3)")
    add_options(parser)
    options = parser.parse_args()

    def run(words: list[str]) -> None:
        subprocess.run([sys.executable, *words], stdout=subprocess.DEVNULL, check=True)

    tasks = [lambda words=words: run(words) for words in COMMANDS.values()]
    seconds = medians(tasks, rounds=options.rounds, clock=time.perf_counter)
    rows = []
    print(f"{'command':<22}{'seconds':>9}{'x nothing':>11}   heavy packages loaded")
    for (name, words), taken in zip(COMMANDS.items(), seconds, strict=True):
        heavy = sorted(loaded(words) & set(HEAVY))
        rows.append(
            {"command": name, "seconds": taken, "ratio": taken / seconds[0], "heavy": heavy}
        )
        print(f"{name:<22}{taken:9.3f}{taken / seconds[0]:11.1f}   {', '.join(heavy) or 'none'}")
    save(options, "startup", rows)


if __name__ == "__main__":
    main()
