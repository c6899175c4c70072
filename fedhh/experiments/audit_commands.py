"""What `fedhh account audit` prints: a lower bound beside what is claimed."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from fedhh.accounting import AuditResult, NotApplicable, audit_oracle
from fedhh.clients.population import StoredPopulation
from fedhh.experiments.account_commands import BOUND_KEYS, bound_as_json, round_up
from fedhh.experiments.audit import audit_layer, audit_run
from fedhh.experiments.json_output import print_json
from fedhh.oracles import OracleSpec, make_oracle
from fedhh.random import Stream, generator
from fedhh.validation import InputError


def audit_command(
    *,
    oracle: str,
    local_epsilon: float | None,
    domain_size: int | None,
    samples: int,
    confidence: float,
    seed: int,
    num_reports: int | None,
    delta: float,
    as_json: bool,
) -> None:
    """Print a lower bound on the epsilon of one report, or of one layer's votes."""
    if local_epsilon is None or domain_size is None:
        missing = "--local-epsilon" if local_epsilon is None else "--domain-size"
        raise InputError(f"Expected {missing} to audit a randomizer (or --run to audit a run).")
    spec = OracleSpec(name=oracle, epsilon=local_epsilon)
    if num_reports is None:
        found = audit_oracle(
            make_oracle(spec, domain_size),
            num_samples=samples,
            rng=generator(seed, Stream.RANDOMIZER),
            confidence=confidence,
        )
        facts: dict[str, Any] = {"audited": f"one report of {oracle}"}
        upper_bounds: dict[str, float | None] = {"local": local_epsilon}
    else:
        # The bounds first: they know what range they hold in, and cost little.
        upper_bounds = {
            key: bound_as_json(
                name,
                source,
                local_epsilon=local_epsilon,
                num_reports=num_reports,
                delta=delta,
                domain_size=domain_size if oracle == "ss" else None,
            )["epsilon"]
            for key, (name, source) in BOUND_KEYS.items()
            if name != "blanket" or oracle == "ss"
        }
        found = audit_layer(
            spec,
            domain_size=domain_size,
            num_reports=num_reports,
            num_runs=samples,
            delta=delta,
            confidence=confidence,
            seed=seed,
        )
        facts = {"audited": f"the votes of one layer of {num_reports} reports of {oracle}"}
    _print(facts, found, upper_bounds, as_json=as_json)


def audit_run_command(
    run: str,
    settings: tuple[str, ...],
    *,
    samples: int,
    confidence: float,
    seed: int,
    delta: float,
    as_json: bool,
) -> None:
    """Print a lower bound on the central epsilon of a configured run, and what the run claims."""
    from fedhh.experiments.config import load_config, preset_names
    from fedhh.experiments.populations import build_population
    from fedhh.experiments.protocols import build_protocol, resolve_cohorts

    is_preset = run in preset_names()
    config = load_config(
        preset=run if is_preset else None,
        file=None if is_preset else Path(run),
        settings=("population.virtual=false", *settings),
    )
    population, _ = build_population(config.population, seed=config.seed)
    assert isinstance(population, StoredPopulation)
    protocol = build_protocol(resolve_cohorts(config, population.num_clients))
    audit = audit_run(
        protocol, population, num_runs=samples, delta=delta, confidence=confidence, seed=seed
    )
    facts = {
        "audited": f"layer {audit.layer} of {protocol.title} on {population.name}",
        "local_epsilon": protocol.contribution_epsilon,
        "reports": audit.num_reports,
        "domain_size": audit.domain_size,
        "neighbors": f"one client holds {audit.words[0]!r} or {audit.words[1]!r}",
    }
    upper_bounds = {
        each.method: None if isinstance(each.epsilon, NotApplicable) else each.epsilon
        for each in audit.claims
    }
    _print(facts, audit.found, upper_bounds, as_json=as_json)


def _print(
    facts: dict[str, Any],
    found: AuditResult,
    upper_bounds: dict[str, float | None],
    *,
    as_json: bool,
) -> None:
    """Print what was audited, what was found, and what is claimed."""
    content = {**facts, "unit": "item", "neighboring": "swap", **asdict(found)}
    content["at_least"] = content.pop("epsilon")
    if as_json:
        # JSON has no infinite numbers: no randomizer, or an event never seen under one input.
        estimate = found.estimate if math.isfinite(found.estimate) else "inf"
        shown = {key: "inf" if each == math.inf else each for key, each in upper_bounds.items()}
        print_json({**content, "estimate": estimate, "upper_bounds": shown})
        return
    table = Table(title="audit: a lower bound by sampling, and what is claimed", show_header=False)
    table.add_column("what", no_wrap=True)
    table.add_column("value", overflow="fold")
    for name, value in content.items():
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        table.add_row(name.replace("_", " "), text)
    for key, bound in upper_bounds.items():
        text = "not applicable" if bound is None else round_up(bound)
        table.add_row(f"upper bound, {key.replace('_', ' ')}", text)
    Console().print(table)
