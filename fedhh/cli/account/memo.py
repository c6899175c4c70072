"""`fedhh account memo`: what all reports of a device reveal, memoized and with fresh noise."""

from __future__ import annotations

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
    SampleSeed,
    asked_of,
    settings_given,
)
from fedhh.cli.options import FigureOption, Format, FormatOption
from fedhh.validation import InputError


def memo(  # noqa: PLR0917 - typer makes these options, none is positional
    answer: Annotated[
        str, typer.Option(help="rappor, one-bit-mean, dbitflip, or fresh for any oracle's noise.")
    ],
    local_epsilon: Annotated[
        float,
        typer.Option(help="Of all reports about one value, however many; with fresh, of one."),
    ],
    days: Annotated[int, typer.Option(help="A report on each, 1 to 1000.")],
    changes: Annotated[int, typer.Option(help="How often the value of a history changes.")] = 1,
    bits: Bits = None,
    hashes: Hashes = None,
    p: ChanceFromZero = None,
    q: ChanceFromOne = None,
    gamma: Gamma = None,
    buckets: Buckets = None,
    drawn: Drawn = None,
    oracle: Annotated[str | None, typer.Option(help="fresh: an oracle's key; grr if none.")] = None,
    domain_size: Annotated[int | None, typer.Option(help="fresh: values; 10 if none.")] = None,
    crowd: Annotated[
        int | None,
        typer.Option(help="Find the device again among so many, by simulation; 2 to 10000."),
    ] = None,
    seed: SampleSeed = 0,
    figure: FigureOption = None,
    output_format: FormatOption = Format.TABLE,
) -> None:
    """What an observer of all reports of a device learns over days: memoized against fresh noise.

    Of the two values that are easiest to distinguish: the epsilon of always the one against always
    the other, how often the best observer is right which it was, and whether the value changed. 50%
    is guessing. Unit: all reports of one device, linked.

    Example: fedhh account memo --answer rappor --local-epsilon 4.4 --days 365 --figure memo.png
    """
    options = asked_of(locals())
    from fedhh.cli.text_tables import print_result
    from fedhh.longitudinal.memoization import account_memo
    from fedhh.longitudinal.report.account_tables import memo_parts

    asked = {name: options.pop(name) for name in ("answer", "local_epsilon", "days", "changes")}
    seed, crowd = options.pop("seed"), options.pop("crowd", None)
    settings = settings_given(answer, **options)
    if answer == "fresh" and crowd is not None:
        raise InputError(
            "Expected no --crowd with --answer fresh: nothing links a device's reports."
        )
    found = account_memo(**asked, crowd=crowd, seed=seed, **settings)
    if figure is not None:
        from fedhh.longitudinal.report.account_figures import plot_memo

        plot_memo(figure, found.rows, forever=found.epsilon_forever, title=found.title)
    print_result(output_format, found.to_dict, memo_parts(found, crowd), figure=figure)
