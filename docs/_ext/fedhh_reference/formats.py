"""The page of file formats: a small run and a small sweep are made, and what they leave is listed.

A file that is not described here and a column without a docstring end the build.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import fedhh
from fedhh.experiments.run import (
    adversary,
    calendar,
    candidates,
    cost,
    flat_result,
    layers,
    metrics,
)
from fedhh.experiments.sweep import directory as sweep_directory
from fedhh.longitudinal.pipeline import directory as pipeline_directory
from fedhh.longitudinal.pipeline import measures
from fedhh.longitudinal.pipeline.run import Run as PipelineRun
from fedhh.longitudinal.repeated import tables as longitudinal_tables
from fedhh_reference.markdown import code, entries, table

_SETTINGS = (
    "population.clients=20000",
    "protocol.clients_per_layer=auto",
    "protocol.depth=6",
    "protocol.false_discovery_rate=0.05",
    "execution.workers=0",
    "baseline.name=sfp",
    "devices.check_in=papaya",
    "devices.least_share=0.5",
    "adversary.clients=40",
)
_REPEATED = ("--workers", "0", "--set", "longitudinal.days=14", "--set", "population.clients=5000")
_SWEEP = """[population]
clients = 5_000
[protocol]
depth = 4
passes = 1
[devices]
check_in = "papaya"
[sweep.axes]
"privacy.local_epsilon" = [4, 8]
"""

RUN_FILES = {
    "config.toml": "the resolved configuration; running it again gives the same bits",
    "result.json": "metrics, privacy, cost, timings; says that the run is finished",
    "discoveries.parquet": "one row per discovered word",
    "discoveries.csv": "the same",
    "layers.parquet": "one row per round",
    "candidates.parquet": "one row per recorded candidate of a round, where the protocol has such",
    "votes.parquet": "all candidates of each round, counted by ranges of votes; likewise",
    "missed.parquet": "the missed words with the most clients, and where they were lost; likewise",
    "coverage_by_layer.png": "coverage after each layer",
    "trie_by_layer.png": "candidates and kept prefixes of each layer",
    "estimates.png": "estimated contributors against true holders of each word",
    "baseline/": "the same files of the first protocol in `[[baseline]]`; those of the next are in "
    "`baseline-2/`, and so on",
    "log/": "the answers to each round, from which `--resume` goes on; gone when the run is "
    "finished, see `output.keep_log`",
}
SWEEP_FILES = {
    "sweep.toml": "the sweep's file, resolved",
    "results.parquet": "one row per cell and seed; its schema's metadata has kind, title and axes",
    "results.csv": "the same rows",
    "grid.csv": "the settings of each cell",
    "timings.csv": "seconds of each cell: apart, since only they differ between two sweeps",
    "identity.json": "what `--resume` compares: hashes of the configuration and of the files read",
    "cells/": "one JSON record per finished cell, and its TOML configuration where a central "
    "epsilon chose its own",
    **{
        f"{metric}.png": f"{metric} over the settings, also as PDF and SVG"
        for metric in ("coverage", "precision", "recall", "f1")
    },
    "tradeoff.png": "coverage against the central epsilon before the run, also as PDF and SVG; "
    "where settings vary beyond that, maps (`coverage_map.png`) and `sampling_gain.png`, see "
    "`fedhh plot`",
    "price_of_trust.png": "of protocols at several equal central epsilons: coverage of each in the "
    "color of whom its clients trust, below what no central mechanism does better, also as PDF and "
    "SVG",
}
PIPELINE_FILES = {
    "config.toml": "the resolved configuration; running it again gives the same bits",
    "result.json": "a row for each use case, losses before the run and spent, timings; says that "
    "the pipeline is finished",
    "days.parquet": "one row per use case and day",
    "values.parquet": "one row per use case, day and watched value",
    "published.parquet": "one row per published value",
    "publications.parquet": "one row per use case and window",
    "devices.parquet": "how many devices sent how many records",
    **{f"{name}.csv": "the same" for name in pipeline_directory.TABLES},
    "figures/": "error by day, loss over the lifetime, outcome of the records",
    "pipeline.arrays": "the sums of the servers, once a minute; gone when the pipeline is "
    "finished, see `output.keep_log`",
}
LONGITUDINAL_COLUMNS = {
    "classes": longitudinal_tables.classes_table,
    "losses": longitudinal_tables.losses_table,
    "periods": longitudinal_tables.periods_table,
    "published": longitudinal_tables.published_table,
    "words": longitudinal_tables.words_table,
}
LONGITUDINAL_FILES = {
    "config.toml": "the resolved configuration; running it again gives the same bits",
    "result.json": "a row for each protocol and loss; says that all periods are done",
    "classes.parquet": "one row per protocol, loss and class of words: days until they were found",
    "losses.parquet": "one row per protocol and loss: a device's privacy loss",
    "periods.parquet": "one row per protocol, loss and period",
    "published.parquet": "one row per published word",
    "words.parquet": "one row per word that enough people use",
    **{f"{name}.csv": "the same" for name in LONGITUDINAL_COLUMNS},
    "identity.json": "what `--resume` compares: hashes of the configuration and of the file read",
    "periods/": "one JSON record per finished period",
    "figures/": "days until new words are found; coverage and false words by period",
}
_SOMETIMES = {"pipeline.arrays", "log/", "price_of_trust.png"}
_SECTIONS = {
    "schema_version": "Version of this format",
    "kind": "What the directory holds: `run`, `pipeline` or `repeated-collection`; of a sweep, "
    "`sweep` in the metadata of `results.parquet`",
    "fedhh_version": "Version of fedhh",
    "seed": "The run's seed",
    "fidelity": "What `simulation.fidelity` came to: `per-report`, `exact-tally`, or `mixed`",
    "layers_without_reports": "Of how many layers the tally was drawn at once",
    "clients_drawn_per_layer": "`simulation.drawn_clients`, where that is fewer than were asked",
    "count_std_error_per_sqrt_count": "Standard error of a count c that brings, over sqrt(c)",
    "population": "Name, unit and size; on how many clients the truth was counted; what the "
    "removal of known words took away",
    "protocol": "The settings, resolved",
    "stated_protocol": "What tables need of the protocol, so that a directory is read without the "
    "code that it names",
    "privacy": "Guarantees, each with unit, reader (`trust`), method, epsilon, delta, theorem and "
    "assumptions; the smallest central epsilons that hold before and after the run; approximate "
    "k-anonymity, claimed and measured",
    "metrics": "Below",
    "cost": "Below",
    "calendar": "Only of a run with `[devices]`: below",
    "adversary": "Only of a run with `[adversary]`: below",
    "timings_seconds": "Seconds; the only part that differs between two runs of one seed",
}


PIPELINE_COLUMNS = {
    "days": (measures.errors_of, PipelineRun._live),
    "values": (measures.value_rows,),
    "published": (measures.published_rows,),
    "publications": (measures.publication_quality,),
    "devices": (pipeline_directory.device_rows,),
}


def page() -> str:
    """Return the page."""
    with tempfile.TemporaryDirectory() as folder:
        return _page(Path(folder))


def _page(folder: Path) -> str:
    made, swept = folder / "run", folder / "sweep"
    (folder / "sweep.toml").write_text(_SWEEP)
    settings = [word for setting in _SETTINGS for word in ("--set", setting)]
    _fedhh("run", "--preset", "small", *settings, "--out", str(made))
    piped = folder / "pipeline"
    few = [word for key in ("devices=500", "days=2") for word in ("--set", f"pipeline.{key}")]
    _fedhh("pipeline", "run", "--preset", "pipeline-small", *few, "--out", str(piped))
    repeated = folder / "repeated"
    _fedhh("longitudinal", "run", "--preset", "weekly-small", *_REPEATED, "--out", str(repeated))
    _fedhh("sweep", str(folder / "sweep.toml"), "--workers", "0", "--out", str(swept))
    result = json.loads((made / "result.json").read_text(encoding="utf-8"))
    kept = {
        f"{name}_top_K": text for name, text in meanings_in(metrics.TopK).items()
    } | meanings_in(metrics.Metrics)
    return "".join(
        [
            "# Files\n\nFiles are written whole or not at all. Columns and keys are those of a "
            "run and a sweep that were made with these pages.\n\n",
            "## A run's directory\n\n",
            _files(made, RUN_FILES),
            "## discoveries\n\n",
            # Columns that only some protocols have come from the baseline's.
            _columns(
                made / "discoveries.parquet",
                meanings_in(metrics.discoveries_table),
                also=made / "baseline" / "discoveries.parquet",
            ),
            "## layers\n\n",
            _columns(made / "layers.parquet", layers.column_texts()),
            "## candidates\n\n",
            _columns(made / "candidates.parquet", meanings_in(candidates.candidate_rows)),
            "## votes\n\n",
            _columns(made / "votes.parquet", meanings_in(candidates.vote_ranges)),
            "## missed\n\n",
            _columns(made / "missed.parquet", meanings_in(candidates.MissedWords.table)),
            "## result.json\n\n",
            _described({key: type_name(value) for key, value in result.items()}, _SECTIONS),
            "### Metrics\n\n",
            _keys(result["metrics"], kept),
            "### Cost\n\n",
            _keys(result["cost"], meanings_in(cost.cost_of)),
            "### Calendar\n\n",
            _keys(result["calendar"], meanings_in(calendar.Calendar.to_dict)),
            "### Adversary\n\n",
            _keys(result["adversary"], meanings_in(adversary.AdversaryOutcome.to_dict)),
            "## A sweep's directory\n\n",
            _files(swept, SWEEP_FILES),
            "## results\n\nAfter `cell`, a column for each setting that varies between cells, "
            "such as `privacy.local_epsilon`; then, with metrics and cost as above:\n\n",
            _columns(
                swept / "results.parquet",
                meanings_in(sweep_directory.result_row, flat_result.flat_result),
                without=kept | meanings_in(cost.cost_of) | {"privacy.local_epsilon": "set"},
            ),
            "## The directory of a repeated collection\n\n",
            _files(repeated, LONGITUDINAL_FILES),
            *(
                f"## {name} of a repeated collection\n\n"
                + _columns(repeated / f"{name}.parquet", meanings_in(source))
                for name, source in LONGITUDINAL_COLUMNS.items()
            ),
            "## A pipeline's directory\n\n",
            _files(piped, PIPELINE_FILES),
            *(
                f"## {name}\n\n" + _columns(piped / f"{name}.parquet", meanings_in(*sources))
                for name, sources in PIPELINE_COLUMNS.items()
            ),
        ]
    )


def meanings_in(*sources: Callable[..., Any] | type) -> dict[str, str]:
    """Return what docstrings say of columns, by name."""
    meanings: dict[str, str] = {}
    for source in sources:
        meanings |= entries(source.__doc__) | entries(source.__doc__, "Columns")
    return meanings


def description(name: str, meanings: Mapping[str, str]) -> str | None:
    """Return what a column means; those for single K have what is said of all."""
    return meanings.get(name) or meanings.get(re.sub(r"_top_\d+$", "_top_K", name))


def type_name(value: Any) -> str:
    """Return a JSON value's type."""
    names = {dict: "object", list: "list", bool: "boolean", int: "integer", str: "text"}
    return names.get(type(value), "number")


