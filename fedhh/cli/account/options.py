"""Options that several commands of `fedhh account` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LocalEpsilon = Annotated[float, typer.Option(help="Privacy of one report, 0.1 to 16.")]
Reports = Annotated[int, typer.Option(help="Reports shuffled together in one layer.")]
Delta = Annotated[float, typer.Option(help="Central delta, 1e-14 to 0.1.")]
DomainSize = Annotated[
    int | None, typer.Option(help="Values of Subset Selection, the dummy included.")
]
Plot = Annotated[Path | None, typer.Option(help="Draw it: PNG, PDF or SVG.")]
SampleSeed = Annotated[int, typer.Option("--seed", help="Seed of what is simulated.")]
RulesPreset = Annotated[
    str | None,
    typer.Option(
        help="Rules of a system: apple (its published caps), or as audited by Tang et al. "
        "(2017): macos-10.12, macos-10.12.1, ios-10.1.1, ios-11-beta."
    ),
]
