"""F1 over K of central TrieHH and of SFP behind a shuffler, at equal central epsilon.

Source: Zhu, Kairouz, McMahan, Sun, Li (2020), "Federated heavy hitters discovery with differential
privacy", AISTATS, the comparison with SFP for one word per client; settings as in the authors' code
(github.com/triehh/triehh). Their clients are not here, see `one_word_clients`.

F1 at K is of the precision of all returned words, the share that somebody holds, and of the recall
among the K words held by most clients, as in that code, which takes the precision for 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from fedhh.clients.populations.population import StoredPopulation
from fedhh.experiments.report.panels import label_axes, open_figure
from fedhh.experiments.report.style import STYLE, in_percent, series
from fedhh.experiments.report.titles import NOTE, name_panel, put_heading, put_note
from fedhh.experiments.run.run import simulate
from fedhh.experiments.study.text_table import TextTable
from fedhh.experiments.sweep.intervals import interval_text, summarize
from fedhh.protocol import AnyProtocol
from fedhh.server.sfp import Sfp
from fedhh.server.triehh import TrieHH, discovery_probability
from papers.one_word_clients import LETTERS, PrefixHolders, one_word_population
from papers.reproduction import Reproduction, Say, by_number, published
from papers.shuffled_blanket import clones_local_epsilon, hoeffding_blanket_local_epsilon
from papers.triehh_theorem import stated_parameters

KS = np.arange(10, 300)
"""The K of the paper's figure."""

_SHOWN = (20, 50, 100, 200, 299)
_PAPERS_T = 20
_OLD, _TODAY = "2019", "2021"
_TRIEHH = "TrieHH"
_PILOT = 1_000
"""Seeds from here on choose T, and no other number rests on them."""

Curve = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is drawn.

    Attributes:
        epsilons: Central ones.
        seeds: Runs of each protocol.
        fragments: T of SFP to choose from.
    """

    epsilons: tuple[float, ...]
    seeds: int
    fragments: tuple[int, ...]


WHOLE = Size(epsilons=(1.0, 2.0, 4.0, 8.0), seeds=5, fragments=(50, 100, 200, 400, 800))
QUICK = Size(epsilons=(4.0,), seeds=3, fragments=(100, 400))


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A protocol at a central epsilon.

    Attributes:
        label: What tables call it.
        central_epsilon: What its results have; of TrieHH, what its paper states.
        protocol: It.
        local_epsilon: Of one report; None for TrieHH.
        fragments: T; None for TrieHH.
    """

    label: str
    central_epsilon: float
    protocol: AnyProtocol
    local_epsilon: float | None = None
    fragments: int | None = None


def reproduce(*, quick: bool, seed: int, say: Say) -> Reproduction:
    """Return F1 of TrieHH and of SFP, by two bounds of shuffling and two choices of T."""
    size = QUICK if quick else WHOLE
    setting = published()["triehh"]
    population = one_word_population(setting["clients"])
    holders = PrefixHolders(population)
    rows, curves, exact = [], [], {}
    for epsilon in size.epsilons:
        say(f"central epsilon {epsilon:g}")
        rivals = [_triehh(epsilon), *_sfps(epsilon, population, size)]
        exact[epsilon] = expected_recall(population, holders, rivals[0].protocol)
        for rival in rivals:
            for number in range(seed, seed + size.seeds):
                found = _found(rival.protocol, population, seed=number)
                f1 = f1_by_k(found)
                rows.append(_row(rival, found, f1, seed=number))
                curves.append(
                    pd.DataFrame(
                        {
                            "epsilon": epsilon,
                            "label": rival.label,
                            "seed": number,
                            "k": KS,
                            "f1": f1,
                        }
                    )
                )
    results, lines = pd.DataFrame(rows), pd.concat(curves, ignore_index=True)
    return Reproduction(
        results=results,
        summary=_summary(results, lines, exact, size),
        figures={"triehh": _figure(lines, exact, size)},
        findings=_findings(lines, exact, size),
    )


