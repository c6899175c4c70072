"""What a ledger costs: devices by distinct profiles against one by one, PLD against the sum.

Every ledger has another delta, so that nothing is answered from a cache.

Run: python -m benchmarks.ledger [--json FILE] [--rounds N]
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

from benchmarks.measuring import add_options, medians, save
from fedhh.longitudinal.ledger import APPLE, Ledger, rules_of_configuration
from fedhh.longitudinal.ledger.macos import simulate
from fedhh.longitudinal.ledger.macos_presets import MACOS_10_12_3

DEVICES, LOOPED, DAYS, YEAR = 100_000, 500, 30, 365


def main() -> None:
    """Print the table; save it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="timed rounds (at least 3)")
    add_options(parser)
    options = parser.parse_args()
    number = itertools.count()
    most = np.array([APPLE.caps[charge.use_case].amount for charge in APPLE.charges])
    sent = np.random.default_rng(0).integers(
        0, most[:, None] + 1, (DAYS, len(most), DEVICES), dtype=np.int8
    )

    def ledger(days: int) -> Ledger:
        return Ledger(charges=APPLE.charges, num_days=days, delta=1e-10 * (1 + next(number) / 1e3))

    def one_by_one() -> object:
        book = ledger(DAYS)
        return [book.spent(sent[:, :, [device]]) for device in range(LOOPED)]

    audited = rules_of_configuration(MACOS_10_12_3)
    tasks = {
        f"{DEVICES:,} devices, {DAYS} days": (lambda: ledger(DAYS).spent(sent), DEVICES),
        f"{LOOPED} of them, one by one": (one_by_one, LOOPED),
        "a year before it runs, Apple's caps": (lambda: ledger(YEAR).before(APPLE.caps), 1),
        "a year before it runs, macOS 10.12": (
            lambda: Ledger(
                charges=audited.charges,
                num_days=YEAR,
                delta=1e-10 * (1 + next(number) / 1e3),
            ).before(audited.caps),
            1,
        ),
        "a year of the worst-case device of macOS 10.12": (
            lambda: simulate(
                MACOS_10_12_3, num_days=YEAR, events_per_day=10, rng=np.random.default_rng(0)
            ),
            1,
        ),
    }
    calls = [call for call, _ in tasks.values()]
    seconds = medians(calls, rounds=options.rounds, clock=time.process_time)
    base = seconds[0] / DEVICES
    rows = []
    print(f"{'task':<40}{'CPU s':>8}{'us a device':>13}{'x the first':>13}")
    for (name, (_, devices)), taken in zip(tasks.items(), seconds, strict=True):
        # A history of one kind is no multiple of one of another.
        ratio = taken / devices / base if devices > 1 else None
        rows.append({"task": name, "cpu_s": taken, "devices": devices, "ratio": ratio})
        print(f"{name:<40}{taken:8.3f}{taken / devices * 1e6:13.2f}{_text(ratio):>13}")
    save(options, "ledger", rows)


def _text(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}"


if __name__ == "__main__":
    main()