def _columns(
    file: Path,
    meanings: Mapping[str, str],
    *,
    also: Path | None = None,
    without: Mapping[str, str] | None = None,
) -> str:
    files = [file] if also is None else [file, also]
    kinds = {field.name: str(field.type) for each in files for field in pq.read_schema(each)}
    kinds = {name: kind for name, kind in kinds.items() if not description(name, without or {})}
    return _described(kinds, meanings)


def _keys(values: Mapping[str, Any], meanings: Mapping[str, str]) -> str:
    kinds = {re.sub(r"_top_\d+$", "_top_K", key): type_name(each) for key, each in values.items()}
    return _described(kinds, meanings)


def _described(kinds: Mapping[str, str], meanings: Mapping[str, str]) -> str:
    rows = []
    for name, kind in kinds.items():
        meaning = description(name, meanings)
        if meaning is None:
            raise ValueError(f"No docstring says what the column or key {name!r} is.")
        rows.append((code(name), kind, meaning))
    return table(("name", "type", "meaning"), rows) + "\n"


def _files(folder: Path, meanings: Mapping[str, str]) -> str:
    present = {f"{path.name}/" if path.is_dir() else path.name for path in folder.iterdir()}
    # A figure is described once, and drawn in three formats.
    drawn = {name.removesuffix(".png") for name in present if name.endswith(".png")}
    present -= {f"{name}.{ending}" for name in drawn for ending in ("pdf", "svg")}
    if differing := present ^ (meanings.keys() - _SOMETIMES):
        raise ValueError(f"Files are not as they are described: {sorted(differing)}.")
    return (
        table(("file", "content"), [(code(name), text) for name, text in meanings.items()]) + "\n"
    )


def _fedhh(*words: str) -> None:
    # The package that these pages are about, wherever it was imported from.
    source = str(Path(fedhh.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-m", "fedhh", *words],
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise ValueError(f"fedhh {' '.join(words)} failed:\n{done.stderr}")