def f1_by_k(ranks: npt.NDArray[np.int64]) -> Curve:
    """Return F1 at each of `KS`.

    Args:
        ranks: Of each returned word among the true ones, from 0; -1 for words that no client holds.
    """
    if not len(ranks):
        return np.zeros(len(KS))
    held = ranks[ranks >= 0]
    precision = len(held) / len(ranks)
    recall = np.searchsorted(np.sort(held), KS) / KS
    total = precision + recall
    return np.divide(2 * precision * recall, total, out=np.zeros(len(KS)), where=total > 0)


def expected_recall(
    population: StoredPopulation, holders: PrefixHolders, protocol: AnyProtocol
) -> Curve:
    """Return TrieHH's expected recall at each of `KS`, by the hypergeometric votes."""
    assert isinstance(protocol, TrieHH)
    settled = protocol.settle(num_clients=population.num_clients, seed=0)
    sample, threshold = settled.clients_per_layer, settled.threshold
    assert not isinstance(sample, str)
    assert not isinstance(threshold, str)
    chances = [
        discovery_probability(
            holders.of(word),
            num_clients=population.num_clients,
            sample_size=sample,
            threshold=threshold,
        )
        if len(word) <= protocol.depth
        else 0.0
        for word in population.lexicon.words[: KS[-1]]
    ]
    return np.asarray(np.cumsum(chances)[KS - 1] / KS)


def local_epsilons(epsilon: float) -> dict[str, float]:
    """Return how much local epsilon a shuffled report may have, by the year of the bound."""
    setting = published()["triehh"]
    target = {"epsilon": epsilon, "delta": setting["delta"], "num_reports": setting["clients"]}
    return {
        _OLD: hoeffding_blanket_local_epsilon(**target),
        _TODAY: clones_local_epsilon(**target),
    }


def _triehh(epsilon: float) -> Rival:
    """Return TrieHH with the threshold and the sample that the paper has for an epsilon."""
    setting = published()["triehh"]
    rounds = setting["rounds"]
    stated = stated_parameters(
        num_clients=setting["clients"],
        epsilon=epsilon,
        delta=setting["delta"],
        num_rounds=rounds,
    )
    return Rival(
        label=_TRIEHH,
        central_epsilon=epsilon,
        protocol=TrieHH(
            alphabet=LETTERS,
            delta=setting["delta"],
            clients_per_layer=stated.sample_size,
            threshold=stated.threshold,
            depth=rounds - 1,
        ),
    )


def _sfps(epsilon: float, population: StoredPopulation, size: Size) -> list[Rival]:
    """Return SFP by both bounds, with the paper's T and with the best of some for this setting."""
    rivals = []
    for year, local in local_epsilons(epsilon).items():
        given = Rival(
            label=f"SFP, T = {_PAPERS_T}, bound of {year}",
            central_epsilon=epsilon,
            protocol=_sfp(local, _PAPERS_T),
            local_epsilon=local,
            fragments=_PAPERS_T,
        )
        pilots = {
            kept: float(f1_by_k(_found(_sfp(local, kept), population, seed=_PILOT)).mean())
            for kept in (_PAPERS_T, *size.fragments)
        }
        best = max(pilots, key=pilots.__getitem__)
        chosen = replace(
            given,
            label=f"SFP, T chosen, bound of {year}",
            protocol=_sfp(local, best),
            fragments=best,
        )
        rivals += [given, chosen]
    return rivals


def _sfp(local_epsilon: float, fragments: int) -> Sfp:
    """Return SFP as in the authors' code: all strings made of the T best fragments per position.

    There, a report is about the fragment alone. Here the report about the whole word has a
    thousandth of epsilon, and no string is dropped or ordered by it.
    """
    return Sfp(
        alphabet=f"{LETTERS}.#/'",
        local_epsilon=local_epsilon,
        word_share=0.001,
        word_z=-1e9,
        max_words=1_000_000,
        max_fragments=fragments,
        noise_budget=math.inf,
        max_items=1,
    )


