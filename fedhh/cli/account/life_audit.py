"""`fedhh account audit-life`: what devices gave away over their lives, beside what is stated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    given,
    settings_given,
)
from fedhh.cli.options import Format, FormatOption
from fedhh.validation import InputError, require_choice

if TYPE_CHECKING:
    from fedhh.longitudinal.audit import LongitudinalVerdict


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
        str | None, typer.Option(help="Audit a memoised answer: rappor, one-bit-mean or dbitflip.")
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
        int | None, typer.Option(help="That live each life; 20000 if not said, 3000 with --answer.")
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
    from fedhh.cli.account.life_audit_tables import print_life_audit
    from fedhh.cli.console import print_json, print_written

    if plot is not None and (transcript is not None or preset not in {None, "apple"}):
        raise InputError("Expected --plot only where reports are read: with simulated devices.")
    settings = given(bits=bits, hashes=hashes, p=p, q=q, gamma=gamma, buckets=buckets, drawn=drawn)
    lives = given(num_days=days, num_devices=devices)
    if answer is not None:
        if preset or use_case or pipeline or transcript:
            raise InputError(
                "Expected --answer without --preset, --use-case, --pipeline and --transcript: it "
                "has no caps."
            )
        if local_epsilon is None:
            raise InputError("Expected --local-epsilon with --answer.")
        from fedhh.longitudinal.audit import audit_memo

        verdict = audit_memo(
            answer,
            local_epsilon=local_epsilon,
            **lives,
            confidence=confidence,
            seed=seed,
            **settings_given(answer, **settings),
        )
    else:
        for option in given(local_epsilon=local_epsilon, **settings):
            raise InputError(f"Expected --{option.replace('_', '-')} only with --answer.")
        verdict = _audit_rules(
            preset, use_case or [], pipeline, transcript, lives, confidence, seed
        )
    if plot is not None:
        from fedhh.longitudinal.report.account_figures import plot_trade_offs

        plot_trade_offs(plot, verdict.shown)
    if output_format is Format.JSON:
        print_json(verdict.to_dict())
    else:
        print_life_audit(verdict)
        if plot is not None:
            print_written(plot)
    if verdict.refuted:
        raise typer.Exit(1)


def _audit_rules(  # noqa: PLR0917 - options, as they were given
    preset: str | None,
    use_cases: list[str],
    pipeline: str | None,
    transcript: Path | None,
    lives: dict[str, Any],
    confidence: float,
    seed: int,
) -> LongitudinalVerdict:
    """Audit what sends under caps."""
    from fedhh.longitudinal.audit import audit_budget_manager
    from fedhh.longitudinal.ledger import APPLE, rules_of_configuration
    from fedhh.longitudinal.ledger.macos_presets import CONFIGURATIONS
    from fedhh.longitudinal.pipeline.audits import audit_devices, audit_log, rules_of_pipeline

    if sum((preset is not None, bool(use_cases), bool(pipeline))) != 1:
        raise InputError("Expected one of --preset, --use-case, --pipeline and --answer.")
    rules, waiting = APPLE, None
    if pipeline is not None:
        rules, waiting = rules_of_pipeline(pipeline)
    elif preset is not None:
        require_choice(["apple", *CONFIGURATIONS], preset=preset)
        if preset in CONFIGURATIONS:
            rules = rules_of_configuration(CONFIGURATIONS[preset])
    else:
        from fedhh.cli.account.rule_text import rules_given

        rules = rules_given(use_cases)
        if len(rules.caps) < len(rules.charges):
            raise InputError("Expected each use case once in --use-case.")
    if transcript is not None:
        if lives:
            raise InputError("Expected --transcript without --days and --devices: a log has both.")
        return audit_log(rules, transcript)
    if preset is not None and preset in CONFIGURATIONS:
        if "num_devices" in lives:
            raise InputError(
                "Expected no --devices with an audited system, whose devices are alike."
            )
        return audit_budget_manager(preset, **lives, seed=seed)
    return audit_devices(rules, waiting=waiting, **lives, confidence=confidence, seed=seed)
