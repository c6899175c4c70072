"""`fedhh account audit`: a lower bound beside what is claimed, and a verdict."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import SampleSeed
from fedhh.cli.options import Format, FormatOption, SettingsOption, TrustOption
from fedhh.validation import InputError, require_inside

if TYPE_CHECKING:
    from fedhh.cli.account.audit_verdict import Part
    from fedhh.oracles import OracleSpec

_LAYERS = 2_000


def audit(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: Annotated[
        float | None, typer.Option(help="Stated privacy of one report; not with --run.")
    ] = None,
    domain_size: Annotated[
        int | None, typer.Option(help="Values of the randomizer; not with --run.")
    ] = None,
    oracle: Annotated[str | None, typer.Option(help="The randomizer's key; ss if none.")] = None,
    reports: Annotated[
        int | None, typer.Option(help="Audit the votes of a layer of so many reports.")
    ] = None,
    run: Annotated[
        str | None, typer.Option(help="Audit a run's first layer that decides: preset or file.")
    ] = None,
    settings: SettingsOption = None,
    trust: TrustOption = False,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Messages, one-report tallies, and layers or runs with each of two data sets. If "
            "none: 1000000 messages, 20000 to 800000 tallies by the local epsilon (fewer where "
            "they are large), 2000 layers or runs."
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the verdict, all parts together.")] = 0.999,
    delta: Annotated[float, typer.Option(help="Central delta; for a layer or a run.")] = 1e-3,
    seed: SampleSeed = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bound, by sampling, on the epsilon that the code really gives; a verdict.

    Samples messages, the tallies of single reports as a run's workers make them, and with
    --reports or --run the votes of layers. Exit code 1 if a claim is refuted. By default some 5
    seconds at local epsilon 2, 15 at 8, 90 at 10 or with a million values, on a free core.

    Example: fedhh account audit --oracle ss --local-epsilon 2 --domain-size 20
    """
    as_json = output_format is Format.JSON
    if run is None:
        if settings:
            raise InputError("Expected --set only with --run, which it changes.")
        consistent = _audit_oracle(
            oracle=oracle or "ss",
            local_epsilon=local_epsilon,
            domain_size=domain_size,
            samples=samples,
            confidence=confidence,
            seed=seed,
            num_reports=reports,
            delta=delta,
            as_json=as_json,
        )
        if not consistent:
            raise typer.Exit(1)
        return
    if any(given is not None for given in (local_epsilon, domain_size, oracle, reports)):
        raise InputError(
            "Expected --run without --local-epsilon, --domain-size, --oracle and --reports; "
            "change its settings with --set."
        )
    consistent = _audit_run(
        run,
        tuple(settings or ()),
        samples=samples,
        confidence=confidence,
        seed=seed,
        delta=delta,
        as_json=as_json,
    )
    if not consistent:
        raise typer.Exit(1)


def _audit_oracle(
    *,
    oracle: str,
    local_epsilon: float | None,
    domain_size: int | None,
    samples: int | None,
    confidence: float,
    seed: int,
    num_reports: int | None,
    delta: float,
    as_json: bool,
) -> bool:
    """Print what audits of a randomizer, and of a layer's votes, find; return whether they agree.

    Returns:
        False if a claim was refuted.
    """
    from fedhh.accounting.oracle_audit import audit_oracle, messages_to_sample
    from fedhh.cli.account.audit_verdict import Part, print_audit
    from fedhh.cli.account.bounds import BOUND_KEYS, bound_as_json
    from fedhh.experiments.run.layer_audit import audit_layer
    from fedhh.oracles import OracleSpec, make_oracle
    from fedhh.random import Stream, generator

    if local_epsilon is None or domain_size is None:
        missing = "--local-epsilon" if local_epsilon is None else "--domain-size"
        raise InputError(f"Expected {missing} to audit a randomizer (or --run to audit a run).")
    spec = OracleSpec(name=oracle, epsilon=local_epsilon)
    require_inside(0, 1, confidence=confidence)
    upper_bounds: dict[str, float | None] = {"local": local_epsilon}
    layer_claim = math.inf
    if num_reports is not None:
        # The bounds first: they know what range they hold in, and cost little.
        bounds = {
            key: bound_as_json(
                name,
                local_epsilon=local_epsilon,
                num_reports=num_reports,
                delta=delta,
                domain_size=domain_size if oracle == "ss" else None,
            )
            for key, name in BOUND_KEYS.items()
            if name != "blanket" or oracle == "ss"
        }
        upper_bounds = {key: bound["epsilon"] for key, bound in bounds.items()}
        layer_claim = min(
            bound["epsilon"] for bound in bounds.values() if bound["applicable"] and bound["proven"]
        )
    # What is stated of all parts together is wrong with the stated probability at most.
    each = 1 - (1 - confidence) / (2 if num_reports is None else 3)
    randomizer = make_oracle(spec, domain_size)
    parts = [
        Part(
            audited=f"one report of {oracle}, read as a message",
            found=audit_oracle(
                randomizer,
                num_samples=messages_to_sample(randomizer) if samples is None else samples,
                rng=generator(seed, Stream.RANDOMIZER),
                confidence=each,
            ),
            claim=local_epsilon,
        ),
        _audit_of_votes(spec, domain_size=domain_size, samples=samples, confidence=each, seed=seed),
    ]
    if num_reports is not None:
        parts.append(
            Part(
                audited=f"the votes of one layer of {num_reports} reports of {oracle}",
                found=audit_layer(
                    spec,
                    domain_size=domain_size,
                    num_reports=num_reports,
                    num_runs=_LAYERS if samples is None else samples,
                    delta=delta,
                    confidence=each,
                    seed=seed,
                ),
                claim=layer_claim,
            )
        )
    return print_audit({}, parts, upper_bounds, confidence=confidence, as_json=as_json)


