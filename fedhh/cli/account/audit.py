"""`fedhh account audit`: a lower bound beside what is claimed, and a verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.account.options import SampleSeed
from fedhh.cli.options import Format, FormatOption, SettingsOption, TrustOption
from fedhh.validation import InputError

if TYPE_CHECKING:
    from fedhh.experiments.run.audit_verdict import AuditVerdict


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
    from fedhh.cli.console import print_json
    from fedhh.experiments.run.audit_verdict import audit_configured_run, audit_randomizer

    asked: dict[str, Any] = {
        "num_samples": samples,
        "confidence": confidence,
        "delta": delta,
        "seed": seed,
    }
    if run is not None:
        if any(given is not None for given in (local_epsilon, domain_size, oracle, reports)):
            raise InputError(
                "Expected --run without --local-epsilon, --domain-size, --oracle and --reports; "
                "change its settings with --set."
            )
        found = audit_configured_run(run, settings=settings or (), **asked)
    else:
        if settings:
            raise InputError("Expected --set only with --run, which it changes.")
        if local_epsilon is None or domain_size is None:
            missing = "--local-epsilon" if local_epsilon is None else "--domain-size"
            raise InputError(f"Expected {missing} to audit a randomizer (or --run to audit a run).")
        found = audit_randomizer(
            oracle or "ss",
            local_epsilon=local_epsilon,
            domain_size=domain_size,
            num_reports=reports,
            **asked,
        )
    if output_format is Format.JSON:
        print_json(found.to_dict())
    else:
        _print(found)
    if found.refuted:
        raise typer.Exit(1)


def _print(found: AuditVerdict) -> None:
    """Print what was audited, found and claimed, and the verdict; the last part in full."""
    from fedhh.cli.account.output import round_up, show_table
    from fedhh.cli.console import open_console, print_line
    from fedhh.cli.safe_text import safe_text
    from fedhh.experiments.study.text_table import TextTable

    content = found.to_dict()
    for name in ("upper_bounds", "parts", "verdict"):
        del content[name]
    rows = []
    for name, value in content.items():
        text = f"{value:.6g}" if isinstance(value, float) else str(value)
        rows.append((name.replace("_", " "), safe_text(text)))
    for key, bound in found.upper_bounds.items():
        text = "not applicable" if bound is None else round_up(bound)
        rows.append((f"upper bound, {key.replace('_', ' ')}", text))
    console = open_console()
    table = TextTable(
        title="audit: a lower bound by sampling, and what is claimed",
        columns=("what", "value"),
        rows=tuple(rows),
        note="",
        labels=2,
    )
    show_table(table, console=console, heads=False)
    for part in found.parts:
        row = part.to_dict()
        print_line(
            console,
            f"{part.audited}: at least {row['at_least']:.6g}, claimed {round_up(part.claim)}, "
            f"{row['verdict']} (so many samples can expose an epsilon of up to "
            f"{part.found.largest_detectable:.3g})",
        )
    end = f"refuted at confidence {found.confidence:g}" if found.refuted else "consistent"
    print_line(console, f"verdict: {end}")
