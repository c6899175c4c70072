"""Options that commands on privacy share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from fedhh.validation import InputError, require_choice


class AccountFormat(StrEnum):
    """How results of accounting are printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MARKDOWN = "markdown"
    LATEX = "latex"
    DP_EVENT = "dp-event"


AccountFormatOption = Annotated[
    AccountFormat,
    typer.Option(
        "--format",
        help="How to print the result; dp-event: as an event of dp-accounting, where it has one.",
    ),
]
LocalEpsilon = Annotated[float, typer.Option(help="Privacy of one report, 0.1 to 16.")]
Reports = Annotated[int, typer.Option("--reports", help="Reports shuffled together in one layer.")]
Delta = Annotated[float, typer.Option(help="Central delta, 1e-14 to 0.1.")]
DomainSize = Annotated[
    int | None, typer.Option(help="Values of Subset Selection, the dummy included.")
]
HonestShare = Annotated[
    float | None,
    typer.Option(help="Share of the clients who tell nobody what they sent; the others do."),
]
Colluders = Annotated[
    int | None,
    typer.Option(help="Clients who tell the server what they sent, of a whole --population."),
]
Population = Annotated[
    int | None, typer.Option(help="With --colluders: clients that a cohort is drawn from.")
]
ExcessChance = Annotated[
    float | None,
    typer.Option(
        help="With --colluders: chance of more in a cohort than is stated, added to delta; 1e-12."
    ),
]
ChosenCohort = Annotated[
    bool,
    typer.Option(
        "--chosen-cohort",
        help="With --colluders: the server chooses who is in a cohort, so all of them are.",
    ),
]
SampleSeed = Annotated[int, typer.Option("--seed", help="Seed of what is simulated.")]
Confidence = Annotated[float, typer.Option(help="Of the verdict, all parts together.")]
RulesOption = Annotated[
    str | None,
    typer.Option(
        "--rules",
        metavar="SYSTEM",
        help="Rules of a system: apple (its published caps), or as audited by Tang et al. "
        "(2017): macos-10.12, macos-10.12.1, ios-10.1.1, ios-11-beta.",
    ),
]
UseCaseOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=EPSILON:RECORDS",
        help="Rules of your own; repeatable. In full "
        "NAME=EPSILON:RECORDS/DAYS:ROLLOVER:LIFETIME: the epsilon of a record (2+6 if it is "
        "two reports), how many are sent in so many days (one if not said), how many unused "
        "ones are kept (0 if not said; or unlimited), how many are ever sent.",
    ),
]

# Of memoized answers.
Bits = Annotated[int | None, typer.Option(help="rappor: bits of a filter; 128 if none.")]
Hashes = Annotated[int | None, typer.Option(help="rappor: hash functions; 2 if none.")]
ChanceFromZero = Annotated[
    float | None, typer.Option("--p", help="rappor: chance of a 1 for a permanent 0; 0.5.")
]
ChanceFromOne = Annotated[
    float | None, typer.Option("--q", help="rappor: chance of a 1 for a permanent 1; 0.75.")
]
Gamma = Annotated[
    float | None, typer.Option(help="one-bit-mean, dbitflip: chance of a flip; 0 if none.")
]
Buckets = Annotated[int | None, typer.Option(help="dbitflip: buckets; 32 if none.")]
Drawn = Annotated[
    int | None, typer.Option(help="dbitflip: buckets that a device draws; 4 if none.")
]


def given(**options: Any) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def asked_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return what a command passes on: what was given, without how it is printed, by name.

    Of colluders it is the `Collusion`; InputError for options of theirs that lack others.
    """
    asked = given(**options)
    for of_printing in ("figure", "output_format"):
        asked.pop(of_printing, None)
    chosen = asked.pop("chosen_cohort", False)
    told = {name: asked.pop(name, None) for name in ("colluders", "population", "excess_chance")}
    if told["colluders"] is None:
        lacking = [*given(**told), *(["chosen_cohort"] if chosen else [])]
        if lacking:
            raise InputError(f"Expected {named(lacking[0])} only with --colluders.")
        return asked
    if told["population"] is None:
        raise InputError("Expected --population with --colluders, got none.")
    if chosen and told["excess_chance"] is not None:
        raise InputError("Expected --excess-chance or --chosen-cohort, got both.")
    from fedhh.accounting.collusion import Collusion

    told["num_clients"] = told.pop("population")
    if chosen:
        told["cohorts_by"] = "server"
    return {**asked, "collusion": Collusion(**given(**told))}


def named(option: str) -> str:
    """Return an option as it is given."""
    return f"--{option.replace('_', '-')}"


def settings_given(answer: str, **options: Any) -> dict[str, Any]:
    """Return the settings of a memoized answer that were given; InputError for another's."""
    from fedhh.longitudinal.memoization import ANSWERS

    require_choice(ANSWERS, answer=answer)
    settings = given(**options)
    for name in settings.keys() - ANSWERS[answer].keys():
        raise InputError(
            f"Expected no {named(name)} with --answer {answer}, which takes "
            f"{', '.join(map(named, ANSWERS[answer]))}."
        )
    return settings