def _audit_of_votes(
    spec: OracleSpec, *, domain_size: int, samples: int | None, confidence: float, seed: int
) -> Part:
    """Return the audit of one report as a run makes it."""
    from fedhh.cli.account.audit_verdict import Part
    from fedhh.experiments.run.layer_audit import audit_votes, votes_to_sample

    if samples is None:
        samples = votes_to_sample(spec.epsilon, domain_size)
    found = audit_votes(
        spec, domain_size=domain_size, num_samples=samples, confidence=confidence, seed=seed
    )
    return Part(
        audited=f"one report of {spec.name}, through a worker's tally",
        found=found,
        claim=spec.epsilon,
    )


def _audit_run(
    run: str,
    settings: tuple[str, ...],
    *,
    samples: int | None,
    confidence: float,
    seed: int,
    delta: float,
    as_json: bool,
) -> bool:
    """Print what audits of a configured run find, and what it claims; return whether they agree."""
    from fedhh.accounting import NotApplicable
    from fedhh.cli.account.audit_verdict import Part, print_audit
    from fedhh.clients.populations.population import StoredPopulation
    from fedhh.experiments.config.built_in import preset_names
    from fedhh.experiments.config.population import build_population
    from fedhh.experiments.config.schema import load_config
    from fedhh.experiments.run.layer_audit import audit_run
    from fedhh.experiments.run.run import check_config

    is_preset = run in preset_names()
    config = load_config(
        preset=run if is_preset else None,
        file=None if is_preset else Path(run),
        settings=("population.virtual=false", *settings),
    )
    require_inside(0, 1, confidence=confidence)
    population, _ = build_population(config.population, seed=config.seed)
    assert isinstance(population, StoredPopulation)
    _, protocol = check_config(config, population)
    each = 1 - (1 - confidence) / 2
    audit = audit_run(
        protocol,
        population,
        num_runs=_LAYERS if samples is None else samples,
        delta=delta,
        confidence=each,
        seed=seed,
    )
    facts = {
        "local_epsilon": protocol.mechanism.local_epsilon,
        "reports": audit.num_reports,
        "domain_size": audit.domain_size,
        "neighbors": f"one client holds {audit.words[0]!r} or {audit.words[1]!r}",
    }
    upper_bounds = {
        claim.method: None if isinstance(claim.epsilon, NotApplicable) else claim.epsilon
        for claim in audit.claims
    }
    best = [claim.epsilon for claim in audit.claims if claim.best]
    parts = [
        _audit_of_votes(
            audit.oracle,
            domain_size=audit.domain_size,
            samples=samples,
            confidence=each,
            seed=seed,
        ),
        Part(
            audited=f"layer {audit.layer} of {protocol.title} on {population.name}",
            found=audit.found,
            claim=min(each for each in best if not isinstance(each, NotApplicable)),
        ),
    ]
    return print_audit(facts, parts, upper_bounds, confidence=confidence, as_json=as_json)
