"""`fedhh audit randomizer`: a lower bound next to what is claimed of reports."""

from __future__ import annotations

from typing import Annotated

import typer

from fedhh.cli.account.options import Confidence, SampleSeed
from fedhh.cli.audit.devices import finish
from fedhh.cli.options import Format, FormatOption


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
    from fedhh.audit import audit_randomizer

    found = audit_randomizer(
        oracle,
        local_epsilon=local_epsilon,
        domain_size=domain_size,
        num_samples=samples,
        confidence=confidence,
        seed=seed,
    )
    finish(found, output_format)
