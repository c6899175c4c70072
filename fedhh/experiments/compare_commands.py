"""What `fedhh compare` does: a sweep over whole protocols, its table and its figures."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from rich.console import Console

from fedhh.experiments import results
from fedhh.experiments.comparison import comparison_table
from fedhh.experiments.config import SWEEPS, preset_text
from fedhh.experiments.console import print_table
from fedhh.experiments.sweep_axes import PROTOCOL, SWEEP, by_path
from fedhh.experiments.sweep_commands import (
    DoneSweep,
    SweepRequest,
    requested_table,
    run_requested,
)
from fedhh.experiments.tables import make_table
from fedhh.experiments.text_table import TextTable
from fedhh.simulation.files import write_text
from fedhh.validation import InputError

DEFAULT_COMPARISON = "sfp-vs-triehh-quick"

_WIDTH = 132
_EPSILON = "privacy.local_epsilon"


def compare_command(request: SweepRequest, *, as_json: bool) -> bool:
    """Run protocols side by side, print the table, and return whether every cell has a result."""
    from fedhh.experiments.sweep_plots import plot_sweep

    if request.preset is None and request.file is None and not request.resume:
        request = replace(request, preset=DEFAULT_COMPARISON)
    requested, origin = requested_table(request)
    console = comparison_console(stderr=as_json)
    table = comparison_of(requested, origin, settings=request.settings)
    done = run_requested((table, origin), request, console)
    if done is None:
        return True
    if as_json:
        Console(soft_wrap=True).print_json(done.frame.to_json(orient="records"))
    failed = done.frame[done.frame["status"] == results.FAILED]
    for row in failed.to_dict("records"):
        console.print(f"failed: {row[PROTOCOL]}, seed {row['seed']}: {row['error']}")
    if len(failed) < len(done.frame):
        _write(done, console, show=not as_json)
        plot_sweep(done.directory)
    console.print("Files: ", str(done.directory), sep="", soft_wrap=True, highlight=False)
    return done.is_complete


def comparison_console(*, stderr: bool = False) -> Console:
    """Return a console that is wide enough where no terminal says how wide it is."""
    console = Console(stderr=stderr)
    return console if console.is_terminal else Console(stderr=stderr, width=_WIDTH)


def comparison_of(
    table: dict[str, Any], origin: str, *, settings: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a sweep's table; the configuration of a run gets the default comparison's protocols.

    Cohorts of such a run were chosen for one protocol; here each protocol asks everybody. A local
    epsilon of the run, or one on the command line without an axis over it, is the axis.

    Args:
        table: A configuration or a sweep, with the settings applied.
        origin: Names it in errors.
        settings: ``KEY=VALUE`` changes of the command line.

    Raises:
        InputError: The sweep lists no protocols.
    """
    changed = {setting.partition("=")[0].strip() for setting in settings}
    if _table(table, SWEEP).get("protocols"):
        given = _EPSILON in changed and f"{SWEEP}.axes.{_EPSILON}" not in changed
    else:
        table = _with_protocols(table, origin)
        given = "local_epsilon" in _table(table, "privacy")
    return _with_epsilon_axis(table) if given else table


def _with_protocols(table: dict[str, Any], origin: str) -> dict[str, Any]:
    own = table.get(SWEEP, {})
    if not (isinstance(own, dict) and own.keys() <= {"seeds"}):
        raise InputError(
            f"{origin}: expected [sweep.protocols], the protocols to compare; for another sweep "
            "use fedhh sweep."
        )
    default = tomllib.loads(preset_text(DEFAULT_COMPARISON, SWEEPS))
    protocol = dict(table.get(PROTOCOL, {}))
    protocol.pop("clients_per_layer", None)
    kept = {key: part for key, part in table.items() if key != "baseline"}
    return {**kept, PROTOCOL: protocol, SWEEP: {**default[SWEEP], **own}}


def _table(table: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a table of a table; an empty one for other values, which are refused later."""
    inner = table.get(name)
    return inner if isinstance(inner, dict) else {}


def _with_epsilon_axis(table: dict[str, Any]) -> dict[str, Any]:
    """Return a sweep's table whose own local epsilon, a value or a list, is the axis over it."""
    table = copy.deepcopy(table)
    value = table["privacy"]["local_epsilon"]
    if isinstance(value, list):
        # A configuration has one; the table that is printed is of the largest, then.
        del table["privacy"]["local_epsilon"]
    axes = dict(by_path(_table(table[SWEEP], "axes")))
    axes[_EPSILON] = value if isinstance(value, list) else [value]
    table[SWEEP]["axes"] = axes
    return table


def _write(done: DoneSweep, console: Console, *, show: bool) -> None:
    """Write the table of all settings, and print that of one epsilon."""
    whole = make_table("comparison", done.directory)
    for kind, ending in (("markdown", "md"), ("csv", "csv")):
        write_text(done.directory / f"comparison.{ending}", whole.render(kind))
    if show:
        frame, description = results.read_results(done.directory)
        frame = results.with_server_seconds(frame, done.directory)
        print_table(console, _at_one_epsilon(frame, description, done))


def _at_one_epsilon(frame: pd.DataFrame, description: dict[str, Any], done: DoneSweep) -> TextTable:
    """Return the table at the configuration's own epsilon, or else the largest one."""
    if _EPSILON not in frame or frame[_EPSILON].nunique() == 1:
        return comparison_table(frame, description)
    own = done.base.privacy.local_epsilon
    epsilon = own if (frame[_EPSILON] == own).any() else frame[_EPSILON].max()
    table = comparison_table(
        frame[frame[_EPSILON] == epsilon],
        {**description, "axes": [path for path in description["axes"] if path != _EPSILON]},
    )
    note = f"Local epsilon {epsilon:g} per contribution; comparison.md has the others. {table.note}"
    return replace(table, note=note)
