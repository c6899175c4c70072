"""`fedhh audit`: lower bounds from running code next to what is claimed, and verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fedhh.cli.account.options import (
    Bits,
    Buckets,
    ChanceFromOne,
    ChanceFromZero,
    Confidence,
    Drawn,
    Gamma,
    Hashes,
    RulesOption,
    SampleSeed,
    UseCaseOption,
    asked_of,
    given,
    named,
    settings_given,
)
from fedhh.cli.options import FigureOption, Format, FormatOption
from fedhh.validation import InputError, require_choice

if TYPE_CHECKING:
    from fedhh.audit import Verdict
    from fedhh.longitudinal.ledger import Rules

audit = typer.Typer(
    help="Lower bounds on epsilon from running code, next to what is claimed; a verdict.\n\n"
    "Example: fedhh audit randomizer --oracle ss --local-epsilon 2 --domain-size 20",
    no_args_is_help=True,
)

PipelineOption = Annotated[
    str | None,
    typer.Option(
        metavar="SOURCE", help="Rules of a pipeline: preset or file; its devices wait as it says."
    ),
]


@audit.command()
def randomizer(  # noqa: PLR0917 - typer makes these options, none is positional
    local_epsilon: Annotated[float, typer.Option(help="Stated privacy of one report.")],
    domain_size: Annotated[int, typer.Option(help="Values of the randomizer.")],
    oracle: Annotated[str, typer.Option(help="The randomizer's key.")] = "ss",
    num_samples: Annotated[
        int | None,
        typer.Option(
            "--samples", help="Reports; if none, 1000000, and fewer where they are large."
        ),
    ] = None,
    confidence: Confidence = 0.999,
    seed: SampleSeed = 0,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bound, by sampling, on the epsilon that a randomizer really gives; a verdict.

    Samples reports, read as messages. Exit code 1 if the stated epsilon is refuted.

    Example: fedhh audit randomizer --oracle ss --local-epsilon 2 --domain-size 20
    """
    asked = asked_of(locals())
    from fedhh.audit import audit_randomizer

    _finish(audit_randomizer(**asked), output_format)


@audit.command()
def device(  # noqa: PLR0917 - typer makes these options, none is positional
    rules: RulesOption = None,
    use_case: UseCaseOption = None,
    pipeline: PipelineOption = None,
    answer: Annotated[
        str | None, typer.Option(help="Audit a memoized answer: rappor, one-bit-mean or dbitflip.")
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
        int | None, typer.Option(help="Days of a history; 30 if not said, 60 with --answer.")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(help="Per history; 20000 if not said, 3000 with --answer.")
    ] = None,
    confidence: Confidence = 0.99,
    seed: SampleSeed = 0,
    figure: FigureOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Lower bounds on what simulated devices gave away over time; a verdict.

    How many records were sent is held against every window of the caps, and how many the reports
    show against how many are stated, at a smaller epsilon. With --answer, all reports of a device
    are held against what is stated of its permanent responses. Exit code 1 if a claim is refuted.
    Some 5 seconds for a use case, 20 for an answer.

    Example: fedhh audit device --use-case emoji=4:1 --days 30
    """
    from fedhh.audit import audit_budget_manager, audit_devices, audit_memo
    from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS

    if figure is not None and rules not in {None, "apple"}:
        raise InputError("Expected --figure only where reports are read: with simulated devices.")
    settings = given(bits=bits, hashes=hashes, p=p, q=q, gamma=gamma, buckets=buckets, drawn=drawn)
    asked = {**given(num_days=days, num_devices=devices), "confidence": confidence, "seed": seed}
    if answer is not None:
        if rules or use_case or pipeline:
            raise InputError(
                "Expected --answer without --rules, --use-case and --pipeline: it has no caps."
            )
        if local_epsilon is None:
            raise InputError("Expected --local-epsilon with --answer.")
        settings = settings_given(answer, **settings)
        verdict = audit_memo(answer, local_epsilon=local_epsilon, **asked, **settings)
        return _finish(verdict, output_format, figure)
    for option in given(local_epsilon=local_epsilon, **settings):
        raise InputError(f"Expected {named(option)} only with --answer.")
    stated, waiting = _rules(rules, use_case or [], pipeline, also=", --answer")
    if rules is None or rules not in CONFIGURATIONS:
        return _finish(audit_devices(stated, waiting=waiting, **asked), output_format, figure)
    if devices is not None:
        raise InputError("Expected no --devices with an audited system, whose devices are alike.")
    del asked["confidence"]
    return _finish(audit_budget_manager(rules, **asked), output_format)


@audit.command()
def log(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="What devices sent: columns device, day, use_case and perhaps records; Parquet, "
            "CSV or JSON Lines.",
        ),
    ],
    rules: RulesOption = None,
    use_case: UseCaseOption = None,
    pipeline: PipelineOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """Whether devices kept to their caps, by a log of what they sent; a verdict.

    How many records were sent is held against every window of the caps. Exit code 1 if a device
    sent more.

    Example: fedhh audit log sent.csv --use-case emoji=4:1
    """
    from fedhh.audit import audit_log

    stated, _ = _rules(rules, use_case or [], pipeline)
    _finish(audit_log(stated, file), output_format)


def _rules(
    rules: str | None, use_cases: list[str], pipeline: str | None, also: str = ""
) -> tuple[Rules, dict[str, Any] | None]:
    """Return what is stated of devices that send under caps, and how their records wait."""
    from fedhh.audit.pipelines import rules_of_pipeline
    from fedhh.cli.account.rule_text import rules_given
    from fedhh.longitudinal.ledger import APPLE, rules_of_configuration
    from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS

    if sum((rules is not None, bool(use_cases), bool(pipeline))) != 1:
        raise InputError(f"Expected one of --rules, --use-case, --pipeline{also}.")
    if pipeline is not None:
        return rules_of_pipeline(pipeline)
    if rules is not None:
        require_choice(["apple", *CONFIGURATIONS], rules=rules)
        return (APPLE if rules == "apple" else rules_of_configuration(CONFIGURATIONS[rules])), None
    stated = rules_given(use_cases)
    if len(stated.caps) < len(stated.charges):
        raise InputError("Expected each use case once in --use-case.")
    return stated, None


def _finish(verdict: Verdict, how: Format, figure: Path | None = None) -> None:
    """Print a verdict; exit code 1 if it refutes."""
    from fedhh.audit.report import audit_parts, plot_trade_offs
    from fedhh.cli.console import open_console
    from fedhh.cli.text_tables import print_result

    if figure is not None:
        plot_trade_offs(figure, verdict)
    console = open_console(width_unless_terminal=120)
    print_result(how, verdict.to_dict, audit_parts(verdict), console=console, figure=figure)
    if verdict.refuted:
        raise typer.Exit(1)
