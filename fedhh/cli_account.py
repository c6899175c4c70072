"""The commands of `fedhh account`: words parsed, the package called, no logic."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli_options import Format, FormatOption
from fedhh.validation import InputError

account = typer.Typer(help="State privacy, without running anything.", no_args_is_help=True)

LocalEpsilon = Annotated[float, typer.Option(help="Privacy of one report, 0.1 to 16.")]
Reports = Annotated[int, typer.Option(help="Reports shuffled together in one layer.")]
Delta = Annotated[float, typer.Option(help="Central delta, 1e-14 to 0.1.")]
DomainSize = Annotated[
    int | None, typer.Option(help="Values of Subset Selection, the dummy included.")
]


@account.command("shuffle")
def account_shuffle(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: LocalEpsilon,
    reports: Reports,
    delta: Delta = 1e-10,
    oracle: Annotated[str, typer.Option(help="ss, or any for any randomizer.")] = "any",
    domain_size: DomainSize = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the bounds: PNG, PDF or SVG.")] = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Central epsilon of one shuffle, item level, by every bound.

    Example: fedhh account shuffle --local-epsilon 10 --reports 30000000 --oracle ss
    --domain-size 1000001
    """
    from fedhh.experiments.account_commands import shuffle_command

    shuffle_command(
        local_epsilon=local_epsilon,
        num_reports=reports,
        delta=delta,
        oracle=oracle,
        domain_size=domain_size,
        plot=plot,
        as_json=output_format is Format.JSON,
    )


@account.command("user")
def account_user(  # noqa: PLR0917
    local_epsilon: LocalEpsilon,
    clients: Annotated[int, typer.Option(help="Clients in one cohort.")],
    max_items: Annotated[int, typer.Option(help="Contributions per client, exactly so many.")],
    delta: Delta = 1e-10,
    domain_size: DomainSize = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Central epsilon of all contributions of a client.

    Example: fedhh account user --local-epsilon 10 --clients 500000 --max-items 60
    """
    from fedhh.experiments.account_commands import user_command

    user_command(
        local_epsilon=local_epsilon,
        num_clients=clients,
        max_items=max_items,
        delta=delta,
        domain_size=domain_size,
        as_json=output_format is Format.JSON,
    )


@account.command("anonymity")
def account_anonymity(  # noqa: PLR0917
    local_epsilon: LocalEpsilon,
    reports: Reports,
    eta_max: Annotated[int, typer.Option(help="Prefixes that a layer keeps.")],
    alphabet_size: Annotated[int, typer.Option(help="Symbols, the end symbol included.")],
    alpha: Annotated[float, typer.Option(help="Probability that a rare word stays unseen.")] = 0.95,
    passes: Annotated[int, typer.Option(help="Passes in which a word may surface.")] = 1,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Approximate k-anonymity of a layer, as printed in the paper and corrected.

    Example: fedhh account anonymity --local-epsilon 10 --reports 30000000 --eta-max 10000
    --alphabet-size 100
    """
    from fedhh.experiments.account_commands import anonymity_command

    anonymity_command(
        local_epsilon=local_epsilon,
        num_reports=reports,
        eta_max=eta_max,
        alphabet_size=alphabet_size,
        alpha=alpha,
        passes=passes,
        as_json=output_format is Format.JSON,
    )


@account.command("plan")
def account_plan(  # noqa: PLR0917
    central_epsilon: Annotated[float, typer.Option(help="Target, item level.")],
    delta: Delta = 1e-10,
    local_epsilon: Annotated[
        float | None, typer.Option(help="Given this, how many reports?")
    ] = None,
    reports: Annotated[int | None, typer.Option(help="Given these, which local epsilon?")] = None,
    max_items: Annotated[int, typer.Option(help="Contributions per client.")] = 1,
    domain_size: DomainSize = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Fewest reports per layer, or largest local epsilon, for a central target.

    Example: fedhh account plan --local-epsilon 6 --central-epsilon 1
    """
    from fedhh.experiments.account_commands import plan_command

    plan_command(
        central_epsilon=central_epsilon,
        delta=delta,
        local_epsilon=local_epsilon,
        num_reports=reports,
        max_items=max_items,
        domain_size=domain_size,
        as_json=output_format is Format.JSON,
    )


@account.command("cms-variance")
def account_cms_variance(  # noqa: PLR0917
    epsilon: Annotated[float, typer.Option(help="Privacy of one report.")] = 2.0,
    reports: Annotated[int, typer.Option(help="Reports in the sketch.")] = 100_000_000,
    values: Annotated[int, typer.Option(help="Values, held by Zipf's law: 1 / rank.")] = 100_000,
    rank: Annotated[int, typer.Option(help="Rank of the value whose count is meant.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the simulated sketches.")] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw them: PNG, PDF or SVG.")] = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Standard deviation of Count Mean Sketch by its size, and two simulated sketches.

    Example: fedhh account cms-variance --epsilon 2 --plot cms.png
    """
    from fedhh.experiments.sketch_commands import cms_variance_command

    cms_variance_command(
        epsilon=epsilon,
        num_reports=reports,
        num_values=values,
        rank=rank,
        seed=seed,
        plot=plot,
        as_json=output_format is Format.JSON,
    )


@account.command("audit")
def account_audit(  # noqa: PLR0917
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
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change one key of --run; repeatable."),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Per input: reports (200000 if none), layers or runs (2000 if none)."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the lower bound.")] = 0.99,
    delta: Annotated[float, typer.Option(help="Central delta; for a layer or a run.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bound, by sampling, on the epsilon that the code really gives.

    Example: fedhh account audit --oracle ss --local-epsilon 2 --domain-size 20
    """
    from fedhh.experiments.audit_commands import audit_command, audit_run_command

    as_json = output_format is Format.JSON
    if run is None:
        if settings:
            raise InputError("Expected --set only with --run, which it changes.")
        if samples is None:
            samples = 200_000 if reports is None else 2_000
        audit_command(
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
        return
    if any(given is not None for given in (local_epsilon, domain_size, oracle, reports)):
        raise InputError(
            "Expected --run without --local-epsilon, --domain-size, --oracle and --reports; "
            "change its settings with --set."
        )
    audit_run_command(
        run,
        tuple(settings or ()),
        samples=2_000 if samples is None else samples,
        confidence=confidence,
        seed=seed,
        delta=delta,
        as_json=as_json,
    )
