"""`fedhh audit randomizer`, `run`: a lower bound next to what is claimed of reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import Confidence, SampleSeed
from fedhh.cli.options import Format, FormatOption, SettingsOption, TrustOption

if TYPE_CHECKING:
    from fedhh.experiments.run.audit_verdict import AuditVerdict
    from fedhh.experiments.study.parts import Part

Samples = Annotated[
    int | None,
    typer.Option(
        help="Messages, one-report tallies, and layers or runs with each of two data sets. If "
        "none: 1000000 messages, 20000 to 800000 tallies by the local epsilon (fewer where "
        "they are large), 2000 layers or runs."
    ),
]
LayerDelta = Annotated[float, typer.Option(help="Central delta; for a layer or a run.")]


def randomizer(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: Annotated[float, typer.Option(help="Stated privacy of one report.")],
    domain_size: Annotated[int, typer.Option(help="Values of the randomizer.")],
    oracle: Annotated[str, typer.Option(help="The randomizer's key.")] = "ss",
    reports: Annotated[
        int | None, typer.Option(help="Audit the votes of a layer of so many reports, too.")
    ] = None,
    samples: Samples = None,
    confidence: Confidence = 0.999,
    delta: LayerDelta = 1e-3,
    seed: SampleSeed = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bound, by sampling, on the epsilon that a randomizer really gives; a verdict.

    Samples messages, the tallies of single reports as a run's workers make them, and with
    --reports the votes of layers. Exit code 1 if a claim is refuted. By default some 5 seconds at
    local epsilon 2, 15 at 8, 90 at 10 or with a million values, on a free core.

    Example: fedhh audit randomizer --oracle ss --local-epsilon 2 --domain-size 20
    """
    from fedhh.experiments.run.audit_verdict import audit_randomizer

    found = audit_randomizer(
        oracle,
        local_epsilon=local_epsilon,
        domain_size=domain_size,
        num_reports=reports,
        num_samples=samples,
        confidence=confidence,
        delta=delta,
        seed=seed,
    )
    _print(found, output_format)


def run(  # noqa: PLR0917 - typer makes these options, only the source is positional
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="A run's preset or TOML file.")],
    settings: SettingsOption = None,
    trust: TrustOption = False,
    samples: Samples = None,
    confidence: Confidence = 0.999,
    delta: LayerDelta = 1e-3,
    seed: SampleSeed = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bound, by sampling, on the epsilon of a run's first layer that decides; a verdict.

    Samples messages, the tallies of single reports, and the votes of layers. Exit code 1 if a
    claim is refuted.

    Example: fedhh audit run small --samples 400
    """
    from fedhh.experiments.run.audit_verdict import audit_configured_run

    found = audit_configured_run(
        source,
        settings=settings or (),
        num_samples=samples,
        confidence=confidence,
        delta=delta,
        seed=seed,
    )
    _print(found, output_format)


def _print(found: AuditVerdict, how: Format) -> None:
    from fedhh.cli.text_tables import print_result

    print_result(how, found.to_dict, _parts(found))
    if found.refuted:
        raise typer.Exit(1)


def _parts(found: AuditVerdict) -> Iterator[Part]:
    """Yield what was audited, found and claimed, and the verdict; the last part in full."""
    from fedhh.experiments.study.parts import Line
    from fedhh.experiments.study.text_table import TextTable, round_up

    rows = []
    for name, value in found.to_dict().items():
        if name not in {"upper_bounds", "parts", "verdict"}:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            rows.append((name.replace("_", " "), text))
    for key, bound in found.upper_bounds.items():
        text = "not applicable" if bound is None else round_up(bound)
        rows.append((f"upper bound, {key.replace('_', ' ')}", text))
    yield TextTable(
        title="audit: a lower bound by sampling, and what is claimed",
        columns=("what", "value"),
        rows=tuple(rows),
        note="",
        labels=2,
    )
    for part in found.parts:
        row = part.to_dict()
        yield Line(
            f"{part.audited}: at least {row['at_least']:.6g}, claimed {round_up(part.claim)}, "
            f"{row['verdict']} (so many samples can expose an epsilon of up to "
            f"{part.found.largest_detectable:.3g})",
            is_whole=True,
        )
    end = f"refuted at confidence {found.confidence:g}" if found.refuted else "consistent"
    yield Line(f"verdict: {end}", is_whole=True)
