"""PEM's hits on 48-bit values, by step (eta), k and epsilon.

Source: Wang, Li, Jha (2021), "Locally differentially private heavy hitter identification", IEEE
TDSC 18(2), section 5 (arXiv:1708.06674). Clients hold bits, so words are strings of 48 symbols "0"
and "1", the highest bit of the first byte first; every report is drawn and decoded (OLH), none of
the distribution is approximated. The values are those of the log if its file is given, otherwise
stand-ins of two kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from fedhh.clients.populations.population import StoredPopulation
from fedhh.experiments.report.panels import label_axes, open_figure
from fedhh.experiments.report.style import STYLE, in_percent, series
from fedhh.experiments.report.titles import NOTE, name_panel, put_heading, put_note
from fedhh.experiments.run.result import MetricSettings
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.oracles import OracleSpec, make_pure_oracle
from fedhh.random import Stream, generator
from fedhh.server.pem import Pem
from papers.bit_values import (
    BITS,
    LOG_SOURCE,
    Counts,
    Kind,
    bit_population,
    holders_of_bits,
    interpolated_counts,
    read_log,
)
from papers.reproduction import Reproduction, Say, by_number, published

Ceilings = dict[tuple[int, int, float], tuple[float, float]]
"""F and NCR by k, eta and epsilon."""

KINDS: tuple[Kind, ...] = ("random", "text")
_LOG = "log"
_OTHERS = "independent"
"""A simulation with other code, see `published.toml`."""
_CEILING = "ceiling"
_DRAWS = 200
"""Of the ceiling, which takes no reports; its standard error is below 0.01."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is drawn.

    Attributes:
        settings: Pairs of k and eta.
        epsilons: Local epsilons.
        seeds: Runs of each cell.
    """

    settings: tuple[tuple[int, int], ...]
    epsilons: tuple[float, ...]
    seeds: int


WHOLE = Size(
    settings=((16, 11), (32, 11), (32, 4), (32, 1)), epsilons=(1.0, 2.0, 3.0, 4.0), seeds=5
)
QUICK = Size(settings=((32, 4),), epsilons=(2.0, 4.0), seeds=3)


def reproduce(*, quick: bool, seed: int, say: Say, data: Path | None = None) -> Reproduction:
    """Return F and NCR of PEM on the log, or on stand-ins of two kinds, next to those of others."""
    size = QUICK if quick else WHOLE
    stated = published()["pem"]
    ranks = {int(rank): count for rank, count in stated["counts"].items()}
    totals = {"total": stated["users"], "distinct": stated["distinct"]}
    kinds: tuple[str, ...]
    if data is None:
        say(f"values are stand-ins; for the log itself: --data FILE, {LOG_SOURCE}")
        kinds, values = KINDS, None
        counts = interpolated_counts(ranks, **totals)
    else:
        kinds = (_LOG,)
        values, counts = read_log(data, ranks=ranks, **totals)
    rows = []
    for kind, population in _populations(counts, values):
        for k, eta in size.settings:
            say(f"{kind} values, k = {k}, eta = {eta}")
            for epsilon in size.epsilons:
                for number in range(seed, seed + size.seeds):
                    f, ncr = _scores(hits(population, k, eta, epsilon, seed=number), k)
                    rows.append(
                        {
                            "values": kind, "k": k, "eta": eta, "epsilon": epsilon, "seed": number,
                            "f1": f, "ncr": ncr,
                        }
                    )  # fmt: skip
    highest = {
        (k, eta, epsilon): ceiling(counts, k, eta, epsilon, seed=seed)
        for k, eta in size.settings
        for epsilon in size.epsilons
    }
    results = pd.DataFrame(rows)
    return Reproduction(
        results=results,
        summary=_summary(results, size, highest, kinds),
        figures={"pem": _figure(results, size, highest, kinds)},
        findings=_findings(results, size, highest, kinds),
    )


def _populations(
    counts: Counts, values: Sequence[str] | None
) -> Iterator[tuple[str, StoredPopulation]]:
    """Yield the kinds of values with their clients, one after the other; None for stand-ins."""
    if values is not None:
        yield _LOG, holders_of_bits(values, counts, name=_LOG)
        return
    for kind in KINDS:
        yield kind, bit_population(counts, kind)


def protocol(k: int, eta: int, epsilon: float) -> Pem:
    """Return PEM as in the paper: bits, k prefixes kept, eta bits more in each group, OLH."""
    return Pem(
        alphabet="01", fixed_length=True, length=BITS, step=eta, keep=k, oracle="olh", max_items=1,
        local_epsilon=epsilon,
    )  # fmt: skip


def hits(
    population: StoredPopulation, k: int, eta: int, epsilon: float, *, seed: int
) -> npt.NDArray[np.int64]:
    """Return the ranks, from 1, of those of the true top k that a run returns.

    Args:
        population: Clients whose lexicon is in the order of counts.
        k: Values that are looked for.
        eta: Bits by which prefixes grow.
        epsilon: Of one report.
        seed: The run's.
    """
    result = simulate(
        protocol(k, eta, epsilon), population, seed=seed, settings=MetricSettings(top_k=(k,))
    )
    ranks = population.lexicon.ids(result.discoveries["word"].tolist()) + 1
    return np.sort(ranks[(ranks >= 1) & (ranks <= k)])


def ceiling(counts: Counts, k: int, eta: int, epsilon: float, *, seed: int) -> tuple[float, float]:
    """Return F and NCR if only the last group decided: no earlier one dropped a true value.

    However values share prefixes, no more is to be expected. Supports are drawn by OLH's
    distribution, Binomial(c, p) + Binomial(n - c, q); no client holds the
    candidates other than the true top k.

    Args:
        counts: ``(values,) int64``: clients of each value, the most frequent first.
        k: Values that are looked for.
        eta: Bits by which prefixes grow.
        epsilon: Of one report.
        seed: Of the draws.
    """
    asked = protocol(k, eta, epsilon)
    groups, last = asked.num_cohorts, asked.prefix_lengths[-1] - asked.prefix_lengths[-2]
    reports = int(counts.sum()) // groups
    spec = OracleSpec(name="olh", epsilon=epsilon, params={})
    oracle = make_pure_oracle(spec, 2**BITS)
    rng = generator(seed, Stream.TALLY, k, eta, round(1000 * epsilon))
    scores = []
    for _ in range(_DRAWS):
        held = rng.binomial(counts[:k], 1 / groups)
        support = rng.binomial(held, oracle.p) + rng.binomial(reports - held, oracle.q)
        noise = rng.binomial(reports, oracle.q, size=k * 2**last - k)
        threshold = np.partition(np.concatenate([support, noise]), -k)[-k]
        scores.append(_scores(np.flatnonzero(support >= threshold) + 1, k))
    f, ncr = np.mean(scores, axis=0)
    return float(f), float(ncr)


def _scores(ranks: npt.NDArray[np.int64], k: int) -> tuple[float, float]:
    """Return F, the share of the top k found, and NCR, where rank r weighs k + 1 - r."""
    return len(ranks) / k, float((k + 1 - ranks).sum()) / (k * (k + 1) / 2)


def _label(kind: str) -> str:
    return "values of the log" if kind == _LOG else f"{kind} values"


def _stated(k: int, eta: int) -> dict[str, dict[float, float]]:
    for each in published()["pem"]["hits"]:
        if (each["k"], each["eta"]) == (k, eta):
            return {"f1": by_number(each["f"]), "ncr": by_number(each["ncr"])}
    raise ValueError(f"Nothing is published for k = {k} and eta = {eta}.")


def _summary(
    results: pd.DataFrame, size: Size, highest: Ceilings, kinds: Sequence[str]
) -> TextTable:
    rows, records = [], []
    for k, eta in size.settings:
        groups = len(protocol(k, eta, 1.0).prefix_lengths)
        for epsilon in size.epsilons:
            cells = []
            record: dict[str, float] = {"k": k, "eta": eta, "groups": groups, "epsilon": epsilon}
            for metric, most in zip(("f1", "ncr"), highest[k, eta, epsilon], strict=True):
                paper = _stated(k, eta)[metric][epsilon]
                record[f"{metric}_{_OTHERS}"] = paper
                cells.append(f"{paper:.2f}")
                for kind in kinds:
                    mask = (results["values"] == kind) & (results["k"] == k)
                    mask &= (results["eta"] == eta) & (results["epsilon"] == epsilon)
                    mean = summarize(results[mask], ["values"], metric).iloc[0]
                    record |= {f"{metric}_{kind}_{x}": mean[x] for x in ("mean", "low", "high")}
                    half = (mean["high"] - mean["low"]) / 2
                    cells.append(f"{mean['mean']:.2f} ± {half:.2f}")
                record[f"{metric}_{_CEILING}"] = most
                cells.append(f"{most:.2f}")
            rows.append((str(k), str(eta), str(groups), f"{epsilon:g}", *cells))
            records.append(record)
    stated = published()["pem"]
    of_log = kinds == (_LOG,)
    origin = f"those of {LOG_SOURCE}" if of_log else "counts interpolated between five ranks'"
    return TextTable(
        title="Hits of PEM among the top k of 48-bit values (Wang, Li, Jha)",
        columns=(
            "k", "eta", "groups", "epsilon",
            *(f"{m}, {x}" for m in ("F", "NCR") for x in (_OTHERS, *kinds, _CEILING)),
        ),
        rows=tuple(rows),
        note=(
            f"{stated['users']:,} clients with one of {stated['distinct']:,} values each, "
            f"{origin}; F: share of the true top k among the k values "
            "returned; NCR: the same with weight k + 1 - r for rank r. Ceiling: if no group but "
            "the last dropped a true value. "
            f"{interval_text([size.seeds], mean='Mean ± half the')}."
        ),
        labels=4,
        records=tuple(records),
    )  # fmt: skip


def _findings(
    results: pd.DataFrame, size: Size, highest: Ceilings, kinds: Sequence[str]
) -> tuple[str, ...]:
    means = summarize(results, ["values", "k", "eta", "epsilon"], "f1")
    lines = []
    for kind in kinds:
        named = "Values of the log" if kind == _LOG else f"Values that are {kind}"
        part = means[means["values"] == kind]
        gaps = [
            row["mean"] - _stated(int(row["k"]), int(row["eta"]))["f1"][row["epsilon"]]
            for _, row in part.iterrows()
        ]
        lines.append(
            f"{named}: F differs from the independent one by {np.mean(gaps):+.2f} "
            f"in the mean of {len(gaps)} cells, from {min(gaps):+.2f} to {max(gaps):+.2f}."
        )
        steps = sorted(eta for k, eta in size.settings if k == 32)
        if len(steps) > 1:
            by_step = part[part["k"] == 32].pivot(index="epsilon", columns="eta", values="mean")
            order = np.diff(by_step[steps].to_numpy(), axis=1).min(axis=1) >= 0
            lines.append(
                f"{named}, k = 32: F rises with eta at {order.sum()} of {len(order)} epsilons."
            )
    most = [highest[key][0] - _stated(*key[:2])["f1"][key[2]] for key in highest]
    lines.append(
        f"The independent F is below the ceiling in {sum(gap > 0 for gap in most)} of {len(most)} "
        f"cells; the ceiling minus it is {min(most):+.2f} to {max(most):+.2f}."
    )
    return tuple(lines)


def _figure(results: pd.DataFrame, size: Size, highest: Ceilings, kinds: Sequence[str]) -> Figure:
    """Return F over epsilon, a panel for each k and eta, a line for each kind of values."""
    means = summarize(results, ["values", "k", "eta", "epsilon"], "f1")
    with mpl.rc_context(STYLE):
        figure, panels = open_figure(len(size.settings), sharex=True, sharey=True)
        for axes, (k, eta) in zip(panels, size.settings, strict=True):
            stated = _stated(k, eta)["f1"]
            axes.plot(
                size.epsilons,
                [stated[x] for x in size.epsilons],
                label=_OTHERS,
                **{**series(0, 4), "linewidth": 2},
            )
            for number, kind in enumerate(kinds, start=1):
                mask = (means["values"] == kind) & (means["k"] == k) & (means["eta"] == eta)
                part = means[mask]
                axes.errorbar(
                    part["epsilon"], part["mean"],
                    yerr=[part["mean"] - part["low"], part["high"] - part["mean"]],
                    elinewidth=1, label=_label(kind), **{**series(number, 4), "linewidth": 1.4},
                )  # fmt: skip
            axes.plot(
                size.epsilons,
                [highest[k, eta, x][0] for x in size.epsilons],
                color=NOTE, linewidth=1, linestyle=":", label=_CEILING,
            )  # fmt: skip
            name_panel(axes, f"k = {k}, eta = {eta}")
            axes.set_xticks(size.epsilons)
            axes.set_ylim(0, 1)
            in_percent(axes.yaxis)
        label_axes(panels, "local epsilon", "F: share of the top k found")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside right upper")
        put_heading(figure, "PEM on 48-bit values")
        put_note(figure, interval_text([size.seeds]))
    return figure
