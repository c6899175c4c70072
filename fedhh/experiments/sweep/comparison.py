"""Comparisons: sweeps over protocols, made of any run's or sweep's file."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Sequence
from typing import Any

from fedhh.experiments.config.built_in import SWEEPS, preset_text
from fedhh.experiments.config.labels import protocol_labels
from fedhh.experiments.config.load import BASELINE, listed_baselines
from fedhh.experiments.config.section import (
    CONTRIBUTED,
    DEFAULT_PROTOCOL,
    SHARED_SETTINGS,
    section_class,
)
from fedhh.experiments.sweep.axes import PROTOCOL, SWEEP, by_path
from fedhh.experiments.sweep.central_target import TARGETS, target_named
from fedhh.experiments.sweep.plan import listed_protocol
from fedhh.experiments.sweep.totals import COHORT
from fedhh.server.registry import protocol_class, protocol_names
from fedhh.validation import InputError, did_you_mean, shown

PUBLISHED = "sfp-vs-triehh-quick"
"""The sweep whose protocols have the settings that were published."""

BEST = "best-settings"
"""The sweep whose protocols have their best settings, and those of them that a run without
baselines is compared by."""
_OF_BEST = ("LDP TrieHH", "Adaptive TrieHH", "SFP")

_EPSILON = "privacy.local_epsilon"
_PROTOCOLS, _DEPTH = "protocols", "depth"
_COHORT = f"{PROTOCOL}.{COHORT}"


def comparison_of(
    table: dict[str, Any],
    origin: str,
    *,
    settings: Sequence[str] = (),
    as_published: bool = False,
) -> dict[str, Any]:
    """Return a sweep's table; the configuration of a run compares what the run does.

    That is its protocol and its baselines. Without baselines it gets three protocols of `BEST`:
    their best settings, and one rule for the words that they return. Cohorts of such a run
    were chosen for one protocol; here each protocol asks everybody. An epsilon of the run, or
    one on the command line without an axis over it, is the axis.

    Args:
        table: A configuration or a sweep, with the settings applied.
        origin: Names it in errors.
        settings: ``KEY=VALUE`` changes of the command line.
        as_published: Whether a run's configuration gets the protocols of `PUBLISHED` instead.
    """
    changed = {setting.partition("=")[0].strip() for setting in settings}
    if _table(table, SWEEP).get(_PROTOCOLS):
        if as_published:
            raise InputError(
                f"Expected --as-published with a run's configuration, got {origin}, which lists "
                "its protocols; leave it out."
            )
        given = _EPSILON in changed and f"{SWEEP}.axes.{_EPSILON}" not in changed
        if changed.isdisjoint(f"privacy.{axis}" for axis in TARGETS) and not given:
            return table
    else:
        table = _with_protocols(
            table, origin, cohort_is_asked=_COHORT in changed, as_published=as_published
        )
        given = "local_epsilon" in _table(table, "privacy")
    return _with_epsilon_axis(table) if given else _with_target_axis(table)


def _with_protocols(
    table: dict[str, Any], origin: str, *, cohort_is_asked: bool, as_published: bool
) -> dict[str, Any]:
    own = table.get(SWEEP, {})
    if not (isinstance(own, dict) and own.keys() <= {"seeds"}):
        raise InputError(
            f"{origin}: expected [sweep.protocols], the protocols to compare; for another sweep "
            "use fedhh sweep."
        )
    published = tomllib.loads(preset_text(PUBLISHED, SWEEPS))[SWEEP]
    protocol = dict(table.get(PROTOCOL, {}))
    if not cohort_is_asked:
        protocol.pop(COHORT, None)
    title = published["title"]
    own_name = {"name": protocol.get("name", DEFAULT_PROTOCOL)}
    baselines = listed_baselines(table.get(BASELINE, "none"))
    dropped = {COHORT, *CONTRIBUTED, *(key for key in SHARED_SETTINGS if key in protocol)}
    if as_published:
        listed, title = _published_for(protocol), f"{title}, as published"
        # Samplers are what two of them differ in.
        dropped = {"max_items", "pad"}
    elif baselines:
        listed, dropped = _labelled([own_name, *baselines], protocol), set()
    else:
        best = tomllib.loads(preset_text(BEST, SWEEPS))
        settings = best[SWEEP][_PROTOCOLS]
        listed = {label: {**best[PROTOCOL], **settings[label]} for label in _OF_BEST}
    # What clients contribute and the longest word are the run's, and so is the rule it states.
    said = {_DEPTH: protocol[_DEPTH]} if _DEPTH in protocol and dropped else {}
    listed = {
        label: {key: x for key, x in each.items() if key not in dropped}
        | {key: x for key, x in said.items() if key in section_class(each["name"]).model_fields}
        for label, each in listed.items()
    }
    kept = {key: part for key, part in table.items() if key != BASELINE}
    sweep = {**published, "title": title, _PROTOCOLS: listed, **own}
    return {**kept, PROTOCOL: protocol, SWEEP: sweep}


def _published_for(protocol: dict[str, Any]) -> dict[str, Any]:
    """Return the published protocols; those that a run's own one stands for are changes to it."""
    published = tomllib.loads(preset_text(PUBLISHED, SWEEPS))
    listed: dict[str, Any] = published[SWEEP][_PROTOCOLS]
    if protocol.get("name", DEFAULT_PROTOCOL) == DEFAULT_PROTOCOL:
        return listed
    return {
        label: {**(published[PROTOCOL] if each["name"] == DEFAULT_PROTOCOL else {}), **each}
        for label, each in listed.items()
    }


