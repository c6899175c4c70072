"""Makes docs/results: tables and figures of the built-in sweeps.

Every folder holds the sweep's file, its results, and a page with the command, the version, the
machine and the seconds. `make results` runs the quick versions of sweeps that have no results at
full size; `python tools/make_results.py NAME` runs one sweep, of any size, or one of
`_VARIANTS`. `--data-dir` has the files of clients that some variants are about.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import user_figures

import fedhh
from fedhh.experiments.config.built_in import SWEEPS, preset_names
from fedhh.experiments.report.sweep_figures import plot_sweep
from fedhh.experiments.report.tables import make_table
from fedhh.experiments.sweep.directory import RESULTS, SWEEP_FILE, read_results

# By the start of a sweep's name: its figures and its tables, where they are not the usual ones.
_USUAL = ("coverage", "precision")
_SUMMARY = ("summary",)
_METRICS = {"eta-regime": ("coverage", "noise_share"), "sampling": ("coverage",)}
_TABLES = {
    "gboard-table1": ("gboard-table1",),
    "gboard-figure1": ("gboard-figure1",),
    "sampling": ("sampling",),
    "sfp": ("comparison",),
    "field": ("comparison",),
    "best-settings": ("comparison",),
    "trust-models": ("comparison",),
    "user-level": ("comparison",),
    "small": ("comparison",),
}
_IRC = "ubuntu_irc.parquet"
_FROM_IRC = ("--data", _IRC)
_SMALL = "small-populations"
# A preset with other options, by the name of the folder.
_VARIANTS = {
    "small": (_SMALL, ()),
    "small-10m": (_SMALL, ("--set", "population.clients=10_000_000", "--seeds", "1")),
    "small-100m": (
        _SMALL,
        (
            *("--protocol", "LDP TrieHH", "--protocol", "Adaptive TrieHH", "--seeds", "1"),
            *("--set", "population.clients=100_000_000"),
            *("--set", "simulation.drawn_clients=1_000_000"),
        ),
    ),
    "field-irc": ("field", _FROM_IRC),
    "field-central-irc": ("field-central", _FROM_IRC),
    "field-published-irc": ("field-published", _FROM_IRC),
    "best-settings-item": ("best-settings", ("--at", "item-central-epsilon=1")),
    "best-settings-user": ("best-settings", ("--at", "user-central-epsilon=8")),
    "trust-models-item": ("trust-models", ("--at", "item-central-epsilon=1")),
    "user-level-3m": ("user-level", ("--set", "population.clients=3000000")),
    "trust-models-irc": ("trust-models", _FROM_IRC),
    "trust-models-keyboard": (
        "trust-models",
        (
            *("--at", "user-central-epsilon=1", "--set", "population.source=keyboard60d"),
            *("--set", "population.clients=15000000"),
        ),
    ),
    "sfp-vs-triehh-irc": (
        "sfp-vs-triehh",
        (*_FROM_IRC, "--set", "protocol.depth=10", "--set", "protocol.eta_max=300"),
    ),
}
# Rows of a comparison that stand in results.csv alone.
_IN_CSV_ALONE = re.compile(
    r"\| (?:(?:precision|recall) of the top [\d,]+|F1 of the top (?!100 )[\d,]+|F1|recall|"
    r"precision of the significant|cut words among the false|count error of the significant|"
    r"interval coverage|"
    r"(?:local|central) epsilon[^|]*, item|local epsilon, user|central epsilon after the run, user|"
    r"k-anonymity, claimed|clients asked|rounds|download[^|]*|server, CPU seconds) +\|"
)
_COMPARISON = re.compile(r"^\|(?:.*\|)? coverage +\| +[\d.]+%", re.MULTILINE)
_OF_LEFT_OUT_ROWS = re.compile(
    r" (?:Count error: [^.]*|Interval coverage: [^.]*|Recall is over the words held [^.]*)\."
)
# Quick versions that vary other settings than the sweeps of full size.
_OWN_SUBJECT = ("sampling-quick",)
_QUICK = "-quick"
_MADE_BY = "made_by.txt"


def main() -> None:
    """Run the sweeps that the command line names, or every quick one that is needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--out", type=Path, default=Path("docs/results"))
    parser.add_argument("--runs", type=Path, default=Path("runs/results"))
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seeds", type=int, help="seeds per cell, in place of the sweep's own")
    parser.add_argument("--data-dir", type=Path, default=Path(), help="where files of clients are")
    parser.add_argument("--draw-only", action="store_true", help="pages of runs that are there")
    arguments = parser.parse_args()
    for name in arguments.names or quick_names(arguments.out):
        if not arguments.draw_only:
            _run(name, arguments.runs / name, arguments)
        _draw(name, arguments.out / name, arguments.runs / name)
    user_figures.draw(arguments.out)
    _write_index(arguments.out)


