"""RAPPOR's privacy and the noise of its bits, at the parameters that its paper prints.

Source: Erlingsson, Pihur, Korolova (2014), "RAPPOR: randomized aggregatable privacy-preserving
ordinal response", CCS: epsilon_infinity of the permanent response (Theorem 1), epsilon_1 of one
report (Theorem 2), and the variance of a bit's estimate, p*(1 - p*) / (q* - p*)^2, which follows
from its section 4.
"""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from fedhh.experiments.report.panels import open_figure
from fedhh.experiments.report.style import STYLE, series
from fedhh.experiments.report.titles import put_heading, put_note
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.oracles.bloom_filters import BitResponse
from fedhh.random import Stream, generator
from papers.reproduction import Reproduction, Say, published

_ONE, _ZERO, _NOISE = "q*", "p*", "variance of a bit"


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is drawn.

    Attributes:
        seeds: Seeds of each number.
        tallies: Sums of reports that are drawn with one seed.
        reports: Reports of one sum.
    """

    seeds: int
    tallies: int
    reports: int


WHOLE = Size(seeds=20, tallies=2_000, reports=100)


def reproduce(*, quick: bool, seed: int, say: Say) -> Reproduction:
    """Return both epsilons, and a bit's chances and variance: exact, and drawn in two steps.

    There is one version, which takes seconds.
    """
    stated = published()["rappor"]
    response = BitResponse(f=stated["f"], p=stated["p"], q=stated["q"])
    hashes = stated["bloom_hashes"]
    exact = {
        "epsilon_infinity": response.epsilon_of_all_reports(hashes),
        "epsilon_1": response.epsilon_of_one_report(hashes),
        _ZERO: response.zero,
        _ONE: response.one,
        _NOISE: response.bit_variance,
    }
    size = WHOLE
    say(f"{size.seeds * size.tallies * size.reports:,} reports of two bits, in both steps")
    results = draw(response, size, seed=seed)
    return Reproduction(
        results=results,
        summary=_summary(exact, results, size),
        figures={"rappor": _figure(response, hashes)},
        findings=_findings(exact, results),
    )


def draw(response: BitResponse, size: Size, *, seed: int) -> pd.DataFrame:
    """Return chances and variance of a bit by seed, from a permanent response and then a report.

    The variance is per report, of the estimate of a bit that no client sets.
    """
    rows = []
    for number in range(seed, seed + size.seeds):
        rng = generator(number, Stream.RANDOMIZER)
        shape = (size.tallies, size.reports)
        ones = [_both_steps(np.full(shape, bit), response, rng) for bit in (False, True)]
        sums = ones[0].sum(axis=1)
        estimate = (sums - size.reports * response.zero) / (response.one - response.zero)
        drawn = {
            _ZERO: ones[0].mean(),
            _ONE: ones[1].mean(),
            _NOISE: (estimate**2).mean() / size.reports,
        }
        rows += [{"number": name, "seed": number, "drawn": float(x)} for name, x in drawn.items()]
    return pd.DataFrame(rows)


def _both_steps(
    bits: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
    response: BitResponse,
    rng: np.random.Generator,
) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    """Return what is sent for each true bit, the permanent response drawn first.

    `BitResponse.answer` draws both with one coin, so this checks its chances.
    """
    coin = rng.random(bits.shape)
    kept = np.where(coin < response.f / 2, True, np.where(coin < response.f, False, bits))
    return rng.random(bits.shape) < np.where(kept, response.q, response.p)


def _summary(exact: dict[str, float], results: pd.DataFrame, size: Size) -> TextTable:
    stated = published()["rappor"]
    papers = {
        "epsilon_infinity": stated["epsilon_permanent"],
        "epsilon_1": stated["epsilon_report"],
        _NOISE: stated["bit_variance"],
    }
    drawn = summarize(results, ["number"], "drawn").to_dict("records")
    means = {row["number"]: row for row in drawn}
    rows, records = [], []
    for name, value in exact.items():
        mean = means.get(name)
        text = "" if mean is None else f"{mean['mean']:.4f} ± {mean['high'] - mean['mean']:.4f}"
        rows.append((name, f"{papers[name]:g}" if name in papers else "", f"{value:.6g}", text))
        records.append(
            {
                "number": name,
                "published": papers.get(name),
                "exact": value,
                **{
                    f"drawn_{part}": None if mean is None else mean[part]
                    for part in ("mean", "low", "high")
                },
            }
        )
    return TextTable(
        title="RAPPOR's epsilons and the variance of its bits (Erlingsson et al. 2014)",
        columns=("number", "published", "exact", "drawn"),
        rows=tuple(rows),
        note=(
            f"h = {stated['bloom_hashes']}, f = {stated['f']:g}, p = {stated['p']:g}, q = "
            f"{stated['q']:g}. Local epsilons of a client's value: epsilon_infinity of any number "
            "of reports, epsilon_1 of one. Variance: per report, of the estimate of a bit that no "
            f"client sets. Drawn: permanent response, then report; {size.tallies:,} sums of "
            f"{size.reports} reports for each seed; "
            f"{interval_text([size.seeds], mean='mean ± half the')}."
        ),
        records=tuple(records),
    )


def _findings(exact: dict[str, float], results: pd.DataFrame) -> tuple[str, ...]:
    stated = published()["rappor"]
    pairs = (
        ("epsilon_infinity", stated["epsilon_permanent"], 3),
        ("epsilon_1", stated["epsilon_report"], 4),
        (_NOISE, stated["bit_variance"], 2),
    )
    lines = [
        f"{name}: {exact[name]:.6g}, published {value:g}: "
        + ("reproduces." if round(exact[name], digits) == value else "does not reproduce.")
        for name, value, digits in pairs
    ]
    means = summarize(results, ["number"], "drawn")
    inside = [row["low"] <= exact[row["number"]] <= row["high"] for row in means.to_dict("records")]
    lines.append(f"{sum(inside)} of {len(inside)} exact numbers lie in the interval of drawn ones.")
    return tuple(lines)


def _figure(response: BitResponse, hashes: int) -> Figure:
    """Return both epsilons and the variance over f, the paper's parameters marked."""
    fs = np.linspace(0.02, 0.9, 89)
    made = [BitResponse(f=float(f), p=response.p, q=response.q) for f in fs]
    epsilons = (
        ("epsilon_infinity: any number of reports", BitResponse.epsilon_of_all_reports),
        ("epsilon_1: one report", BitResponse.epsilon_of_one_report),
    )
    with mpl.rc_context(STYLE):
        figure, (left, right) = open_figure(2, size=(4.2, 3.2))
        for number, (label, epsilon) in enumerate(epsilons):
            look = {**series(number, 2), "marker": "none", "linewidth": 1.5}
            left.plot(fs, [epsilon(each, hashes) for each in made], label=label, **look)
            left.plot(
                response.f, epsilon(response, hashes), marker="o", color=look["color"],
                linestyle="none",
            )  # fmt: skip
        left.set_ylim(0, None)
        left.set_ylabel("local epsilon of a value")
        left.legend(fontsize=8)
        look = {**series(2, 3), "marker": "none", "linewidth": 1.5}
        right.plot(fs, [each.bit_variance for each in made], **look)
        right.plot(response.f, response.bit_variance, marker="o", color=look["color"])
        right.set_yscale("log")
        right.set_ylabel("variance of a bit per report")
        for axes in (left, right):
            axes.set_xlabel("f of the permanent response")
        put_heading(figure, f"RAPPOR, h = {hashes}, p = {response.p:g}, q = {response.q:g}")
        put_note(figure, f"exact; marks: f = {response.f:g}, as published")
    return figure
