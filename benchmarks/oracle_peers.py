"""Frequency oracles against the same ones of the packages pure-ldp and multi-freq-ldpy.

All randomize the same values, Zipf's law over the domain, and estimate all counts, some times over.
"noise" is the mean squared error over the exact variance that fedhh states, with a 95 percent
interval over the runs: 1 if the oracle is what it says. Times are microseconds of one core per
report: the others' client and server, and fedhh's (reports added up and all counts estimated, as
its simulations do). A ratio is theirs to ours, client and server together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from benchmarks.environments import run_peer
from benchmarks.measuring import Rows, benchmark, medians
from fedhh.arrays import Floats, Ints
from fedhh.oracles import FrequencyOracle, OracleSpec, make_oracle

EPSILON, DOMAIN_SIZE, REPORTS, OUR_REPORTS, RUNS = 2.0, 128, 1_000, 100_000, 10
HASHES, CELLS, BITS = 64, 256, 16
PEERS = {
    "pure-ldp": (
        "pure_ldp_oracles.py",
        ["grr", "sue", "oue", "she", "the", "blh", "olh", "flh", "hr", "cms", "hcms"],
    ),
    "multi-freq-ldpy": (
        "multi_freq_oracles.py",
        ["grr", "sue", "oue", "the", "blh", "olh", "ss", "dbitflip"],
    ),
}
PARAMS: dict[str, dict[str, str | int | float]] = {
    "flh": {"num_hashes": HASHES},
    "cms": {"num_hashes": HASHES, "num_cells": CELLS},
    "hcms": {"num_hashes": HASHES, "num_cells": CELLS},
    "dbitflip": {"num_bits": BITS},
}


def oracle_of(name: str, seed: int = 0) -> FrequencyOracle:
    """Return an oracle, its public coins drawn by a seed."""
    params = dict(PARAMS.get(name, {}))
    if name in {"flh", "cms", "hcms"}:
        params["hash_seed"] = seed
    if name == "hr":
        params["placement_seed"] = seed
    return make_oracle(OracleSpec(name=name, epsilon=EPSILON, params=params), DOMAIN_SIZE)


def noise(estimates: Floats, counts: Ints, variance: Floats) -> tuple[float, float]:
    """Return the mean squared error over the variance, and half its 95 percent interval.

    Args:
        estimates: ``(runs, s)``.
        counts: ``(s,)`` true ones.
        variance: ``(s,)`` stated ones.
    """
    by_run = ((estimates - counts) ** 2 / variance).mean(axis=1)
    half = stats.t.ppf(0.975, len(by_run) - 1) * by_run.std(ddof=1) / np.sqrt(len(by_run))
    return float(by_run.mean()), float(half)


def variance_of(name: str, counts: Ints) -> Floats:
    """Return the variance of all estimates, over public coins too."""
    oracle = oracle_of(name)
    if name in {"flh", "cms", "hcms"}:
        return oracle.exact_variance(counts)  # type: ignore[attr-defined, no-any-return]
    return oracle.variance(counts, int(counts.sum()))


def counts_of(oracle: FrequencyOracle, values: Ints, *, rng: np.random.Generator) -> Floats:
    """Return the estimated counts of all values, from fresh reports of some."""
    support = oracle.support(oracle.aggregate(values=values, rng=rng))
    return oracle.estimate(support, len(values))


def ours(name: str, values: Ints) -> tuple[Floats, float, float]:
    """Return estimates by run, and microseconds per report: as reports, and straight to counts."""
    estimates = []
    for seed in range(RUNS):
        oracle = oracle_of(name, seed)
        estimates.append(counts_of(oracle, values, rng=np.random.default_rng(seed)))
    oracle = oracle_of(name)
    many = np.random.default_rng(0).choice(values, size=OUR_REPORTS)
    rng = np.random.default_rng(1)
    few = many[: OUR_REPORTS // 10]
    report_s, tally_s = medians(
        [
            lambda: oracle.privatize(few, rng=rng),
            lambda: counts_of(oracle, many, rng=rng),
        ]
    )
    return np.array(estimates), report_s / len(few) * 1e6, tally_s / len(many) * 1e6


@benchmark("oracle-peers")
def rows() -> Rows:
    """Yield a row for each package and oracle."""
    distribution = 1 / np.arange(1, DOMAIN_SIZE + 1)
    values = np.random.default_rng(0).choice(
        DOMAIN_SIZE, size=REPORTS, p=distribution / distribution.sum()
    )
    counts = np.bincount(values, minlength=DOMAIN_SIZE)
    settings: dict[str, Any] = {
        "epsilon": EPSILON, "domain_size": DOMAIN_SIZE, "values": values.tolist(), "runs": RUNS,
        "num_hashes": HASHES, "num_cells": CELLS, "num_bits": BITS,
    }  # fmt: skip
    measured: dict[str, tuple[Floats, float, float]] = {}
    for package, (script, names) in PEERS.items():
        theirs = run_peer(package, script, settings={**settings, "names": names})
        for name in names:
            if name not in measured:
                measured[name] = ours(name, values)
            estimates, report_us, tally_us = measured[name]
            variance = variance_of(name, counts)
            their, their_half = noise(
                np.array([run["estimates"] for run in theirs[name]]), counts, variance
            )
            our, our_half = noise(estimates, counts, variance)
            client, server = (
                float(np.median([run[part] for run in theirs[name]])) / REPORTS * 1e6
                for part in ("client_s", "server_s")
            )
            yield {
                "package": package,
                "oracle": name,
                "their_noise": their,
                "their_interval": their_half,
                "our_noise": our,
                "our_interval": our_half,
                "intervals_meet": abs(their - our) <= their_half + our_half,
                "client_us": client,
                "server_us": server,
                "report_us": report_us,
                "tally_us": tally_us,
                "ratio": (client + server) / tally_us,
            }
