"""Figures of the sweep user-level: the best B, and how many must hold a word, against B.

`python tools/user_figures.py` draws them from the results that are in docs/results.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.special import ndtri

from fedhh.accounting.bounds.selection import Selection
from fedhh.accounting.weighted_gaussian import weight_releases
from fedhh.experiments.report.style import BLUE, DPI, MARKERS, VERMILION, series, styled

FOLDERS = ("user-level", "user-level-3m")
_EPSILON, _ITEMS, _LOCAL = "user_central_epsilon", "protocol.max_items", "privacy.local_epsilon"
_TRIE, _CURATOR = "LDP TrieHH", "Weighted Gaussian"
_SYMBOLS = 27


def draw(out: Path) -> list[Path]:
    """Draw both figures from the results below ``out``; nothing where one of them is missing."""
    if not all((out / name / "results.csv").exists() for name in FOLDERS):
        return []
    tables = {name: pd.read_csv(out / name / "results.csv") for name in FOLDERS}
    clients = {
        name: int(tomllib.loads((out / name / "sweep.toml").read_text())["population"]["clients"])
        for name in FOLDERS
    }
    folder = out / FOLDERS[0]
    return [
        _best_items(tables, clients, folder / "best_items.png"),
        _needed_share(tables[FOLDERS[0]], folder, clients[FOLDERS[0]]),
    ]


@styled
def _best_items(tables: dict[str, pd.DataFrame], clients: dict[str, int], path: Path) -> Path:
    """Draw, for each protocol and size, the B of the largest mean coverage, by epsilon."""
    figure = Figure(figsize=(9.6, 3.4), layout="constrained")
    for axes, name in zip(figure.subplots(1, 2, sharey=True), FOLDERS, strict=True):
        means = tables[name].groupby(["protocol", _EPSILON, _ITEMS])["coverage"].mean()
        protocols = list(tables[FOLDERS[0]]["protocol"].unique())
        for number, protocol in enumerate(protocols):
            if protocol not in means:
                continue
            grid = means[protocol].unstack(_ITEMS)
            best = grid.idxmax(axis=1)
            # Apart where protocols have the same best B.
            apart = best * 1.03 ** (number - len(protocols) / 2)
            axes.plot(best.index, apart, label=protocol, **series(number, len(protocols)))
        axes.set(xscale="log", yscale="log", title=f"{clients[name]:,} clients")
        axes.set_xticks([1, 3, 8], ["1", "3", "8"], minor=False)
        axes.set_yticks([1, 2, 5, 10, 20, 60], ["1", "2", "5", "10", "20", "60"])
        axes.minorticks_off()
        axes.set_xlabel("central epsilon of a user")
    figure.axes[0].set_ylabel("best B")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right", fontsize=8)
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    return path


@styled
def _needed_share(table: pd.DataFrame, folder: Path, clients: int) -> Path:
    """Draw the share of clients that must hold a word for a chance of one half, by B."""
    config = tomllib.loads((folder / "sweep.toml").read_text())
    trie = config["sweep"]["protocols"][_TRIE]
    delta = float(table["delta"].iloc[0])
    candidates = trie["eta_max"] * _SYMBOLS
    cohort = clients * (1 - trie["validation_share"]) / trie["depth"]
    # Of all candidates that nobody holds, as many exceed this as a layer keeps.
    deviations = -ndtri(trie["eta_max"] / candidates)
    epsilons = sorted(table[_EPSILON].unique())
    figure = Figure(figsize=(8.0, 3.2), layout="constrained")
    for axes, epsilon in zip(figure.subplots(1, len(epsilons), sharey=True), epsilons, strict=True):
        local = table[(table["protocol"] == _TRIE) & (table[_EPSILON] == epsilon)]
        chosen = local.groupby(_ITEMS)[_LOCAL].mean().dropna()
        trie_shares, curator_shares = [], []
        for items, local_epsilon in chosen.items():
            size = round(candidates / (np.exp(local_epsilon) + 1)) or 1
            of_report = Selection(
                local_epsilon=float(local_epsilon), domain_size=candidates + 1, subset_size=size
            )
            noise = np.sqrt(cohort * items * of_report.q * (1 - of_report.q))
            trie_shares.append(deviations * noise / (of_report.p - of_report.q) / cohort)
            (release,) = weight_releases(epsilon=epsilon, delta=delta, max_items=int(items))
            curator_shares.append(release.threshold * np.sqrt(items) / clients)
        axes.plot(
            chosen.index, trie_shares, color=BLUE, marker=MARKERS[0], label="LDP TrieHH, a layer"
        )
        axes.plot(
            chosen.index,
            curator_shares,
            color=VERMILION,
            marker=MARKERS[1],
            linestyle="--",
            label="trusted aggregator, T sqrt(B)",
        )
        axes.set(xscale="log", yscale="log", title=f"user epsilon {epsilon:g}", xlabel="B")
        axes.set_xticks([1, 2, 5, 10, 20, 60], ["1", "2", "5", "10", "20", "60"])
        axes.minorticks_off()
    figure.axes[0].set_ylabel("share of clients")
    figure.axes[-1].legend(fontsize=8)
    path = folder / "needed_share.png"
    figure.savefig(path, dpi=DPI, metadata={"Software": None})
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    draw(parser.parse_args().out)
