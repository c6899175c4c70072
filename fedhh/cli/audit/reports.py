"""`fedhh audit randomizer`: a lower bound next to what is claimed of reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from fedhh.cli.account.options import Confidence, SampleSeed
from fedhh.cli.options import Format, FormatOption

if TYPE_CHECKING:
    from fedhh.experiments.run.audit_verdict import AuditVerdict
    from fedhh.experiments.study.parts import Part


def randomizer(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: Annotated[float, typer.Option(help="Stated privacy of one report.")],
    domain_size: Annotated[int, typer.Option(help="Values of the randomizer.")],
    oracle: Annotated[str, typer.Option(help="The randomizer's key.")] = "ss",
    samples: Annotated[
        int | None,
        typer.Option(help="Reports; if none, 1000000, and fewer where they are large."),
    ] = None,
    confidence: Confidence = 0.999,
    seed: SampleSeed = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bound, by sampling, on the epsilon that a randomizer really gives; a verdict.

    Samples reports, read as messages. Exit code 1 if the stated epsilon is refuted.

    Example: fedhh audit randomizer --oracle ss --local-epsilon 2 --domain-size 20
    """
    from fedhh.cli.text_tables import print_result
    from fedhh.experiments.run.audit_verdict import audit_randomizer

    found = audit_randomizer(
        oracle,
        local_epsilon=local_epsilon,
        domain_size=domain_size,
        num_samples=samples,
        confidence=confidence,
        seed=seed,
    )
    print_result(output_format, found.to_dict, _parts(found))
    if found.refuted:
        raise typer.Exit(1)


def _parts(found: AuditVerdict) -> Iterator[Part]:
    """Yield what was audited, found and claimed, and the verdict."""
    from fedhh.experiments.study.parts import Line
    from fedhh.experiments.study.text_table import TextTable, round_up

    rows = []
    for name, value in found.to_dict().items():
        if name not in {"claimed", "verdict"}:
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            rows.append((name.replace("_", " "), text))
    yield TextTable(
        title="audit: a lower bound by sampling, and what is claimed",
        columns=("what", "value"),
        rows=(*rows, ("claimed", round_up(found.claim))),
        note="",
        labels=2,
    )
    yield Line(
        f"{found.audited}: at least {found.found.epsilon:.6g}, claimed {round_up(found.claim)} (so "
        f"many samples can expose an epsilon of up to {found.found.largest_detectable:.3g})",
        is_whole=True,
    )
    end = f" at confidence {found.confidence:g}" if found.refuted else ""
    yield Line(f"verdict: {found.verdict}{end}", is_whole=True)