def quick_names(out: Path) -> list[str]:
    """Return the quick sweeps without results at full size, and those of another subject."""
    return [
        name
        for name in preset_names(SWEEPS)
        if name.endswith(_QUICK)
        and (name in _OWN_SUBJECT or not (out / name.removesuffix(_QUICK)).exists())
    ]


def _run(name: str, run: Path, arguments: argparse.Namespace) -> None:
    shutil.rmtree(run, ignore_errors=True)
    preset, options = _VARIANTS.get(name, (name, ()))
    words = ["compare" if _tables_of(name) == ("comparison",) else "sweep", "--preset", preset]
    words += [*options, "--workers", str(arguments.workers)]
    words += [] if arguments.seeds is None else ["--seeds", str(arguments.seeds)]
    started = time.perf_counter()
    code = "from fedhh.cli.app import main; main()"
    subprocess.run(
        [sys.executable, "-c", code, *words, "--out", str(run.resolve())],
        check=True,
        cwd=arguments.data_dir,
    )
    seconds = time.perf_counter() - started
    line = (
        f"Made by `fedhh {' '.join(words)}`, fedhh {fedhh.__version__}, in {seconds:.0f} seconds "
        f"on {_machine()}, its load, this sweep included, being {_load(seconds):.0f}."
    )
    (run / _MADE_BY).write_text(line, encoding="utf-8")


def _tables_of(name: str) -> tuple[str, ...]:
    return next((tables for start, tables in _TABLES.items() if name.startswith(start)), _SUMMARY)


def _draw(name: str, out: Path, run: Path) -> None:
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    metrics = next((m for start, m in _METRICS.items() if name.startswith(start)), _USUAL)
    figures = [path.name for path in plot_sweep(run, out=out, metrics=metrics)]
    for file in (SWEEP_FILE, RESULTS, "results.csv"):
        shutil.copy(run / file, out / file)
    _, description = read_results(run)
    lines = [
        f"# {description['title']}",
        "",
        (run / _MADE_BY).read_text(encoding="utf-8"),
        f"[{SWEEP_FILE}]({SWEEP_FILE}) is the config, [results.csv](results.csv) every metric, "
        "cell and seed.",
        "",
        *(
            without_details(
                make_table(table, run)
                .render("markdown")
                .removeprefix(f"{description['title']}\n\n")
            )
            for table in _tables_of(name)
        ),
        f"![{Path(figures[0]).stem}]({figures[0]})",
        "",
        *more_figures(figures[1:]),
    ]
    (out / "README.md").write_text("\n".join(lines), encoding="utf-8")


def more_figures(figures: list[str]) -> list[str]:
    """Return the line that links the figures that the page does not show, if there are any."""
    links = ", ".join(f"[{Path(figure).stem}]({figure})" for figure in figures)
    return [f"More figures: {links}.", ""] if links else []


def without_details(table: str) -> str:
    """Return a comparison in Markdown without the rows that stand in results.csv alone.

    Other tables have columns of these names, and stay as they are.
    """
    if not _COMPARISON.search(table):
        return table
    lines = [line for line in table.split("\n") if not _IN_CSV_ALONE.search(line)]
    return _OF_LEFT_OUT_ROWS.sub("", "\n".join(lines))


def _write_index(out: Path) -> None:
    quick, full = [], []
    for page in sorted(out.glob("*/README.md")):
        title = page.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")
        name = page.parent.name
        (quick if name.endswith(_QUICK) else full).append(f"- [{name}]({name}/README.md): {title}")
    lines = [
        "# Results",
        "",
        "Tables and figures of the built-in sweeps. At full size; for Gboard, with the paper's 15",
        "million clients, [compared with the paper](../reproduction-gboard-coverage.md):",
        "",
        *full,
        "",
        "Quick versions, made by `make results`, which show orders and shapes:",
        "",
        *quick,
        "",
    ]
    (out / "README.md").write_text("\n".join(lines), encoding="utf-8")


def _load(seconds: float) -> float:
    """Return the machine's mean number of running processes over about the last seconds."""
    minutes = (1, 5, 15)
    nearest = min(range(3), key=lambda i: abs(60 * minutes[i] - seconds))
    return os.getloadavg()[nearest]


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"a machine with {os.cpu_count()} cores and {memory:.0f} GB"


if __name__ == "__main__":
    main()