def _found(
    protocol: AnyProtocol, population: StoredPopulation, *, seed: int
) -> npt.NDArray[np.int64]:
    """Return the rank of each returned word among the true ones, -1 for those no client holds."""
    words = simulate(protocol, population, seed=seed).discoveries["word"]
    return population.lexicon.ids(words.tolist())


def _row(rival: Rival, found: npt.NDArray[np.int64], f1: Curve, *, seed: int) -> dict[str, Any]:
    return {
        "central_epsilon": rival.central_epsilon,
        "protocol": rival.label,
        "local_epsilon": rival.local_epsilon,
        "fragments": rival.fragments,
        "seed": seed,
        "discovered": len(found),
        "precision": float((found >= 0).mean()) if len(found) else None,
        **{f"f1_at_{k}": float(f1[k - KS[0]]) for k in (*KS[::10].tolist(), int(KS[-1]))},
    }


def _labels(lines: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(lines["label"]))


def _of_recall(recall: Curve) -> Curve:
    return 2 * recall / (1 + recall)


def _summary(
    results: pd.DataFrame, lines: pd.DataFrame, exact: dict[float, Curve], size: Size
) -> TextTable:
    means = summarize(lines, ["epsilon", "label", "k"], "f1")
    rows, records = [], []
    for epsilon in size.epsilons:
        for label in _labels(lines):
            mask = (results["central_epsilon"] == epsilon) & (results["protocol"] == label)
            part = results[mask]
            local, kept = part["local_epsilon"].iloc[0], part["fragments"].iloc[0]
            precision = part["precision"].mean()
            record: dict[str, Any] = {
                "central_epsilon": epsilon,
                "protocol": label,
                "local_epsilon": None if pd.isna(local) else local,
                "fragments": None if pd.isna(kept) else int(kept),
                "discovered": part["discovered"].mean(),
                "precision": None if pd.isna(precision) else precision,
            }
            cells = []
            for k in _SHOWN:
                here = (means["epsilon"] == epsilon) & (means["label"] == label)
                mean = means[here & (means["k"] == k)].iloc[0]
                record |= {f"f1_at_{k}_{part}": mean[part] for part in ("mean", "low", "high")}
                half = (mean["high"] - mean["low"]) / 2
                cells.append(f"{mean['mean']:.1%} ± {100 * half:.1f}")
            rows.append(
                (
                    f"{epsilon:g}",
                    label,
                    "" if pd.isna(local) else f"{local:.3f}",
                    "" if pd.isna(kept) else f"{kept:.0f}",
                    f"{record['discovered']:.0f}",
                    "-" if pd.isna(precision) else f"{precision:.1%}",
                    *cells,
                )
            )
            records.append(record)
        distribution = _of_recall(exact[epsilon])
        rows.append(
            (f"{epsilon:g}", f"{_TRIEHH}, exact distribution", "", "", "", "100.0%",
             *(f"{distribution[k - KS[0]]:.1%}" for k in _SHOWN))
        )  # fmt: skip
        records.append(
            {"central_epsilon": epsilon, "protocol": f"{_TRIEHH}, exact distribution"}
            | {f"f1_at_{k}_mean": float(distribution[k - KS[0]]) for k in _SHOWN}
        )
    setting = published()["triehh"]
    return TextTable(
        title="F1 of TrieHH and SFP at equal central epsilon (Zhu et al. 2020)",
        columns=("epsilon", "protocol", "local epsilon", "T", "returned", "precision",
                 *(f"F1 at {k}" for k in _SHOWN)),
        rows=tuple(rows),
        note=(
            f"{setting['clients']:,} clients with one English word each, L = {setting['rounds']}, "
            f"delta {setting['delta']:g}. F1 at K: of the precision of all returned words and of "
            "the recall among the K words held by most. Bounds of shuffling: 2019, the blanket as "
            "in the paper; 2021, clones (Feldman, McMillan, Talwar). Exact distribution: F1 of the "
            f"expected recall, hypergeometric votes. "
            f"{interval_text([size.seeds], mean='Mean ± half the')}."
        ),
        labels=2,
        records=tuple(records),
    )  # fmt: skip


