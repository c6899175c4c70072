"""Options that several commands share, and the setting that each stands for."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.verbosity import hear_quiet, hear_verbose

if TYPE_CHECKING:
    from fedhh.experiments.study.kinds import Chosen


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"


CONFIGURATION_PANEL, DATA_PANEL = "Configuration", "Data"
PRIVACY_PANEL, CLUSTER_PANEL = "Privacy", "Cluster"
"""Panels of `--help`, below the options that are used most."""

FormatOption = Annotated[
    Format,
    typer.Option(
        "--format", metavar="FORMAT", help="Print as table, json, csv, markdown or latex."
    ),
]


def _checked_figure(path: Path | None) -> Path | None:
    """Return a figure's path; InputError unless a figure can be written to it."""
    if path is not None:
        from fedhh.experiments.report.style import check_figure

        check_figure(path)
    return path


FigureOption = Annotated[
    Path | None,
    typer.Option(
        "--figure", metavar="PATH", callback=_checked_figure, help="Draw it: PNG, PDF or SVG."
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", callback=hear_quiet, help="Print errors and the result's directory only."
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", "-v", callback=hear_verbose, help="Say on stderr what goes on."),
]

DataOption = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Clients from a file: Parquet, CSV, CSV.gz or JSON Lines; - for standard input.",
    ),
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        "--sep",
        metavar="SIGN|tab",
        help="What separates the columns of a CSV file; else a comma.",
        rich_help_panel=DATA_PANEL,
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="ROLE=NAME",
        help="A column of the file by what it is: user, word, count or text, day for repeated "
        "collections; repeatable.",
        rich_help_panel=DATA_PANEL,
    ),
]
FoldCaseOption = Annotated[
    bool,
    typer.Option(
        "--fold-case",
        help="Bring counted words to lower case, as texts always are, and add up their counts.",
        rich_help_panel=DATA_PANEL,
    ),
]
LanguageOption = Annotated[
    str | None,
    typer.Option(
        "--language",
        help="Of the clients, by its code: whose rules of case hold, and whose known words and "
        "alphabet stand for those not given; en if not said.",
        rich_help_panel=DATA_PANEL,
    ),
]
_KNOWN = typer.Option(
    "--known", help="Known words: scowl70, none, a language, or a file.", rich_help_panel=DATA_PANEL
)
KnownOption = Annotated[str | None, _KNOWN]
AlphabetOption = Annotated[
    str | None,
    typer.Option(
        "--alphabet",
        help="lower, printable, auto (that of the known words), from-data (that of the clients' "
        "words, which is not private), or symbols; else the default's.",
        rich_help_panel=DATA_PANEL,
    ),
]
DepthOption = Annotated[
    int | None,
    typer.Option(
        "--depth",
        help="Symbols of the longest word; else the default's layers.",
        rich_help_panel=DATA_PANEL,
    ),
]
SettingsOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one key; repeatable."),
]
DeltaOption = Annotated[
    float | None,
    typer.Option(
        "--delta",
        help="Delta of central guarantees, 1e-14 to 0.1.",
        rich_help_panel=PRIVACY_PANEL,
    ),
]
AlphaOption = Annotated[
    float | None,
    typer.Option(
        "--alpha", help="Alpha of approximate k-anonymity.", rich_help_panel=PRIVACY_PANEL
    ),
]
SeedOption = Annotated[int | None, typer.Option(help="Seed of everything that is drawn.")]
FirstSeedOption = Annotated[int | None, typer.Option("--seed", help="The first seed.")]
RayAddressOption = Annotated[
    str | None,
    typer.Option(
        "--ray-address",
        metavar="HOST:PORT",
        help="A running Ray cluster: where `ray start --head` listens, or auto on its machine.",
        rich_help_panel=CLUSTER_PANEL,
    ),
]


def _hear_trust(value: bool) -> bool:
    from fedhh.plugins import trust

    trust(value)
    return value


TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust",
        callback=_hear_trust,
        help="Import the code that the configuration names, wherever it stands.",
        rich_help_panel=CONFIGURATION_PANEL,
    ),
]
ResumeOption = Annotated[bool, typer.Option("--resume", help="Go on with what is in --out.")]

MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        help="Show this, a column of results, as recall; repeatable; else coverage, precision, "
        "words, central epsilon of a user."
    ),
]
_NAMED = "a setting that varies, protocol, or metric"
RowsOption = Annotated[
    list[str] | None,
    typer.Option(help=f"A row for each value of this: {_NAMED}; repeatable."),
]
ColumnsShownOption = Annotated[
    str | None,
    typer.Option("--columns", help=f"A column for each value of this: {_NAMED}."),
]


def chosen_of(metric: list[str] | None, rows: list[str] | None, columns: str | None) -> Chosen:
    """Return what the options of a table choose."""
    from fedhh.experiments.study.kinds import Chosen

    return Chosen(metrics=metric or (), rows=rows or (), columns=columns)


LiveOption = Annotated[
    bool,
    typer.Option(
        "--live", help="Serve a page that follows it, on this machine alone, until it ends."
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Check it and say what would run.")]


def _preset_names(incomplete: str) -> list[str]:
    from fedhh.experiments.config.built_in import COMMANDS, preset_names

    names = [name for kind in COMMANDS for name in preset_names(kind)]
    return [name for name in names if name.startswith(incomplete)]


def _source(what: str) -> Any:
    return typer.Argument(
        autocompletion=_preset_names,
        metavar="SOURCE",
        help=f"A preset's name, or a TOML file: {what}.",
    )


SourceArgument = Annotated[
    str | None,
    _source("of a run, or with a table sweep, sweep.protocols, pipeline or longitudinal"),
]
RunSourceArgument = Annotated[str | None, _source("of a run")]
SweepSourceArgument = Annotated[str | None, _source("with a table sweep or sweep.protocols")]
ComparedSourceArgument = Annotated[str | None, _source("of a run, or with a table sweep.protocols")]
PipelineSourceArgument = Annotated[str | None, _source("with a table pipeline")]
RepeatedSourceArgument = Annotated[str | None, _source("with a table longitudinal")]
PresetOption = Annotated[
    str | None,
    typer.Option(
        autocompletion=_preset_names,
        help="A built-in configuration, as SOURCE.",
        rich_help_panel=CONFIGURATION_PANEL,
    ),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        help="A TOML file, as SOURCE.",
        rich_help_panel=CONFIGURATION_PANEL,
    ),
]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        metavar="N|auto",
        help="Ray actors that hold clients, or cells and protocols in parallel; 0: no Ray; auto: "
        "what is sooner done.",
    ),
]
OutOption = Annotated[Path | None, typer.Option(help="The directory; a new one if none.")]
SeedsOption = Annotated[int | None, typer.Option(help="Seeds per cell.")]


def _run_presets(incomplete: str) -> list[str]:
    from fedhh.experiments.config.built_in import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


FileArgument = Annotated[Path, typer.Argument(help="Parquet, CSV, CSV.gz or JSON Lines.")]
FinishedArgument = Annotated[
    Path, typer.Argument(help="Of a run, a sweep, a pipeline or a repeated collection.")
]
RunPresetOption = Annotated[
    str | None,
    typer.Option("--preset", autocompletion=_run_presets, help="A built-in configuration."),
]

_SETTING_OF = {
    "known": "population.known",
    "alphabet": "population.alphabet",
    "separator": "population.separator",
    "fold_case": "population.fold_case",
    "language": "population.language",
    "delta": "privacy.delta",
    "alpha": "privacy.alpha",
    "days": "pipeline.days",
    "devices": "pipeline.devices",
    "seeds": "sweep.seeds",
    "seed": "seed",
    "workers": "execution.workers",
    "ray_address": "execution.ray_address",
    "ceiling": "metrics.ceiling",
}
CHANGES = ("settings", "columns", *_SETTING_OF)
"""What `changes` takes."""

_AS_GIVEN = "workers"


def changes(
    settings: list[str] | None = None, *, columns: list[str] | None = None, **options: Any
) -> tuple[str, ...]:
    """Return the settings as ``KEY=VALUE``, and those that options stand for, if given."""
    # What is a number or "auto" is read as after --set.
    given = [
        f"{path}={value if option == _AS_GIVEN else _as_toml(value)}"
        for option, path in _SETTING_OF.items()
        if (value := options.get(option)) is not None and value is not False
    ]
    if columns:
        from fedhh.clients.reading.columns import parse_columns

        named = parse_columns(columns)
        given += [f"population.columns.{role}={_as_toml(named[role])}" for role in named]
    return (*(settings or ()), *given)


def _as_toml(value: Any) -> str:
    """Return a value as TOML, which takes no surrogates for what ASCII lacks, as JSON does."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
