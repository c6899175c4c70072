"""`fedhh account audit-life`: what devices gave away over their lives, beside what is stated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedhh.cli.account.options import (
    Bits,
    Buckets,
    ChanceFromOne,
    ChanceFromZero,
    Drawn,
    Gamma,
    Hashes,
    Plot,
    RulesPreset,
    SampleSeed,
)
from fedhh.cli.options import Format, FormatOption


def audit_life(  # noqa: PLR0917 - typer makes these options, none is positional
    preset: RulesPreset = None,
    use_case: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=EPSILON:RECORDS",
            help="Rules of your own; repeatable. In full "
            "NAME=EPSILON:RECORDS/DAYS:ROLLOVER:LIFETIME, as in fedhh account ledger.",
        ),
    ] = None,
    pipeline: Annotated[
        str | None,
        typer.Option(help="Rules of a pipeline: preset or file; its devices wait as it says."),
    ] = None,
    transcript: Annotated[
        Path | None,
        typer.Option(
            help="A log of what devices sent: columns device, day, use_case and perhaps records; "
            "Parquet, CSV or JSON Lines. Without it, devices are simulated."
        ),
    ] = None,
    answer: Annotated[
        str | None,
        typer.Option(help="Audit a memoised answer: rappor, one-bit-mean or dbitflip."),
    ] = None,
    local_epsilon: Annotated[
        float | None, typer.Option(help="With --answer: of all reports about one value.")
    ] = None,
    bits: Bits = None,
    hashes: Hashes = None,
    p: ChanceFromZero = None,
    q: ChanceFromOne = None,
    gamma: Gamma = None,
    buckets: Buckets = None,
    drawn: Drawn = None,
    days: Annotated[
        int | None, typer.Option(help="Days of a life; 30 if not said, 60 with --answer.")
    ] = None,
    devices: Annotated[
        int | None,
        typer.Option(help="That live each life; 20000 if not said, 3000 with --answer."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Of the verdict, all parts together.")] = 0.99,
    seed: SampleSeed = 0,
    plot: Plot = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bounds on what devices gave away in their lives; a verdict.

    How many records were sent is held against every window of the caps, and how many the reports
    show against how many are stated, at a smaller epsilon. With --answer, all reports of a device
    are held against what is stated of its permanent responses. Exit code 1 if a claim is refuted.
    Some 5 seconds for a use case, 20 for an answer.

    Example: fedhh account audit-life --use-case emoji=4:1 --days 30
    """
    from fedhh.cli.account.life_audit_request import LifeAuditRequest, audit_lives
    from fedhh.cli.account.life_audit_tables import plot_life_audit, print_life_audit
    from fedhh.cli.console import print_written
    from fedhh.validation import InputError

    if plot is not None:
        from fedhh.experiments.report.account_figures import check_figure

        check_figure(plot)
        if transcript is not None or preset not in {None, "apple"}:
            raise InputError("Expected --plot only where reports are read: with simulated devices.")
    verdict = audit_lives(
        LifeAuditRequest(
            preset=preset,
            use_cases=tuple(use_case or ()),
            pipeline=pipeline,
            transcript=transcript,
            answer=answer,
            local_epsilon=local_epsilon,
            given={
                "bits": bits,
                "hashes": hashes,
                "p": p,
                "q": q,
                "gamma": gamma,
                "buckets": buckets,
                "drawn": drawn,
            },
            days=days,
            devices=devices,
            confidence=confidence,
            seed=seed,
        )
    )
    if plot is not None:
        plot_life_audit(plot, verdict)
    print_life_audit(verdict, as_json=output_format is Format.JSON)
    if plot is not None and output_format is Format.TABLE:
        print_written(plot)
    if verdict.refuted:
        raise typer.Exit(1)
