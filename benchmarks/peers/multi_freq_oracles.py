"""Runs multi-freq-ldpy's frequency oracles on values, in an environment that has multi-freq-ldpy.

Its estimators clip at 0 and scale to 1; here the inversion that they begin with is theirs alone, so
that errors can be compared. dBitFlip's clips inside itself: its estimate is computed from reports.

Usage: multi_freq_oracles.py SETTINGS.json RESULT.json
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from multi_freq_ldpy.long_freq_est.dBitFlipPM import (
    dBitFlipPM_Aggregator_MI,
    dBitFlipPM_Client,
)
from multi_freq_ldpy.pure_frequency_oracles import GRR, HE, LH, SS, UE


def invert(counts, n, p, q):
    """Return estimated shares, neither clipped nor scaled."""
    return np.asarray((counts - n * q) / (p - q)) / n


for module in (GRR, HE, LH, SS, UE):
    module.MI = invert


def make(name, epsilon, size, bits):
    """Return a client of a value, and an aggregator of reports."""
    if name == "grr":
        return lambda v: GRR.GRR_Client(v, size, epsilon), lambda r: GRR.GRR_Aggregator_MI(
            r, size, epsilon
        )
    if name in {"sue", "oue"}:
        best = name == "oue"
        return lambda v: UE.UE_Client(v, size, epsilon, best), lambda r: UE.UE_Aggregator_MI(
            r, epsilon, best
        )
    if name in {"blh", "olh"}:
        best = name == "olh"
        return lambda v: LH.LH_Client(v, size, epsilon, best), lambda r: LH.LH_Aggregator_MI(
            r, size, epsilon, best
        )
    if name == "ss":
        return lambda v: SS.SS_Client(v, size, epsilon), lambda r: SS.SS_Aggregator_MI(
            r, size, epsilon
        )
    if name == "the":
        return lambda v: HE.HE_Client(v, size, epsilon), lambda r: HE.HE_Aggregator_MI(
            r, size, epsilon
        )
    return (
        lambda v: dBitFlipPM_Client(v, size, size, bits, epsilon),
        lambda r: dBitFlipPM_Aggregator_MI(r, size, bits, epsilon),
    )


def of_drawn_bits(reports, epsilon, bits):
    """Return dBitFlip's estimated counts before they are clipped."""
    reports = np.array(reports)
    growth = np.exp(epsilon / 2)
    terms = np.where(reports >= 0, (reports * (growth + 1) - 1) / (growth - 1), 0)
    return terms.sum(axis=0) * reports.shape[1] / bits


def main() -> None:
    """Privatize and estimate all values, some times, after one to compile; each part timed."""
    settings_path, result_path = sys.argv[1:]
    settings = json.loads(Path(settings_path).read_text())
    size, values, epsilon = settings["domain_size"], settings["values"], settings["epsilon"]
    results = {}
    for name in settings["names"]:
        client, aggregate = make(name, epsilon, size, settings["num_bits"])
        client(0)
        runs = []
        for _ in range(settings["runs"]):
            started = time.thread_time()
            reports = [client(value) for value in values]
            reported = time.thread_time()
            estimates = aggregate(reports) * len(values)
            finished = time.thread_time()
            if name == "dbitflip":
                estimates = of_drawn_bits(reports, epsilon, settings["num_bits"])
            runs.append(
                {
                    "client_s": reported - started,
                    "server_s": finished - reported,
                    "estimates": [float(each) for each in estimates],
                }
            )
        results[name] = runs
    Path(result_path).write_text(json.dumps(results))


main()
