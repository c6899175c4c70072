"""Where GRR stops being better than OLH and OUE: at s = 3 e^epsilon + 2 values.

Source: Wang, Blocki, Li, Jha (2017), "Locally differentially private protocols for frequency
estimation", USENIX Security, section 5: V0 of GRR is (s - 2 + e) / (e - 1)^2, of OUE (and OLH at
g = e + 1) 4 e / (e - 1)^2, with e = e^epsilon; they are equal at s = 3 e + 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from fedhh.experiments.report.panels import label_axes, open_figure
from fedhh.experiments.report.style import STYLE, series
from fedhh.experiments.report.titles import NOTE, name_panel, put_heading, put_note
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.oracles import OracleSpec, PureOracle, make_pure_oracle
from fedhh.random import Stream, generator
from papers.reproduction import Reproduction, Say

ORACLES = ("grr", "olh", "oue")
_NEAR = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Domain sizes to draw at, in multiples of the crossover."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is drawn.

    Attributes:
        epsilons: Local epsilons.
        seeds: Seeds of each cell.
        tallies: Tallies that are drawn with one seed.
    """

    epsilons: tuple[float, ...]
    seeds: int
    tallies: int


WHOLE = Size(epsilons=(0.5, 1.0, 2.0, 3.0, 4.0, 5.0), seeds=20, tallies=100)
QUICK = Size(epsilons=(1.0, 2.0, 4.0), seeds=5, tallies=40)
REPORTS = 100
"""Of one tally; V0 does not depend on it."""


def crossover(epsilon: float) -> float:
    """Return 3 e^epsilon + 2."""
    return 3 * math.exp(epsilon) + 2


def noise(oracle: PureOracle) -> float:
    """Return V0: the exact variance per report of the estimate of a value that no client holds."""
    return float(oracle.variance(0, 1))


def last_of_grr(epsilon: float, other: str) -> int:
    """Return the largest domain in which GRR is at least as good as another oracle, by exact V0."""
    size = math.ceil(crossover(epsilon)) + 2
    # OLH has whole cells, so its crossover lies a little above or below.
    while noise(_oracle("grr", epsilon, size)) <= noise(_oracle(other, epsilon, size)):
        size += 1
    while noise(_oracle("grr", epsilon, size)) > noise(_oracle(other, epsilon, size)):
        size -= 1
    return size


def reproduce(*, quick: bool, seed: int, say: Say) -> Reproduction:
    """Return exact and drawn V0 of the three oracles around the crossover."""
    size = QUICK if quick else WHOLE
    results = draw(size, seed=seed, say=say)
    crossings = [(epsilon, {other: last_of_grr(epsilon, other) for other in ("oue", "olh")})
                 for epsilon in size.epsilons]  # fmt: skip
    return Reproduction(
        results=results,
        summary=_summary(results, size),
        figures={"oracle-crossover": _figure(results, size)},
        findings=(*_crossings(crossings), _agreement(results)),
    )


def draw(size: Size, *, seed: int, say: Say) -> pd.DataFrame:
    """Return a row for each epsilon, domain, oracle and seed: exact V0, and one that was drawn."""
    rows = []
    for epsilon in size.epsilons:
        say(f"epsilon {epsilon:g}")
        for domain in domains(epsilon):
            for name in ORACLES:
                oracle = _oracle(name, epsilon, domain)
                rows += [
                    {
                        "epsilon": epsilon,
                        "domain_size": domain,
                        "oracle": name,
                        "seed": number,
                        "exact": noise(oracle),
                        "drawn": _drawn_noise(oracle, name, seed=number, tallies=size.tallies),
                    }
                    for number in range(seed, seed + size.seeds)
                ]
    return pd.DataFrame(rows)


def _drawn_noise(oracle: PureOracle, name: str, *, seed: int, tallies: int) -> float:
    """Return the mean squared estimate per report, over all values that no client holds."""
    rng = generator(seed, Stream.RANDOMIZER, ORACLES.index(name), oracle.domain_size)
    values = np.zeros(REPORTS, dtype=np.int64)
    drawn = [oracle.aggregate(values=values, rng=rng) for _ in range(tallies)]
    estimates = oracle.estimate(np.array(drawn), REPORTS)[:, 1:]
    return float((estimates**2).mean()) / REPORTS


def domains(epsilon: float) -> list[int]:
    """Return the domain sizes around an epsilon's crossover, at least 3."""
    return sorted({max(3, round(share * crossover(epsilon))) for share in _NEAR})


def _oracle(name: str, epsilon: float, domain_size: int) -> PureOracle:
    return make_pure_oracle(OracleSpec(name=name, epsilon=epsilon, params={}), domain_size)


