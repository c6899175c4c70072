"""What is made of a paper: numbers next to the published ones, figures, and files."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from fedhh.experiments.report.style import write_figure
from fedhh.experiments.study.csv_file import write_csv
from fedhh.experiments.study.text_table import TextTable
from fedhh.system.files import write_text

SUMMARY = "summary"
RESULTS = "results.csv"

Say = Callable[[str], None]
"""Is called with the progress of a reproduction, a line each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """A paper's numbers, computed again.

    Attributes:
        results: One row per cell and seed, or per number where nothing is drawn; no times, so that
            the same seed gives the same file.
        summary: The numbers next to the published ones; its records are the CSV file.
        figures: By the name of their file.
        findings: What reproduces and what does not, a sentence each, made of the numbers.
    """

    results: pd.DataFrame
    summary: TextTable
    figures: Mapping[str, Figure]
    findings: tuple[str, ...]


@cache
def published() -> dict[str, Any]:
    """Return the content of `published.toml`, where its origin is said."""
    text = files("papers").joinpath("published.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def by_number(table: Mapping[str, float]) -> dict[float, float]:
    """Return a table of TOML whose keys are numbers.

    >>> by_number({"1": 0.5, "0.5": 2.0})
    {1.0: 0.5, 0.5: 2.0}
    """
    return {float(key): value for key, value in table.items()}


def write_reproduction(made: Reproduction, directory: Path, *, command: str) -> list[Path]:
    """Write results, summary (Markdown, with the command and the findings, and CSV) and figures.

    Returns:
        The files, of a figure its PNG alone; the Markdown file last, since it says "done".
    """
    directory.mkdir(parents=True, exist_ok=True)
    write_csv(made.results, directory / RESULTS)
    figures = [write_figure(figure, directory / name) for name, figure in made.figures.items()]
    write_text(directory / f"{SUMMARY}.csv", made.summary.render("csv"))
    lines = [
        f"# {made.summary.title}",
        "",
        f"Made by `{command}`. [{RESULTS}]({RESULTS}) has every cell and seed.",
        "",
        replace(made.summary, title="").render("markdown"),
        *(f"- {finding}" for finding in made.findings),
        "",
        *(f"![{figure.stem}]({figure.name})" for figure in figures),
        "",
    ]
    write_text(directory / f"{SUMMARY}.md", "\n".join(lines))
    tables = [RESULTS, f"{SUMMARY}.csv", f"{SUMMARY}.md"]
    return [*figures, *(directory / name for name in tables)]