def _findings(lines: pd.DataFrame, exact: dict[float, Curve], size: Size) -> tuple[str, ...]:
    setting, found = published()["triehh"], []
    stated = by_number(setting["local_epsilon"])
    ours = {epsilon: local_epsilons(epsilon) for epsilon in size.epsilons}
    both = ", ".join(f"{ours[x][_OLD]:.3f} ({stated[x]:.3f})" for x in size.epsilons)
    found.append(f"Local epsilon of SFP by the bound of 2019, published in brackets: {both}.")
    today = ", ".join(f"{ours[x][_TODAY]:.3f}" for x in size.epsilons)
    found.append(f"By clones, 2021: {today}.")
    means = summarize(lines, ["epsilon", "label", "k"], "f1")
    last = means[(means["label"] == _TRIEHH) & (means["k"] == KS[-1])].set_index("epsilon")
    pairs = ", ".join(
        f"{_of_recall(exact[x])[-1]:.1%} and {row['mean']:.1%} ± "
        f"{100 * (row['high'] - row['mean']):.1f}"
        for x, row in ((x, last.loc[x]) for x in size.epsilons)
    )
    found.append(
        f"F1 of TrieHH at K = {KS[-1]} by the exact distribution and by its runs: {pairs}."
    )
    for epsilon in size.epsilons:
        here = means[means["epsilon"] == epsilon].groupby("label", sort=False)["mean"].mean()
        ranked = ", ".join(f"{label} {value:.1%}" for label, value in here.items())
        found.append(f"Central epsilon {epsilon:g}, mean F1 over K = 10 to 299: {ranked}.")
    return tuple(found)


def _figure(lines: pd.DataFrame, exact: dict[float, Curve], size: Size) -> Figure:
    """Return F1 over K, a panel for each central epsilon; bands are t intervals."""
    means = summarize(lines, ["epsilon", "label", "k"], "f1")
    labels = _labels(lines)
    with mpl.rc_context(STYLE):
        figure, panels = open_figure(len(size.epsilons), sharex=True, sharey=True)
        for axes, epsilon in zip(panels, size.epsilons, strict=True):
            for number, label in enumerate(labels):
                part = means[(means["epsilon"] == epsilon) & (means["label"] == label)]
                look = {**series(number, len(labels)), "marker": "none", "linewidth": 1.5}
                axes.plot(part["k"], part["mean"], label=label, **look)
                axes.fill_between(
                    part["k"],
                    part["low"],
                    part["high"],
                    color=look["color"],
                    alpha=0.2,
                    linewidth=0,
                )
            axes.plot(
                KS, _of_recall(exact[epsilon]), color=NOTE, linewidth=1, linestyle=":",
                label=f"{_TRIEHH}, exact distribution", zorder=4,
            )  # fmt: skip
            if len(panels) > 1:
                name_panel(axes, f"central epsilon {epsilon:g}")
            axes.set_ylim(0, 1.02)
            in_percent(axes.yaxis)
        label_axes(panels, "K", "F1 at K")
        handles, names = panels[0].get_legend_handles_labels()
        width, height = figure.get_size_inches()
        # Wider by the legend, so that panels keep their size.
        figure.set_size_inches(width + 2.6, height)
        figure.legend(handles, names, loc="outside right upper", fontsize=9)
        put_heading(figure, "One English word per client, 650,000 clients")
        put_note(figure, interval_text([size.seeds]))
    return figure