def _means(results: pd.DataFrame) -> pd.DataFrame:
    return summarize(results, ["epsilon", "domain_size", "oracle", "exact"], "drawn")


def _summary(results: pd.DataFrame, size: Size) -> TextTable:
    means = _means(results)
    rows, records = [], []
    for _, part in means.groupby(["epsilon", "domain_size"], sort=False):
        epsilon, domain = float(part["epsilon"].iloc[0]), int(part["domain_size"].iloc[0])
        share, cells = domain / crossover(epsilon), []
        record = {"epsilon": epsilon, "domain_size": domain, "over_crossover": share}
        for name in ORACLES:
            row = part[part["oracle"] == name].iloc[0]
            half = row["high"] - row["mean"]
            cells += [f"{row['exact']:.4g}", f"{row['mean']:.4g} ± {half:.2g}"]
            record |= {
                f"{name}_exact": row["exact"],
                **{f"{name}_drawn_{key}": row[key] for key in ("mean", "low", "high")},
            }
        rows.append((f"{epsilon:g}", str(domain), f"{share:.3g}", *cells))
        records.append(record)
    heads = [head for name in ORACLES for head in (f"{name} exact", f"{name} drawn")]
    return TextTable(
        title="V0 of GRR, OLH and OUE around s = 3 e^epsilon + 2 (Wang et al. 2017)",
        columns=("epsilon", "s", "s over the crossover", *heads),
        rows=tuple(rows),
        note=(
            "V0: variance per report of the estimate of a value that no client holds. Drawn: "
            f"{size.tallies:,} tallies of {REPORTS} reports, all of one value, for each seed; "
            f"{interval_text([size.seeds], mean='mean ± half the')}."
        ),
        labels=3,
        records=tuple(records),
    )


def _crossings(crossings: list[tuple[float, dict[str, int]]]) -> list[str]:
    lines = []
    for epsilon, last in crossings:
        lines.append(
            f"Epsilon {epsilon:g}: 3 e^epsilon + 2 = {crossover(epsilon):.2f}; by exact V0 GRR is "
            f"no worse than OUE up to s = {last['oue']}, than OLH with its "
            f"{round(math.exp(epsilon)) + 1} cells up to s = {last['olh']}."
        )
    return lines


def _agreement(results: pd.DataFrame) -> str:
    means = _means(results)
    inside = ((means["low"] <= means["exact"]) & (means["exact"] <= means["high"])).sum()
    return (
        f"Exact V0 lies in {inside} of {len(means)} 95 % intervals of drawn ones; about "
        f"{0.95 * len(means):.0f} are to be expected."
    )


def _figure(results: pd.DataFrame, size: Size) -> Figure:
    """Return V0 over that of OUE by the domain, a panel for each epsilon: exact lines, drawn marks.

    Drawn marks are over exact V0 of OUE.
    """
    means = _means(results)
    with mpl.rc_context(STYLE):
        figure, panels = open_figure(len(size.epsilons), sharey=True)
        for axes, epsilon in zip(panels, size.epsilons, strict=True):
            part = means[means["epsilon"] == epsilon]
            sizes = domains(epsilon)
            unit = noise(_oracle("oue", epsilon, sizes[0]))
            grid = np.unique(np.geomspace(sizes[0], sizes[-1], 60).astype(int))
            for number, name in enumerate(ORACLES):
                look = series(number, len(ORACLES))
                exact = [noise(_oracle(name, epsilon, int(s))) / unit for s in grid]
                axes.plot(grid, exact, **{**look, "marker": "none", "linewidth": 1.4})
                here = part[part["oracle"] == name]
                axes.errorbar(
                    here["domain_size"],
                    here["mean"] / unit,
                    yerr=[
                        (here["mean"] - here["low"]) / unit,
                        (here["high"] - here["mean"]) / unit,
                    ],
                    fmt=look["marker"], color=look["color"], markersize=4, elinewidth=1,
                    label=name.upper(), zorder=look["zorder"],
                )  # fmt: skip
            axes.axvline(crossover(epsilon), color=NOTE, linewidth=0.8, linestyle=":")
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_major_locator(FixedLocator(sizes))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
            name_panel(axes, f"epsilon {epsilon:g}")
        label_axes(panels, "values s", "V0 over V0 of OUE")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper")
        put_heading(figure, "Variance per report of GRR, OLH and OUE; dotted: s = 3 e^epsilon + 2")
        put_note(figure, f"lines exact; marks drawn, {interval_text([size.seeds])}")
    return figure
