"""Second opinions as the commands print them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fedhh.accounting.second_opinion import SecondOpinion


def print_opinions(opinions: Sequence[SecondOpinion]) -> None:
    """Print fedhh's epsilons next to dp-accounting's bounds on them; a line if there are none."""
    from rich.table import Table

    from fedhh.accounting.guarantees import NotApplicable
    from fedhh.cli.console import open_console, print_line

    console = open_console()
    if not opinions:
        print_line(console, "No second opinion: no privacy losses are composed here.")
        return
    table = Table(title=f"second opinion: bounds of dp-accounting {opinions[0].version}")
    table.add_column("epsilon of", overflow="fold")
    for heading in ("delta", "lower bound", "fedhh", "upper bound", "difference"):
        table.add_column(heading, justify="right")
    for each in opinions:
        stated = each.epsilon
        difference = each.difference
        table.add_row(
            each.claim,
            f"{each.delta:g}",
            f"{math.floor(each.lower * 1e6) / 1e6:.9g}",
            "none" if isinstance(stated, NotApplicable) else _up(stated),
            _up(each.upper),
            "" if difference is None else f"{difference:.2g}",
        )
    table.caption = (
        "difference: fedhh minus the upper bound. fedhh's epsilon is the one to state, also where "
        "the upper bound is smaller."
    )
    console.print(table)


def _up(epsilon: float) -> str:
    return f"{math.ceil(epsilon * 1e6) / 1e6:.9g}" if math.isfinite(epsilon) else "none"