def _labelled(tables: Sequence[Any], base: dict[str, Any]) -> dict[str, Any]:
    """Return protocols' tables, which change a base's, by their labels."""
    whole = [listed_protocol({PROTOCOL: base}, each) for each in tables]
    titles = [protocol_class(each["name"]).title for each in whole]
    labels = protocol_labels(titles, [each.get("participation", "one-round") for each in whole])
    return dict(zip(labels, tables, strict=True))


def with_chosen(table: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Return a sweep's table with some protocols of its list, in the order asked for.

    Args:
        table: A sweep with `[sweep.protocols]`.
        names: Each a label of the list, or the name of a protocol: the first of the list that is
            this protocol, or with its default settings if the list has none.
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
        same = (
            (label, each)
            for label, each in listed.items()
            if isinstance(each, dict) and each.get("name", own) == name
        )
        label, each = next(same, (protocol_class(name).title, {"name": name}))
        chosen[label] = each
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


def _with_target_axis(table: dict[str, Any]) -> dict[str, Any]:
    """Return a sweep's table whose own central epsilon is the axis in place of all over epsilons.

    A table without one stays as it is.
    """
    privacy = _table(table, "privacy")
    own = {axis: privacy[axis] for axis in TARGETS if axis in privacy}
    if not own:
        return table
    table = {**table, "privacy": {key: x for key, x in privacy.items() if key not in own}}
    return _with_axes(table, {axis: x if isinstance(x, list) else [x] for axis, x in own.items()})


def _with_axes(table: dict[str, Any], targets: dict[str, Any]) -> dict[str, Any]:
    """Return a sweep's table with axes over central epsilons in place of all over epsilons."""
    table = copy.deepcopy(table)
    axes = dict(by_path(_table(table[SWEEP], "axes")))
    kept = {path: values for path, values in axes.items() if path not in {_EPSILON, *TARGETS}}
    table[SWEEP]["axes"] = {**kept, **targets}
    return table


def comparison_at(table: dict[str, Any], at: str) -> dict[str, Any]:
    """Return a sweep's table with an axis over one central epsilon in place of all over epsilons.

    Args:
        table: A sweep.
        at: ``UNIT-central-epsilon=E``.
    """
    axis, epsilon = target_named(at)
    return _with_axes(table, {axis: [epsilon]})
