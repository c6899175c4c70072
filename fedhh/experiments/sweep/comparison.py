"""Comparisons: sweeps over protocols, made of any run's or sweep's file."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Sequence
from typing import Any

from fedhh.experiments.config.built_in import SWEEPS, preset_text
from fedhh.experiments.config.section import DEFAULT_PROTOCOL
from fedhh.experiments.sweep.axes import PROTOCOL, SWEEP, by_path
from fedhh.experiments.sweep.central_target import TARGETS, target_named
from fedhh.experiments.sweep.totals import COHORT
from fedhh.server.registry import protocol_class, protocol_names
from fedhh.validation import InputError, did_you_mean, shown

DEFAULT_COMPARISON = "sfp-vs-triehh-quick"

_EPSILON = "privacy.local_epsilon"
_PROTOCOLS, _DEPTH = "protocols", "depth"
_COHORT = f"{PROTOCOL}.{COHORT}"


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
    """
    changed = {setting.partition("=")[0].strip() for setting in settings}
    if _table(table, SWEEP).get(_PROTOCOLS):
        given = _EPSILON in changed and f"{SWEEP}.axes.{_EPSILON}" not in changed
    else:
        table = _with_protocols(table, origin, cohort_is_asked=_COHORT in changed)
        given = "local_epsilon" in _table(table, "privacy")
    return _with_epsilon_axis(table) if given else table


def _with_protocols(table: dict[str, Any], origin: str, *, cohort_is_asked: bool) -> dict[str, Any]:
    own = table.get(SWEEP, {})
    if not (isinstance(own, dict) and own.keys() <= {"seeds"}):
        raise InputError(
            f"{origin}: expected [sweep.protocols], the protocols to compare; for another sweep "
            "use fedhh sweep."
        )
    default = tomllib.loads(preset_text(DEFAULT_COMPARISON, SWEEPS))
    protocol = dict(table.get(PROTOCOL, {}))
    if not cohort_is_asked:
        protocol.pop(COHORT, None)
    kept = {key: part for key, part in table.items() if key != "baseline"}
    # The longest word is the run's, not that of the default comparison.
    longest = {_DEPTH: protocol[_DEPTH]} if _DEPTH in protocol else {}
    listed = {
        label: {key: value for key, value in each.items() if key != _DEPTH}
        | (longest if _DEPTH in each else {})
        for label, each in default[SWEEP][_PROTOCOLS].items()
    }
    return {**kept, PROTOCOL: protocol, SWEEP: {**default[SWEEP], _PROTOCOLS: listed, **own}}


def with_chosen(table: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a sweep's table with some protocols of its list, in the order asked for.

    Args:
        table: A sweep with `[sweep.protocols]`.
        names: Each a label of the list, or the name of a protocol: all of the list that are this
            protocol, or with its default settings if the list has none.
    """
    listed = _table(table[SWEEP], _PROTOCOLS)
    own = _table(table, PROTOCOL).get("name", DEFAULT_PROTOCOL)
    chosen: dict[str, Any] = {}
    for name in names:
        if name in listed:
            chosen[name] = listed[name]
            continue
        if ":" not in name and name not in protocol_names():
            labels = "; ".join(shown(label) for label in listed)
            raise InputError(
                f"Unknown protocol {shown(name)}{did_you_mean(name, protocol_names())} "
                f"Labels of the list: {labels}."
            )
        same = {
            label: each
            for label, each in listed.items()
            if isinstance(each, dict) and each.get("name", own) == name
        }
        chosen |= same or {protocol_class(name).title: {"name": name}}
    return {**table, SWEEP: {**table[SWEEP], _PROTOCOLS: chosen}}


def axes_of(table: dict[str, Any]) -> list[str]:
    """Return what varies in a comparison, as far as its table says it."""
    sweep = _table(table, SWEEP)
    linked = sweep.get("linked")
    each = linked if isinstance(linked, list) else []
    paths = [path for group in (_table(sweep, "axes"), *each) for path, _ in by_path(group)]
    return [PROTOCOL, *paths]


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


def comparison_at(table: dict[str, Any], at: str) -> dict[str, Any]:
    """Return a sweep's table with an axis over one central epsilon in place of all over epsilons.

    Args:
        table: A sweep.
        at: ``UNIT-central-epsilon=E``.
    """
    axis, epsilon = target_named(at)
    table = copy.deepcopy(table)
    axes = dict(by_path(_table(table[SWEEP], "axes")))
    kept = {path: values for path, values in axes.items() if path not in {_EPSILON, *TARGETS}}
    table[SWEEP]["axes"] = {**kept, axis: [epsilon]}
    return table
